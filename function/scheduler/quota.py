"""Quota: how much the deployments of some namespaces may hold of some pools.

A platform engineer states it in the function's input. It limits what is placed, and nothing else: what runs
stays, whatever is said of it later. Rules:

1. What exists counts until it is gone, as it does in the ledger, and so does what is placed in this pass.
2. A pool is covered when it publishes the quota's device class and its expression holds; one that fails on a
   pool does not hold there. What runs on a cluster that is not known is taken to be covered.
3. A replica that holds nodes of a covered pool counts as one, with those nodes, the devices that it claims
   there, and their price. Where an amount of money is limited, a pool without a price takes nothing new.
4. A replacement may stand in for what it replaces; one beside it, by surge, counts on top.
5. Two deployments may pass it at once, each from an old list. With `overcommit: Yield` those that never were
   Ready and for which it has no room give way, the youngest first (Law 2, reason 6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from function.api.cluster import InferenceCluster, Pool
from function.api.inputs import Quota
from function.api.names import NamespacedName
from function.api.reasons import Reason, Rejection
from function.api.replica import ModelReplica
from function.scheduler.price import devices_of, price_of

UNITS = {
    "nodes": "nodes",
    "devices": "devices",
    "replicas": "replicas",
    "cents_per_hour": "cents an hour",
}
"""What a quota counts, and in words."""


class QuotaHolding(NamedTuple):
    """What a replica holds, or would hold, of a cluster's pools."""

    nodes: Mapping[str, int]
    devices: Mapping[str, int]


class QuotaShortage(NamedTuple):
    """A quota that leaves no room for a replica."""

    quota: str
    unit: str
    holds: int
    at_most: int
    needs: int | None
    """None where a price is not known."""

    @property
    def rejection(self) -> Rejection:
        """The shortage as the reason why a cluster takes no other replica."""
        if self.needs is None:
            return Rejection(Reason.QuotaExceeded, detail=f"quota {self.quota}: a pool states no price")
        held = f"holds {self.holds} of {self.at_most} {UNITS[self.unit]}"
        return Rejection(
            Reason.QuotaExceeded, detail=f"quota {self.quota} {held}, one more takes {self.needs}"
        )


class QuotaUsage:
    """How much of each quota is held, as one pass goes on."""

    def __init__(self, quotas: Iterable[Quota], clusters: Mapping[str, InferenceCluster]) -> None:
        """Start with nothing held."""
        self._quotas, self._clusters = tuple(quotas), clusters
        self._held: dict[str, Counter[str]] = {quota.name: Counter() for quota in self._quotas}
        self._covered: dict[tuple[str, str], frozenset[str]] = {}

    def copy(self) -> QuotaUsage:
        """Return usage that is the same and goes its own way from now on."""
        other = QuotaUsage(self._quotas, self._clusters)
        other._held = {name: Counter(held) for name, held in self._held.items()}
        other._covered = self._covered
        return other

    def of_namespace(self, namespace: str) -> list[Quota]:
        """The quotas that a namespace is under."""
        return [quota for quota in self._quotas if namespace in quota.namespaces]

    def of(self, namespace: str) -> tuple[object, ...]:
        """How much is held of the quotas of a namespace, as a value: rejections rest on no more."""
        return tuple((quota, self._held[quota.name]) for quota in self.of_namespace(namespace))

    def count(self, replica: ModelReplica, cluster: str, sign: int = 1) -> None:
        """Count what an existing replica holds, or no longer."""
        if self.of_namespace(replica.namespace):
            holding = QuotaHolding(replica.nodes, devices_of(replica))
            self.add(replica.namespace, cluster, holding, sign)

    def add(self, namespace: str, cluster: str, holding: QuotaHolding, sign: int = 1) -> None:
        """Count what a namespace holds more, or less."""
        for quota in self.of_namespace(namespace):
            for unit, amount in self._amounts(quota, cluster, holding).items():
                self._held[quota.name][unit] += sign * (amount or 0)

    def shortages(
        self, namespace: str, cluster: str, holding: QuotaHolding
    ) -> Iterator[tuple[QuotaShortage, frozenset[str]]]:
        """Yield every quota that has no room for one more replica, with the pools that it covers."""
        for quota in self.of_namespace(namespace):
            amounts = self._amounts(quota, cluster, holding)
            for unit in UNITS:
                at_most, needs = getattr(quota.at_most, unit), amounts.get(unit, 0)
                held = self._held[quota.name][unit]
                if at_most is not None and (needs is None or (needs and held + needs > at_most)):
                    yield QuotaShortage(quota.name, unit, held, at_most, needs), self._pools(quota, cluster)
                    break

    def passed_by(self, starting: Sequence[tuple[str, ModelReplica]]) -> dict[NamespacedName, str]:
        """Return the replicas that never were Ready and for which a quota has no room, with its name.

        `starting`: each with its cluster, the most senior first. What is counted here is what all others
        hold; one that keeps its place is counted, too.
        """
        leaving: dict[NamespacedName, str] = {}
        for cluster, replica in starting:
            holding = QuotaHolding(replica.nodes, devices_of(replica))
            shortages = (short for short, _ in self.shortages(replica.namespace, cluster, holding))
            passed = next((short.quota for short in shortages if short.needs is not None), None)
            if passed is None:
                self.count(replica, cluster)
            else:
                leaving[replica.namespace, replica.name] = passed
        return leaving

    def _amounts(self, quota: Quota, cluster: str, holding: QuotaHolding) -> dict[str, int | None]:
        """What a holding counts for in a quota, by unit; nothing where it is on none of its pools."""
        published = self._clusters.get(cluster)
        covered = self._pools(quota, cluster) if published else frozenset(holding.nodes)
        nodes = {pool: number for pool, number in holding.nodes.items() if pool in covered and number}
        if not nodes:
            return {}
        devices = {pool: holding.devices.get(pool, 0) for pool in nodes}
        cents = price_of(published, nodes, devices) if published else 0
        return {
            "nodes": sum(nodes.values()),
            "devices": sum(devices.values()),
            "replicas": 1,
            "cents_per_hour": cents,
        }

    def _pools(self, quota: Quota, cluster: str) -> frozenset[str]:
        """The pools of a cluster that a quota covers."""
        key = (quota.name, cluster)
        if key not in self._covered:
            pools = self._clusters[cluster].pools
            self._covered[key] = frozenset(pool.name for pool in pools if _covers(quota, pool))
        return self._covered[key]


def _covers(quota: Quota, pool: Pool) -> bool:
    if quota.device_class_name is not None:
        classes = {device.device_class_name for device in pool.devices or () if device.claimable}
        if quota.device_class_name not in classes:
            return False
    return quota.program is None or quota.program.evaluate(pool.node).kind == "match"
