"""The ways to put an engine on the pools of a cluster, and what each of them takes there."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

from function.api import replica as replica_api
from function.boundary import PlainDocument
from function.scheduler.budget import Budget
from function.scheduler.device_matching import Match, resolve_every
from function.scheduler.ledger import Ledger
from function.scheduler.matcher import Matcher
from function.scheduler.price import devices_of, price_of
from tests.support import build
from tests.support.cases import ask, first_available, one
from tests.support.drive import run
from tests.support.scale import seeds
from tests.support.scarce import decide
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import Engine, InferenceCluster, Member, Pool
    from function.scheduler.selectors import Evaluations

Plain = dict[str, Any]
GPU, NIC = 'device.driver == "gpu.nvidia.com"', 'device.driver == "dra.net"'
NODE, DEVICE = "modelplane.ai/centsPerNodeHour", "modelplane.ai/centsPerDeviceHour"


def pool(draw: random.Random, name: str) -> Plain:
    """A pool whose GPUs are of one or two entries, with a price, a fabric and an accounting of its own."""
    zones = draw.sample("abc", draw.choice((1, 1, 2)))
    devices = [build.gpu(draw.choice((2, 4)), name=f"gpu-{zone}", architecture=zone) for zone in zones]
    if draw.random() < 0.5:
        devices.append(build.nic(2, claim=draw.choice(("DRA", "Synthetic"))))
    fabric = {"modelplane.ai/fabric": {"string": draw.choice("ffg")}}
    prices = {price: {"int": draw.randrange(1, 900)} for price in (NODE, DEVICE) if draw.random() < 0.9}
    accounting = "Device" if name == "p0" else draw.choice(("Node", "Device"))
    return build.pool(name, draw.randrange(2, 9), devices) | {
        "attributes": fabric | prices,
        "accounting": accounting,
    }


def member(draw: random.Random, role: str, nodes: int | None = None) -> Plain:
    """Some pods that ask for GPUs of any entry or of one at best, for network cards, or for nothing."""
    kinds = [build.request("gpu", draw.randrange(1, 4), GPU)]
    best = GPU + f' && device.attributes["gpu.nvidia.com"].architecture == "{draw.choice("abc")}"'
    kinds.append(first_available("gpu", (draw.randrange(1, 3), best), (2, GPU)))
    requests = [draw.choice(kinds)] if draw.random() < 0.8 else []
    if draw.random() < 0.3:
        requests.append(build.request("nic", 1, NIC))
    made = build.member(role, requests, nodes=nodes)
    if requests and draw.random() < 0.3:
        rule = {"matchAttribute": "gpu.nvidia.com/architecture", "requests": ["gpu"]}
        made["nodeSelector"]["constraints"] = [rule]
    return made


def engine(draw: random.Random, name: str) -> Plain:
    """A gang, or a pod."""
    if draw.random() < 0.3:
        return build.engine(name, [member(draw, "Standalone")], copies=draw.choice((None, 2)))
    members = [member(draw, "Leader"), member(draw, "Worker", draw.choice((1, 2)))]
    made = build.engine(name, members, copies=draw.choice((None, 2, 3)))
    return made | {"poolPolicy": draw.choice(("SinglePool", "SameFabric", "SameFabric"))}


def small(seed: int) -> World:
    draw = random.Random(seed)
    fleet = [one(name, pools=[pool(draw, f"p{at}") for at in range(draw.choice((2, 3)))]) for name in "ab"]
    for cluster in fleet:
        published = cluster["status"]["gpuPools"]
        for declared, entry in zip(cluster["spec"]["nodePools"], published, strict=True):
            if entry["accounting"] == "Device" and draw.random() < 0.5:
                declared["acrossNodes"] = "Required"
    engines = [engine(draw, f"e{at}") for at in range(draw.choice((1, 1, 2)))]
    return World(ask(3, engines=engines), fleet)


def test_what_a_place_takes_is_what_the_replica_there_is_charged_for() -> None:
    """Nodes, pods, devices and price of a candidate, against those of the replica as it is stamped."""
    placed = 0
    for seed in seeds(60, 400, 4_000):
        answer = run(small(seed))
        if answer.decision is None:
            continue
        clusters = answer.decision.inputs.fleet.clusters
        ledger = Ledger(clusters.values())
        by_name = {made["metadata"]["name"]: made for made in answer.replicas.values()}
        for place in answer.decision.placed:
            replica, candidate = replica_api.parse(PlainDocument(by_name[place.name])), place.candidate
            held = {name: demand for name, demand in ledger.demands(replica).items() if demand.nodes}
            assert candidate.demands == held, seed
            assert (candidate.nodes, candidate.devices) == (replica.nodes, devices_of(replica)), seed
            cost = price_of(clusters[replica.cluster], replica.nodes, devices_of(replica))
            assert candidate.cents == cost, seed
            placed += 1
    assert placed > 30, "else the test would prove nothing"


def ways(
    engine: Engine, cluster: InferenceCluster, matcher: Matcher, evaluations: Evaluations
) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
    """Every choice of a pool and of claims for each member, by going through all of them."""
    rows = [[matcher.member(asking, pool) for pool in cluster.pools] for asking in engine.members]
    for chosen in product(range(len(cluster.pools)), repeat=len(engine.members)):
        used = [cluster.pools[at] for at in set(chosen)]
        if len(used) > 1 and engine.pool_policy != "SameFabric":
            continue
        if not all(pool.shares_fabric(other) for pool, other in product(used, used) if pool is not other):
            continue
        verdicts = [row[at] for row, at in zip(rows, chosen, strict=True)]
        if not all(isinstance(verdict, Match) for verdict in verdicts) or not any(map(claims, verdicts)):
            continue
        if any(not claims(now) and any(map(claims, row)) for now, row in zip(verdicts, rows, strict=True)):
            continue
        choices = [
            every(evaluations, asking, cluster.pools[at], verdict)
            for asking, at, verdict in zip(engine.members, chosen, verdicts, strict=True)
        ]
        yield from ((chosen, tuple(match.stamped for match in matches)) for matches in product(*choices))


def claims(verdict: Any) -> bool:
    return isinstance(verdict, Match) and verdict.claims


def every(evaluations: Evaluations, asking: Member, pool: Pool, first: Any) -> tuple[Match, ...]:
    """All that a member may claim on a pool: where nodes are counted its claims make no difference."""
    if pool.accounting == "Node" or not first.claims:
        return (first,)
    matches, cut_short = resolve_every(evaluations, asking, pool.devices or (), budget=Budget(9_999))
    assert not cut_short
    return matches


def test_every_way_to_put_an_engine_on_a_cluster_is_an_option_once() -> None:
    several = 0
    for seed in seeds(60, 400, 4_000):
        inputs = decide(small(seed)).inputs
        matcher = Matcher(inputs)
        for shape, cluster in product(inputs.deployment.shapes, inputs.fleet.clusters.values()):
            for fit in matcher.fit(shape, cluster).engines:
                options = [
                    (option.pools, tuple(match.stamped for match in option.matches)) for option in fit.options
                ]
                expected = list(ways(fit.engine, cluster, matcher, inputs.evaluations))
                assert Counter(options) == Counter(expected), seed
                assert all(option.engine is fit.engine for option in fit.options), seed
                several += len(options) > len({pools for pools, _ in options}) > 1
    assert several > 10, "else the test would prove nothing"


def test_one_pool_comes_before_several() -> None:
    """A gang stands together though its leader would find what it prefers on another pool of the fabric."""
    best = 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'
    leader = build.member("Leader", [first_available("gpu", (8, best), (8, GPU))])
    members = [leader, build.member("Worker", [build.request("gpu", 8, GPU)], nodes=1)]
    fabric = {"attributes": {"modelplane.ai/fabric": {"string": "f"}}}
    pools = [
        build.pool("p0", 2, [build.gpu(architecture="Ada")]) | fabric,
        build.pool("p1", 1, [build.gpu(architecture="Hopper")]) | fabric,
    ]
    gang = build.engine("main", members) | {"poolPolicy": "SameFabric"}
    [placed] = decide(World(ask(engines=[gang]), [one("a", pools=pools)])).placed
    assert placed.candidate.nodes == {"p0": 2}
