"""Overcommitted pools: which there are, for how long, and how soon a condition names them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.live.plane import condition, name_of

if TYPE_CHECKING:
    from tests.live.plane import ControlPlane, Plain

Pool = tuple[str, str]
"""Cluster and pool."""
NODES = 2
"""Nodes of the one pool of each cluster."""
WINDOW = 60.0
"""Seconds within which an overcommitted pool must be named: as long as reconciles queue in a large burst."""


def used(replicas: list[Plain]) -> Counter[Pool]:
    """Nodes that living replicas hold, by cluster and pool."""
    held: Counter[Pool] = Counter()
    for replica in replicas:
        if "deletionTimestamp" not in replica["metadata"]:
            for engine in replica["spec"]["engines"]:
                for member in engine["members"]:
                    nodes = engine["copies"] * (member.get("worker") or {}).get("nodes", 1)
                    held[replica["spec"]["clusterName"], member["nodePoolName"]] += nodes
    return held


def crowded(replicas: list[Plain]) -> set[Pool]:
    """The pools that hold more than they have."""
    return {pool for pool, nodes in used(replicas).items() if nodes > NODES}


def named(deployments: list[Plain]) -> str:
    """What the conditions say of overcommitted pools."""
    return "\n".join(
        condition(deployment, "CapacityRespected").get("message", "") for deployment in deployments
    )


@dataclass
class Nodes:
    """The nodes of all pools: a replica runs only where one is free, and keeps it until it is gone."""

    running: dict[str, Pool] = field(default_factory=dict)
    """The pool of each replica that has a node, by name."""

    def free(self, replicas: list[Plain]) -> None:
        """Take back the nodes of replicas that are not among these any more."""
        alive = {name_of(replica) for replica in replicas}
        self.running = {name: pool for name, pool in self.running.items() if name in alive}

    def take(self, replica: Plain) -> bool:
        """Whether a replica has a node, now that it has been given one where one was free."""
        name, pool = name_of(replica), next(iter(used([replica])), None)
        if name not in self.running and pool and Counter(self.running.values())[pool] < NODES:
            self.running[name] = pool
        return name in self.running


@dataclass
class Crowds:
    """The pools that are overcommitted, since when, and since when a condition names them."""

    living: ControlPlane
    namespace: str
    most: int = 0
    """Of them at one moment, at most."""
    excess: int = 0
    """Nodes held beyond what there is at one moment, at most."""
    longest: float = 0.0
    """Seconds that one was overcommitted, at most."""
    silent: float = 0.0
    """Seconds that one was overcommitted before a condition named it, or it was mended, at most."""
    since: dict[Pool, float] = field(default_factory=dict)
    named: set[Pool] = field(default_factory=set)
    late: set[Pool] = field(default_factory=set)
    """Those that were overcommitted for longer than `WINDOW` before a condition named them."""

    def look(self, replicas: list[Plain], now: float) -> None:
        """Look at the pools and, while one is not named, at the conditions."""
        held = used(replicas)
        pools = {pool for pool, nodes in held.items() if nodes > NODES}
        self.most = max(self.most, len(pools))
        self.excess = max(self.excess, sum(held[pool] - NODES for pool in pools))
        self.since |= dict.fromkeys(pools - self.since.keys(), now)
        silent = self.since.keys() - self.named
        if silent & pools:
            text = named(self.living.list("ModelDeployment", self.namespace))
            self.named |= {(cluster, pool) for cluster, pool in silent if f"{cluster}/{pool} holds" in text}
        self.longest = max([self.longest, *(now - since for since in self.since.values())])
        waits = {pool: now - self.since[pool] for pool in silent}
        self.silent = max([self.silent, *waits.values()])
        self.late |= {pool for pool, seconds in waits.items() if seconds > WINDOW}
        self.since = {pool: since for pool, since in self.since.items() if pool in pools}
        self.named &= pools
