"""Random small fleets and deployments with alternatives, prioritized lists, constraints and fabrics.

Selectors are equalities, so that the brute force can answer them without CEL: `wants` of a request is a map
from attribute to value, and `cel` writes it down.
"""

from __future__ import annotations

import random
from typing import Any

from tests.support import build
from tests.support.world import World

Plain = dict[str, Any]

GPU, NIC = "gpu.nvidia.com", "nic.nvidia.com"
ROOT = "resource.kubernetes.io/pcieRoot"
WANTS = "wants"
"""Where a request of a world keeps what the brute force reads; taken out before the function is asked."""


def world(seed: int) -> World:
    """Return the world of a seed. Its requests still hold their `wants`: see `asked`."""
    draw = random.Random(seed)
    clusters = [_cluster(draw, name) for name in ("a", "b", "c")[: draw.choice((1, 2, 2, 3))]]
    replicas = [_stranger(draw, number, clusters) for number in range(draw.choice((0, 0, 1, 2)))]
    return World(_deployment(draw), clusters, replicas)


def without_wants(made: World) -> World:
    """Return the world as the function may see it."""
    return made.but(deployment=_without_wants(made.deployment))


def _without_wants(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_wants(item) for key, item in value.items() if key != WANTS}
    return [_without_wants(item) for item in value] if isinstance(value, list) else value


def _attribute(draw: random.Random) -> Plain:
    roots = ["r0", "r1", "r2"]
    if draw.random() < 0.3:
        several = draw.sample(roots, 2)
        return {"list": {"string": several}} if draw.random() < 0.5 else {"strings": several}
    return {"string": draw.choice(roots)}


def _device(draw: random.Random, number: int) -> Plain:
    driver = draw.choice((GPU, GPU, NIC))
    made: Plain = {"name": f"d{number}", "driver": driver, "count": draw.choice((1, 2, 2, 4))}
    made["attributes"] = {"kind": {"string": draw.choice(("x", "y"))}}
    if draw.random() < 0.75:
        made["attributes"][ROOT] = _attribute(draw)
    if draw.random() < 0.15:
        made["taints"] = [{"key": draw.choice(("burn-in", "xid")), "effect": "NoSchedule"}]
    if draw.random() < 0.2:
        return made | {"claim": "Synthetic"}
    return made | {"deviceClassName": driver}


def _pool(draw: random.Random, name: str, usual: list[Plain]) -> tuple[Plain, Plain]:
    """A published pool, often with the usual devices, and its declaration; one says what its fabric is."""
    pool_devices = [_device(draw, number) for number in range(draw.choice((1, 2, 2, 3)))]
    devices = usual if draw.random() < 0.6 else pool_devices
    published = {"name": name, "nodes": draw.choice((0, 1, 1, 2, 3, 4)), "devices": devices}
    declared: Plain = {"name": name, "className": "any"}
    for said in draw.sample(("id", "id", "attribute", "nothing"), draw.choice((1, 2))):
        where = draw.choice((published, declared))
        if said == "id":
            fabric = {"type": "InfiniBand", "infiniband": {"fabric": draw.choice(("f0", "f0", "f1"))}}
            where["fabric"] = draw.choice((fabric, fabric, {"type": "EFA"}))
        if said == "attribute":
            where["attributes"] = {"modelplane.ai/fabric": {"string": draw.choice(("f0", "f0", "f1"))}}
    return published, declared


def _cluster(draw: random.Random, name: str) -> Plain:
    usual = [_device(draw, number) for number in range(draw.choice((1, 2, 2, 3)))]
    pools = [_pool(draw, f"p{number}", usual) for number in range(draw.choice((1, 2, 3, 3)))]
    if draw.random() < 0.4:  # One fabric for the whole cluster.
        for published, _ in pools:
            published["fabric"] = {"type": "InfiniBand", "infiniband": {"fabric": "f2"}}
    made = build.cluster(name, [published for published, _ in pools])
    made["spec"]["nodePools"] = [declared for _, declared in pools]
    return made


def _way(draw: random.Random) -> Plain:
    """Count and selectors of one way to satisfy a request."""
    driver, kind = draw.choice((GPU, GPU, NIC)), draw.choice(("x", "y", None, None))
    wants = {"driver": driver} | ({"kind": kind} if kind else {})
    selectors = [{"cel": f'device.driver == "{driver}"'}]
    if kind:
        selectors.append({"cel": f'device.attributes["{driver}"].kind == "{kind}"'})
    made = {"count": draw.choice((1, 1, 1, 2, 4)), "selectors": selectors, WANTS: wants}
    if draw.random() < 0.15:
        made["tolerations"] = [{"key": "burn-in", "operator": "Exists"}]
    return made


def _request(draw: random.Random, number: int) -> Plain:
    if draw.random() < 0.5:
        return {"name": f"r{number}"} | _way(draw)
    ways = [{"name": f"w{rank}"} | _way(draw) for rank in range(draw.choice((2, 2, 3)))]
    return {"name": f"r{number}", "firstAvailable": ways}


def _node_selector(draw: random.Random) -> Plain:
    requests = [_request(draw, number) for number in range(draw.choice((1, 1, 2, 2, 3)))]
    made: Plain = {"devices": requests}
    if draw.random() < 0.4:
        names = [request["name"] for request in requests]
        constraint: Plain = {"matchAttribute": draw.choice((ROOT, ROOT, f"{GPU}/kind"))}
        if draw.random() < 0.7:
            constraint["requests"] = draw.sample(names, draw.randint(1, len(names)))
        made["constraints"] = [constraint]
    return made


def _wide_gang(draw: random.Random, name: str) -> Plain:
    """A gang that is easy to please but for its number of nodes."""
    ask = {
        "name": "r0",
        "count": 1,
        "selectors": [{"cel": f'device.driver == "{GPU}"'}],
        WANTS: {"driver": GPU},
    }
    leader = {"role": "Leader", "nodeSelector": {"devices": [ask]}}
    worker = {
        "role": "Worker",
        "worker": {"nodes": draw.choice((1, 2, 3))},
        "nodeSelector": {"devices": [ask]},
    }
    return {"name": name, "poolPolicy": "SameFabric", "members": [leader, worker]}


def _engine(draw: random.Random, name: str) -> Plain:
    if draw.random() < 0.3:
        return _wide_gang(draw, name)
    roles = ("Leader", "Worker") if draw.random() < 0.6 else ("Standalone",)
    members: list[Plain] = [{"role": role, "nodeSelector": _node_selector(draw)} for role in roles]
    if len(members) == 2:
        members[1]["worker"] = {"nodes": draw.choice((1, 2))}
        if draw.random() < 0.2:
            del members[0]["nodeSelector"]
    made: Plain = {"name": name, "members": members}
    if draw.random() < 0.3:
        made["copies"] = 2
    if draw.random() < 0.7:
        made["poolPolicy"] = draw.choice(("SameFabric", "SameFabric", "SameFabric", "SinglePool"))
    return made


def _engines(draw: random.Random) -> list[Plain]:
    return [_engine(draw, name) for name in ("main", "draft")[: draw.choice((1, 1, 2))]]


def _deployment(draw: random.Random) -> Plain:
    made = build.deployment(replicas=draw.choice((1, 2, 3, 4)), engines=_engines(draw))
    inner = made["spec"]["template"]["spec"]
    others = [{"name": f"alt-{n}", "engines": _engines(draw)} for n in range(draw.choice((0, 1, 1, 2)))]
    if others:
        inner["alternatives"] = others
    placement: Plain = {}
    if draw.random() < 0.5:
        placement["alternativePolicy"] = draw.choice(("PreferFirst", "ClusterFirst"))
    if draw.random() < 0.3:
        placement["strategy"] = draw.choice(("BinPack", "Spread"))
    if placement:
        made["spec"]["placement"] = placement
    return made


def _stranger(draw: random.Random, number: int, clusters: list[Plain]) -> Plain:
    """Somebody else's replica, which holds nodes."""
    where = draw.choice(clusters)
    pool = draw.choice(where["status"]["gpuPools"])["name"]
    parent = build.deployment(f"other-{number}", 1, namespace="ads")
    return build.replica(parent, where["metadata"]["name"], 0, pools=pool)
