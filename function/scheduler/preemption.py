"""Preemption: which replicas give way to one of a higher priority class, and when that gives way itself.

Why without a central scheduler. A deployment knows its own budgets and no other's; a cluster sees every
replica on it and knows no budget. So a deployment that waits places its replica where enough can be spared,
and overcommits the pool on purpose. The cluster, which everybody there reads, says who gives way
(`arbitrate`, published by `cluster.arbiter`). The deployment of that one lets it go, within its budgets.

Rules
0. One *ranks* by the value of its class; what a team borrows beyond its guarantee (`quota`) ranks below all.
   What is within a guarantee gives way to nobody but of the same team, by class.
1. A replica *preempts* while it carries the label, can be read and never was Ready, on a cluster that
   arbitrates.
2. Who never was Ready loses nothing. Of those each keeps its place while there is room, the highest class
   first, then the most senior. One whose class is not known is asked last: doubt keeps (Law 2).
3. Where a preempting one has no room, Ready replicas of strictly lower classes give way: the dearest of them
   is as cheap as can be, then the next, and so on. Cheap is a low class, then a young replica. Of a
   deployment as many do as it can spare. One whose class, or whose deployment's budget, cannot be read
   never does. One within its guarantee whose class does not preempt *reclaims*: to it gives way only what
   other teams have borrowed. What is borrowed makes nobody give way.
4. Where that is not enough it gives way itself, as every replica beyond capacity does (Law 2, reason 6), and
   is placed anew. Where a cluster has no steps left to find that out (`LOOKS`), it waits.

All is computed from what is observed, so a deployment finds for its own replicas what the cluster found. It
lets one go only where both say so (`schedule`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import field
from operator import itemgetter
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from function.api.names import NamespacedName
from function.api.priority import LOWEST
from function.api.replica import GuaranteeShare, ModelReplica, PriorityNotes
from function.boundary import frozen
from function.scheduler.budget import PACKING, Budget, OutOfSteps
from function.scheduler.device_accounting import Demand
from function.scheduler.ledger import Ledger, Rooms, Yielding, may_yield, seniority, yielding
from function.scheduler.price import devices_of
from function.scheduler.quota import QuotaHolding, QuotaUsage

T = TypeVar("T")

LOOKS = 100_000
"""Steps for looking at those who may give way on one cluster: one for each that is taken out to see what
comes of it. A cluster names a hundred at a time (`cluster.arbiter`), so others can wait."""
READING = 16
"""Units of a step for reading one. Passing over one takes a unit."""
NOBODY: NamespacedName = ("", "")
NOTHING: Mapping[NamespacedName, int] = MappingProxyType({})


class Victim(NamedTuple):
    """A replica of a lower class that was Ready, and the one to which it gives way."""

    replica: ModelReplica
    to: ModelReplica


@frozen
class Arbitration:
    """Every replica that gives way."""

    yields: tuple[Yielding, ...] = ()
    """Those that never were Ready, by seniority."""
    victims: tuple[Victim, ...] = ()
    """Those of lower classes, the cheapest first."""
    over_quota: Mapping[NamespacedName, str] = field(default_factory=dict)
    """Those for which a quota has no room, with its name: deployments passed it at once."""
    shares: Mapping[NamespacedName, GuaranteeShare] | None = None
    """How each replica that a guarantee covers stands to it; None where that is not known."""


class StandingReplica(NamedTuple):
    """A replica that others might have give way, as its notes say: read once, however many of them ask."""

    replica: ModelReplica
    name: NamespacedName
    holder: NamespacedName
    rank: int | None
    """None where it gives way to nobody: that, or the replica, cannot be read."""
    share: GuaranteeShare | None
    spared: int
    """How many replicas its deployment can spare."""
    starting: bool
    """Whether it never was Ready."""

    @classmethod
    def of(cls, replica: ModelReplica) -> StandingReplica:
        """Read one."""
        notes, starting = replica.notes or PriorityNotes(), may_yield(replica)
        rank = notes.rank if replica.whole else None
        name = (replica.namespace, replica.name)
        return cls(
            replica, name, (replica.namespace, replica.deployment), rank, notes.share, notes.spared, starting
        )


class Preemptor(NamedTuple):
    """The right of a replica that preempts to make others give way."""

    holder: NamespacedName
    """Its deployment, whose own replicas never do."""
    value: int | None
    """Replicas that rank below it give way; none does where it is not known."""
    team: frozenset[str] = frozenset()
    """The quotas that guarantee something to its namespace."""
    reclaims: bool = False
    """Whether it is a guarantee that gives the right, and not its class."""

    @classmethod
    def of(cls, replica: ModelReplica) -> Preemptor:
        """Return the right of a replica by its notes."""
        share, value = replica.share or GuaranteeShare(frozenset()), replica.priority
        reclaims = share.reclaims and not share.borrowed
        return cls(
            (replica.namespace, replica.deployment), LOWEST if reclaims else value, share.quotas, reclaims
        )

    def covers(self, other: StandingReplica) -> bool:
        """Tell whether another replica may give way to it, budgets aside."""
        if self.value is None or other.rank is None or other.rank >= self.value:
            return False
        if other.holder == self.holder:
            return False
        share = other.share
        if share is None:
            return True
        same_team = bool(share.quotas & self.team)
        return not (same_team and self.reclaims) if share.borrowed else same_team


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


def shares_of(
    ledger: Ledger, usage: QuotaUsage, values: Mapping[NamespacedName, int], namespace: str
) -> dict[NamespacedName, GuaranteeShare] | None:
    """Say of every living replica that a guarantee covers how it stands to it.

    `usage`: with nothing held. `values`: those of the classes that are known better than they are noted.
    Where a cluster does not say which pools it has, how much is held there of a guarantee is doubt: nothing
    is said of the teams that hold something there, and None where that of `namespace` is one of them.
    """
    ranked, doubted = [], set[str]()
    for cluster in ledger.holding_clusters:
        says = cluster in usage.clusters and bool(usage.clusters[cluster].pools)
        for replica in ledger.living(cluster):
            guarantees = usage.team(replica.namespace).guarantees
            if guarantees and not says:
                doubted.update(quota.name for quota in guarantees)
            if guarantees:
                value = values.get((replica.namespace, replica.name), replica.notes and replica.notes.value)
                ranked.append(((value is not None, -(value or 0), seniority(replica)), cluster, replica))
    if any(quota.name in doubted for quota in usage.team(namespace).guarantees):
        return None
    shares = {}
    for _, cluster, replica in sorted(ranked, key=itemgetter(0)):
        holding = QuotaHolding(replica.nodes, devices_of(replica))
        share = usage.share(replica.namespace, cluster, holding)
        usage.count(replica, cluster)
        if share is not None and not share.quotas & doubted:
            shares[replica.namespace, replica.name] = share
    return shares


def over_quota(ledger: Ledger, quotas: QuotaUsage, yields: Iterable[Yielding]) -> dict[NamespacedName, str]:
    """Return those that never were Ready and for which a quota has no room, the youngest first.

    `quotas`: with nothing held. Those that give way anyhow hold nothing of it.
    """
    gone = {(one.replica.namespace, one.replica.name) for one in yields}
    starting, standing = [], []
    for cluster in ledger.holding_clusters:
        # Law 2: what stands on a cluster that cannot be read may be covered or not, so it is no reason.
        for replica in ledger.living(cluster) if cluster in quotas.clusters else ():
            if may_yield(replica) and (replica.namespace, replica.name) not in gone:
                starting.append((cluster, replica))
            elif not may_yield(replica):
                standing.append((cluster, replica))
    quotas.count_all(standing)
    return quotas.passed_by(sorted(starting, key=lambda one: seniority(one[1])))


class _Cluster:
    """The overcommitted pools of one cluster while their nodes are given out anew."""

    def __init__(self, ledger: Ledger, cluster: str) -> None:
        """Give those who cannot be asked to leave what they hold."""
        living = [StandingReplica.of(replica) for replica in ledger.living(cluster)]
        self._ledger, self._cluster = ledger, cluster
        watched = [key for key in ledger.overcommitted_pools() if key[0] == cluster]
        self._rooms = Rooms(ledger, {key: ledger.initial(*key) for key in watched})
        self._starting = [one.replica for one in living if one.starting]
        self._standing = by_cost(one for one in living if not one.starting)
        for one in self._standing:
            self._rooms.occupy(cluster, one.replica)
        preempting = sum(replica.preempting for replica in self._starting)
        self._budgets = {key: Budget(PACKING * (1 + preempting)) for key in self._rooms}
        self._looks = Budget(LOOKS)
        self._spared: dict[tuple[Preemptor, frozenset[str]], Spared] = {}
        self._holders = {one.holder for one in self._standing}
        self._spent: Counter[NamespacedName] = Counter()
        self.yields: list[Yielding] = []
        self.victims: list[Victim] = []

    def settle(self) -> None:
        """Give out what is left, the highest class first, then by seniority; unknown classes before all."""
        for replica in sorted(self._starting, key=_rank):
            try:
                pool = self._rooms.lacking(self._cluster, replica, self._budgets)
                if pool is not None and replica.preempting and self._make_room(replica):
                    pool = None
            except OutOfSteps:  # Doubt: a replica whose pools may have the room stays.
                pool = None
            if pool is None:
                self._rooms.occupy(self._cluster, replica)
            else:
                self.yields.append(Yielding(replica, pool))

    def _make_room(self, replica: ModelReplica) -> bool:
        """Take out those that give way to a replica that preempts; nobody where that is not enough.

        Raises OutOfSteps where too many were looked at: then it waits until others are gone.
        """
        rooms, looks = Rooms(self._ledger, self._rooms), self._looks

        def look(demands: Mapping[str, Demand], sign: int) -> None:
            looks.step()
            rooms.charge(self._cluster, demands, sign)

        def outcome() -> bool | None:
            """Return True where the replica has room now, else None; None where that is not found out."""
            try:
                return rooms.lacking(self._cluster, replica, self._budgets) is None or None
            except OutOfSteps:  # Doubt: a running replica does not leave for a room that may be too small.
                return None

        way = fewest(self._able(replica), self._ledger.demands, look, outcome)
        gone = [StandingReplica.of(other) for other in way[1]] if way is not None else []
        for other in gone:
            self._rooms.occupy(self._cluster, other.replica, -1)
            self._spent[other.holder] += 1
            self.victims.append(Victim(other.replica, replica))
        names, holders = {other.name for other in gone}, {other.holder for other in gone}
        self._standing = [other for other in self._standing if other.name not in names]
        for able in self._spared.values() if gone else ():
            able.leave(names, holders)
        return way is not None

    def _able(self, replica: ModelReplica) -> list[ModelReplica]:
        """Those that may give way to a replica; known for all that have the same right on the same pools."""
        pools = frozenset(pool for _, pool in self._rooms).intersection(replica.nodes)
        claim = Preemptor.of(replica)
        if claim.holder not in self._holders:
            claim = claim._replace(holder=NOBODY)
        if (claim, pools) not in self._spared:
            self._looks.spend(READING * len(self._standing))
            near = [other for other in self._standing if not pools.isdisjoint(other.replica.nodes)]
            self._spared[claim, pools] = Spared(near, claim, self._spent)
        self._looks.spend(len(self._spared) * len(self._standing))
        return self._spared[claim, pools].replicas


def _rank(replica: ModelReplica) -> tuple[bool, int, tuple[str, str, str]]:
    """The order in which replicas keep their places (rule 2): unknown classes, high ones, seniority."""
    value = replica.priority
    return (value is not None, -(value or 0), seniority(replica))


def by_cost(standing: Iterable[StandingReplica]) -> list[StandingReplica]:
    """Sort replicas by what is lost where they give way, the cheapest first."""
    youngest = sorted(standing, key=lambda one: seniority(one.replica), reverse=True)
    return sorted(youngest, key=lambda one: (not one.starting, one.rank or 0))


class Spared:
    """Those that may give way to a claim, the cheapest first, while some of them go.

    One that never was Ready costs its deployment nothing, and comes first. Made once for all claims that are
    equal, because thousands may ask for thousands.
    """

    def __init__(
        self,
        standing: Iterable[StandingReplica],
        claim: Preemptor,
        spent: Mapping[NamespacedName, int] = NOTHING,
    ) -> None:
        """`standing`: sorted by cost. `spent`: how many of each deployment give way already."""
        self._spent = spent
        self._lower = [one for one in standing if claim.covers(one)]
        self._of: dict[NamespacedName, list[StandingReplica]] = defaultdict(list)
        for one in self._lower:
            self._of[one.holder].append(one)
        self._able: dict[NamespacedName, bool] = {}
        for members in self._of.values():
            self._settle(members)

    def _settle(self, members: Iterable[StandingReplica]) -> None:
        """Say who of the members of a deployment may give way."""
        left = min(one.spared for one in members) - self._spent.get(next(iter(members)).holder, 0)
        for one in members:
            self._able[one.name] = one.starting or left > 0
            left -= not one.starting

    @property
    def replicas(self) -> list[ModelReplica]:
        """All of them, by cost."""
        return [one.replica for one in self._lower if self._able[one.name]]

    def leave(self, gone: Collection[NamespacedName], holders: Iterable[NamespacedName]) -> None:
        """Take out some that go, of these deployments: `spent` counts them by now."""
        self._lower = [one for one in self._lower if one.name not in gone]
        for holder in self._of.keys() & holders:
            self._of[holder] = [one for one in self._of[holder] if one.name not in gone]
            if self._of[holder]:
                self._settle(self._of[holder])


class _Trial(Generic[T]):
    """Some of those who may give way are gone: what comes of it."""

    def __init__(
        self,
        candidates: list[ModelReplica],
        demands: Callable[[ModelReplica], Mapping[str, Demand]],
        charge: Callable[[Mapping[str, Demand], int], None],
        outcome: Callable[[], T | None],
    ) -> None:
        self._candidates, self._demands, self._charge, self.outcome = candidates, demands, charge, outcome
        self.held: list[Mapping[str, Demand]] = []
        """What each of the candidates that were looked at holds."""

    def move(self, first: int, last: int, sign: int) -> None:
        """Take out the candidates from `first` to `last` (-1), or put them back."""
        self.held.extend(map(self._demands, self._candidates[len(self.held) : last]))
        for demands in self.held[first:last]:
            self._charge(demands, sign)

    def first_enough(self) -> tuple[T, int] | None:
        """Take out as few of the cheapest as are enough, by doubling and halving; None: all are not."""
        least, most = 0, 0
        while (sufficient := self.outcome()) is None:
            if most == len(self._candidates):
                return None
            least, before = most + 1, most
            most = min(len(self._candidates), max(1, 2 * most))
            self.move(before, most, -1)
        at = most
        while least < most:
            middle = (least + most) // 2
            self.move(middle, at, 1)
            self.move(at, middle, -1)
            at, enough = middle, self.outcome()
            if enough is None:
                least = middle + 1
            else:
                most, sufficient = middle, enough
        self.move(at, most, -1)
        return sufficient, most


def fewest(
    candidates: list[ModelReplica],
    demands: Callable[[ModelReplica], Mapping[str, Demand]],
    charge: Callable[[Mapping[str, Demand], int], None],
    outcome: Callable[[], T | None],
) -> tuple[T, list[ModelReplica]] | None:
    """Choose who gives way: the dearest is as cheap as can be, then the next; None where all are not enough.

    `candidates`: the cheapest first. `charge` takes out what one holds (-1), or puts it back; `outcome` tells
    what comes of it then, None where not enough are gone. More that are gone never make less room. What the
    dearest made unnecessary stays, and is looked for by halves; one that holds as much as another that had to
    go has to go too. So the work grows with those who go.
    """
    trial = _Trial(candidates, demands, charge, outcome)
    first_enough = trial.first_enough()
    if first_enough is None:
        return None
    sufficient, most = first_enough
    amounts = [tuple(sorted(held.items())) for held in trial.held[:most]]
    stays, needed = set[int](), set[Hashable]()
    ranges = [(0, most - 1)]
    while ranges:  # The dearer half of a range is looked at first.
        first, last = ranges.pop()
        if all(amount in needed for amount in amounts[first:last]):
            continue
        trial.move(first, last, 1)
        enough = outcome()
        if enough is not None:
            stays.update(range(first, last))
            sufficient = enough
            continue
        trial.move(first, last, -1)
        middle = (first + last) // 2
        if last - first > 1:
            ranges += [(first, middle), (middle, last)]
        else:
            needed.add(amounts[first])
    return sufficient, [candidates[index] for index in range(most) if index not in stays]
