"""Why a cluster takes no other replica, as data: the reason and every number and particular behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from function.api.reasons import Reason, Rejection
from tests.support import build
from tests.support.cases import ask, clusters, gap_of, sized
from tests.support.scarce import decide
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

Plain = dict[str, Any]


@dataclass(frozen=True)
class Case:
    reason: str
    deployment: Plain
    fleet: Sequence[Plain]
    rejections: dict[str, Rejection]
    running: Sequence[Plain] = ()
    cache: Sequence[Plain] | None = None
    input: Plain | None = None


def expression(key: str, operator: str, *values: str) -> Plain:
    return {
        "matchExpressions": [
            {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
        ]
    }


def selected(reason: str, selector: Plain, detail: str, **labels: str) -> Case:
    """One cluster that a clusterSelector does not match."""
    fleet = clusters(a={"labels": labels})
    return Case(
        reason, ask(selector=selector), fleet, {"a": Rejection(Reason.ClusterSelectorMismatch, detail=detail)}
    )


def staged(reason: str, phases: dict[str, str], detail: str, **labels: str) -> Case:
    """A cluster, and whether the cache that it needs is there; an empty detail where nothing is missing."""
    wanted = {"disk": "fast", "tier": "x"} if labels else None
    word = Reason.OutsideCacheFootprint if labels else Reason.CacheNotReady
    return Case(
        reason,
        ask(cache="weights", placement={"cache": "Prefer" if labels else "Require"}),
        clusters(a={"labels": labels}),
        {"a": Rejection(word, detail=detail)} if detail else {},
        cache=[build.cache("weights", wanted, phases=phases)],
    )


def on_kserve() -> Plain:
    made = build.cluster("a", [build.pool("p0")])
    made["spec"]["stack"] = "KServe"
    return made


def heard(**beats: str) -> list[Plain]:
    made = clusters(**dict.fromkeys(beats, 0))
    for cluster, beat in zip(made, beats.values(), strict=True):
        cluster["status"]["heartbeat"] = f"2026-03-01T{beat}:00Z"
    return made


def bare(name: str, status: Plain | None) -> Plain:
    made = build.cluster(name, [build.pool("p0")])
    del made["status"]
    return made if status is None else {**made, "status": status}


TWO = ask(2)
NO_MODEL = "KServe: no model to mount: set serving.model.uri or modelCacheRef"
NO_SIZE = (
    "KServe: engine main: 2 pods, and a parallelism whose size is unknown: pipeline, or data / dataLocal"
)
GANG = build.engine("main", [build.member("Leader"), build.member("Worker")])
NO_TIER = "no such key: tier (the cluster has no label tier)"
AT = [build.replica(TWO, "a", at, pools="p0", ready=True) for at in range(2)]
ANYWAY = {"topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
CASES = [
    selected(
        "a label with another value", {"matchLabels": {"tier": "x"}}, "wants tier=x, has tier=y", tier="y"
    ),
    selected("a label that is not there", {"matchLabels": {"tier": "x"}}, "wants tier=x, has no tier"),
    selected(
        "the first label by name is told of", {"matchLabels": {"b": "1", "a": "1"}}, "wants a=1, has no a"
    ),
    selected("In", expression("tier", "In", "x", "y"), "wants tier in (x, y), has tier=z", tier="z"),
    selected("NotIn", expression("tier", "NotIn", "x"), "wants tier notin (x), has tier=x", tier="x"),
    selected("Exists", expression("tier", "Exists"), "wants tier, has no tier"),
    selected("DoesNotExist", expression("tier", "DoesNotExist"), "wants !tier, has tier=x", tier="x"),
    Case(
        "of several CEL selectors the one that does not match is named",
        ask(selector={"cel": ["true", 'cluster.name == "b"']}),
        clusters(a=1),
        {"a": Rejection(Reason.ClusterSelectorMismatch, gap=gap_of("name a", "b"), selector=1)},
    ),
    Case(
        "a CEL selector that reads nothing is told as it stands",
        ask(selector={"cel": ["1 == 2"]}),
        clusters(a=1),
        {"a": Rejection(Reason.ClusterSelectorMismatch, gap=gap_of("", "1 == 2"), selector=0)},
    ),
    Case(
        "a CEL selector that errs is no mismatch",
        ask(selector={"cel": ["true", 'cluster.labels["tier"] == "x"']}),
        clusters(a=1),
        {"a": Rejection(Reason.ClusterSelectorError, detail=NO_TIER, selector=1)},
    ),
    Case(
        "a cluster that cannot be read, with the field that is wrong",
        ask(),
        [{**build.cluster("a"), "status": 3}],
        {"a": Rejection(Reason.MalformedCluster, detail="status: expected a map, found a number")},
    ),
    Case(
        "a cluster without status",
        ask(),
        [bare("a", None)],
        {"a": Rejection(Reason.ClusterNotReady, detail="no status")},
    ),
    Case(
        "a cluster that does not say whether it is Ready",
        ask(),
        [bare("a", {"gpuPools": []})],
        {"a": Rejection(Reason.ClusterNotReady, detail="Ready is unknown")},
    ),
    Case(
        "a cluster that says it is not",
        ask(),
        clusters(a={"ready": False}),
        {"a": Rejection(Reason.ClusterNotReady)},
    ),
    Case(
        "a taint, with its effect",
        ask(tolerations=[{"key": "x", "operator": "Exists"}]),
        clusters(a={"taints": [build.taint("x"), build.taint("y", "NoExecute"), build.taint("z")]}),
        {"a": Rejection(Reason.UntoleratedTaint, detail="{y: NoExecute}")},
    ),
    Case(
        "a cache that is staged elsewhere",
        ask(cache="weights"),
        clusters(a={"labels": {"disk": "slow", "tier": "x"}}),
        {"a": Rejection(Reason.OutsideCacheFootprint, detail="cache weights wants disk=fast")},
        cache=[build.cache("weights", {"tier": "x", "disk": "fast"})],
    ),
    staged("a cache that is staged there and not Ready is no matter", {}, "", disk="fast", tier="x"),
    staged(
        "the first label that differs is told of", {}, "cache weights wants tier=x", disk="fast", tier="y"
    ),
    staged("a cache that is required and Ready", {"a": "Ready"}, ""),
    staged("a cache that is not Ready yet", {"a": "Hydrating"}, "cache weights is Hydrating"),
    staged("a cache that is Ready elsewhere", {"b": "Ready"}, "cache weights has no phase there"),
    Case(
        "a stack that mounts no model",
        ask(),
        [on_kserve()],
        {"a": Rejection(Reason.StackCannotExpress, detail=NO_MODEL)},
    ),
    Case(
        "the same stack where a cache has it",
        ask(cache="weights"),
        [on_kserve()],
        {},
        cache=[build.cache("weights")],
    ),
    Case(
        "a gang whose size its stack cannot tell",
        ask(cache="weights", engines=[GANG]),
        [on_kserve()],
        {"a": Rejection(Reason.StackCannotExpress, detail=NO_SIZE)},
        cache=[build.cache("weights")],
    ),
    Case(
        "a cluster that was not heard of for too long",
        ask(placement={"evacuate": {"afterSeconds": 3600}}),
        heard(a="09:00", b="12:00", c="12:00"),
        {"a": Rejection(Reason.ClusterLost, detail="no heartbeat for over 3600 s")}
        | {
            name: Rejection(Reason.InsufficientNodes, pool="p0", engine="main", needs=1, free=0, total=0)
            for name in "bc"
        },
    ),
    Case(
        "a cluster that does not say its charges, where those count",
        ask(),
        clusters(a=1),
        {"a": Rejection(Reason.ChargeNotPublished, detail="pool p0: no charge")},
        input={"capacity": "Published"},
    ),
    Case(
        "a cluster being deleted",
        ask(),
        clusters(a={"deleting": True}),
        {"a": Rejection(Reason.ClusterDeleting)},
    ),
    Case("no gateway", ask(), clusters(a={"gateway": None}), {"a": Rejection(Reason.NoGatewayAddress)}),
    Case("no pools", ask(), clusters(a={"pools": []}), {"a": Rejection(Reason.NoPoolsPublished)}),
    Case(
        "as many as are allowed, and which one would be too many",
        ask(3, placement={"maxReplicasPerCluster": 2}),
        clusters(a=9),
        {"a": Rejection(Reason.MaxReplicasPerCluster, needs=3, total=2)},
        AT,
    ),
    Case(
        "a domain that would be too far ahead",
        ask(3, placement={"topologySpread": [SPREAD]}),
        clusters(a={"nodes": 9, "labels": {"zone": "x"}}, b={"nodes": 0, "labels": {"zone": "y"}}),
        {
            "a": Rejection(
                Reason.TopologySpread,
                detail="zone: x would be 3 ahead of y (0); maxSkew 1",
                needs=3,
                total=1,
            ),
            "b": Rejection(Reason.InsufficientNodes, pool="p0", engine="main", needs=1, free=0, total=0),
        },
        AT,
    ),
    Case(
        "a cluster without the label of one constraint is in no domain of another",
        ask(3, placement={"topologySpread": [SPREAD, {**SPREAD, "topologyKey": "rack"}]}),
        clusters(
            a={"nodes": 9, "labels": {"zone": "x", "rack": "x"}}, b={"nodes": 0, "labels": {"zone": "y"}}
        ),
        {},
        AT,
    ),
    Case(
        "but for a constraint that only ranks",
        ask(3, placement={"topologySpread": [SPREAD, {**SPREAD, **ANYWAY}]}),
        clusters(
            a={"nodes": 9, "labels": {"zone": "x", "rack": "x"}}, b={"nodes": 0, "labels": {"zone": "y"}}
        ),
        {
            "a": Rejection(
                Reason.TopologySpread, detail="zone: x would be 3 ahead of y (0); maxSkew 1", needs=3, total=1
            ),
            "b": Rejection(Reason.InsufficientNodes, pool="p0", engine="main", needs=1, free=0, total=0),
        },
        AT,
    ),
    Case(
        "the last of three constraints",
        ask(
            3,
            placement={"topologySpread": [{**SPREAD, "topologyKey": key} for key in ("zone", "rack", "row")]},
        ),
        clusters(
            a={"nodes": 9, "labels": {"zone": "x", "rack": "x", "row": "x"}},
            b={"nodes": 0, "labels": {"zone": "x", "rack": "x", "row": "y"}},
        ),
        {
            "a": Rejection(
                Reason.TopologySpread, detail="row: x would be 3 ahead of y (0); maxSkew 1", needs=3, total=1
            ),
            "b": Rejection(Reason.InsufficientNodes, pool="p0", engine="main", needs=1, free=0, total=0),
        },
        AT,
    ),
    Case(
        "of two constraints that it would break the first is told",
        ask(
            3,
            placement={"topologySpread": [{**SPREAD, "topologyKey": key} for key in ("zone", "rack", "row")]},
        ),
        clusters(
            a={"nodes": 9, "labels": {"zone": "x", "rack": "x", "row": "x"}},
            b={"nodes": 0, "labels": {"zone": "x", "rack": "y", "row": "y"}},
        ),
        {
            "a": Rejection(
                Reason.TopologySpread, detail="rack: x would be 3 ahead of y (0); maxSkew 1", needs=3, total=1
            ),
            "b": Rejection(Reason.InsufficientNodes, pool="p0", engine="main", needs=1, free=0, total=0),
        },
        AT,
    ),
    Case(
        "what stands at the end is told, not what stood when it was refused first",
        ask(6, placement={"topologySpread": [SPREAD]}),
        clusters(a={"nodes": 9, "labels": {"zone": "x"}}, b={"nodes": 2, "labels": {"zone": "y"}}),
        {
            "a": Rejection(
                Reason.TopologySpread, detail="zone: x would be 2 ahead of y (2); maxSkew 1", needs=2, total=1
            ),
            "b": Rejection(Reason.InsufficientNodes, pool="p0", engine="main", needs=1, free=0, total=2),
        },
    ),
    Case(
        "a cluster in no domain",
        ask(placement={"topologySpread": [SPREAD]}),
        clusters(a=9),
        {"a": Rejection(Reason.TopologySpread, detail="has no label zone")},
    ),
    Case(
        "fewer domains than wanted: the least counts as none",
        ask(3, placement={"topologySpread": [{**SPREAD, "minDomains": 2}]}),
        clusters(a={"nodes": 9, "labels": {"zone": "x"}}),
        {
            "a": Rejection(
                Reason.TopologySpread,
                detail="zone: x would have 3, and 1 of minDomains 2 are there, so the least counts as 0; "
                "maxSkew 1",
                needs=3,
                total=1,
            )
        },
        AT,
    ),
    Case(
        "the shape that comes nearest, by its name",
        ask(gpus=9, alternatives=[{"name": "large", "engines": sized(5)}]),
        clusters(a=4),
        {
            "a": Rejection(
                Reason.InsufficientNodes,
                alternative="large",
                pool="p0",
                engine="e0",
                needs=5,
                free=4,
                total=4,
            )
        },
    ),
    Case(
        "the pool that is nearest, with what it lacks",
        ask(engines=[build.engine("main", [build.member(devices=[build.request("gpu", 8)])], copies=4)]),
        clusters(a={"pools": [build.pool("p", 1), build.pool("q", 3), build.pool("r", 2)]}),
        {"a": Rejection(Reason.InsufficientNodes, pool="q", engine="main", needs=4, free=3, total=3)},
    ),
]


def _alone(rejection: Rejection) -> Rejection:
    """A rejection without those below it."""
    return rejection._replace(parts=())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_why_a_cluster_takes_no_other_replica(case: Case) -> None:
    observed = build.observed(*case.running)
    made = World(case.deployment, case.fleet, case.running, observed, cache=case.cache, input=case.input)
    rejections = decide(made).rejections
    assert {name: _alone(value) for name, value in rejections.items()} == case.rejections


def test_every_shape_is_looked_at_on_every_pool() -> None:
    decision = decide(World(ask(alternatives=[{"name": "large", "engines": sized(5)}]), clusters(a=4)))
    assert decision.placer is not None
    verdicts = [*decision.placer.on_pools(decision.inputs.fleet.clusters["a"])]
    short = [
        (shape.name, on_pool.nodes, on_pool.rejection and on_pool.rejection.alternative)
        for shape, on_pool in verdicts
    ]
    assert short == [("", 1, None), ("large", 5, "large")]


def test_where_nothing_is_missing_nothing_is_looked_up() -> None:
    """However full the fleet is; who wants to know all the same asks for the survey."""
    decision = decide(World(ask(), clusters(a=1)))
    assert decision.rejections == {}
    assert set(decision.survey()) == {"a"}


def test_why_no_other_fits_is_told_where_nothing_is_to_be_done_too() -> None:
    running = build.replica(ask(), "a", 0, pools="p0", ready=True)
    decision = decide(World(ask(), clusters(a=1), [running], build.observed(running)))
    assert (len(decision.kept), decision.placed) == (1, ())
    assert set(decision.survey()) == {"a"}


@pytest.mark.parametrize(
    ("wanted", "nodes", "listed", "reason"),
    [
        (1, 1, {}, "none is missing"),
        (2, 1, {"a": "InsufficientNodes", "c": "ClusterNotReady"}, "one is missing"),
        (1, 0, {"a": "InsufficientNodes", "c": "ClusterNotReady"}, "all are"),
    ],
)
def test_why_clusters_take_no_other_is_listed_where_a_replica_is_missing(
    wanted: int, nodes: int, listed: dict[str, str], reason: str
) -> None:
    decision = decide(World(ask(wanted), clusters(a=nodes, c={"ready": False})))
    assert {name: row.reason.name for name, row in decision.rejections.items()} == listed, reason
    assert set(decision.survey()) == {"a", "c"}, "whoever asks is told in any case"


def test_why_clusters_take_no_other_is_listed_where_one_that_no_longer_matches_is_held() -> None:
    parent = ask(1)
    held = build.replica(parent, "a", 0, pools="gone", ready=True)
    decision = decide(World(parent, clusters(a=0), [held], build.observed(held)))
    assert (decision.total, len(decision.held), set(decision.rejections)) == (1, 1, {"a"})
