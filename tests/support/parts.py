"""The parts of random worlds: devices, clusters, taints, engines, deployments."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.support import build, vocabulary

Plain = dict[str, Any]

CLUSTERS = ("a", "b", "c-1", "c")
POOLS = ("p0", "p1", "p2")
TIERS = ("prod", "dev")
TAINTS = ("maintenance", "spot")


@dataclass(frozen=True)
class Taste:
    """What kind of worlds: how likely each oddity is."""

    doubt: float = 0.08
    """Something is not delivered, or a selector does not compile."""
    oddity: float = 0.12
    """Per object: something unusual about it."""
    own_replicas: float = 0.75
    """The deployment has replicas already."""
    edits: float = 0.35
    """The deployment was edited since they were stamped."""
    opted: bool = False
    """Opt-in fields are set."""


TASTE = Taste()
CALM = Taste(doubt=0.0, oddity=0.0, own_replicas=0.6)


class Source(random.Random):
    """A random source that is asked for odds."""

    def odds(self, chance: float) -> bool:
        """Say yes, `chance` of the time."""
        return self.random() < chance


def address(cluster_name: str) -> str:
    """Return the gateway address of a cluster."""
    return f"203.0.113.{CLUSTERS.index(cluster_name) + 1}"


def members_of(parent: Plain) -> list[Plain]:
    """Return every member of a deployment."""
    return [
        one for one_engine in parent["spec"]["template"]["spec"]["engines"] for one in one_engine["members"]
    ]


def requests_of(one: Plain) -> list[Plain]:
    """Return the device requests of a member."""
    devices: list[Plain] = one.get("nodeSelector", {}).get("devices", [])
    return devices


def ways_of(one: Plain) -> list[Plain]:
    """Return the ways of every device request of a member: the request itself where it has no list."""
    return [way for item in requests_of(one) for way in item.get("firstAvailable") or [item]]


def device(draw: Source, number: int) -> Plain:
    """Return a device entry: mostly GPUs."""
    name = f"d{number}"
    if draw.odds(0.25):
        return build.nic(draw.choice((1, 2)), name=name, claim=draw.choice(("DRA", "Synthetic", "Synthetic")))
    claim = draw.choice(("DRA", "DRA", "DRA", "DRA", "Synthetic", None))
    return build.gpu(
        draw.choice((1, 2, 4, 4)),
        name=name,
        memory=draw.choice(("24Gi", "80Gi", "141Gi")),
        architecture=draw.choice(("Hopper", "Hopper", "Ada", None)),
        claim=claim,
        device_class=draw.choice((build.GPU, build.GPU, build.GPU, "gpu-large")),
    )


def cluster(draw: Source, name: str, taste: Taste) -> Plain:
    """Return a cluster, perhaps out of order in some way."""
    pools = [
        build.pool(
            pool_name,
            draw.choice((0, 1, 2, 2, 3, 4, 6)),
            [device(draw, n) for n in range(draw.choice((1, 1, 2)))],
        )
        for pool_name in POOLS[: draw.choice((1, 2, 3))]
    ]
    draw.shuffle(pools)
    made = build.cluster(
        name,
        pools,
        ready=draw.choice((False, None)) if draw.odds(taste.oddity) else True,
        gateway=None if draw.odds(taste.oddity / 2) else address(name),
        taints=[taint(draw) for _ in range(draw.choice((1, 2)))] if draw.odds(taste.oddity) else (),
        labels={"tier": draw.choice(TIERS), "region": draw.choice(("eu", "us"))},
        deleting=draw.odds(taste.oddity / 3),
    )
    if draw.odds(taste.oddity):
        _spoil_cluster(draw, made)
    return made


def _spoil_cluster(draw: Source, made: Plain) -> None:
    """Make something about the status or the pools of a cluster unusual, but readable."""
    pools = made["status"]["gpuPools"]
    what = draw.choice(
        ("no status", "no pools", "pools unset", "negative", "no nodes", "pool gone", "no spec")
    )
    if what == "no status":
        del made["status"]
    elif what == "no pools":
        made["status"]["gpuPools"] = []
    elif what == "pools unset":
        del made["status"]["gpuPools"]
    elif what == "negative":
        pools[0]["nodes"] = -3
    elif what == "no nodes":
        del pools[0]["nodes"]
    elif what == "pool gone":
        made["spec"]["nodePools"] = made["spec"]["nodePools"][1:]
    else:
        del made["spec"]["nodePools"]


def taint(draw: Source) -> Plain:
    """Return a taint."""
    value = draw.choice((None, "true", "soon"))
    return build.taint(draw.choice(TAINTS), draw.choice(("NoSchedule", "NoExecute")), value)


def toleration(draw: Source) -> Plain:
    """Return a toleration: of a key, of a key and value, or of everything."""
    kind = draw.choice(("exists", "exists", "equal", "equal", "all"))
    effect = draw.choice((None, "NoSchedule", "NoExecute"))
    made: Plain = {} if effect is None else {"effect": effect}
    if kind == "all":
        return made | {"operator": "Exists"}
    made["key"] = draw.choice(TAINTS)
    if kind == "exists":
        return made | {"operator": "Exists"}
    if draw.odds(0.5):
        made["operator"] = "Equal"
    value = draw.choice((None, "true", "soon"))
    return made if value is None else made | {"value": value}


def device_request(draw: Source, number: int, *, invalid: bool = False) -> Plain:
    """Return a device request."""
    pool = list(vocabulary.SAFE) * 2 + list(vocabulary.RISKY)
    selectors = [draw.choice(pool)] if draw.odds(0.7) else [draw.choice(pool), draw.choice(pool)]
    if draw.odds(0.6):
        selectors = [f'device.driver == "{vocabulary.GPU}"']
    if invalid:
        selectors[0] = vocabulary.INVALID
    return build.request(f"r{number}", draw.choice((None, 1, 1, 2, 4)), *selectors)


def member(draw: Source, role: str | None) -> Plain:
    """Return a member of an engine."""
    nodes = draw.choice((None, 1, 2)) if role == "Worker" else None
    if draw.odds(0.08):
        return build.member(role, nodes=nodes)
    return build.member(
        role, [device_request(draw, n) for n in range(draw.choice((1, 1, 1, 2)))], nodes=nodes
    )


def engine(draw: Source, name: str) -> Plain:
    """Return an engine: a single pod or a gang."""
    roles = ("Leader", "Worker") if draw.odds(0.35) else (draw.choice((None, "Standalone")),)
    members = [member(draw, role) for role in roles]
    if not any(requests_of(one_member) for one_member in members):
        members[0]["nodeSelector"] = {"devices": [device_request(draw, 0)]}
    return build.engine(name, members, copies=draw.choice((None, None, 1, 2)))


def deployment(draw: Source, clusters: list[Plain], taste: Taste) -> Plain:
    """Return the deployment of a world."""
    engines = [engine(draw, name) for name in ("main", "draft", "encoder")[: draw.choice((1, 1, 1, 2, 2, 3))]]
    tainted = any("taints" in manifest["spec"] for manifest in clusters)
    made = build.deployment(
        replicas=draw.choice((0, 1, 2, 2, 3, 3, 4, 5)),
        engines=engines,
        labels={"team": "ml"} if draw.odds(0.3) else None,
        match={"tier": draw.choice(TIERS)} if draw.odds(0.2) else None,
        cache="weights" if draw.odds(0.2) else None,
        tolerations=[toleration(draw)] if tainted and draw.odds(0.6) else (),
    )
    if len(engines) == 2 and draw.odds(0.3):
        engines[0]["phase"], engines[1]["phase"] = "Prefill", "Decode"
        made["spec"]["template"]["spec"]["serving"] = {"mode": "PrefillDecode"}
    return made
