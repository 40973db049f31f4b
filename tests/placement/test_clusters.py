"""Which clusters: matchExpressions, CEL over clusters and pools, topologySpread, preferences, limits."""

from __future__ import annotations

import pytest

from tests.support import build
from tests.support.cases import EU, US, Case, ask, clusters, one, single

TIER = "modelplane.ai/tier"
SOC2 = {"modelplane.ai/compliance": {"list": {"string": ["soc2-type2", "iso-27001"]}}}
COMPLIANT = '"soc2-type2" in cluster.attributes["modelplane.ai/compliance"]'
GUARDED = f'"modelplane.ai/compliance" in cluster.attributes && {COMPLIANT}'


def expression(operator: str, *values: str, key: str = "region") -> dict[str, object]:
    made: dict[str, object] = {"key": key, "operator": operator}
    return {"matchExpressions": [made | ({"values": list(values)} if values else {})]}


THREE = clusters(a={"labels": US}, b={"labels": EU}, c={})

EXPRESSIONS = [
    Case("In takes the listed values", THREE, ask(3, selector=expression("In", "us", "ap")), ["a"] * 3),
    Case(
        "NotIn takes other values, and clusters without the key",
        THREE,
        ask(2, selector=expression("NotIn", "us")),
        ["b", "c"],
        {},
    ),
    Case("Exists wants the key", THREE, ask(2, selector=expression("Exists")), ["a", "b"]),
    Case(
        "DoesNotExist wants it not to be there",
        THREE,
        ask(2, selector=expression("DoesNotExist")),
        ["c", "c"],
    ),
    Case(
        "expressions and labels are ANDed",
        THREE,
        ask(1, selector={"matchLabels": EU} | expression("In", "us")),
        [],
        {"a": "ClusterSelectorMismatch", "b": "ClusterSelectorMismatch", "c": "ClusterSelectorMismatch"},
        "InsufficientCapacity",
    ),
    Case(
        "a selector gates new placements only: a replica elsewhere stays",
        THREE,
        (parent := ask(2, selector=expression("In", "us"))),
        ["a", "b"],
        running=[build.replica(parent, "b", 0, pools="p0", ready=True)],
    ),
]

FACTS = [one("a", attributes=SOC2), one("b")]
CEL = [
    Case("an attribute of a list", FACTS, ask(2, selector={"cel": [GUARDED]}), ["a", "a"]),
    Case(
        "a missing key is an error of that cluster only",
        FACTS,
        ask(5, selector={"cel": [COMPLIANT]}),
        ["a"] * 4,
        {"a": "InsufficientNodes", "b": "ClusterSelectorError"},
    ),
    Case(
        "guarded, it is a mismatch",
        FACTS,
        ask(5, selector={"cel": [GUARDED]}),
        ["a"] * 4,
        {"b": "ClusterSelectorMismatch"},
    ),
    Case("the name of the cluster", FACTS, ask(1, selector={"cel": ['cluster.name == "b"']}), ["b"]),
    Case(
        "its labels",
        THREE,
        ask(1, selector={"cel": ['has(cluster.labels.region) && cluster.labels.region == "eu"']}),
        ["b"],
    ),
    Case(
        "several are ANDed",
        FACTS,
        ask(1, selector={"cel": [GUARDED, 'cluster.name == "b"']}),
        [],
        {"a": "ClusterSelectorMismatch", "b": "ClusterSelectorMismatch"},
    ),
    Case(
        "attributes published in status win, those that are not are read from spec",
        [
            one("a", attributes={"x": {"int": 1}, "y": {"int": 2}})
            | {"status": one("a")["status"] | {"attributes": {"x": {"int": 5}}}}
        ],
        ask(1, selector={"cel": ['cluster.attributes["x"] == 5 && cluster.attributes["y"] == 2']}),
        ["a"],
    ),
    Case(
        "a selector that does not compile keeps everything and places nothing",
        FACTS,
        (parent := ask(2, selector={"cel": ["cluster.nme"]})),
        ["b"],
        status="InvalidClusterSelector",
        running=[build.replica(parent, "b", 0, pools="p0", ready=True)],
    ),
    Case(
        "a preference that does not compile too",
        FACTS,
        ask(1, placement={"preferences": [{"weight": 1, "cel": "1 +"}]}),
        [],
        status="InvalidClusterSelector",
    ),
]

FAST = [build.pool("slow", 4), build.pool("fast", 4)]
NODES = [one("a", pools=FAST), one("b", pools=[build.pool("slow", 4)])]
NODES[0]["spec"]["nodePools"][1]["attributes"] = {"modelplane.ai/networking": {"string": "ib-quantum-2"}}
NET = 'node.attributes["modelplane.ai/networking"].startsWith("ib-")'
POOL_CEL = [
    Case(
        "a missing attribute of a pool is an error of that pool only",
        NODES,
        ask(5, engines=[single(build.request("gpu", 8), selectors=[{"cel": NET}])]),
        ["a"] * 4,
        {"a": "InsufficientNodes", "b": "NodeSelectorError"},
    ),
    Case(
        "the name of the pool",
        NODES,
        ask(5, engines=[single(build.request("gpu", 8), selectors=[{"cel": 'node.name == "fast"'}])]),
        ["a"] * 4,
        {"b": "NodeSelectorMismatch"},
    ),
    Case(
        "the class of the pool",
        NODES,
        ask(1, engines=[single(build.request("gpu", 8), selectors=[{"cel": 'node.className == "other"'}])]),
        [],
        {"a": "NodeSelectorMismatch", "b": "NodeSelectorMismatch"},
    ),
    Case(
        "one that does not compile",
        NODES,
        ask(1, engines=[single(build.request("gpu", 8), selectors=[{"cel": "node.driver"}])]),
        [],
        status="InvalidNodeSelector",
    ),
]


def spread(key: str = "region", **more: object) -> dict[str, object]:
    return {"topologySpread": [{"topologyKey": key, **more}]}


REGIONS = clusters(a={"labels": US}, b={"labels": US}, c={"labels": EU, "nodes": 2}, d={})
TAINTED = clusters(a={"labels": US}, c={"labels": EU, "taints": [build.taint("x")]})
SPREAD = [
    Case("maxSkew 1: the regions stay even", REGIONS, ask(4, placement=spread()), ["a", "b", "c", "c"]),
    Case(
        "and when one is full the other may be one ahead, no more",
        REGIONS,
        ask(6, placement=spread()),
        ["a", "a", "b", "c", "c"],
        {"a": "TopologySpread", "b": "TopologySpread", "c": "InsufficientNodes", "d": "TopologySpread"},
        "PartiallyScheduled",
    ),
    Case("maxSkew 2", REGIONS, ask(6, placement=spread(maxSkew=2)), ["a", "a", "b", "b", "c", "c"]),
    Case(
        "without the label a cluster is out",
        clusters(d=4),
        ask(1, placement=spread()),
        [],
        {"d": "TopologySpread"},
    ),
    Case(
        "below minDomains the least counts as 0",
        clusters(a={"labels": US}, b={"labels": US}),
        ask(3, placement=spread(minDomains=2)),
        ["a"],
        {"a": "TopologySpread", "b": "TopologySpread"},
    ),
    Case(
        "a tainted cluster is no domain, so it holds nobody back",
        TAINTED,
        ask(3, placement=spread()),
        ["a"] * 3,
    ),
    Case(
        "tolerated, it is one",
        TAINTED,
        ask(3, placement=spread(), tolerations=[{"operator": "Exists"}]),
        ["a", "a", "c"],
    ),
    Case(
        "a cluster that the selector leaves out is no domain",
        REGIONS,
        ask(3, placement=spread(), selector={"matchLabels": US}),
        ["a", "a", "b"],
    ),
    Case(
        "it binds new placements only: two on one side stay",
        REGIONS,
        (parent := ask(3, placement=spread())),
        ["a", "a", "c"],
        running=[build.replica(parent, "a", n, pools="p0", ready=True) for n in (0, 1)],
    ),
    Case(
        "a cluster that lacks the key of another binding constraint counts in neither",
        [one("a", labels=US | {"zone": "1"}), one("c", labels=EU)],
        ask(3, placement={"topologySpread": [{"topologyKey": "region"}, {"topologyKey": "zone"}]}),
        ["a"] * 3,
        {},
    ),
    Case(
        "ScheduleAnyway prefers, and never rejects",
        REGIONS,
        ask(6, placement=spread(whenUnsatisfiable="ScheduleAnyway")),
        ["a", "a", "b", "b", "c", "c"],
    ),
    Case(
        "ScheduleAnyway takes a cluster without the key last",
        clusters(a=4, z={"labels": US, "nodes": 1}),
        ask(2, placement=spread(whenUnsatisfiable="ScheduleAnyway")),
        ["a", "z"],
    ),
    Case(
        "gangs count as one replica each",
        clusters(a={"labels": US, "nodes": 8}, c={"labels": EU, "nodes": 2}),
        ask(3, engines=[build.gang(nodes=1)], placement=spread()),
        ["a", "a", "c"],
    ),
]

TIERS = clusters(a={}, b={"labels": {TIER: "reserved"}, "nodes": 2}, c={"labels": {TIER: "spot"}})
WISHES = [
    {"weight": 10, "matchLabels": {TIER: "reserved"}},
    {"weight": 5, "cel": 'cluster.name == "c"'},
]
PREFERENCES = [
    Case(
        "more matched weight wins, before spreading",
        TIERS,
        ask(2, placement={"preferences": WISHES}),
        ["b", "b"],
    ),
    Case(
        "a preferred cluster that is full is not feasible",
        TIERS,
        ask(4, placement={"preferences": WISHES}),
        ["b", "b", "c", "c"],
    ),
    Case(
        "weights add up",
        TIERS,
        ask(1, placement={"preferences": [*WISHES, {"weight": 6, "matchLabels": {TIER: "spot"}}]}),
        ["c"],
    ),
    Case(
        "labels and CEL of one preference are ANDed",
        TIERS,
        ask(
            1,
            placement={
                "preferences": [{"weight": 9, "matchLabels": {TIER: "spot"}, "cel": 'cluster.name == "b"'}]
            },
        ),
        ["a"],
    ),
    Case(
        "one that errs earns nothing and rejects nobody",
        TIERS,
        ask(1, placement={"preferences": [{"weight": 9, "cel": 'cluster.attributes["no"] == "x"'}]}),
        ["a"],
    ),
    Case(
        "it does not make an unfit cluster fit",
        clusters(a=1, b={"nodes": 0, "labels": {TIER: "reserved"}}),
        ask(2, placement={"preferences": WISHES}),
        ["a"],
        {"b": "InsufficientNodes"},
    ),
]

LIMITS = [
    Case(
        "so many on one cluster and no more",
        clusters(a=4, b=1),
        ask(5, placement={"maxReplicasPerCluster": 2}),
        ["a", "a", "b"],
        {"a": "MaxReplicasPerCluster", "b": "InsufficientNodes"},
    ),
    Case(
        "replicas that are there count, and stay",
        clusters(a=4, b=4),
        (parent := ask(3, placement={"maxReplicasPerCluster": 1})),
        ["a", "a", "b"],
        running=[build.replica(parent, "a", n, pools="p0", ready=True) for n in (0, 1)],
    ),
    Case(
        "with a preference: the preferred one up to the limit",
        TIERS,
        ask(2, placement={"maxReplicasPerCluster": 1, "preferences": WISHES}),
        ["b", "c"],
    ),
]

STRATEGY = [
    Case("Spread is the default", clusters(a=4, b=2), ask(2), ["a", "b"]),
    Case(
        "BinPack: the least free nodes left",
        clusters(a=4, b=2),
        ask(3, placement={"strategy": "BinPack"}),
        ["a", "b", "b"],
    ),
    Case(
        "BinPack: then most own replicas",
        clusters(a=2, b=3),
        (parent := ask(2, placement={"strategy": "BinPack"})),
        ["b", "b"],
        running=[build.replica(parent, "b", 0, pools="p0", ready=True)],
    ),
    Case("BinPack: then the name", clusters(b=2, a=2), ask(1, placement={"strategy": "BinPack"}), ["a"]),
    Case("MostFree between equals", clusters(a=2, b=5), ask(1, placement={"tieBreak": "MostFree"}), ["b"]),
    Case(
        "MostFree only between equals: spreading comes first",
        clusters(a=2, b=5),
        ask(2, placement={"tieBreak": "MostFree"}),
        ["a", "b"],
    ),
    Case(
        "the input's defaults apply where the deployment sets nothing",
        clusters(a=4, b=2),
        ask(2, placement={"tieBreak": "Name"}),
        ["b", "b"],
        input={"defaults": {"placement": {"strategy": "BinPack", "tieBreak": "MostFree"}}},
    ),
    Case(
        "what the deployment sets wins over them",
        clusters(a=4, b=2),
        ask(2, placement={"strategy": "Spread"}),
        ["a", "b"],
        input={"defaults": {"placement": {"strategy": "BinPack"}}},
    ),
    Case(
        "input with a field nobody knows places nothing",
        clusters(a=4),
        ask(1),
        [],
        status="InvalidInput",
        input={"defaults": {"placement": {"stratgy": "BinPack"}}},
    ),
]

ALL = [*EXPRESSIONS, *CEL, *POOL_CEL, *SPREAD, *PREFERENCES, *LIMITS, *STRATEGY]


@pytest.mark.parametrize("case", ALL, ids=str)
def test_case(case: Case) -> None:
    case.check()


def test_binpack_takes_the_tightest_pool_of_a_cluster_too() -> None:
    fleet = [one("a", pools=[build.pool("big", 5), build.pool("small", 2)])]
    answer = Case("", fleet, ask(1, placement={"strategy": "BinPack"}), ["a"]).check()
    (replica,) = answer.replicas.values()
    assert replica["spec"]["engines"][0]["members"][0]["nodePoolName"] == "small"


def test_hash_spreads_many_deployments_over_equal_clusters() -> None:
    fleet = clusters(a=4, b=4, c=4, d=4)
    chosen = set()
    for number in range(20):
        deployment = ask(1, placement={"tieBreak": "Hash"})
        deployment["metadata"]["uid"] = build.uid(number)
        (replica,) = Case("", fleet, deployment, []).answer().replicas.values()
        chosen.add(replica["spec"]["clusterName"])
    assert chosen == {"a", "b", "c", "d"}
