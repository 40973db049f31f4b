"""Two deployments, one node: what happens when composites reconcile at once from lists that lag behind."""

from __future__ import annotations

import pytest

from tests.simulate.race import Race, held, is_ready
from tests.support import build
from tests.support.scale import count

EPISODES = range(count(12, 600, 3_000))
YIELD = {"overcommit": "Yield"}
ORDER = {"coordination": "GlobalOrder"}
CHARGES = {"capacity": "Published"}


@pytest.mark.parametrize("settings", [{}, CHARGES], ids=["all replicas", "published charges"])
def test_without_yield_pools_are_overcommitted_and_every_deployment_there_says_so(
    settings: dict[str, str],
) -> None:
    """This is what the other tests prevent: without it they would prove nothing.

    A sum that is old lets no more happen unseen than a list that is: every pool that ends overcommitted is
    in the condition of every deployment on it.
    """
    ended_so = 0
    for seed in EPISODES:
        race = Race(seed, settings).play()
        assert not race.ready_removed, seed
        for where in race.crowded():
            ended_so += 1
            for name in race.on(where):
                scheduled = next(e for e in race.answers[name].conditions if e.type == "ReplicasScheduled")
                said = scheduled.message.partition("PoolOvercommitted: ")[2]
                assert f"{where[0]}/{where[1]} holds" in said, (seed, name)
    assert ended_so > len(EPISODES) // 10


@pytest.mark.parametrize("churn", [False, True])
@pytest.mark.parametrize(
    "settings",
    [YIELD, YIELD | ORDER, YIELD | CHARGES],
    ids=["Yield", "Yield and GlobalOrder", "Yield and published charges"],
)
def test_with_yield_no_pool_stays_overcommitted_and_no_ready_replica_goes(
    settings: dict[str, str], *, churn: bool
) -> None:
    happened = 0
    for seed in EPISODES:
        race = Race(seed, settings, churn=churn).play()
        happened += bool(race.overcommitted)
        assert not race.crowded(), seed
        assert not race.ready_removed, seed
    assert happened or settings != YIELD, "nothing was ever overcommitted: the test would prove nothing"


@pytest.mark.parametrize("coordination", ["None", "GlobalOrder"])
def test_a_quota_that_was_passed_at_once_is_kept_at_rest(coordination: str) -> None:
    """Every replica is of one namespace. The youngest that never was Ready gives way, and stays away.

    Those that turned Ready before anybody saw it stay: what runs is not taken away for a quota.
    """
    limit, mended = 3, 0
    quota = {"name": "few", "namespaces": [build.NAMESPACE], "atMost": {"nodes": limit}}
    settings = {"quotas": [quota], "coordination": coordination}
    for seed in EPISODES:
        race = Race(seed, YIELD | settings, churn=True).play()
        mended += any(result.reason == "ReplicaOverQuota" for result in race.results)
        starting = [
            one for name, one in race.replicas.items() if name not in race.dying and not is_ready(one)
        ]
        assert nodes_held(race) <= limit or not starting, seed
        assert not race.crowded(), seed
        assert not race.ready_removed, seed
    assert mended or coordination != "None", "it was never passed: the test would prove nothing"


def nodes_held(race: Race) -> int:
    """Nodes that living replicas hold."""
    return sum(held(replica)[2] for name, replica in race.replicas.items() if name not in race.dying)


def test_with_global_order_alone_no_pool_is_ever_overcommitted_while_deployments_start() -> None:
    """Every instance gives every node to the same deployment, however old its list is."""
    for seed in EPISODES:
        race = Race(seed, ORDER).play()
        assert not race.overcommitted, seed
        assert not race.ready_removed, seed


def test_global_order_alone_does_not_mend_what_old_lists_did_once_replicas_come_and_go() -> None:
    """Equal snapshots give disjoint claims; unequal ones may not, and only Yield takes a claim back."""
    alone = sum(bool(Race(seed, ORDER, churn=True).play().overcommitted) for seed in EPISODES)
    without = sum(bool(Race(seed, {}, churn=True).play().overcommitted) for seed in EPISODES)
    assert alone < without


def test_every_episode_ends_with_what_the_fleet_has_room_for() -> None:
    """Nothing is lost by coordinating: nobody waits for a node that nobody takes."""
    for seed in EPISODES:
        race = Race(seed, YIELD | ORDER).play()
        free = {
            (cluster["metadata"]["name"], pool["name"]): pool["nodes"]
            for cluster in race.clusters
            for pool in cluster["status"]["gpuPools"]
        }
        for replica in race.replicas.values():
            engine = replica["spec"]["engines"][0]
            free[replica["spec"]["clusterName"], engine["members"][0]["nodePoolName"]] -= engine["copies"]
        for deployment in race.deployments:
            missing = deployment["spec"]["replicas"] - len(race.observed_of(deployment))
            needs = deployment["spec"]["template"]["spec"]["engines"][0].get("copies", 1)
            assert not missing or max(free.values()) < needs, (seed, deployment["metadata"]["name"])
