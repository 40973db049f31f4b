"""P2: a pool is never newly charged beyond what it publishes minus what exists (a replacement may stand on
the nodes of the replica it replaces).

P3: kept + placed never exceeds `replicas`.

P24: a changed default makes no pool overcommitted and no replica mismatched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.properties.worlds import each_batch, hold
from tests.support.apply import apply
from tests.support.drive import run
from tests.support.generate import Taste
from tests.support.promises.ledger import overcharged, too_many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.drive import Answer
    from tests.support.world import World

CALM = Taste(doubt=0.0, oddity=0.0, own_replicas=0.9)


@each_batch
def test_no_pool_is_charged_beyond_what_it_has(number: int) -> None:
    hold(number, overcharged)


@each_batch
def test_never_more_than_wanted(number: int) -> None:
    hold(number, too_many)


@each_batch
def test_the_switch_to_devices_disturbs_nothing(number: int) -> None:
    """P24: what was placed by whole nodes is not overcommitted, nor mismatched, once devices are charged."""

    def disturbed(world: World, answer: Answer) -> Iterator[str]:
        by_nodes = _accounted(world, "Node")
        settled = apply(by_nodes, run(by_nodes))
        before, after = run(settled), run(_accounted(settled, "Device"))
        if before.decision is None or after.decision is None:
            return
        held = {(one.cluster, one.pool) for one in before.decision.overcommitted}
        for one in after.decision.overcommitted:
            if (one.cluster, one.pool) not in held:
                yield f"overcommitted by the switch: {one}"
        unmatched = {kept.own_replica.key for kept in before.decision.kept if kept.mismatch}
        for kept in after.decision.kept:
            if kept.mismatch and kept.own_replica.key not in unmatched:
                yield f"{kept.own_replica.key} is mismatched by the switch: {kept.mismatch}"
        # One that was mismatched before may find the place now that it lacked.
        for key in sorted(before.desired.keys() - after.desired.keys() - unmatched):
            if key in settled.observed and key.startswith("replica-"):
                yield f"{key} leaves by the switch"

    hold(number, disturbed, quick=120, taste=CALM)


def _accounted(world: World, accounting: str) -> World:
    """Return the world with all pools charged in one way."""
    made = world.copy()
    for cluster in made.clusters or ():
        pools = [
            *cluster.get("spec", {}).get("nodePools", ()),
            *cluster.get("status", {}).get("gpuPools", ()),
        ]
        for pool in pools:
            pool["accounting"] = accounting
    return made
