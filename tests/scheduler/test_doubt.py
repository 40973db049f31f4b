"""What cannot be told keeps a replica and says what it is; what can be told says why it is mismatched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from function.scheduler.outcomes import Mismatch
from tests.support import build
from tests.support.cases import ask, one, single
from tests.support.scarce import decide
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.scheduler.outcomes import Kept

Plain = dict[str, Any]
NO_SUCH = "no such key: nosuch (the device has no attribute gpu.nvidia.com/nosuch)"
ERRS = 'device.attributes["gpu.nvidia.com"].nosuch == "x"'

ERRS_FIRST = {
    "name": "gpu",
    "firstAvailable": [
        {"name": "errs", "count": 2, "selectors": [{"cel": ERRS}]},
        {"name": "any", "count": 4, "selectors": [{"cel": build.GPUS}]},
    ],
}


def kept(
    now: Plain,
    fleet: list[Plain] | None,
    *,
    was: Plain | None = None,
    pools: str | list[str] = "p0",
    **more: Any,
) -> Kept:
    """How the one replica that runs is kept."""
    own_replica = build.replica(was or ask(), "a", 0, pools=pools, ready=True)
    [replica] = decide(World(now, fleet, [own_replica], build.observed(own_replica), **more)).kept
    return replica


def asks(*selectors: str, count: int = 8, name: str = "gpu", engine: str = "main", **more: Any) -> Plain:
    return ask(engines=[single(build.request(name, count, *selectors), name=engine, **more)])


def undevised(nodes: int = 1) -> list[Plain]:
    """A pool that does not publish its devices."""
    return [one("a", pools=[{"name": "p0", "nodes": nodes}])]


def unpublished() -> list[Plain]:
    """A pool that is declared and not published."""
    made = one("a", pools=[build.pool("p0", 1)])
    made["status"]["gpuPools"] = []
    return [made]


def closed() -> list[Plain]:
    """A cluster that takes nothing new, so that nothing is replaced on it."""
    return [one("a", 1, taints=[build.taint("x")])]


def knowing() -> Plain:
    """GPUs that publish what others do not."""
    made = build.gpu(8, name="knowing")
    made["attributes"]["nosuch"] = {"string": "x"}
    return made


def with_nic() -> Plain:
    return ask(
        engines=[single(build.request("gpu", 8), build.request("nic", 1, 'device.driver == "dra.net"'))]
    )


def with_nics(claim: str) -> list[Plain]:
    """A pool of GPUs and network cards that is closed to anything new."""
    pools = [build.pool("p0", 1, [build.gpu(8), build.nic(1, claim=claim)])]
    return [one("a", pools=pools, taints=[build.taint("x")])]


def undeclared() -> list[Plain]:
    made = one("a", pools=[build.pool("p0", 1)])
    made["spec"]["nodePools"] = [{"name": "other", "className": "any", "nodeCount": 1}]
    return [made]


TWO = [single(build.request("gpu", 8), name=name) for name in ("one", "two")]


@dataclass(frozen=True)
class Case:
    reason: str
    make: Callable[[], Kept]
    doubt: str = ""
    mismatch: Mismatch | None = None
    detail: str = ""
    updated: bool = False
    """Whether an edit that is independent of the doubt goes through."""
    until: str = ""
    """What an edit that depends on the doubt is withheld for."""


CASES = [
    Case("all as it was", lambda: kept(ask(), [one("a", 1)]), updated=True),
    Case(
        "the cluster is not told of yet",
        lambda: kept(ask(), None),
        "required resources are not delivered yet",
    ),
    Case(
        "the cluster cannot be read",
        lambda: kept(ask(), [{**one("a", 1), "status": 3}]),
        "cluster a cannot be read: status: expected a map, found a number",
        updated=True,
    ),
    Case(
        "a selector that errs before the one that would do, and not as stamped",
        lambda: kept(ask(engines=[single(ERRS_FIRST)]), [one("a", 1)]),
        "pool p0: device selector error",
        until="the selectors give an answer on pool p0",
    ),
    Case(
        "a selector that does not compile",
        lambda: kept(asks("typo("), [one("a", 1)]),
        "a selector does not compile",
    ),
    Case(
        "a pool that does not publish its devices",
        lambda: kept(ask(), undevised()),
        "pool p0 does not publish its devices",
        updated=True,
    ),
    Case(
        "other requests on a pool that does not publish its devices wait for them",
        lambda: kept(asks(count=4), undevised()),
        "pool p0 does not publish its devices",
        until="pool p0 publishes its devices",
    ),
    Case(
        "other requests where a selector errs wait for its answer",
        lambda: kept(asks(ERRS, count=4), [one("a", 1)]),
        f"pool p0: device selector error: {NO_SUCH}",
        until="the selectors give an answer on pool p0",
    ),
    Case(
        "a pool that is declared and not published",
        lambda: kept(ask(), unpublished()),
        "pool p0 is not published",
        updated=True,
    ),
    Case(
        "growth on a pool that is not published cannot be weighed",
        lambda: kept(ask(engines=[{**single(build.request("gpu", 8)), "copies": 2}]), unpublished()),
        "pool p0 is not published",
        until="pool p0 is published",
    ),
    Case(
        "other requests on a pool that is not published neither",
        lambda: kept(asks(count=4), unpublished()),
        "pool p0 is not published",
        until="pool p0 is published",
    ),
    Case(
        "nor another cache",
        lambda: kept(ask(cache="weights"), [one("a", 1, labels={"x": "y"})], cache=[]),
        "ModelCache weights does not exist",
        until="ModelCache weights exists",
    ),
    Case(
        "nor one that is not told of",
        lambda: kept(ask(cache="weights"), [one("a", 1)]),
        "ModelCache weights is not known yet",
        until="ModelCache weights is known",
    ),
    Case(
        "a cache that is wanted no more", lambda: kept(ask(), [one("a", 1)], was=ask(cache="x")), updated=True
    ),
    Case(
        "other requests where the cluster cannot be read",
        lambda: kept(asks(count=4), [{**one("a", 1), "status": 3}]),
        "cluster a cannot be read: status: expected a map, found a number",
        until="cluster a can be read",
    ),
    Case(
        "other requests where the list of clusters is empty",
        lambda: kept(asks(count=4), []),
        "cluster a is not known",
        until="cluster a is known",
    ),
    Case(
        "several doubts",
        lambda: kept(
            ask(engines=TWO),
            [one("a", pools=[{"name": name, "nodes": 1} for name in ("p0", "p1")])],
            was=ask(engines=TWO),
            pools=["p0", "p1"],
        ),
        "pool p0 does not publish its devices; pool p1 does not publish its devices",
        updated=True,
    ),
    Case(
        "a selector that errs on the pool",
        lambda: kept(asks(ERRS), [one("a", 1)]),
        f"pool p0: device selector error: {NO_SUCH}",
        updated=True,
    ),
    Case(
        "a selector that errs, and more copies than the pool has room for: doubt wins",
        lambda: kept(
            ask(engines=[{**single(build.request("gpu", 8, ERRS)), "copies": 2}]), [one("a", 1), one("b", 9)]
        ),
        f"pool p0: device selector error: {NO_SUCH}; pool p0 needs 1 more",
        until="the selectors give an answer on pool p0",
    ),
    Case(
        "a selector that errs on one entry, though another would do: nothing is settled by it",
        lambda: kept(
            asks(ERRS, name="other"), [one("a", pools=[build.pool("p0", 1, [knowing(), build.gpu(8)])])]
        ),
        f"pool p0: device selector error: {NO_SUCH}",
        until="the selectors give an answer on pool p0",
    ),
    Case(
        "a node selector that errs on the pool",
        lambda: kept(
            ask(
                engines=[
                    single(build.request("gpu", 8), selectors=[{"cel": 'node.attributes["x"].y == "z"'}])
                ]
            ),
            [one("a", 1)],
        ),
        "pool p0: node selector error: no such key: x (the node has no attribute x)",
        updated=True,
    ),
    Case(
        "the pool is no longer declared",
        lambda: kept(ask(), undeclared()),
        mismatch=Mismatch.PoolGone,
        detail="pool p0",
    ),
    Case(
        "another name of an engine",
        lambda: kept(asks(engine="other"), [one("a", 0)]),
        mismatch=Mismatch.ShapeChanged,
    ),
    Case(
        "another count of the request, which the pool could give",
        lambda: kept(asks(count=4), closed()),
        mismatch=Mismatch.RequestsChanged,
        detail="pool p0",
    ),
    Case(
        "a request that nothing binds has no claim, so it was not stamped",
        lambda: kept(with_nic(), with_nics("Synthetic"), was=ask()),
        updated=True,
    ),
    Case(
        "one whose device can be bound by now would have a claim",
        lambda: kept(with_nic(), with_nics("DRA"), was=ask()),
        mismatch=Mismatch.RequestsChanged,
        detail="pool p0",
    ),
    Case(
        "another name of the request",
        lambda: kept(asks(name="other"), closed()),
        mismatch=Mismatch.RequestsChanged,
        detail="pool p0",
    ),
    Case(
        "devices that are others now",
        lambda: kept(
            asks(build.HOPPER), [one("a", pools=[build.pool("p0", 1, [build.gpu(8, architecture="Ada")])])]
        ),
        mismatch=Mismatch.DevicesChanged,
        detail="pool p0: no matching device: has architecture Ada, wants Hopper",
    ),
    Case(
        "a node selector that does not match the pool any more",
        lambda: kept(
            ask(engines=[single(build.request("gpu", 8), selectors=[{"cel": 'node.name == "x"'}])]), closed()
        ),
        mismatch=Mismatch.DevicesChanged,
        detail="pool p0: node selector mismatch: has name p0, wants x",
    ),
    Case(
        "fewer devices on a node",
        lambda: kept(ask(), [one("a", pools=[build.pool("p0", 1, [build.gpu(4)])])]),
        mismatch=Mismatch.DevicesChanged,
        detail="pool p0: too few devices per node",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_how_a_replica_is_kept(case: Case) -> None:
    replica = case.make()
    assert (replica.mismatch, replica.detail, replica.doubt) == (case.mismatch, case.detail, case.doubt)
    assert (replica.shape is not None) == case.updated
    assert replica.withheld_until == ((case.until,) if case.until else ())


def test_each_replica_is_compared_with_its_own_pool() -> None:
    """One has lost devices, the other has got others: what is said of the first is not said of the second."""
    pools = [build.pool("p0", 1, [build.gpu(4)]), build.pool("p1", 1, [build.nic(8, claim="DRA")])]
    own_replicas = [build.replica(ask(2), "a", at, pools=f"p{at}", ready=True) for at in range(2)]
    decision = decide(World(ask(2), [one("a", pools=pools)], own_replicas, build.observed(*own_replicas)))
    assert [replica.detail for replica in decision.kept] == [
        "pool p0: too few devices per node",
        "pool p1: no matching device: has driver dra.net, wants gpu.nvidia.com",
    ]


def test_a_replica_whose_key_cannot_be_read_is_kept_and_is_nobodys_victim() -> None:
    """However few are wanted: which replica it is cannot be told."""
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=True)
    decision = decide(World(ask(0), [one("a", 1)], [], {"replica-!": own_replica}))
    assert decision.dropped == ()
    assert [replica.doubt for replica in decision.kept] == ["the key replica-! cannot be read"]


def test_a_replica_whose_spec_cannot_be_read_is_kept_as_it_is() -> None:
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=True)
    own_replica["spec"]["engines"] = 3
    [replica] = decide(World(ask(), [one("a", 1)], [own_replica], build.observed(own_replica))).kept
    assert (replica.shape, replica.mismatch, replica.doubt) == (None, None, "the replica cannot be read")


@pytest.mark.parametrize(
    ("selectors", "config", "doubt"),
    [
        (['device.driver == "x"'], {"typo": 1}, "the input is invalid"),
        (["device.("], {}, "a selector does not compile"),
        (["device.("], {"typo": 1}, "a selector does not compile"),
    ],
)
def test_what_cannot_be_compared_is_kept_and_says_why(
    selectors: list[str], config: Plain, doubt: str
) -> None:
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=True)
    wanted = ask(engines=[single(build.request("gpu", 8, *selectors))])
    made = World(wanted, [one("a", 1)], [own_replica], build.observed(own_replica), input=config)
    assert [replica.doubt for replica in decide(made).kept] == [doubt]


DRAINED = one("a", 2, taints=[build.taint("x", "NoExecute")])


@pytest.mark.parametrize(
    ("fleet", "elsewhere", "listed", "left", "reason"),
    [
        ([one("b", 2)], False, True, 0, "its cluster is gone"),
        ([one("b", 2)], True, True, 1, "its key says a cluster that is gone, its spec one that is there"),
        ([DRAINED, one("b", 2)], False, True, 0, "its cluster drains"),
        ([DRAINED, one("b", 2)], True, True, 1, "its key says a cluster that drains, its spec another one"),
        ([DRAINED, one("b", 2)], False, False, 1, "its cluster drains, and the replicas are not delivered"),
    ],
)
def test_what_befalls_a_cluster_takes_only_what_is_sure_to_run_there(
    fleet: list[Plain], left: int, reason: str, *, elsewhere: bool, listed: bool
) -> None:
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=True)
    own_replica["spec"]["clusterName"] = "b" if elsewhere else "a"
    replicas = [own_replica] if listed else None
    decision = decide(World(ask(), fleet, replicas, build.observed(own_replica)))
    assert [replica.own_replica.key for replica in decision.kept] == ["replica-a-0"] * left, reason


def test_one_whose_alternative_is_gone_has_another_shape() -> None:
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=True)
    own_replica["metadata"]["labels"]["modelplane.ai/alternative"] = "gone"
    [replica] = decide(World(ask(), closed(), [own_replica], build.observed(own_replica))).kept
    assert replica.mismatch is Mismatch.ShapeChanged


def test_growth_waits_for_the_fleet() -> None:
    """Its own cluster is read by name; what others take of it is not told."""
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=True)
    named = {"cluster/a": [one("a", 9)], "own-replicas/my-model": [own_replica]}
    copies = ask(engines=[{**single(build.request("gpu", 8)), "copies": 2}])
    [replica] = decide(World(copies, None, None, build.observed(own_replica), more=named)).kept
    assert (replica.doubt, replica.grows) == ("what is free on its cluster is not known yet", True)


@pytest.mark.parametrize("whole", [False, True])
def test_beside_what_runs_nothing_is_placed_before_the_fleet_is_delivered(*, whole: bool) -> None:
    """Its own cluster is read by name, and has room: who else holds it, and what is better, is not told."""
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=True)
    fleet = [one("a", 9)]
    named = {"cluster/a": fleet, "own-replicas/my-model": [own_replica]}
    made = World(ask(2), None, None, build.observed(own_replica), more=named)
    decision = decide(made.but(clusters=fleet, replicas=[own_replica]) if whole else made)
    assert (len(decision.kept), len(decision.placed)) == (1, int(whole))
