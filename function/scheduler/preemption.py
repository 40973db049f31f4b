"""Preemption: which replicas give way to one of a higher priority class, and when that gives way itself.

Why without a central scheduler. A deployment knows its own budgets and no other's; a cluster sees every
replica on it and knows no budget. So a deployment that waits places its replica where enough can be spared,
and overcommits the pool on purpose. The cluster, which everybody there reads, says who gives way
(`arbitrate`, published by `cluster.arbiter`). The deployment of that one lets it go, within its budgets.

Rules
1. A replica *preempts* while it carries the label, can be read and never was Ready, on a cluster that
   arbitrates.
2. Who never was Ready loses nothing. Of those each keeps its place while there is room, the highest class
   first, then the most senior. One whose class is not known is asked last: doubt keeps (Law 2).
3. Where a preempting one has no room, Ready replicas of strictly lower classes give way: the dearest of them
   is as cheap as can be, then the next, and so on. Cheap is a low class, then a young replica. Of a
   deployment as many do as it can spare. One whose class, or whose deployment's budget, cannot be read
   never does.
4. Where that is not enough it gives way itself, as every replica beyond capacity does (Law 2, reason 6), and
   is placed anew.

All is computed from what is observed, so a deployment finds for its own replicas what the cluster found. It
lets one go only where both say so (`schedule`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from function.api.names import NamespacedName
from function.api.replica import ModelReplica
from function.scheduler.budget import PACKING, Budget, OutOfSteps
from function.scheduler.ledger import Ledger, Rooms, Yielding, lacking, may_yield, occupy, seniority, yielding
from function.scheduler.quota import QuotaUsage

T = TypeVar("T")


class Victim(NamedTuple):
    """A replica of a lower class that was Ready, and the one to which it gives way."""

    replica: ModelReplica
    to: ModelReplica


@dataclass(frozen=True, slots=True)
class Arbitration:
    """Every replica that gives way."""

    yields: tuple[Yielding, ...] = ()
    """Those that never were Ready, by seniority."""
    victims: tuple[Victim, ...] = ()
    """Those of lower classes, the cheapest first."""
    over_quota: Mapping[NamespacedName, str] = field(default_factory=dict)
    """Those for which a quota has no room, with its name: deployments passed it at once."""


def arbitrate(ledger: Ledger, clusters: Collection[str]) -> Arbitration:
    """Say who gives way in the overcommitted pools of a fleet. `clusters`: those that arbitrate."""
    yields, victims = [*yielding(ledger, without=clusters)], list[Victim]()
    over = {cluster for cluster, _ in ledger.overcommitted_pools()}
    for cluster in sorted(over.intersection(clusters)):
        on_cluster = _Cluster(ledger, cluster)
        on_cluster.settle()
        yields += on_cluster.yields
        victims += on_cluster.victims
    victims.sort(key=lambda victim: seniority(victim.replica), reverse=True)
    return Arbitration(
        tuple(sorted(yields, key=lambda one: seniority(one.replica))),
        tuple(sorted(victims, key=lambda victim: victim.replica.priority or 0)),
    )


def over_quota(ledger: Ledger, quotas: QuotaUsage, yields: Iterable[Yielding]) -> dict[NamespacedName, str]:
    """Return those that never were Ready and for which a quota has no room, the youngest first.

    `quotas`: with nothing held. Those that give way anyhow hold nothing of it.
    """
    gone = {(one.replica.namespace, one.replica.name) for one in yields}
    starting = []
    for cluster in ledger.holding_clusters:
        for replica in ledger.living(cluster):
            if may_yield(replica) and (replica.namespace, replica.name) not in gone:
                starting.append((cluster, replica))
            elif not may_yield(replica):
                quotas.count(replica, cluster)
    return quotas.passed_by(sorted(starting, key=lambda one: seniority(one[1])))


class _Cluster:
    """The overcommitted pools of one cluster while their nodes are given out anew."""

    def __init__(self, ledger: Ledger, cluster: str) -> None:
        """Give those who cannot be asked to leave what they hold."""
        self._ledger, self._cluster = ledger, cluster
        self._rooms: Rooms = {
            key: ledger.initial(*key) for key in ledger.overcommitted_pools() if key[0] == cluster
        }
        self._starting = [replica for replica in ledger.living(cluster) if may_yield(replica)]
        self._standing = [replica for replica in ledger.living(cluster) if not may_yield(replica)]
        for replica in self._standing:
            occupy(self._rooms, ledger, cluster, replica)
        preempting = sum(replica.preempting for replica in self._starting)
        self._budgets = {key: Budget(PACKING * (1 + preempting)) for key in self._rooms}
        self._spent: Counter[NamespacedName] = Counter()
        self.yields: list[Yielding] = []
        self.victims: list[Victim] = []

    def settle(self) -> None:
        """Give out what is left, the highest class first, then by seniority; unknown classes before all."""
        for replica in sorted(self._starting, key=_rank):
            try:
                pool = lacking(self._rooms, self._ledger, self._cluster, replica, self._budgets)
            except OutOfSteps:  # Doubt: nobody gives way whose pools may have the room.
                pool = None
            if pool is not None and not (replica.preempting and self._make_room(replica)):
                self.yields.append(Yielding(replica, pool))
            else:
                occupy(self._rooms, self._ledger, self._cluster, replica)

    def _make_room(self, replica: ModelReplica) -> bool:
        """Take out those that give way to a replica that preempts; nobody where that is not enough."""
        watched = {pool for _, pool in self._rooms}.intersection(replica.nodes)
        near = [other for other in self._standing if watched.intersection(other.nodes)]

        def fits(gone: list[ModelReplica]) -> bool | None:
            rooms = dict(self._rooms)
            for other in gone:
                occupy(rooms, self._ledger, self._cluster, other, -1)
            try:
                return lacking(rooms, self._ledger, self._cluster, replica, self._budgets) is None or None
            except OutOfSteps:  # Doubt: nobody is taken out for a room that may not be enough.
                return None

        outcome = fewest(spared(near, replica.priority, _holder(replica), self._spent), fits)
        for other in outcome[1] if outcome else ():
            occupy(self._rooms, self._ledger, self._cluster, other, -1)
            self._standing.remove(other)
            self._spent[_holder(other)] += 1
            self.victims.append(Victim(other, replica))
        return outcome is not None


def _rank(replica: ModelReplica) -> tuple[bool, int, tuple[str, str, str]]:
    value = replica.priority
    return (value is not None, -(value or 0), seniority(replica))


def _holder(replica: ModelReplica) -> NamespacedName:
    return (replica.namespace, replica.deployment)


def spared(
    replicas: Iterable[ModelReplica],
    value: int | None,
    holder: NamespacedName,
    spent: Counter[NamespacedName] | None = None,
) -> list[ModelReplica]:
    """Those that may give way to a class of a value, the cheapest first.

    `holder`: the deployment that preempts, whose own replicas never do. `spent`: how many of each deployment
    give way already. One that never was Ready costs its deployment nothing, and comes first.
    """
    lower = [
        replica
        for replica in replicas
        if replica.whole and replica.priority is not None and value is not None and replica.priority < value
        if _holder(replica) != holder
    ]
    lower.sort(key=seniority, reverse=True)
    lower.sort(key=lambda replica: (not may_yield(replica), replica.priority or 0))
    budgets: dict[NamespacedName, int] = {}
    for replica in lower:
        budget = replica.notes.spared if replica.notes else 0
        budgets[_holder(replica)] = min(budget, budgets.get(_holder(replica), budget))
    taken, able = Counter(spent or {}), []
    for replica in lower:
        if not may_yield(replica):
            taken[_holder(replica)] += 1
            if taken[_holder(replica)] > budgets[_holder(replica)]:
                continue
        able.append(replica)
    return able


def fewest(
    candidates: list[ModelReplica], fits: Callable[[list[ModelReplica]], T | None]
) -> tuple[T, list[ModelReplica]] | None:
    """Choose who gives way: the dearest is as cheap as can be, then the next; None where all are not enough.

    `candidates`: the cheapest first. `fits` tells what comes of it when some are gone, None where not enough
    are. More that are gone never make less room, so the first that are enough are searched by halves. What
    the later of them made unnecessary stays.
    """
    outcome = fits(candidates)
    if outcome is None:
        return None
    least, most = 0, len(candidates)
    while least < most:
        middle = (least + most) // 2
        enough = fits(candidates[:middle])
        if enough is None:
            least = middle + 1
        else:
            most, outcome = middle, enough
    chosen = candidates[:most]
    for at in reversed(range(most - 1)):
        without = chosen[:at] + chosen[at + 1 :]
        enough = fits(without)
        if enough is not None:
            chosen, outcome = without, enough
    return outcome, chosen
