"""A brute force scheduler: the rules of placement, in their plainest form, with no care for speed.

It imports nothing of the function. What the rules leave open, this file decides as follows; where the
function decides otherwise, one of the two is to be corrected:

1.  Retained replicas are looked at in the order (cluster name, index): it matters only for which of two
    grown replicas gets the last free nodes.
2.  "Satisfies" means jointly: one device entry may serve several requests of a member while its count lasts.
3.  A pinned pool still satisfies a member when some assignment resolves to the requests it was stamped with,
    even if another assignment comes first in declaration order.
4.  If no assignment does and a selector was an error on a device it is about, that is doubt. A selector is
    about the devices whose driver it reads from (a selector on a GPU errs on a network card, which means
    nothing); if there is none such, about all. The first selector that is not a match decides.
5.  A pool the status does not publish says nothing about its devices: no mismatch from it.
6.  "Could claim a device on another pool" includes another device of the same pool: a member that can claim
    anywhere in the cluster claims wherever it is newly placed.
7.  What leaves, and what is held, is charged as stamped; what stays, the larger of stamped and new.
8.  Terminating replicas do not count for spreading.
9.  A replacement may stand on the nodes of the replica it replaces; nodes it leaves over are not free for
    others until that one is gone.
10. While a selector does not compile, nothing is mismatched. While the cache is unresolved or absent,
    mismatched replicas are found, go first in a scale down, and are held.
11. While the list of replicas is unresolved, nothing but a deletion under way is acted upon.
12. An empty list of clusters allows a scale down; a missing one allows nothing.
13. A replica whose cluster cannot be found in an empty fleet, or cannot be read, is not unhealthy by that.
    Its shape can be compared all the same.
14. Two listed objects with one identity: a living one is ours, then the oldest, then the first by name.
15. A pool that is published but that the cluster's spec no longer has takes nothing new: a replica placed
    there would be mismatched at once.
16. What is evacuated matches: until it goes it is charged and updated as what stays.
17. The cluster a replica is on is the one of its key, and its `spec.clusterName` says the same.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.oracle import devices, matching
from tests.support.build import composed_name

if TYPE_CHECKING:
    from tests.oracle.facts import Cluster, Facts, Pool, Replica

Plain = dict[str, Any]
Where = tuple[str, str] | tuple[str, str, devices.Held]
"""A cluster and a pool, of which nodes are counted; where it charges devices, pods that hold the same."""


@dataclass(frozen=True)
class New:
    """A replica to be placed: for each engine its pool, and the device of each request of each member."""

    cluster: str
    index: int
    homes: tuple[tuple[str, tuple[matching.Assignment, ...]], ...]
    charge: Counter[Where]

    @property
    def key(self) -> str:
        """Its key in the desired state."""
        return f"replica-{self.cluster}-{self.index}"


@dataclass
class Plan:
    """The outcome of a pass."""

    kept: list[Replica] = field(default_factory=list)
    held: list[Replica] = field(default_factory=list)
    """Those of `kept` that are mismatched."""
    cramped: list[Replica] = field(default_factory=list)
    """Those of `kept` that are in doubt and have no room to grow: they stay as they are observed."""
    paused: list[Replica] = field(default_factory=list)
    """Those of `kept` that keep their template, although another is wanted."""
    new: list[New] = field(default_factory=list)
    moving: list[Replica] = field(default_factory=list)
    """Those of `held` that match, and have been ill for too long: they are updated while they are there."""
    dropped: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    """All that ReplicasScheduled could say, the first to be reported first."""


def tolerated(taint: Plain, tolerations: list[Plain]) -> bool:
    """Say whether a taint is tolerated."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Plain, taint: Plain) -> bool:
    if toleration.get("effect") not in (None, taint["effect"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, taint["key"])
    return (toleration["key"], toleration.get("value", "")) == (taint["key"], taint.get("value", ""))


class Scheduler:
    """One pass over one world."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.clusters = facts.clusters or {}
        self.tolerations = list(facts.inner.get("tolerations", []))
        self.invalid = matching.invalid(facts.deployment)
        self.charged: Counter[Where] = Counter()
        self.plan = Plan()

    # Retain

    def run(self) -> Plan:
        """Return what is to be."""
        for replica in (*self.facts.own_replicas, *self.facts.others):
            self.charged += self.cost(replica)
        if self.facts.clusters is None or not self.facts.listed:
            self.plan.kept = [replica for replica in self.facts.own_replicas if not replica.terminating]
        else:
            self.act()
        self.say()
        return self.plan

    def act(self) -> None:
        """Take the steps of the pass, in their order."""
        self.retain()
        self.scale_down()
        if self.resolved and not self.invalid:
            self.fill()
            self.replace()

    @property
    def stuck(self) -> bool:
        """Whether some replica has no place for its replacement."""
        return bool(self.plan.held)

    @property
    def resolved(self) -> bool:
        """Whether everything is known that a new placement needs."""
        facts = self.facts
        cached = not facts.cache_name or facts.cache is not None
        return bool(facts.fleet) and facts.listed and cached

    def cost(self, replica: Replica) -> Counter[Where]:
        """Return the nodes a replica takes as it was stamped; a pool that is not published takes none."""
        return self._priced(replica, {engine["name"]: engine for engine in replica.engines})

    def new_cost(self, replica: Replica) -> Counter[Where]:
        """Return the nodes a retained replica takes with the present copies and workers."""
        return self._priced(replica, {engine["name"]: engine for engine in self.facts.inner["engines"]})

    def _priced(self, replica: Replica, sizes: dict[str, Plain]) -> Counter[Where]:
        total: Counter[Where] = Counter()
        for engine in replica.engines:
            size = sizes[engine["name"]]
            for member, sized in zip(engine["members"], size["members"], strict=True):
                at = (replica.cluster, member["nodePoolName"])
                if matching.stamped(member) and self.published(*at):
                    label = (replica.name, engine["name"])
                    total[self.charged_as(at, member, label)] += matching.pods(size, sized)
        return total

    def charged_as(self, at: tuple[str, str], member: Plain, engine: tuple[str, str]) -> Where:
        """Return what pods of a stamped member are counted as."""
        pool = self.clusters[at[0]].pools[at[1]]
        return (*at, devices.held(member, pool, engine)) if pool.by_devices else at

    def published(self, cluster: str, pool: str) -> bool:
        """Say whether a pool is published."""
        return cluster in self.clusters and pool in self.clusters[cluster].pools

    def fits(self, more: Counter[Where], *, new: bool, now: bool = False) -> bool:
        """Say whether pools have room for what is charged on top; what is new must find usable nodes."""
        for cluster, name in {where[:2] for where in +more}:
            pool = self.clusters[cluster].pools[name]
            nodes = (pool.usable if new else pool.nodes) - (pool.to_come if now else 0)
            after = Counter(
                {where: number for where, number in self.charged.items() if where[:2] == (cluster, name)}
            )
            after.update({where: number for where, number in more.items() if where[:2] == (cluster, name)})
            if not pool.by_devices and after[cluster, name] > nodes:
                return False
            if pool.by_devices and devices.strands(pool, nodes, {held: n for (*_, held), n in after.items()}):
                return False
        return True

    def retain(self) -> None:
        """Keep every replica unless there is a listed reason not to."""
        for replica in sorted(self.facts.own_replicas, key=lambda one: (one.cluster, one.index)):
            reason = self.leaves(replica)
            if reason:
                self.plan.dropped[str(replica.key)] = reason
                continue
            self.plan.kept.append(replica)
            if self.mismatched(replica):
                self.plan.held.append(replica)
            elif self.overdue(replica):
                self.plan.held.append(replica)
                self.plan.moving.append(replica)

    def deadline(self) -> int | None:
        """Return the time since when something must have been well; None where nothing is evacuated.

        Now is the latest time that a majority of the heartbeats has reached.
        """
        after = self.facts.placement.get("evacuate", {}).get("afterSeconds")
        beats = [
            cluster.beat
            for cluster in self.clusters.values()
            if cluster.beat is not None and not cluster.deleting
        ]
        if after is None or len(beats) < 2:
            return None
        if sum(max(beats) - beat <= after for beat in beats) < len(beats) / 2:
            return None
        return max(beat for beat in beats if sum(other >= beat for other in beats) > len(beats) / 2) - after

    def lost(self, cluster: Cluster) -> bool:
        """Say whether a cluster was not heard of for too long."""
        limit = self.deadline()
        return limit is not None and not cluster.reached and cluster.beat is not None and cluster.beat < limit

    def overdue(self, replica: Replica) -> bool:
        """Say whether a replica, or its cluster, has been ill for too long."""
        cluster, limit = self.clusters.get(replica.cluster), self.deadline()
        if cluster is None or limit is None or self.invalid:
            return False
        ill = [since for since in (cluster.ill, replica.ill) if since is not None]
        return self.lost(cluster) or any(since < limit for since in ill)

    def leaves(self, replica: Replica) -> str:
        """Return why a replica has to leave at once, "" if it has not."""
        if replica.terminating:
            return "terminating"
        if self.facts.fleet and replica.cluster not in self.facts.fleet:
            return "cluster gone"
        cluster = self.clusters.get(replica.cluster)
        if cluster and self.untolerated(cluster, "NoExecute"):
            return "drained"
        return ""

    def untolerated(self, cluster: Cluster, *effects: str) -> bool:
        """Say whether a taint with one of the effects is not tolerated."""
        return any(
            taint["effect"] in effects and not tolerated(taint, self.tolerations) for taint in cluster.taints
        )

    def mismatched(self, replica: Replica) -> bool:
        """Say whether a kept replica does not fit its place any more; if it does, charge its growth."""
        cluster = self.clusters.get(replica.cluster)
        if self.invalid:
            return False
        if self.reshaped(replica):
            return True
        if cluster is None:
            return False
        if self.pool_gone(replica, cluster) or self.outside(replica, cluster):
            return True
        if any(self.unsatisfied(member, asked, cluster) for member, asked in self.pairs(replica)):
            return True
        return not self.grows(replica) and not self.cramped(replica)

    def cramped(self, replica: Replica) -> bool:
        """Note a replica that has no room to grow, where it is unknown whether it fits its place."""
        doubtful = self.doubtful(replica)
        if doubtful:
            self.plan.cramped.append(replica)
        return doubtful

    def pairs(self, replica: Replica) -> list[tuple[Plain, Plain]]:
        """Return each stamped member with the member of the deployment it comes from."""
        asked = {entry["name"]: entry["members"] for entry in self.facts.inner["engines"]}
        return [
            pair
            for engine in replica.engines
            for pair in zip(engine["members"], asked[engine["name"]], strict=True)
        ]

    def editable(self, replica: Replica) -> bool:
        """Say whether edits reach a replica: not while they depend on what is unknown.

        Without its pool, or where a selector errs on it, what is stamped must be what is wanted, as far as
        that can be told: the same counts under the same names, the same cache, no more nodes on that pool.
        """
        if self.invalid or self.facts.clusters is None or not self.facts.listed:
            return False
        if not self.doubtful(replica):
            return True
        if replica in self.plan.cramped:
            return False
        grown = self._sizes(self.facts.inner["engines"], replica) - self._sizes(replica.engines, replica)
        unpublished = [pool for pool in grown if not self.published(replica.cluster, pool)]
        same_cache = replica.cache == self.facts.cache_name
        return not unpublished and same_cache and all(itertools.starmap(_agrees, self.pairs(replica)))

    def doubtful(self, replica: Replica) -> bool:
        """Say whether it is unknown how a replica fits its place."""
        cluster, facts = self.clusters.get(replica.cluster), self.facts
        if cluster is None:
            return True
        if facts.cache_name and facts.cache is None and replica.cache != facts.cache_name:
            return True
        return any(_unknown(member, asked, cluster) for member, asked in self.pairs(replica))

    def _sizes(self, sizes: list[Plain], replica: Replica) -> Counter[str]:
        """Return the nodes by pool that a replica would take with the sizes of some engines."""
        size = {engine["name"]: engine for engine in sizes}
        total: Counter[str] = Counter()
        for engine in replica.engines:
            members = zip(engine["members"], size[engine["name"]]["members"], strict=True)
            for member, sized in members:
                if matching.stamped(member):
                    total[member["nodePoolName"]] += matching.pods(size[engine["name"]], sized)
        return total

    @staticmethod
    def pool_gone(replica: Replica, cluster: Cluster) -> bool:
        """Say whether the cluster's spec no longer has a pinned pool."""
        pinned = {member["nodePoolName"] for engine in replica.engines for member in engine["members"]}
        return cluster.declared is not None and not pinned <= cluster.declared

    def reshaped(self, replica: Replica) -> bool:
        """Say whether the deployment's engines have other names, roles or numbers of members."""

        def shape(engines: list[Plain]) -> dict[str, list[str]]:
            return {
                engine["name"]: [one.get("role", "Standalone") for one in engine["members"]]
                for engine in engines
            }

        return shape(replica.engines) != shape(self.facts.inner["engines"])

    def outside(self, replica: Replica, cluster: Cluster) -> bool:
        """Say whether another cache is referenced now, whose footprint leaves the cluster out."""
        if self.facts.cache is None or replica.cache == self.facts.cache_name:
            return False
        return not matches(self.footprint(), cluster.labels)

    def footprint(self) -> Plain:
        """Return the labels that the referenced cache asks of a cluster."""
        cache = self.facts.cache or {}
        return dict(cache.get("spec", {}).get("clusterSelector", {}).get("matchLabels", {}))

    @staticmethod
    def unsatisfied(member: Plain, asked: Plain, cluster: Cluster) -> bool:
        """Say whether the pinned pool certainly does not give the member what it was stamped with."""
        pool = cluster.pools.get(member["nodePoolName"])
        if pool is None:
            return False
        return not _satisfied(member, asked, pool) and not matching.errs(asked, pool)

    def grown(self, replica: Replica) -> Counter[Where]:
        """Return what a replica takes now on top of what is stamped on it."""
        return Counter() if replica in self.plan.cramped else self.new_cost(replica) - self.cost(replica)

    def grows(self, replica: Replica) -> bool:
        """Charge the growth of a replica's shape, if its pools have the nodes for it."""
        growth = self.grown(replica)
        if not self.fits(growth, new=False):
            return False
        self.charged += growth
        return True

    # Scale down

    def scale_down(self) -> None:
        """Drop what is too much."""
        while len(self.plan.kept) > self.facts.wanted:
            victim = self.victim(self.plan.kept)
            self.plan.dropped[str(victim.key)] = "scale down"
            self.plan.kept.remove(victim)
            if victim in self.plan.held:
                self.plan.held.remove(victim)
            if victim in self.plan.moving:
                self.charged -= self.grown(victim)

    def victim(self, among: list[Replica]) -> Replica:
        """Return the replica that would be given up first."""
        on = Counter(placement.cluster for placement in self.plan.kept)
        return max(among, key=lambda item: self.expendable(item, on))

    def expendable(self, replica: Replica, on: Counter[str]) -> tuple[Any, ...]:
        """Return the key of the scale down: the largest goes first."""
        cluster = self.clusters.get(replica.cluster)
        sick = cluster is not None and (
            cluster.unready or self.untolerated(cluster, "NoSchedule", "NoExecute")
        )
        return (
            replica in self.plan.held,
            sick,
            replica.condition != "True",
            on[replica.cluster],
            replica.index,
            replica.cluster,
        )

    # Fill and replace

    def fill(self) -> None:
        """Place the shortfall, one at a time, until one fits nowhere."""
        while len(self.plan.kept) + len(self.plan.new) < self.facts.wanted:
            placed = self.place(self.plan.kept)
            if placed is None:
                return
            self.plan.new.append(placed)
            self.charged += placed.charge

    def replace(self) -> None:
        """Give each mismatched replica up if there is a place for its replacement."""
        waiting = list(self.plan.held)
        while waiting:
            victim = self.victim(waiting)
            waiting.remove(victim)
            cost = self.cost(victim)
            growth = self.grown(victim) if victim in self.plan.moving else Counter()
            self.charged.subtract(cost + growth)
            placed = self.place([one for one in self.plan.kept if one is not victim])
            if placed is None:
                self.charged.update(cost + growth)
                continue
            self.charged += cost | placed.charge
            self.plan.new.append(placed)
            self.plan.kept.remove(victim)
            self.plan.held.remove(victim)
            self.plan.dropped[str(victim.key)] = "replaced"

    def place(self, staying: list[Replica]) -> New | None:
        """Return the next replica to place, None if it fits nowhere."""
        hosts = Counter([*(kept.cluster for kept in staying), *(new.cluster for new in self.plan.new)])
        choices: list[tuple[tuple[object, ...], New]] = []
        for cluster in self.clusters.values():
            if self.open(cluster):
                now, later = self.search(cluster, now=True), self.search(cluster)
                choice = now or later
                if choice is not None:
                    rank = (self.distance(cluster.name), now is None, hosts[cluster.name], cluster.name)
                    choices.append((rank, choice))
        return min(choices, key=lambda entry: entry[0])[1] if choices else None

    def open(self, cluster: Cluster) -> bool:
        """Say whether a cluster takes new replicas at all."""
        return (
            matches(self.facts.inner.get("clusterSelector", {}).get("matchLabels", {}), cluster.labels)
            and matches(self.footprint(), cluster.labels)
            and not cluster.deleting
            and not self.untolerated(cluster, "NoSchedule", "NoExecute")
            and cluster.ready
            and bool(cluster.gateway)
            and not self.lost(cluster)
            and (self.cache_policy != "Require" or self.facts.phases.get(cluster.name) == "Ready")
        )

    @property
    def cache_policy(self) -> str:
        """How the phases of the cache count, "" where they do not."""
        return str(self.facts.placement.get("cache", "")) if self.facts.cache_name else ""

    def distance(self, cluster: str) -> int:
        """Return how far the cache is from serving on a cluster, where that is preferred."""
        order = ["Ready", "Hydrating", "Pending", "?", "Failed"]
        phase = self.facts.phases.get(cluster, "?")
        return order.index(phase if phase in order else "?") if self.cache_policy == "Prefer" else 0

    def search(self, cluster: Cluster, *, now: bool = False) -> New | None:
        """Return the first complete assignment in declaration order that has the nodes.

        `now`: only nodes that are there, and not those that are added once they are needed.
        """
        options = [self.options(engine, cluster) for engine in self.facts.inner["engines"]]
        for homes in itertools.product(*options):
            charge: Counter[Where] = Counter()
            for _, cost, _ in homes:
                charge += Counter(dict(cost))
            if self.fits(charge, new=True, now=now):
                chosen = tuple((pool, taken) for pool, _, taken in homes)
                return New(cluster.name, self.index(cluster.name), chosen, +charge)
        return None

    def options(
        self, engine: Plain, cluster: Cluster
    ) -> list[tuple[str, frozenset[tuple[Where, int]], tuple[matching.Assignment, ...]]]:
        """Return pool, charge and devices of every way to home an engine, in order.

        Of several ways with the same pool and the same charge only the first can ever be taken.
        """
        must = [matching.claimable(member, cluster) for member in engine["members"]]
        assignments: dict[tuple[str, frozenset[tuple[Where, int]]], tuple[matching.Assignment, ...]] = {}
        label = (f"new {len(self.plan.new)}", engine["name"])
        for pool in cluster.usable:
            item = [list(matching.assignments(member, pool)) for member in engine["members"]]
            for taken in itertools.product(*item):
                claimed = [
                    bool(matching.claims(member, one))
                    for member, one in zip(engine["members"], taken, strict=True)
                ]
                if not any(claimed) or any(m and not c for m, c in zip(must, claimed, strict=True)):
                    continue
                cost: Counter[Where] = Counter()
                for member, chosen, c in zip(engine["members"], taken, claimed, strict=True):
                    if c:
                        made = {"deviceRequests": matching.stamp(member, chosen)}
                        where = self.charged_as((cluster.name, pool.name), made, label)
                        cost[where] += matching.pods(engine, member)
                assignments.setdefault((pool.name, frozenset(cost.items())), taken)
        return [(pool, cost, taken) for (pool, cost), taken in assignments.items()]

    def index(self, cluster: str) -> int:
        """Return the lowest index that is free on a cluster, in every sense."""
        facts = self.facts
        taken = {replica.index for replica in facts.own_replicas if replica.cluster == cluster}
        taken |= {replica.index for replica in facts.others if replica.key and replica.cluster == cluster}
        taken |= {replica.index for replica in self.plan.new if replica.cluster == cluster}
        namespace = facts.deployment["metadata"]["namespace"]
        names = {
            placement.name
            for placement in (*facts.own_replicas, *facts.others)
            if placement.cluster == cluster or placement.plain["metadata"]["namespace"] == namespace
        }
        names |= {self.name(replica.cluster, replica.index) for replica in self.plan.new}
        return next(
            number
            for number in itertools.count()
            if number not in taken
            and not {f"{kind}-{cluster}-{number}" for kind in ("replica", "endpoint")} & facts.observed_keys
            and self.name(cluster, number) not in names
        )

    def name(self, cluster: str, index: int) -> str:
        """Return the object name of a new replica."""
        return composed_name(self.facts.deployment["metadata"]["name"], cluster, index)

    # What is said

    def say(self) -> None:
        """Work out what ReplicasScheduled may report."""
        facts, plan = self.facts, self.plan
        placed = len(plan.kept) + len(plan.new)
        observed = any(replica.observed for replica in plan.kept)
        nothing = not facts.wanted and not facts.own_replicas  # Then no cluster is asked for.
        unresolved = (facts.clusters is None and not nothing) or not facts.listed or not facts.cache_known
        said = {
            "InputsUnresolved": unresolved,
            "InvalidNodeSelector": self.invalid,
            "NoClusters": facts.clusters is not None and not facts.fleet and (facts.wanted > 0 or placed > 0),
            "ReplacementBlocked": self.stuck,
            "InsufficientCapacity": placed == 0 < facts.wanted,
            "PartiallyScheduled": placed < facts.wanted,
            "Scheduling": facts.wanted > 0 and not observed,
            "ReplicasCreated": True,
        }
        plan.reasons = [reason for reason, holds in said.items() if holds]


def _unknown(member: Plain, asked: Plain, cluster: Cluster) -> bool:
    """Say whether a stamped member's pool is not published, or nothing but an error speaks against it."""
    pool = cluster.pools.get(member["nodePoolName"])
    return pool is None or (matching.errs(asked, pool) and not _satisfied(member, asked, pool))


def _satisfied(member: Plain, asked: Plain, pool: Pool) -> bool:
    """Say whether a pool gives a member what it was stamped with."""
    every = matching.assignments(asked, pool, new=False)
    resolved = {frozenset(matching.claims(asked, assignment)) for assignment in every}
    return frozenset(matching.stamped(member)) in resolved


def _agrees(member: Plain, asked: Plain) -> bool:
    """Say whether every stamped request is still wanted, with its count."""
    counts = {request["name"]: request.get("count", 1) for request in matching.requests(asked)}
    return all(counts.get(name) == count for name, _, count in matching.stamped(member))


def matches(labels: Plain, wanted: Plain) -> bool:
    """Say whether all labels asked for are found."""
    return all(wanted.get(key) == value for key, value in labels.items())
