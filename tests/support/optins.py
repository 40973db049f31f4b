"""The opt-in fields, put on random worlds: every one of them may be set, most worlds have a few.

The values are such that most worlds still place something; what each field means is held in `tests/placement`
and `tests/accounting`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support import build
from tests.support.parts import CLUSTERS, Source, engine, members_of, requests_of

if TYPE_CHECKING:
    from tests.support.world import World

Plain = dict[str, Any]

INPUT: Plain = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}
DISRUPTIONS: tuple[Plain, ...] = (
    {"maxUnavailable": 1},
    {"maxUnavailable": 1},
    {"maxUnavailable": 2},
    {"maxUnavailable": 0, "maxSurge": 1},
    {"maxUnavailable": 1, "maxSurge": 2},
    {"maxSurge": 1},
)
CLASSES: list[Plain] = [
    {"name": "high", "value": 100},
    {"name": "low", "value": 1, "namespaces": ["research"]},
]
QUOTAS: list[Plain] = [
    {"name": "few", "namespaces": ["ml-team"], "atMost": {"nodes": 3}},
    {"name": "paid", "namespaces": ["ml-team", "research"], "atMost": {"centsPerHour": 1_500}},
    {
        "name": "fast",
        "namespaces": ["ml-team"],
        "cel": 'node.name != "p0"',
        "atMost": {"devices": 8, "replicas": 2},
    },
    {
        "name": "gpus",
        "namespaces": ["research", "ml-team"],
        "deviceClassName": build.GPU,
        "atMost": {"replicas": 3},
    },
]
ROOT = "resource.kubernetes.io/pcieRoot"
NET = "example.com/net"
FAST: Plain = {NET: {"string": "ib-2"}, "modelplane.ai/centsPerNodeHour": {"int": 700}}
PHASES = ("Ready", "Ready", "Hydrating", "Pending", "Failed", "Thawing")


def opted(draw: Source, made: World) -> World:
    """Return the world with opt-in fields set."""
    made = made.copy()
    for cluster in made.clusters or ():
        _cluster(draw, cluster)
        _usable(draw, cluster)
    _alternatives(draw, made)
    _engines(draw, made.deployment)
    policy(draw, made.deployment)
    _selector(draw, made.deployment)
    for number, manifest in enumerate((*made.observed.values(), *(made.replicas or ()))):
        if manifest["kind"] == "ModelReplica" and draw.odds(0.1):
            notes = ("true", manifest["metadata"].get("uid", "true"), "another")
            manifest["metadata"]["annotations"] = {"modelplane.ai/was-ready": notes[number % 3]}
    made = _with_input(draw, made)
    staged(draw, made)
    if draw.odds(0.3):
        chosen = draw.choice(("Prefer", "Require", "Footprint"))
        made.deployment["spec"].setdefault("placement", {})["cache"] = chosen
    if draw.odds(0.3):
        made.deployment["spec"].setdefault("placement", {})["evacuate"] = {"afterSeconds": 3600}
    aged(draw, made)
    return made


def staged(draw: Source, made: World) -> None:
    """Say of the caches how far they are on some clusters."""
    for manifest in made.cache or ():
        names = [name for name in CLUSTERS if draw.odds(0.7)]
        manifest["status"] = {"clusters": [{"name": name, "phase": draw.choice(PHASES)} for name in names]}


BEATS = (
    *("2026-03-01T12:00:00Z", "2026-03-01T11:55:00Z", "2026-03-01T14:00:00.25+02:00"),
    *("2026-03-01T11:05:00Z", "2026-03-01T09:00:00Z", "2026-03-01T07:00:00-04:00"),
    *("2027-03-01T12:00:00Z", "2025-03-01T12:00:00Z", "soon", None),
)
"""Heartbeats of a fleet at noon: most are fresh, some old, some of clocks that are wrong."""
TURNS = ("2026-03-01T08:00:00Z", "2026-03-01T08:00:00Z", "2026-03-01T11:50:00Z", "long ago")
"""When something ceased to be Ready."""


def aged(draw: Source, made: World) -> None:
    """Say when clusters were last heard of, and since when what is not Ready is not."""
    for cluster in made.clusters or ():
        beat = draw.choice(BEATS[:3] if draw.odds(0.75) else BEATS)
        if beat is not None and "status" in cluster:
            cluster["status"]["heartbeat"] = beat
            if draw.odds(0.2):
                listed = cluster["status"].setdefault("conditions", [])
                listed.append(build.condition("ClusterReachable", status=draw.odds(0.5)))
    objects = (*(made.clusters or ()), *(made.replicas or ()), *made.observed.values())
    seen: dict[str, str] = {}
    for manifest in objects:
        for condition in manifest.get("status", {}).get("conditions", ()):
            uid = manifest["metadata"].get("uid", manifest["metadata"]["name"])
            condition["lastTransitionTime"] = seen.setdefault(uid, draw.choice(TURNS))


def _cluster(draw: Source, made: Plain) -> None:
    """Facts about a cluster and its pools, their fabric, how they are charged."""
    if draw.odds(0.8):
        made["metadata"]["labels"]["zone"] = draw.choice(("z1", "z2"))
    facts: Plain = {"example.com/compliance": {"list": {"string": ["soc2", "iso"][: draw.choice((1, 2))]}}}
    if draw.odds(0.5):
        facts["example.com/cost"] = {"int": draw.choice((1, 2, 3))}
    holder = draw.choice(("spec", "status"))
    if holder in made and draw.odds(0.9):
        made[holder]["attributes"] = facts
    pools = [*made.get("status", {}).get("gpuPools", ()), *made["spec"].get("nodePools", ())]
    device = draw.odds(0.3)
    for pool in pools:
        if device and draw.odds(0.8):
            pool["accounting"] = "Device"
        if draw.odds(0.6):
            pool["attributes"] = draw.choice((FAST, {NET: {"string": "eth"}}))
        if draw.odds(0.6):
            pool["fabric"] = {"type": "InfiniBand", "infiniband": {"fabric": draw.choice(("f0", "f0", "f1"))}}
        for one in pool.get("devices", ()):
            if draw.odds(0.7):
                one.setdefault("attributes", {})[ROOT] = {"strings": draw.sample(["r0", "r1", "r2"], 2)}


def _usable(draw: Source, made: Plain) -> None:
    """Nodes that cannot be used; a number that cannot be is doubt."""
    for pool in made.get("status", {}).get("gpuPools", ()):
        if "nodes" in pool and draw.odds(0.25):
            usable = draw.choice((0, 1, max(0, pool["nodes"] - 1), pool["nodes"] + 1))
            pool["usable"] = {"nodes": usable, "exceeded": draw.odds(0.3)}
            if draw.odds(0.4):
                pool["usable"] |= {"toCome": draw.choice((1, 2, 9)), "awaiting": draw.odds(0.3)}


def _alternatives(draw: Source, made: World) -> None:
    """Other shapes; some of the replicas that exist say that they are one of them, rightly or not."""
    if not draw.odds(0.3):
        return
    inner = made.deployment["spec"]["template"]["spec"]
    names = ("small", "large")[: draw.choice((1, 2))]
    inner["alternatives"] = [{"name": name, "engines": [engine(draw, "main")]} for name in names]
    for manifest in made.observed.values():
        if manifest["kind"] == "ModelReplica" and draw.odds(0.3):
            manifest["metadata"]["labels"]["modelplane.ai/alternative"] = draw.choice((*names, "gone"))


def _engines(draw: Source, parent: Plain) -> None:
    """Fabrics, selectors of nodes, prioritized lists, constraints."""
    for one_engine in parent["spec"]["template"]["spec"]["engines"]:
        if draw.odds(0.3):
            one_engine["poolPolicy"] = draw.choice(("SameFabric", "SameFabric", "SinglePool"))
    for member in members_of(parent):
        if not requests_of(member):
            continue
        if draw.odds(0.15):
            cel = draw.choice((f'node.attributes["{NET}"].startsWith("ib-")', 'node.name != "p9"'))
            member["nodeSelector"]["selectors"] = [{"cel": cel}]
        if draw.odds(0.2):
            attribute = draw.choice((ROOT, ROOT, f"{build.GPU}/architecture"))
            member["nodeSelector"]["constraints"] = [{"matchAttribute": attribute}]
        for asked in requests_of(member):
            if draw.odds(0.2):
                _prioritized(draw, asked)


def _prioritized(draw: Source, asked: Plain) -> None:
    """Make a request a list of ways; what it was is the last of them."""
    was = {name: asked.pop(name) for name in ("count", "selectors") if name in asked}
    more = [build.request("", draw.choice((1, 2, 4, 8))) for _ in range(draw.choice((1, 2)))]
    asked["firstAvailable"] = [item | {"name": f"w{rank}"} for rank, item in enumerate([*more, was])]


def policy(draw: Source, parent: Plain) -> None:
    """Give a deployment a policy."""
    spread = {"topologyKey": draw.choice(("zone", "region")), "maxSkew": draw.choice((1, 2))}
    if draw.odds(0.5):
        spread["whenUnsatisfiable"] = draw.choice(("DoNotSchedule", "ScheduleAnyway"))
    if draw.odds(0.3):
        spread["minDomains"] = 2
    cost = 'cluster.attributes["example.com/cost"] < 3'
    wishes = [{"weight": 10, "matchLabels": {"tier": "prod"}}, {"weight": 7, "cel": cost}]
    wishes.append({"weight": 3, "maxCentsPerHour": 800})
    stated: Plain = {
        "strategy": draw.choice(("Spread", "BinPack", "BinPack")),
        "tieBreak": draw.choice(("Name", "MostFree", "Hash")),
        "topologySpread": [spread],
        "maxReplicasPerCluster": draw.choice((1, 2, 3)),
        "preferences": draw.sample(wishes, draw.choice((1, 2))),
        "disruption": draw.choice(DISRUPTIONS),
        "rollout": {"maxUnavailable": draw.choice((1, 1, 2))},
        "alternativePolicy": draw.choice(("PreferFirst", "ClusterFirst")),
        "priorityClassName": draw.choice(("high", "low", "gone")),
    }
    chosen = {name: value for name, value in stated.items() if draw.odds(0.3)}
    if chosen.get("disruption", {}).get("maxSurge") and draw.odds(0.3):
        chosen["rollout"] = {"maxUnavailable": 0}
    if chosen:
        parent["spec"]["placement"] = chosen
    if draw.odds(0.25):
        parent["spec"]["minReplicas"] = min(parent["spec"]["replicas"], draw.choice((1, 2, 3)))


def _selector(draw: Source, parent: Plain) -> None:
    selector = parent["spec"]["template"]["spec"].setdefault("clusterSelector", {})
    if draw.odds(0.2):
        operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        asked: Plain = {"key": draw.choice(("zone", "region", "none")), "operator": operator}
        if operator in ("In", "NotIn"):
            asked["values"] = draw.choice((["z1", "eu"], ["us", "eu"]))
        selector["matchExpressions"] = [asked]
    if draw.odds(0.15):
        selector["cel"] = ['"soc2" in cluster.attributes["example.com/compliance"]']


def _with_input(draw: Source, made: World) -> World:
    given: Plain = {}
    if draw.odds(0.3):
        given["explain"] = "Status"
    if draw.odds(0.2):
        given["overcommit"] = "Yield"
    if draw.odds(0.1):
        given["searchBudget"] = draw.choice((5, 200))
    if draw.odds(0.1):
        given["defaults"] = {"placement": {"strategy": "BinPack", "maxReplicasPerCluster": 3}}
    if draw.odds(0.04):
        given["searchBudgett"] = 7
    if draw.odds(0.3):
        given["priorityClasses"] = CLASSES
    if draw.odds(0.3):
        given["quotas"] = draw.sample(QUOTAS, draw.choice((1, 2)))
    more = {}
    if draw.odds(0.25):
        given["coordination"] = "GlobalOrder"
        more = _peers(draw, made)
    return made.but(input=INPUT | given if given else None, more=more)


def _peers(draw: Source, made: World) -> dict[str, list[Plain]]:
    """Return the deployments and the caches that coordination asks for; some are not delivered."""
    peers = [
        _peer(draw, name, namespace) for name, namespace in (("other", "ml-team"), ("batch", "research"))
    ]
    listed = [made.copy().deployment, *peers]
    draw.shuffle(listed)
    more = {"all-deployments": listed, "all-caches": [build.cache()]}
    if draw.odds(0.05):
        del more[draw.choice(sorted(more))]
    return more


def _peer(draw: Source, name: str, namespace: str) -> Plain:
    peer = build.deployment(name, draw.choice((1, 2, 3)), [engine(draw, "main")], namespace=namespace)
    peer["metadata"]["creationTimestamp"] = draw.choice(("2026-02-01T08:00:00Z", "2026-04-01T08:00:00Z"))
    if draw.odds(0.4):
        peer["spec"]["placement"] = {"priorityClassName": draw.choice(("high", "low"))}
    return peer
