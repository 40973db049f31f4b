"""P1: doubt never removes a running replica or its endpoint: everything own and observed is desired, or the
result is fatal, unless one of the reasons the law lists is recorded.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.properties.worlds import each_batch, hold
from tests.support import law
from tests.support.apply import apply
from tests.support.drive import run
from tests.support.generate import Taste
from tests.support.parts import members_of, requests_of
from tests.support.promises.doubt import DOUBTFUL, unexplained, unrecorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.drive import Answer
    from tests.support.world import World

Plain = dict[str, Any]
MANY = 33
"""Devices of a node for each that there were."""
CALM = Taste(doubt=0.0, oddity=0.0, own_replicas=0.9)


@each_batch
def test_everything_own_and_observed_is_desired_unless_the_law_lists_a_reason(number: int) -> None:
    hold(number, unexplained, taste=DOUBTFUL)


@each_batch
def test_the_reason_is_recorded(number: int) -> None:
    hold(number, unrecorded)


@each_batch
def test_while_the_fleet_is_not_delivered_nothing_leaves(number: int) -> None:
    def left(world: World, answer: Answer) -> Iterator[str]:
        for blind in (
            world.but(clusters=None),
            world.but(replicas=None),
            world.but(clusters=(), replicas=None),
        ):
            yield from law.unexplained(blind, run(blind))

    hold(number, left, quick=120, taste=DOUBTFUL)


@each_batch
def test_what_kubernetes_would_not_allocate_gates_new_placements_only(number: int) -> None:
    """An upgrade is doubt: replicas that were placed before a rule was known stay, stamped as they are."""

    def changed(world: World, answer: Answer) -> Iterator[str]:
        before = _placed_before(apply(world, answer))
        after = run(before)
        kept = [key for key in before.observed if key.startswith("replica-") and _fits(answer, key)]
        for key in kept if after.decision and not after.decision.stopped else ():
            if key not in after.desired:
                yield f"{key} is gone"
            elif not _fits(after, key):
                yield f"{key} is mismatched"
            elif _claims(after.desired[key]) != _claims(before.observed[key]):
                yield f"{key}: {_claims(before.observed[key])} became {_claims(after.desired[key])}"

    hold(number, changed, quick=120, taste=CALM)


def _fits(answer: Answer, key: str) -> bool:
    """Say whether a replica stays in its place: what is mismatched may leave for another."""
    decision = answer.decision
    if decision is None or len(decision.kept) + len(decision.placed) > decision.wanted:
        return False
    return key in answer.desired and all(
        kept.mismatch is None for kept in decision.kept if kept.own_replica.key == key
    )


def _claims(replica: Plain) -> list[Plain]:
    return [
        {key: member.get(key) for key in ("nodePoolName", "deviceRequests")}
        for engine in replica["spec"]["engines"]
        for member in engine["members"]
    ]


def _placed_before(world: World) -> World:
    """Return the world with claims too large, in another order, on tainted devices, beside such that err."""
    old = world.copy()
    for request in (item for member in members_of(old.deployment) for item in requests_of(member)):
        request["count"] = MANY * request.get("count", 1)
    for replica in (*old.observed.values(), *(old.replicas or ())):
        for member in (m for engine in replica["spec"].get("engines", ()) for m in engine["members"]):
            for stamped in member.get("deviceRequests", ()):
                stamped["count"] *= MANY
            member.get("deviceRequests", []).reverse()
    for cluster in old.clusters or ():
        for pool in cluster.get("status", {}).get("gpuPools", ()):
            for device in pool["devices"]:
                device["count"] = MANY * device.get("count", 1)
                device["taints"] = [{"key": "xid", "value": "79", "effect": "NoExecute"}]
            same = ("driver", "claim", "deviceClassName")
            odd = {
                json.dumps({key: device.get(key) for key in same if key in device})
                for device in pool["devices"]
            }
            pool["devices"] += [
                json.loads(one) | {"name": f"odd{at}", "count": 1} for at, one in enumerate(sorted(odd))
            ]
    return old
