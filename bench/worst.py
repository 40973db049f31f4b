"""CPU of the worst legal object found, by kind: python -m bench.worst [--only WORD].

Each is below 1.5 MB and passes the schema; a fresh process's first call about it is what is measured, in CPU
seconds of this process. The same call about a plain deployment on the same fleet stands beside it: what the
fleet costs is not the object's. Garbage is collected as the server does it. A loop runs beside every call:
the seconds are those of a machine on which it takes a tenth of one. What slows the one slows the other.
"""

from __future__ import annotations

import json
import platform
from dataclasses import replace
from itertools import chain
from time import process_time
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from bench.worst_kinds import Case, others, stored
from function.runner import Function
from function.server.intake import collect_seldom
from tests.cluster import build as clusters_of
from tests.replica import build as replicas
from tests.replica.provider import applied
from tests.routing import build as routing
from tests.support import build
from tests.support.any_request import AnyRequest
from tests.support.cases import HARD, TIGHT, ask, one, pools_of, single, sized
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

Plain = dict[str, Any]
UUID = f'device.attributes["{build.GPU}"].uuid'
GLOBAL = {"coordination": "GlobalOrder"}
LOOPS = 150_000


class Silent:
    """A log that keeps nothing."""

    def info(self, *_: object, **__: object) -> None:
        """Leave it."""

    warning = error = info


def device(number: int) -> Plain:
    """GPUs that are like no other."""
    made = build.gpu(8)
    made["attributes"]["uuid"] = {"string": f"GPU-{number:06}"}
    return made


def fleet(clusters: int, pools: int = 1, **more: Any) -> list[Plain]:
    """Clusters every device of which is like no other."""
    return [
        one(
            f"c{at:04}",
            pools=[build.pool(f"p{on}", 9, [device(at * pools + on)]) for on in range(pools)],
            labels={f"k{key}": f"v{at % (key + 7)}" for key in range(8)},
            **more,
        )
        for at in range(clusters)
    ]


def dear(number: int, subject: str = UUID) -> str:
    """A selector that takes over a million units."""
    loops = f"lists.range(400).all(x, lists.range(400).all(y, x + y >= -{number}))"
    return f'{loops} && {subject} != "{number}"'


def engines(selectors: list[str]) -> list[Plain]:
    """Engines with a request for each selector, so that none of them spares another."""
    requests = [build.request(f"r{at}", 1, selector) for at, selector in enumerate(selectors)]
    return [single(*requests[at : at + 16], name=f"e{at}") for at in range(0, len(requests), 16)]


def named(made: Plain, name: str, created: str) -> Plain:
    """The deployment under another name, created then."""
    made["metadata"] |= {"name": name, "uid": build.uid(name), "creationTimestamp": created}
    return made


def running(wanted: Plain, number: int, clusters: int) -> list[Plain]:
    """Replicas made by hand, spread over the clusters."""
    return [
        build.replica(wanted, f"c{at % clusters:04}", at // clusters, pools="p0", ready=True)
        for at in range(number)
    ]


def cases() -> Iterator[Case]:
    """Every kind, the object as large as it has to be."""
    few, many = fleet(10), fleet(100, 4)

    def of(kind: str, what: str, made: Plain, clusters: list[Plain], **more: Any) -> Case:
        return Case(kind, what, len(json.dumps(made)), World(made, clusters, **more))

    yield of("selectors", "16 dear ones, 10 devices", ask(engines=engines([*map(dear, range(16))])), few)
    short = [f'{UUID} == "GPU-x{at:03}"' for at in range(50)]
    yield of("selectors", "50 cheap ones, 400 devices", ask(engines=engines(short)), many)
    explained = {"explain": "Status"}
    yield of("selectors", "the same, with hints", ask(engines=engines(short)), many, input=explained)
    clause = "dyn([1,2])==[1,2]"
    long = ["&&".join([clause] * 500 + [f'{UUID}!="{at}"']) for at in range(3)]
    yield of("selectors", "3 of 9,500 characters", ask(engines=engines(long)), few, input=explained)
    wide = [dear(at, "cluster.name") for at in range(8)]
    yield of("clusterSelector", "8 dear expressions", ask(selector={"cel": wide}), many)
    wishes = {"preferences": [{"weight": 1, "cel": dear(at, "cluster.name")} for at in range(16)]}
    yield of("preferences", "16 dear ones, 200 replicas", ask(200, placement=wishes), many)
    pools = [{"cel": dear(at, "node.name")} for at in range(8)]
    yield of("pool selectors", "8 dear ones", ask(engines=[single(build.request(), selectors=pools)]), many)
    hostile = named(ask(engines=engines([*map(dear, range(16))])), "hostile", "2026-03-01T07:00:00Z")
    ours = named(ask(), "ours", "2026-03-01T09:00:00Z")
    more = {"all-deployments": [hostile, ours], "all-caches": []}
    yield Case(
        "another's selectors",
        "16 dear ones, created earlier",
        len(json.dumps(hostile)),
        World(ours, few, input=GLOBAL, more=more),
    )
    for mode in ("DoNotSchedule", "ScheduleAnyway"):
        spread = {"topologySpread": [{"topologyKey": f"k{at}", "whenUnsatisfiable": mode} for at in range(8)]}
        yield of("topologySpread", f"8 keys {mode}, 200 replicas", ask(200, placement=spread), many)
    for engines_asked, requests, ways in ((8, 16, 8), (1, 5, 3), (1, 4, 4), (1, 16, 6)):
        searched = [served(at, requests, ways) for at in range(engines_asked)]
        what = f"{engines_asked} engines x {requests} requests x {ways} ways, 400 devices"
        yield of("firstAvailable", what, ask(engines=searched), many)
    yield from shared_nodes()
    yield from beyond(many)
    container = {"name": "engine", "image": "x", "args": ["a" * 30_000] * 45}
    selected = {
        "nodeSelector": {"devices": [build.request()]},
        "template": {"spec": {"containers": [container]}},
    }
    yield of("template", "1.3 MB of arguments", ask(200, engines=[build.engine("main", [selected])]), few)
    tolerations = [{"key": f"k{at}", "value": "x"} for at in range(32)]
    tainted = fleet(100, 4, taints=[build.taint(f"z{at}") for at in range(16)])
    yield of("tolerations", "32, 16 taints each", ask(200, tolerations=tolerations), tainted)
    wanted = ask()
    gone = running(wanted, 3_000, 10)
    yield Case("replicas", "3,000 made by hand", len(json.dumps(gone[0])), World(wanted, few, gone))
    spread = {"topologySpread": [{"topologyKey": f"k{at}"} for at in range(8)]}
    leaving = ask(placement=spread)
    drained = running(leaving, 2_000, 100)
    observed = build.observed(*drained)
    yield of("replicas", "2,000 leaving, 8 keys", leaving, many, replicas=drained, observed=observed)
    yield from limited(wanted, many)
    yield from longest(many)
    yield from strange()


def longest(clusters: list[Plain]) -> Iterator[Case]:
    """Deployments the lists of which are as long as they may be, where their lengths multiply."""
    tainted = [sized_gpu(at) for at in range(16)]
    for at, entry in enumerate(tainted):
        entry["taints"] = [{"key": f"t{at}-{on}", "value": "v", "effect": "NoSchedule"} for on in range(16)]
    on = [
        one(f"c{at:04}", pools=[build.pool(f"p{k}", 3 + at % 40, tainted) for k in range(4)])
        for at in range(100)
    ]
    tolerations = [{"key": f"t{at}", "operator": "Exists"} for at in range(16)]
    requests = [build.request(f"r{at}", 1) | {"tolerations": tolerations} for at in range(16)]
    wanted = ask(200, engines=[single(*requests, name=f"e{at}") for at in range(8)])
    what = "8 engines x 16 requests of 16, 16 taints on each of 16 entries"
    yield Case("tolerations", what, len(json.dumps(wanted)), World(wanted, on))
    terms = [
        {"key": f"k{at % 8}", "operator": "NotIn", "values": [f"v{at}-{on}" for on in range(64)]}
        for at in range(32)
    ]
    wanted = ask(200, selector={"matchExpressions": terms})
    yield Case(
        "matchExpressions",
        "32 of 64 values, 1,000 clusters",
        len(json.dumps(wanted)),
        World(wanted, fleet(1_000)),
    )
    for policy in ("PreferFirst", "ClusterFirst"):
        shapes = []
        for shape in range(5):
            pairs = [
                [build.request(f"r{at}", 1 + (at + add) % 4) for at in range(16)]
                for engine in range(8)
                for add in (shape, engine)
            ]
            shapes.append(
                [
                    build.engine(
                        f"e{at}",
                        [build.member("Leader", pairs[at]), build.member("Worker", pairs[at + 1], nodes=2)],
                    )
                    for at in range(8)
                ]
            )
        others = [{"name": f"a{at}", "engines": made} for at, made in enumerate(shapes[1:])]
        wanted = ask(200, engines=shapes[0], alternatives=others, placement={"alternativePolicy": policy})
        what = f"4 {policy}, 8 engines x 2 members x 16 requests each"
        yield Case("alternatives", what, len(json.dumps(wanted)), World(wanted, mixed(100, 8)))
    hard = [sized(*[need - at + (on * at) % 3 for on, need in enumerate(HARD)]) for at in range(5)]
    wanted = ask(
        200,
        engines=hard[0],
        alternatives=[{"name": f"a{at}", "engines": made} for at, made in enumerate(hard[1:])],
    )
    tight = [
        one(f"c{at:04}", pools=pools_of(*[nodes - (at * 7 + on * 3) % 5 for on, nodes in enumerate(TIGHT)]))
        for at in range(1_000)
    ]
    yield Case(
        "alternatives", "4 that hardly fit, 1,000 clusters", len(json.dumps(wanted)), World(wanted, tight)
    )
    engines_asked = [
        build.engine(f"e{at}", [build.member("Standalone", [build.request()])]) for at in range(8)
    ]
    for at, engine in enumerate(engines_asked):
        items = [{"key": f"k{on}", "path": f"p{on}"} for on in range(16)]
        volumes = [
            {"name": f"v{on}", "configMap": {"name": f"c{at}-{on}", "items": items}} for on in range(8)
        ]
        mounts = [{"name": f"v{on % 8}", "mountPath": f"/m{on}", "subPath": "k"} for on in range(16)]
        env = [{"name": f"E{on}", "value": "x" * 100} for on in range(128)]
        container = engine["members"][0]["template"]["spec"]["containers"][0]
        container |= {"volumeMounts": mounts, "env": env, "args": [f"--a{on}=b" for on in range(256)]}
        engine["members"][0]["template"]["spec"] = {"volumes": volumes, "containers": [container]}
    wanted = ask(200, engines=engines_asked)
    what = "8 engines of 8 volumes with 16 items, 16 mounts and 128 variables"
    yield Case("volumes", what, len(json.dumps(wanted)), World(wanted, clusters))


def limited(wanted: Plain, clusters: list[Plain]) -> Iterator[Case]:
    """Quotas, as many as there may be and more, over a namespace that holds 3,000 replicas or starts them."""
    held = running(wanted, 3_000, 100)
    limits = [(500, {}), (64, {"guaranteed": {"nodes": 9}})]
    for number, more in limits:
        quotas = [
            {
                "name": f"q{at}",
                "namespaces": [wanted["metadata"]["namespace"]],
                "atMost": {"nodes": 9},
                **more,
            }
            | ({"cel": f'node.name != "x{at}"'} if more else {})
            for at in range(number)
        ]
        what = f"{number} with expressions and guarantees" if more else f"{number}"
        world = World(wanted, clusters, held, input={"quotas": quotas, "overcommit": "Yield"})
        yield Case("quotas", f"{what} over 3,000 replicas", len(json.dumps(quotas)), world)
    starting = [
        build.replica(
            named(ask(), f"d{at}", "2026-03-01T07:00:00Z"), f"c{at % 100:04}", at // 100, pools="p0"
        )
        for at in range(3_000)
    ]
    quotas = [quota | {"atMost": {"nodes": 100_000}} for quota in quotas]
    world = World(wanted, clusters, starting, input={"quotas": quotas, "overcommit": "Yield"})
    yield Case("quotas", "64 as above, 3,000 replicas that start", len(json.dumps(quotas)), world)


def mixed(clusters: int, pools: int, **more: Any) -> list[Plain]:
    """Clusters that charge devices, of entries that differ in memory; no two have as many nodes."""
    return [
        one(
            f"c{at:04}",
            pools=[
                build.pool(f"p{on}", 3 + (at * 7 + on * 3) % 40, [sized_gpu(k, **more) for k in range(16)])
                for on in range(pools)
            ],
            accounting="Device",
        )
        for at in range(clusters)
    ]


def sized_gpu(at: int, values: int = 0) -> Plain:
    """An entry like no other of its pool, with attributes of so many values each."""
    made = build.gpu(1 + at % 8, name=f"g{at}", memory=f"{8 * at + 8}Gi")
    for on in range(8 if values else 0):
        lists = [f"v{(at * 7 + value * (on + 1)) % 97}" for value in range(values)]
        made["attributes"][f"a{on}"] = {"list": {"string": lists}}
    return made


def shared_nodes() -> Iterator[Case]:
    """Pods that share nodes of many different devices: what they do to one another is a packing."""
    memory = f'device.capacity["{build.GPU}"].memory'
    for engines_asked, requests in ((8, 16), (8, 4), (1, 4)):
        asked = [
            [
                build.request(f"r{at}", 1, f'{memory}.compareTo(quantity("{8 * at + 8 - e % 4}Gi")) >= 0')
                for at in range(requests)
            ]
            for e in range(engines_asked)
        ]
        wanted = ask(200, engines=[single(*some, name=f"e{e}") for e, some in enumerate(asked)])
        what = f"{engines_asked} engines x {requests} requests by memory, 16 entries"
        yield Case("Device accounting", what, len(json.dumps(wanted)), World(wanted, mixed(100, 4)))
    rules = [{"matchAttribute": f"{build.GPU}/a{on}"} for on in range(8)]
    asked = [
        single(*[build.request(f"r{at}", 2 + at) for at in range(4)], name=f"e{e}", constraints=rules)
        for e in range(8)
    ]
    wanted = ask(200, engines=asked)
    what = "8 constraints on lists of 64, 16 entries"
    yield Case("matchAttribute", what, len(json.dumps(wanted)), World(wanted, mixed(100, 4, values=64)))
    tight = [
        one(
            f"c{at:04}",
            pools=pools_of(*[nodes - (at * 7 + on * 3) % 5 for on, nodes in enumerate(TIGHT)]),
            accounting="Device",
        )
        for at in range(100)
    ]
    hard = ask(200, engines=sized(*HARD))
    yield Case("Device accounting", "8 engines that hardly fit", len(json.dumps(hard)), World(hard, tight))


def strange() -> Iterator[Case]:
    """Replicas made by hand whose pods share nodes, and no two of which claim alike."""
    for requests, nodes in ((1, 400), (8, 3_000)):
        held = []
        for number in range(3_000):
            claimed = [
                build.request(f"r{at}", 1 + at, f"{number} >= 0 && {at} >= 0") for at in range(requests)
            ]
            made = named(ask(engines=[single(*claimed)]), f"d{number}", "2026-03-01T07:00:00Z")
            held.append(build.replica(made, "c0000", 0, pools="p0", ready=True))
        pool = build.pool("p0", nodes, [sized_gpu(k) for k in range(16)])
        world = World(ask(), [one("c0000", pools=[pool], accounting="Device")], held)
        what = f"3,000 unlike any other, of {requests} requests, on {nodes:,} nodes"
        yield Case("replicas", what, len(json.dumps(held[0])), world)


def served(engine: int, requests: int, ways: int) -> Plain:
    """An engine whose requests are served in several ways that share what no two devices have in common."""
    ranked = [build.request(f"w{at}", 1 + at) for at in range(ways)]
    asked = [{"name": f"e{engine}-r{at}", "firstAvailable": ranked} for at in range(requests)]
    return single(*asked, name=f"e{engine}", constraints=[{"matchAttribute": f"{build.GPU}/uuid"}])


def beyond(clusters: list[Plain]) -> Iterator[Case]:
    """Large fleets, many deployments before ours, and the objects of other handlers."""
    large = fleet(1_000)
    for mode in ("DoNotSchedule", "ScheduleAnyway"):
        spread = {"topologySpread": [{"topologyKey": f"k{at}", "whenUnsatisfiable": mode} for at in range(8)]}
        wanted = ask(200, placement=spread)
        size = len(json.dumps(wanted))
        yield Case("topologySpread", f"8 keys {mode}, 1,000 clusters", size, World(wanted, large))
    tight = [
        one(f"c{at:04}", pools=pools_of(*[nodes - (at * 7 + on * 3) % 5 for on, nodes in enumerate(TIGHT)]))
        for at in range(1_000)
    ]
    hard = ask(200, engines=sized(*HARD))
    yield Case("engines", "8 that hardly fit, 1,000 clusters", len(json.dumps(hard)), World(hard, tight))
    ours = named(ask(), "ours", "2026-03-01T09:00:00Z")
    hostile = [
        named(ask(engines=engines([f'{UUID} != "{"x" * 900}-{number}-{at}"' for at in range(28)])), *before)
        for number in range(20)
        for before in [(f"hostile-{number}", "2026-03-01T07:00:00Z")]
    ]
    more = {"all-deployments": [*hostile, ours], "all-caches": []}
    size = len(json.dumps(hostile[0]))
    world = World(ours, clusters[:10], input=GLOBAL, more=more)
    yield Case("another's selectors", "20 deployments, 28 kB of text each", size, world)
    env = [
        [
            {"name": f"V{at}", "valueFrom": {"secretKeyRef": {"name": f"s{e}-{at}", "key": "k"}}}
            for at in range(128)
        ]
        for e in range(8)
    ]
    secret = replicas.replica(*[replicas.gang(f"e{at}", env=env[at]) for at in range(8)])
    scene = replicas.Scene(secret, input=replicas.config(secrets="Mirror", status="Engines"))
    usual = replicas.Scene(replicas.replica())
    size = len(json.dumps(secret))
    yield Case("ModelReplica", "1,024 mirrored Secrets", size, scene.asked, usual.asked)
    held = scene.but(observed=applied(replicas.run(scene)))
    yield Case("ModelReplica", "the same, observed", size, held.asked, usual.asked)
    long = replicas.replica(
        *[
            replicas.engine(f"e{at}", replicas.member(args=["a" * 30_000] * 5, claims=claims))
            for at in range(8)
            for claims in [[replicas.claim(f"g{on}", 1, "true && " * 20 + "true") for on in range(16)]]
        ]
    )
    size = len(json.dumps(long))
    yield Case("ModelReplica", "8 engines, 128 claims, 1.2 MB", size, replicas.Scene(long).asked, usual.asked)
    short = [replicas.engine(f"e{at}", replicas.member(args=["-a"] * 29_000)) for at in range(8)]
    many = replicas.Scene(replicas.replica(*short))
    size = len(json.dumps(many.replica))
    yield Case("ModelReplica", "232,000 short arguments", size, many.asked, usual.asked)
    fields = {f"f:{at}": {"f:x": {}} for at in range(50_000)}
    observed = applied(replicas.run(many))
    for made in observed.values():
        made["metadata"]["managedFields"] = [{"manager": "m", "fieldsV1": fields}]
    world = many.but(observed=observed).asked
    yield Case("ModelReplica", "the same, observed, with managedFields", size, world, usual.asked)
    yield from services()
    yield from published()


def services() -> Iterator[Case]:
    """A service of as many selectors as there may be, and as many endpoints as fit into a request."""
    labels = {f"l{at}": "x" * 60 for at in range(16)}
    groups = [routing.group(weight=at + 1, priority=at, **labels) for at in range(16)]
    made = routing.service(*groups)
    endpoints = [stored(routing.endpoint(f"e-{at:04}", labels=labels)) for at in range(2_000)]
    required = {f"endpoints-{at}": endpoints for at in range(16)}
    usual = AnyRequest(routing.service(), {}, {"endpoints-0": endpoints[:2]}, routing.INPUT)
    size = len(json.dumps(made))
    call = AnyRequest(made, {}, required, routing.INPUT)
    yield Case("ModelService", "16 selectors, 2,000 endpoints of each", size, call, usual)


def published() -> Iterator[Case]:
    """A cluster whose pools have classes as large as they may be."""
    values = {"list": {"string": [f"value-{at}" for at in range(64)]}}
    large = [
        {
            "name": f"d{at}",
            "driver": "gpu.example.com",
            "deviceClassName": "gpu.example.com",
            "count": 8,
            "attributes": {f"a{on}": values for on in range(32)},
            "capacity": {f"c{on}": {"value": "80Gi"} for on in range(32)},
        }
        for at in range(16)
    ]
    pools = [{"name": f"p{at}", "className": f"k{at}", "nodeCount": 9} for at in range(8)]
    required = {f"class-k{at}": [clusters_of.inference_class(f"k{at}", devices=large)] for at in range(8)}
    call = AnyRequest(clusters_of.cluster(*pools), {}, required)
    usual = AnyRequest(clusters_of.cluster(pools[0]), {}, {"class-k0": [clusters_of.inference_class("k0")]})
    size = len(json.dumps(required["class-k0"][0]))
    yield Case("InferenceClass", "16 devices, 32 lists of 64; 8 pools", size, call, usual)


def loop() -> float:
    """CPU seconds of a loop that makes objects and looks them up, as a call does."""
    started = process_time()
    made = {str(number): [number] for number in range(LOOPS)}
    sum(made[key][0] for key in sorted(made))
    return process_time() - started


def seconds(world: World | AnyRequest) -> float:
    """CPU seconds of a first call, were the loop beside it a tenth of one."""
    content = world.message().SerializeToString()
    function = Function(log=Silent())
    collect_seldom()
    before = loop()
    started = process_time()
    function.answer(content)
    spent = process_time() - started
    return spent / (before + loop()) / 5


@click.command()
@click.option("--only", default="", help="measure the kinds that have this word")
def main(only: str) -> None:
    """Print CPU seconds of the worst legal object found, by kind."""
    plain = ask()
    seconds(World(plain, fleet(1)))  # What a process does once in its life is not what is measured.
    table = Table(title=f"CPU seconds of one call; Python {platform.python_version()}")
    for head in ("kind", "object", "kB", "call", "a plain one"):
        table.add_column(head, justify="left" if head in ("kind", "object") else "right")
    for case in chain(cases(), others()):
        if only in case.kind:
            world = case.plain or replace(case.world, deployment=plain, input=None, more={})
            figures = (f"{seconds(made):.2f}" for made in (case.world, world))
            table.add_row(case.kind, case.what, f"{case.size / 1000:.1f}", *figures)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
