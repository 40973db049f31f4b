"""P17: a burst of deployments ends without an overcommitted pool, with the Composition as shipped.

In a simulated control plane that takes snapshots early and applies late (`burst`); `tests/live/burst.py`
plays the same in a living one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulate.burst import CHURN, SHIPPED, SMALL, Burst, Kind, deployment_of, limited
from tests.simulate.swarm import held
from tests.support.scale import count

if TYPE_CHECKING:
    from collections.abc import Mapping

SEEDS = range(count(2, 100, 1_000))
MANY = range(count(8, 400, 2_000))
"""Seeds of small fleets: what happens in a burst of thirty replicas each time, happens in few of these."""
YIELD, ORDER = {"overcommit": "Yield"}, {"coordination": "GlobalOrder"}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "as shipped": SHIPPED,
    "Yield alone": YIELD,
    "published charges": YIELD | {"capacity": "Published"},
    "none": {},
    "none, published charges": {"capacity": "Published"},
    "the order alone": ORDER,
}
MENDED = ("as shipped", "Yield alone", "published charges")

WIDE = Kind(deployments=10, replicas=(3,), clusters=30)
KINDS = {
    "twice the nodes that are needed": WIDE,
    "as many nodes as are needed": Kind(deployments=10, replicas=(3,), clusters=15),
    "fewer nodes than are needed": Kind(deployments=10, replicas=(3,), clusters=10),
    "deployments, pools and replicas of all sizes": Kind(clusters=14, nodes=(1, 2, 3), copies=(1, 1, 2)),
    "replicas that become Ready on the way": Kind(deployments=10, replicas=(3,), clusters=20, start=8.0),
    "everything at once": Kind(deployments=10, replicas=(3,), clusters=20, within=0.5),
}


@cache
def played(settings: str, kind: Kind, seed: int) -> Burst:
    """Play a burst, once for all tests that look at it."""
    return Burst(seed, dict(SETTINGS[settings]), kind).play()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("settings", MENDED)
def test_a_burst_ends_with_no_pool_overcommitted_and_nobody_waiting_for_a_free_node(
    settings: str, kind: Kind
) -> None:
    for seed in SEEDS:
        assert not played(settings, kind, seed).broken(), seed


@pytest.mark.parametrize("kind", [SMALL, CHURN], ids=["they start", "they come and go"])
@pytest.mark.parametrize("settings", MENDED)
def test_so_does_a_small_fleet(settings: str, kind: Kind) -> None:
    for seed in MANY:
        assert not played(settings, kind, seed).broken(), seed


@pytest.mark.parametrize("coordination", ["None", "GlobalOrder"])
def test_a_quota_that_was_passed_at_once_is_kept_at_rest(coordination: str) -> None:
    """Every replica is of one namespace. The youngest that never was Ready gives way, and stays away.

    Those that turned Ready before anybody saw it stay: what runs is not taken away for a quota. Where nobody
    turns Ready nobody is excused.
    """
    mended = 0
    for seed in MANY:
        given = limited(3) | {"coordination": coordination}
        mended += Burst(seed, given, CHURN).live().events["ReplicaOverQuota"]
        Burst(seed, given, replace(CHURN, start=None)).live()
    assert mended or coordination != "None", "it was never passed: the test would prove nothing"


def test_the_order_alone_overcommits_no_pool_while_deployments_start() -> None:
    """Every instance gives every node to the same one. Once replicas come and go, fewer meet than without."""
    for seed in MANY:
        started = played("the order alone", SMALL, seed)
        assert not started.overcommitted, seed
        assert not started.ready_removed, seed
    ordered, without = (
        sum(bool(played(settings, CHURN, seed).overcommitted) for seed in MANY)
        for settings in ("the order alone", "none")
    )
    assert ordered < without


def test_all_that_are_too_many_give_way_in_one_pass() -> None:
    """With Yield alone all of them meet on the first clusters, and most often leave in the pass that sees it.

    A snapshot from between two of these passes lets a few meet once more. One from each pool in each pass,
    or all of them on the next cluster, would be more than half as many again that give way.
    """
    beyond, at_once = 10 * 3 - 3 * 2, 0
    for seed in SEEDS:
        passes = played("Yield alone", WIDE, seed).passes.values()
        given_up = sum(replicas.total() for replicas in passes)
        assert given_up <= 1.5 * beyond, seed
        at_once += given_up == beyond and max(map(len, passes)) == 1
    assert at_once >= len(SEEDS) / 2


@pytest.mark.parametrize("settings", MENDED)
def test_an_overcommitted_pool_is_told_in_the_condition_of_every_deployment_on_it(
    settings: str,
) -> None:
    overcommitted = 0
    for seed in SEEDS:
        burst = played(settings, WIDE, seed)
        for name, answer in burst.answers.items():
            assert answer.reason("CapacityRespected") == "CapacityRespected", "the end is calm"
            overcommitted += "PoolOvercommitted" in burst.reasons[name]
        assert len(burst.answers) == WIDE.deployments
    assert overcommitted, "nothing was ever overcommitted: the test would prove nothing"


def test_what_turns_ready_after_the_snapshot_does_not_give_way() -> None:
    """Crossplane writes to what it deletes first, with the version of its snapshot, and is refused."""
    starting = KINDS["replicas that become Ready on the way"]
    bursts = [played("Yield alone", starting, seed) for seed in SEEDS]
    refused = any(burst.plane.counted("refused") for burst in bursts)
    assert refused, "it never happened: the test would prove nothing"
    assert not any(burst.ready_removed for burst in bursts)


def test_without_the_settings_pools_end_overcommitted() -> None:
    """This is what the others prevent; were it otherwise, they would prove nothing."""
    for seed in SEEDS:
        excess = played("none", WIDE, seed).excess()
        assert excess == {(f"c{number:02}", "p0"): 8 for number in range(3)}, seed


@pytest.mark.parametrize("settings", ["none", "none, published charges"])
def test_without_the_settings_every_deployment_on_an_overcommitted_pool_says_so(settings: str) -> None:
    ended_so = 0
    for seed in MANY:
        burst = played(settings, SMALL, seed)
        assert not burst.ready_removed, seed
        for where in burst.excess():
            ended_so += 1
            on = [plain for plain in burst.replicas().values() if held(plain)[:2] == where]
            for name in map(deployment_of, on):
                message = burst.answers[name].conditions["ReplicasScheduled"][2]
                said = message.partition("PoolOvercommitted: ")[2]
                assert f"{'/'.join(where)} holds" in said, (seed, name)
    assert ended_so > len(MANY) // 10


def test_an_episode_is_the_same_for_the_same_seed() -> None:
    one, two = (Burst(5, dict(SHIPPED)).play() for _ in range(2))
    assert one.plane.objects == two.plane.objects
    assert one.plane.counted("calls") == two.plane.counted("calls")


def test_what_is_left_out_of_an_episode_does_not_happen() -> None:
    whole = Burst(5, dict(SHIPPED), CHURN).play()
    assert len(whole.happened) == whole.chances
    empty = Burst(5, dict(SHIPPED), CHURN, frozenset(range(whole.chances))).play()
    assert not empty.happened
