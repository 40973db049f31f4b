"""The worst legal objects of the handlers beside that of ModelDeployments, and thousands of a stranger's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.adapter.snapshot import BASE, PLACEMENTS
from function.api.adapter import ADAPTER_LABEL, REPLICA_LABEL, placement_name
from function.api.replica import DEPLOYMENT_LABEL
from function.cluster.names import CLAIMS, NODES, REQUIRED, SLICES, TAINT_RULES
from function.cluster.snapshot import REPLICAS
from function.operations.handler import DEPLOYMENTS, ENDPOINTS, FLEET, SERVICES, WATCHED
from tests.adapter import plane
from tests.cluster import build as clusters_of
from tests.replica import build as replicas
from tests.replica.provider import applied
from tests.routing import build as routing
from tests.support import build, preempting, slices
from tests.support.any_request import AnyRequest
from tests.support.cases import ask, one
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Plain = dict[str, Any]
STRANGERS = 3_000
"""Objects of one kind that a stranger makes."""
LOOKED: Plain = {
    "kind": "ClusterConfig",
    "publish": "Attributes",
    "capacity": "Usable",
    "preemption": "Arbitrate",
    "tenants": "Charge",
}
DRIFT = "drift of 3,000 nodes, 16 entries"
SEEN = [{"type": kind, "status": "True"} for kind in ("Synced", "Ready")]
PROVIDER = "kubernetes.m.crossplane.io/v1alpha1"


@dataclass(frozen=True)
class Case:
    """An object, and the call about it or about another one."""

    kind: str
    what: str
    size: int
    world: World | AnyRequest
    plain: AnyRequest | None = None
    """The same call about an object of that kind that is nothing special."""

    @classmethod
    def of(cls, kind: str, what: str, made: Plain, call: World | AnyRequest, usual: AnyRequest) -> Case:
        """Measure a call beside a usual one."""
        return cls(kind, what, len(json.dumps(made)), call, usual)


def others() -> Iterator[Case]:
    """Yield every kind."""
    yield from adapters()
    yield from secrets()
    yield from declared_clusters()
    yield from operations()
    yield from preemption()


def stored(made: Plain, **metadata: Any) -> Plain:
    """Return an object as the API server keeps it."""
    named = build.uid(made["metadata"]["name"])
    return made | {"metadata": {"uid": named, "resourceVersion": "7", **made["metadata"], **metadata}}


def placement(name: str, replica: str) -> Plain:
    """Return a ModelAdapterPlacement that somebody made by hand."""
    labels = {ADAPTER_LABEL: name, REPLICA_LABEL: replica}
    metadata = {"name": placement_name(name, replica), "namespace": plane.NAMESPACE, "labels": labels}
    spec = {"adapter": name, "replica": replica, "source": f"acme/{name}"}
    return stored(
        {"apiVersion": plane.API, "kind": "ModelAdapterPlacement", "metadata": metadata, "spec": spec}
    )


def adapters() -> Iterator[Case]:
    """An adapter of 200 replicas, and thousands of replicas and placements beside it."""
    bases = [plane.replica(f"chat-{at}", f"c{at % 100}", 512) for at in range(STRANGERS)]
    first = bases[0]["metadata"]["name"]
    spread = [placement("support", base["metadata"]["name"]) for base in bases]
    crowd = [placement(f"other-{at}", first) for at in range(20_000)]
    made = plane.adapter(replicas=200)

    def call(wanted: int, placements: Sequence[Plain]) -> AnyRequest:
        required = {f"{BASE}/{DEPLOYMENT_LABEL}=chat": bases, PLACEMENTS: placements}
        return AnyRequest(plane.adapter(replicas=wanted), {}, required)

    usual = call(1, ())
    yield Case.of("ModelAdapter", "200 replicas of a base of 3,000", made, call(200, ()), usual)
    yield Case.of("ModelAdapter", "3,000 of its placements made by hand", made, call(200, spread), usual)
    yield Case.of("ModelAdapter", "20,000 placements on one replica", made, call(200, crowd), usual)
    many = [placement(f"a{at}", base["metadata"]["name"]) for at in range(500) for base in bases[:40]]
    yield Case.of("ModelAdapter", "500 adapters on each of 40 replicas", made, call(200, many), usual)


def secrets() -> Iterator[Case]:
    """A replica that drops 1,024 mirrored Secrets once others are rolled out."""
    scenes = []
    for generation in range(2):
        gangs = []
        for engine in range(8):
            names = [f"s{engine}-{at}-{generation}" for at in range(128)]
            env = [
                {"name": name, "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}} for name in names
            ]
            gangs.append(replicas.gang(f"e{engine}", env=env))
        config = replicas.config(secrets="Mirror", status="Engines")
        scenes.append(replicas.Scene(replicas.replica(*gangs), input=config))
    observed = {key: seen for scene in scenes for key, seen in applied(replicas.run(scene)).items()}
    made, usual = scenes[1].replica, replicas.Scene(replicas.replica()).asked
    call = scenes[1].but(observed=observed).asked
    yield Case.of("ModelReplica", "1,024 Secrets renamed, rolled out", made, call, usual)


def declared_clusters() -> Iterator[Case]:
    """Clusters with many nodes, devices, rules and replicas."""
    pools = [{"name": f"p{at}", "className": "h200", "nodeCount": 10_000} for at in range(8)]
    tolerations = [{"key": f"k{at}", "value": "x" * 60, "effect": "NoSchedule"} for at in range(16)]
    tolerant = [pool | {"tolerations": tolerations} for pool in pools]
    taints = [{"key": f"k{at}", "value": "y", "effect": "NoSchedule"} for at in range(16)]
    usual = AnyRequest(clusters_of.cluster(pools[0]), {}, {"class-h200": [clusters_of.inference_class()]})
    nodes = []
    for at in range(5_000):
        node = slices.node(f"n{at}", f"p{at % 8}")
        nodes.append(node | {"status": {"conditions": SEEN[1:]}})
    tainted = [node | {"spec": {"taints": taints}} for node in nodes]
    wide: Plain = {
        "attributes": {"type": {"string": "gpu"}, **{f"a{on}": {"int": on} for on in range(29)}},
        "capacity": {"memory": {"value": "80Gi"}},
    }
    inventory = [slices.resource_slice(f"n{at}", slices.devices(slices.H200, 8)) for at in range(5_000)]
    racks = [slices.resource_slice(f"n{at}", slices.devices(wide, 128)) for at in range(100)]
    kinds = [[{"attributes": {"type": {"string": f"{at}-{on}"}}} for on in range(8)] for at in range(3_000)]
    odd = [
        slices.resource_slice(f"n{at}", [{"name": f"d{on}", **one} for on, one in enumerate(of_node)])
        for at, of_node in enumerate(kinds)
    ]
    rules = []
    for at in range(STRANGERS):
        selector = {"driver": "gpu.nvidia.com", "pool": f"n{at % 500}"}
        taint = {"key": f"k{at}", "effect": "NoSchedule"}
        rules.append({"metadata": {"name": f"r{at}"}, "spec": {"deviceSelector": selector, "taint": taint}})
    everywhere = [one | {"spec": {**one["spec"], "deviceSelector": {}}} for one in rules]
    few = {NODES: nodes[:500], SLICES: inventory[:500]}
    effects = [{"key": f"k{at}", "value": "y", "effect": "NoSchedule"} for at in range(4)]
    of_node = [device | {"taints": effects} for device in slices.devices(slices.H200, 8)]
    dirty = [slices.resource_slice(f"n{at}", of_node) for at in range(STRANGERS)]
    claims = [slices.resource_claim(f"other{at}", f"n{at % 5_000}", 32) for at in range(8_000)]
    spotted = []
    for at in range(40):
        many = [{"key": f"k{at}-{on}", "value": "y", "effect": "NoSchedule"} for on in range(20_000)]
        spotted.append(slices.node(f"n{at}", "p0") | {"spec": {"taints": many}})
    for what, of, entries, looked in (
        ("5,000 nodes of 8 devices", pools, 1, {NODES: nodes, SLICES: inventory}),
        ("16 tolerations, 5,000 nodes of 16 taints", tolerant, 1, {NODES: tainted, SLICES: inventory}),
        ("100 nodes of 128 devices, 16 entries", pools, 16, {NODES: nodes[:100], SLICES: racks}),
        ("3,000 taint rules on 500 nodes", pools, 1, {**few, TAINT_RULES: rules}),
        ("3,000 taint rules on each device of 500 nodes", pools, 1, {**few, TAINT_RULES: everywhere}),
        ("40 nodes of 20,000 taints", tolerant, 1, {NODES: spotted, SLICES: inventory[:40]}),
        ("3,000 nodes, no 2 devices of a kind, 16 entries", pools, 16, {NODES: nodes[:3_000], SLICES: odd}),
        ("3,000 nodes, 4 taints on a device", pools, 1, {NODES: nodes[:3_000], SLICES: dirty}),
        ("8,000 claims of 32 devices", pools, 1, {NODES: nodes, SLICES: inventory, CLAIMS: claims}),
        (DRIFT, pools, 16, {NODES: nodes[:3_000], SLICES: inventory[:3_000]}),
    ):
        call = looked_at(of, entries, looked)
        if what == DRIFT:
            call.composite["spec"]["drift"] = {"mode": "Observe"}
        yield Case.of("InferenceCluster", what, call.composite, call, usual)
    for number, nodes in ((100, 1), (1_500, 1), (1_500, 1_600)):
        rest = STRANGERS - number
        lower = [preempting.running(preempting.of(f"t{at % 50}", "batch"), "east", at) for at in range(rest)]
        engine = build.engine(members=[build.member(devices=[build.request("gpu", 8)])], copies=nodes)
        higher = [
            preempting.waiting(preempting.of(f"vip{at}", engines=[engine]), "east") for at in range(number)
        ]
        call = looked_at([pools[0] | {"nodeCount": rest}], 1, {}, [*lower, *higher])
        what = f"{number:,} replicas of {nodes:,} nodes that preempt, {rest:,} that may give way"
        yield Case.of("InferenceCluster", what, call.composite, call, usual)
    asked = [build.request(f"r{at}", 1) for at in range(16)]
    engines = [build.engine(f"e{at}", [build.member("Standalone", asked)]) for at in range(8)]
    wide = [
        preempting.running(preempting.of(f"d{at}", None, engines=engines), "east", at) for at in range(800)
    ]
    for accounting in ("Node", "Device"):
        call = looked_at([pools[0] | {"accounting": accounting}], 16, {}, wide)
        what = f"800 replicas of 128 requests, {accounting} accounting"
        yield Case.of("InferenceCluster", what, wide[0], call, usual)


def looked_at(
    pools: Sequence[Plain], entries: int, looked: Mapping[str, Sequence[Plain]], held: Sequence[Plain] = ()
) -> AnyRequest:
    """Return the call about a cluster whose nodes are looked at. `entries`: of the class of its pools."""
    made = clusters_of.cluster(*pools, gateway={"address": "203.0.113.7"})
    made["spec"]["celVersion"] = "1.37"
    content = clusters_of.inference_class()
    device = {**content["spec"]["devices"][0], "attributes": {"type": {"string": "gpu"}}}
    content["spec"]["devices"] = [device | {"name": f"gpu{at}"} for at in range(entries)]
    observed: dict[str, Plain] = {}
    required: dict[str, Sequence[Plain]] = {"class-h200": [stored(content)], REPLICAS: held}
    for key, manifests in looked.items():
        spec = {"providerConfigRef": {"kind": "ClusterProviderConfig", "name": "p"}}
        metadata = {"name": key, "namespace": "modelplane-system"}
        head = {"apiVersion": PROVIDER, "kind": "ObservedObjectCollection", "metadata": metadata}
        observed[key] = {**head, "spec": spec, "status": {"conditions": SEEN}}
        seen = []
        for at, manifest in enumerate(manifests):
            status = {"conditions": SEEN[:1], "atProvider": {"manifest": manifest}}
            head = {"apiVersion": PROVIDER, "kind": "Object", "metadata": {"name": f"{key}-{at}"}}
            seen.append(stored({**head, "status": status}))
        required[REQUIRED[key]] = seen
    return AnyRequest(made, observed, required, LOOKED)


def operations() -> Iterator[Case]:
    """A change of a cluster or an endpoint, beside thousands of deployments or endpoints."""
    labels = {f"l{at}": "x" * 20 for at in range(8)}
    endpoints = [stored(routing.endpoint(f"e-{at:05}", labels=labels)) for at in range(STRANGERS)]
    groups = [routing.group(1, on, **labels) for on in range(16)]
    services = [stored(routing.service(*groups, name=f"s-{at:04}")) for at in range(500)]
    changed = {WATCHED: endpoints[:1], SERVICES: services, ENDPOINTS: endpoints}
    usual = AnyRequest({}, {}, {**changed, SERVICES: services[:1]})
    what = "500 services of 16 selectors, 3,000 endpoints"
    yield Case.of("Operation", what, services[0], AnyRequest({}, {}, changed), usual)
    short = [stored(preempting.of(f"d{at}", None)) for at in range(STRANGERS)]
    lists: list[Sequence[Plain]] = [[one(f"c{at}") for at in range(200)], (), short]
    fleet = {WATCHED: lists[0][:1], **dict(zip(FLEET, lists, strict=True))}
    usual = AnyRequest({}, {}, {**fleet, DEPLOYMENTS: short[:1]})
    what = "3,000 deployments that are short"
    yield Case.of("Operation", what, short[0], AnyRequest({}, {}, fleet), usual)


def preemption() -> Iterator[Case]:
    """A deployment that preempts where 3,000 may give way."""
    usual = World(ask(), [one("c0")]).asked
    chat = preempting.of("chat", replicas=200)
    engine = build.engine(members=[build.member(devices=[build.request("gpu", 8)])], copies=1_000)
    wide = preempting.of("wide", replicas=200, engines=[engine])
    for what, made, clusters in (
        ("200 replicas, 3,000 may give way on 100 clusters", chat, 100),
        ("200 replicas, 3,000 may give way on 1 cluster", chat, 1),
        ("200 of 1,000 nodes, 3,000 may give way", wide, 1),
    ):
        fleet = [one(f"c{at}", STRANGERS // clusters) for at in range(clusters)]
        for cluster in fleet:
            cluster["status"]["givesWay"] = []
        lower = [
            preempting.running(preempting.of(f"t{at % 100}", "batch"), f"c{at % clusters}", at)
            for at in range(STRANGERS)
        ]
        yield Case.of("preemption", what, made, World(made, fleet, lower, input=preempting.ON), usual)
