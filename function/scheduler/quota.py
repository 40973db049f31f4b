"""Quota: how much the deployments of some namespaces may hold of some pools.

A platform engineer states it in the function's input. It limits what is placed, and nothing else: what runs
stays, whatever is said of it later. Rules:

1. What exists counts until it is gone, as it does in the ledger, and so does what is placed in this pass.
2. A pool is covered when it publishes the quota's device class and its expression holds; one that fails on a
   pool does not hold there. One that costs more than its part of what a call evaluates is taken to hold, and
   what runs on a cluster that is not known to be covered.
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
from functools import cached_property
from typing import NamedTuple

from function.api.cluster import InferenceCluster, Pool
from function.api.inputs import Quota, QuotaAmounts
from function.api.names import NamespacedName
from function.api.reasons import Reason, Rejection
from function.api.replica import GuaranteeShare, ModelReplica
from function.cel import OutcomeMemo
from function.cel.library.charges import LIMIT
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

EVALUATION_UNITS, LEAST_PART = 3_000_000, 128
"""Units that all expressions share on all pools, and those that each evaluation has at least: nearly twice
what a real one costs. One that needs more than its part covers the pool (rule 2)."""


class QuotaHolding(NamedTuple):
    """The part that a replica holds, or would hold, of a cluster's pools; or several that are on the same."""

    nodes: Mapping[str, int]
    devices: Mapping[str, int]
    replicas: int = 1


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


class _Scope(NamedTuple):
    """Quotas of the same namespaces and pools: what is held of one is held of all, so it is counted once."""

    name: str
    """Of the first of them."""
    first: Quota
    at_most: tuple[tuple[str, int], ...]
    """The lowest limits of any of them, by unit."""
    guaranteed: tuple[tuple[str, int], ...]
    """The lowest guarantees."""
    money: bool
    """Whether money is guaranteed: then what has no price is not covered."""

    @classmethod
    def of(cls, quotas: Sequence[Quota], *, money: bool) -> _Scope:
        """Return the scope of quotas that count the same."""
        at_most = _tightest([of.at_most for of in quotas])
        guaranteed = _tightest([of.guaranteed for of in quotas])
        return cls(quotas[0].name, quotas[0], at_most, guaranteed, money)


class _Part(NamedTuple):
    """The scopes that cover the same of the pools on which something is held."""

    covered: frozenset[str]
    limited: list[_Scope]
    guaranteed: list[_Scope]


class Team(NamedTuple):
    """The quotas that count a namespace, and those that guarantee it a part."""

    quotas: list[Quota]
    guarantees: list[Quota]
    names: frozenset[str]
    """Of those that guarantee something."""


class QuotaUsage:
    """How much of each quota is held, as one pass goes on.

    Thousands of replicas may be under tens of quotas. So a replica is priced once for all that cover the same
    of its pools (`_parts`), and counted once for all of the same scope.
    """

    def __init__(self, quotas: Iterable[Quota], clusters: Mapping[str, InferenceCluster]) -> None:
        """Start with nothing held."""
        self._quotas = tuple(quotas)
        self.clusters = clusters
        """Those that say which pools they have."""
        same_scope: dict[tuple[frozenset[str], str | None, str | None, bool], list[Quota]] = {}
        for quota in self._quotas:
            money = quota.guaranteed is not None and quota.guaranteed.cents_per_hour is not None
            key = (frozenset(quota.namespaces), quota.device_class_name, quota.cel, money)
            same_scope.setdefault(key, []).append(quota)
        self._first = {quota.name: quotas[0].name for quotas in same_scope.values() for quota in quotas}
        self._namespaces = {quotas[0].name: key[0] for key, quotas in same_scope.items()}
        self._teams: dict[str, Team] = {}
        self._scopes = {
            quotas[0].name: _Scope.of(quotas, money=key[-1]) for key, quotas in same_scope.items()
        }
        # Each within an equal part of the units that all expressions have on all pools together.
        self._outcomes = OutcomeMemo(lambda program, pool: program.evaluate(pool, self._units_each))
        self._covered: dict[tuple[str, str], frozenset[str]] = {}
        self._split: dict[tuple[str, str, frozenset[str]], list[_Part]] = {}
        counters = {name: Counter[str]() for name in self._scopes}
        self.held: dict[str, Counter[str]] = {name: counters[first] for name, first in self._first.items()}
        """How much of each quota is held, by its name and by limited unit; a scope has one counter."""
        self._living: list[tuple[int, Mapping[str, int], list[_Scope]]] = []
        """What was counted of those that stay: the value of their class, by how much, and where."""
        self._above: dict[int | None, dict[str, Counter[str]]] = {}
        self.version = 0
        """Raised when something that was said to be within the quotas, or not, may be so no more."""
        self._largest: dict[tuple[str, str], int] = {}
        """The most that was said to be within a scope, by unit: until its limit is nearer, all stays so."""

    def copy(self, *, empty: bool = False) -> QuotaUsage:
        """Return usage of the same quotas that goes its own way: with all that is held, or nothing."""
        other = QuotaUsage(self._quotas, self.clusters)
        other._outcomes, other._teams = self._outcomes, self._teams
        other._covered, other._split = self._covered, self._split
        for name in () if empty else self._scopes:
            other.held[name].update(self.held[name])
        other._living = [] if empty else [*self._living]
        return other

    def team(self, namespace: str) -> Team:
        """Look up once what a namespace is under."""
        team = self._teams.get(namespace)
        if team is None:
            under = {name for name, namespaces in self._namespaces.items() if namespace in namespaces}
            quotas = [quota for quota in self._quotas if self._first[quota.name] in under]
            guarantees = [quota for quota in quotas if quota.guaranteed is not None]
            names = frozenset(quota.name for quota in guarantees)
            team = self._teams[namespace] = Team(quotas, guarantees, names)
        return team

    def count(self, replica: ModelReplica, cluster: str, sign: int = 1) -> None:
        """Count what an existing replica holds, or no longer."""
        if self.team(replica.namespace).quotas:
            holding = QuotaHolding(replica.nodes, devices_of(replica))
            self.add(replica.namespace, cluster, holding, sign, living=_living(replica))

    def count_all(self, replicas: Iterable[tuple[str, ModelReplica]]) -> None:
        """Count what existing replicas hold, those on the same pools at once; each comes with its cluster."""
        together: dict[tuple[str, str, frozenset[str], int | None], list[ModelReplica]] = {}
        for cluster, replica in replicas:
            if self.team(replica.namespace).quotas:
                key = (replica.namespace, cluster, _pools(replica.nodes), _living(replica))
                together.setdefault(key, []).append(replica)
        for (namespace, cluster, _, living), held in together.items():
            nodes, devices = Counter[str](), Counter[str]()
            for replica in held:
                nodes.update(replica.nodes)
                devices.update(devices_of(replica))
            self.add(namespace, cluster, QuotaHolding(nodes, devices, len(held)), living=living)

    def add(
        self, namespace: str, cluster: str, holding: QuotaHolding, sign: int = 1, *, living: int | None
    ) -> None:
        """Count what a namespace holds more, or less. `living`: the value of its class; None once deleted."""
        self.version += sign < 0
        for amounts, part in self._parts(namespace, cluster, holding):
            change = {unit: sign * (amount or 0) for unit, amount in amounts.items()}
            for scope in part.limited:
                held = self.held[scope.name]
                for unit, _ in scope.at_most:
                    held[unit] += change[unit]
                for unit, at_most in scope.at_most if self._largest else ():
                    largest = self._largest.get((scope.name, unit))
                    if largest is not None and held[unit] + largest > at_most:
                        self.version += 1
                        del self._largest[scope.name, unit]
            if living is not None and part.guaranteed:
                self._living.append((living, change, part.guaranteed))
                for above, sums in self._above.items():
                    if above is None or living >= above:
                        _sum(sums, change, part.guaranteed)

    def share(
        self, namespace: str, cluster: str, holding: QuotaHolding, above: int | None = None
    ) -> GuaranteeShare | None:
        """How one more replica would stand to what is guaranteed; None where no guarantee covers it.

        `above`: the value of its class, which pushes lower ones out; None where everything counts. Where
        money is guaranteed, a pool without a price is not covered.
        """
        covered, borrowed, sums = False, False, self._sums(above)
        for amounts, part in self._parts(namespace, cluster, holding):
            for scope in part.guaranteed:
                if scope.money and amounts["cents_per_hour"] is None:
                    continue
                covered, held = True, sums[scope.name]
                for unit, limit in () if borrowed else scope.guaranteed:
                    borrowed = borrowed or held[unit] + (amounts[unit] or 0) > limit
        return GuaranteeShare(self.team(namespace).names, borrowed) if covered else None

    def living(self, quota: Quota, above: int | None = None) -> Counter[str]:
        """Return how much of what is guaranteed is held by what stays, of classes of a value and above."""
        return self._sums(above)[self._first[quota.name]]

    def _sums(self, above: int | None) -> dict[str, Counter[str]]:
        """How much of every scope is held by what stays, of classes of a value and above; kept up to date."""
        if above not in self._above:
            sums = self._above[above] = {name: Counter[str]() for name in self._scopes}
            for value, change, scopes in self._living:
                if above is None or value >= above:
                    _sum(sums, change, scopes)
        return self._above[above]

    def amounts(self, quota: Quota, cluster: str, replica: ModelReplica) -> dict[str, int]:
        """Return how much an existing replica counts for in a quota, whatever its namespace."""
        nodes = {pool: number for pool, number in replica.nodes.items() if number}
        published = cluster in self.clusters
        covered = self.pools(quota, cluster).intersection(nodes) if published else frozenset(nodes)
        made = self._amounts(covered, cluster, QuotaHolding(nodes, devices_of(replica))) if covered else {}
        return {unit: amount or 0 for unit, amount in made.items()}

    @staticmethod
    def limits(quota: Quota) -> dict[str, int]:
        """Return how much a quota guarantees, by unit."""
        return dict(_tightest([quota.guaranteed]))

    def shortages(
        self, namespace: str, cluster: str, holding: QuotaHolding
    ) -> Iterator[tuple[QuotaShortage, frozenset[str]]]:
        """Yield every quota that has no room for one more replica, with the pools that it covers."""
        needed = {}
        for amounts, part in self._parts(namespace, cluster, holding):
            for scope in part.limited:
                held = self.held[scope.name]
                for unit, at_most in scope.at_most:
                    needs = amounts[unit]
                    if needs is None or (needs and held[unit] + needs > at_most):
                        needed[scope.name] = amounts
                    elif needs > self._largest.get((scope.name, unit), -1):
                        self._largest[scope.name, unit] = needs
        for quota in self.team(namespace).quotas if needed else ():
            amounts = needed.get(self._first[quota.name], {})
            for unit, at_most in _tightest([quota.at_most]) if amounts else ():
                needs, held = amounts[unit], self.held[quota.name]
                if needs is None or (needs and held[unit] + needs > at_most):
                    pools = self.pools(self._scopes[self._first[quota.name]].first, cluster)
                    yield QuotaShortage(quota.name, unit, held[unit], at_most, needs), pools
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

    def _parts(
        self, namespace: str, cluster: str, holding: QuotaHolding
    ) -> Iterator[tuple[dict[str, int | None], _Part]]:
        """Yield how much a holding counts for, by unit, with the part that it is."""
        if not self.team(namespace).quotas:
            return
        pools = _pools(holding.nodes)
        key = (namespace, cluster, pools)
        if key not in self._split:
            by_pools: dict[frozenset[str], list[_Scope]] = {}
            for name in dict.fromkeys(self._first[quota.name] for quota in self.team(namespace).quotas):
                scope = self._scopes[name]
                covered = self.pools(scope.first, cluster) & pools if cluster in self.clusters else pools
                by_pools.setdefault(covered, []).append(scope)
            by_pools.pop(frozenset(), None)
            self._split[key] = [
                _Part(covered, [of for of in scopes if of.at_most], [of for of in scopes if of.guaranteed])
                for covered, scopes in by_pools.items()
            ]
        for part in self._split[key]:
            yield self._amounts(part.covered, cluster, holding), part

    def _amounts(self, covered: frozenset[str], cluster: str, holding: QuotaHolding) -> dict[str, int | None]:
        """How much a holding counts for on covered pools, by unit."""
        published = self.clusters.get(cluster)
        nodes = {pool: holding.nodes[pool] for pool in covered}
        devices = {pool: holding.devices.get(pool, 0) for pool in covered}
        return {
            "nodes": sum(nodes.values()),
            "devices": sum(devices.values()),
            "replicas": holding.replicas,
            "cents_per_hour": price_of(published, nodes, devices) if published else 0,
        }

    def pools(self, quota: Quota, cluster: str) -> frozenset[str]:
        """The pools of a cluster that a quota covers."""
        key = (quota.name, cluster)
        if key not in self._covered:
            pools = self.clusters[cluster].pools
            self._covered[key] = frozenset(pool.name for pool in pools if self._covers(quota, pool))
        return self._covered[key]

    def _covers(self, quota: Quota, pool: Pool) -> bool:
        """Tell whether a quota counts what is held of a pool (rule 2). Without a class and a text it does.

        So it does where the text costs too much: a fleet that grows must not lift a limit.
        """
        if quota.device_class_name is not None:
            classes = {device.device_class_name for device in pool.devices or () if device.claimable}
            if quota.device_class_name not in classes:
                return False
        if quota.program is None:
            return True
        outcome = self._outcomes.outcome(quota.program, pool.node)
        return outcome.matched or outcome.kind == "cost"

    @cached_property
    def _units_each(self) -> int:
        expressions = sum(scope.first.cel is not None for scope in self._scopes.values())
        pools = sum(len(cluster.pools) for cluster in self.clusters.values())
        return min(LIMIT, max(LEAST_PART, EVALUATION_UNITS // max(1, expressions * pools)))


def _pools(nodes: Mapping[str, int]) -> frozenset[str]:
    """The pools of which there is something among nodes."""
    return frozenset(pool for pool, number in nodes.items() if number)


def _living(replica: ModelReplica) -> int | None:
    """The value of the class of a replica, FIRST where it is not known; None once it is being deleted."""
    value = replica.notes.value if replica.notes else None
    return None if replica.deleting else FIRST if value is None else value


def _sum(sums: Mapping[str, Counter[str]], change: Mapping[str, int], scopes: Sequence[_Scope]) -> None:
    """Add a change to the sums of some scopes, of the units in which each guarantees something."""
    for scope in scopes:
        counter = sums[scope.name]
        for unit, _ in scope.guaranteed:
            counter[unit] += change[unit]


def _tightest(stated: Iterable[QuotaAmounts | None]) -> tuple[tuple[str, int], ...]:
    """The lowest of the amounts that are stated, for each unit of which there is one."""
    amounts = [of for of in stated if of is not None]
    stated_of = {
        unit: [getattr(of, unit) for of in amounts if getattr(of, unit) is not None] for unit in UNITS
    }
    return tuple((unit, min(limits)) for unit, limits in stated_of.items() if limits)
