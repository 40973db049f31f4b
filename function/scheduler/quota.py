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
   Ready and for which it has no room give way, the youngest first (Law 2, reason 6). What stands on a cluster
   that cannot be read is no reason to: it may be covered or not.
6. Of what it guarantees a part is *within* and the rest *borrowed*: its replicas are gone through by class,
   the highest first, then the oldest, and those are borrowed with which the sum passes the guarantee. What is
   being deleted counts no more. What is borrowed ranks below every class (`preemption`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from function.api.cluster import InferenceCluster, Pool
from function.api.inputs import Quota
from function.api.names import NamespacedName
from function.api.reasons import Reason, Rejection
from function.api.replica import GuaranteeShare, ModelReplica
from function.scheduler.price import devices_of, price_of

UNITS = {
    "nodes": "nodes",
    "devices": "devices",
    "replicas": "replicas",
    "cents_per_hour": "cents an hour",
}
"""What a quota counts, and in words."""
FIRST = 10**12
"""The value of an unknown class: doubt takes no replica out of what is guaranteed."""


class QuotaHolding(NamedTuple):
    """The part that a replica holds, or would hold, of a cluster's pools."""

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
        self._quotas = tuple(quotas)
        self.clusters = clusters
        """Those that say which pools they have."""
        self.held: dict[str, Counter[str]] = {quota.name: Counter() for quota in self._quotas}
        """How much of each quota is held, by its name and by unit."""
        self._living: dict[str, Counter[tuple[str, int]]] = {quota.name: Counter() for quota in self._quotas}
        self._covered: dict[tuple[str, str], frozenset[str]] = {}

    def copy(self) -> QuotaUsage:
        """Return usage that is the same and goes its own way from now on."""
        other = QuotaUsage(self._quotas, self.clusters)
        other.held = {name: Counter(held) for name, held in self.held.items()}
        other._living = {name: Counter(living) for name, living in self._living.items()}
        other._covered = self._covered
        return other

    def of_namespace(self, namespace: str) -> list[Quota]:
        """The quotas that a namespace is under."""
        return [quota for quota in self._quotas if namespace in quota.namespaces]

    def guarantees_of(self, namespace: str) -> list[Quota]:
        """The quotas that guarantee something to a namespace."""
        return [quota for quota in self.of_namespace(namespace) if quota.guaranteed is not None]

    def count(self, replica: ModelReplica, cluster: str, sign: int = 1) -> None:
        """Count what an existing replica holds, or no longer."""
        if self.of_namespace(replica.namespace):
            holding = QuotaHolding(replica.nodes, devices_of(replica))
            value = replica.notes.value if replica.notes else None
            living = None if replica.deleting else FIRST if value is None else value
            self.add(replica.namespace, cluster, holding, sign, living=living)

    def add(
        self, namespace: str, cluster: str, holding: QuotaHolding, sign: int = 1, *, living: int | None
    ) -> None:
        """Count what a namespace holds more, or less. `living`: the value of its class; None once deleted."""
        for quota in self.of_namespace(namespace):
            for unit, amount in self._amounts(quota, cluster, holding).items():
                self.held[quota.name][unit] += sign * (amount or 0)
                if living is not None:
                    self._living[quota.name][unit, living] += sign * (amount or 0)

    def share(
        self, namespace: str, cluster: str, holding: QuotaHolding, above: int | None = None
    ) -> GuaranteeShare | None:
        """How one more replica would stand to what is guaranteed; None where no guarantee covers it.

        `above`: the value of its class, which pushes lower ones out; None where everything counts. Where
        money is guaranteed, a pool without a price is not covered.
        """
        guarantees, covered, borrowed = self.guarantees_of(namespace), False, False
        for quota in guarantees:
            amounts, limits = self._amounts(quota, cluster, holding), self.limits(quota)
            if amounts and all(amounts[unit] is not None for unit in limits):
                covered = True
                held = self.living(quota, above)
                borrowed |= any(held[unit] + (amounts[unit] or 0) > limit for unit, limit in limits.items())
        return GuaranteeShare(frozenset(quota.name for quota in guarantees), borrowed) if covered else None

    def living(self, quota: Quota, above: int | None = None) -> Counter[str]:
        """Return how much of a quota is held by what stays, of classes of a value and above."""
        held: Counter[str] = Counter()
        for (unit, value), amount in self._living[quota.name].items():
            held[unit] += amount if above is None or value >= above else 0
        return held

    def amounts(self, quota: Quota, cluster: str, replica: ModelReplica) -> dict[str, int]:
        """Return how much an existing replica counts for in a quota, whatever its namespace."""
        made = self._amounts(quota, cluster, QuotaHolding(replica.nodes, devices_of(replica)))
        return {unit: amount or 0 for unit, amount in made.items()}

    @staticmethod
    def limits(quota: Quota) -> dict[str, int]:
        """Return how much a quota guarantees, by unit."""
        limits = {unit: getattr(quota.guaranteed, unit) for unit in UNITS} if quota.guaranteed else {}
        return {unit: limit for unit, limit in limits.items() if limit is not None}

    def shortages(
        self, namespace: str, cluster: str, holding: QuotaHolding
    ) -> Iterator[tuple[QuotaShortage, frozenset[str]]]:
        """Yield every quota that has no room for one more replica, with the pools that it covers."""
        for quota in self.of_namespace(namespace):
            amounts = self._amounts(quota, cluster, holding)
            for unit in UNITS:
                at_most, needs = getattr(quota.at_most, unit, None), amounts.get(unit, 0)
                held = self.held[quota.name][unit]
                if at_most is not None and (needs is None or (needs and held + needs > at_most)):
                    yield QuotaShortage(quota.name, unit, held, at_most, needs), self.pools(quota, cluster)
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
        """How much a holding counts for in a quota, by unit; empty where it is on none of its pools."""
        published = self.clusters.get(cluster)
        covered = self.pools(quota, cluster) if published else frozenset(holding.nodes)
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

    def pools(self, quota: Quota, cluster: str) -> frozenset[str]:
        """The pools of a cluster that a quota covers."""
        key = (quota.name, cluster)
        if key not in self._covered:
            pools = self.clusters[cluster].pools
            self._covered[key] = frozenset(pool.name for pool in pools if _covers(quota, pool))
        return self._covered[key]


def _covers(quota: Quota, pool: Pool) -> bool:
    """Tell whether a quota counts what is held of a pool (rule 2). Without a class or expression it does."""
    if quota.device_class_name is not None:
        classes = {device.device_class_name for device in pool.devices or () if device.claimable}
        if quota.device_class_name not in classes:
            return False
    return quota.program is None or quota.program.evaluate(pool.node).kind == "match"
