"""The placer: choosing the place of one new replica. `search` and `matching` are what it stands on.

1. Filter: gates in their order; the first that rejects a cluster is its reason. The standing ones say the
   same for the whole pass and are asked once, the counting ones for every replica.
2. Fit: the exact search inside a cluster for pools that have room for every engine.
3. Score: an earlier score outweighs every later one.
4. Select: the best, ties by name; and the runner-up, to be reported.

Nothing here remembers: what was found out about a cluster is kept in `memo`, until the ledger changes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from heapq import nsmallest
from operator import itemgetter
from typing import NamedTuple

from function.api import InferenceCluster
from function.api.deployment import ReplicaShape
from function.api.ownership import OwnReplica
from function.api.priority import LOWEST
from function.api.reasons import Reason, Rejection
from function.api.replica import GuaranteeShare, ModelReplica
from function.scheduler.engine_options import Candidate, ClusterFit, EngineOption
from function.scheduler.filters import StackExpresses, StandingFilter, counting, standing
from function.scheduler.ledger import Capacities, Ledger, Rooms, may_yield
from function.scheduler.matcher import Matcher
from function.scheduler.memo import EasySearches, HardSearches, PlacementMemo, Scored
from function.scheduler.outcomes import Placed
from function.scheduler.preemption import Preemptor, Spared, StandingReplica, by_cost, fewest
from function.scheduler.quota import QuotaHolding
from function.scheduler.scheduling_input import SchedulingInput
from function.scheduler.scores import scores
from function.scheduler.search import Explained, OnPools, below_gates, free_left, on_pools, search
from function.scheduler.stamp import Indices

CLOSED = 1_000_000_000
"""Nodes that no pool has: with so many fewer it has room for nothing."""


class Placement(NamedTuple):
    """The best place for one more replica."""

    candidate: Candidate
    because: tuple[tuple[str, object], ...]
    """The scores that decided: description and value, weightiest first."""
    runner_up: str
    """The cluster that would have been next; empty when there is none."""


def barred(inputs: SchedulingInput, gates: Iterable[StandingFilter]) -> dict[str, Rejection]:
    """Why clusters take no new replica for the whole pass, by name; those that may are not in it."""
    gated = {
        name: Rejection(Reason.MalformedCluster, detail=unreadable.fault)
        for name, unreadable in inputs.fleet.unreadable.items()
    }
    for name, cluster in inputs.fleet.clusters.items():
        rejection = next((refusal for gate in gates if (refusal := gate.reject(cluster))), None)
        if rejection is not None:
            gated[name] = rejection
    return gated


def _without(barred: Collection[str], cluster: InferenceCluster, free: Capacities) -> Capacities:
    """Return free capacities with nothing on the barred pools."""
    if not barred:
        return free
    pairs = zip(cluster.pools, free, strict=True)
    return tuple([room.grown(-CLOSED) if pool.name in barred else room for pool, room in pairs])


class Placer:
    """Finds places for new replicas on the clusters of one pass, and takes them."""

    def __init__(self, inputs: SchedulingInput, matcher: Matcher, ledger: Ledger, indices: Indices) -> None:
        """Look at no cluster yet: everything is found out when it is needed."""
        self._inputs, self._matcher, self.ledger, self.indices = inputs, matcher, ledger, indices
        self._namespace = inputs.deployment.namespace
        self._counting, self._scores = counting(inputs), scores(inputs)
        self._gates = standing(inputs)
        self._stacks = next((gate for gate in self._gates if isinstance(gate, StackExpresses)), None)
        self._elsewhere = [at for at, score in enumerate(self._scores) if score.elsewhere]
        local = not self._elsewhere and not any(gate.elsewhere for gate in self._counting)
        self._quotas = ledger.quotas if ledger.quotas and ledger.quotas.team(self._namespace).quotas else None
        self._able: dict[tuple[str, frozenset[str]], list[ModelReplica]] = {}
        self._memo = PlacementMemo(ledger, self._quotas, local=local)
        shared = inputs.deployment.memos.get(EasySearches)
        self._easy = shared if isinstance(shared, EasySearches) else EasySearches()
        self._hard = HardSearches()

    @cached_property
    def _standing(self) -> tuple[dict[str, Rejection], list[InferenceCluster]]:
        """The clusters that a standing gate rejects, with the reason, and those that are still eligible.

        Computed on first use: a deployment at rest never needs it.
        """
        gated = barred(self._inputs, self._gates)
        clusters = self._inputs.fleet.clusters
        return gated, [cluster for name, cluster in clusters.items() if name not in gated]

    # One place

    def best(self) -> Placement | None:
        """The best place for one more replica; None when there is none."""
        _, eligible = self._standing
        for shapes in self._turns():
            placement = self._select(self._memo.scored(shapes, eligible, self._evaluate))
            if placement is not None:
                return placement
        return None

    def _turns(self) -> Iterator[tuple[ReplicaShape, ...]]:
        """The shapes to be tried on every cluster before the next are: PreferFirst one after the other."""
        shapes = self._inputs.deployment.shapes
        if self._inputs.policy.alternative_policy == "ClusterFirst":
            yield shapes
        else:
            yield from ((shape,) for shape in shapes)

    def _evaluate(
        self, cluster: InferenceCluster, shapes: tuple[ReplicaShape, ...], before: Scored | None
    ) -> Scored | None:
        """Filter, fit and score one cluster; None when it takes no replica now.

        Of what was scored `before`, only what depends on placements elsewhere is found out anew.
        """
        if self._filter(cluster) is not None:
            return None
        candidate = self._fit_first(cluster, shapes) if before is None else before.candidate
        if candidate is None:
            return None
        counts, scores = self.ledger.counts, self._scores
        if before is None:
            return Scored(tuple([score.value(candidate, counts) for score in scores]), candidate)
        key = [*before.key]
        for at in self._elsewhere:
            key[at] = scores[at].value(candidate, counts)
        return Scored(tuple(key), candidate)

    def _filter(self, cluster: InferenceCluster) -> Rejection | None:
        """The counting gates, in their order."""
        counts = self.ledger.counts
        for gate in self._counting:  # Once a cluster and replica: a generator costs as much.
            rejection = gate.reject(cluster, counts)
            if rejection:
                return rejection
        return None

    def _fit_first(self, cluster: InferenceCluster, shapes: tuple[ReplicaShape, ...]) -> Candidate | None:
        """The first of the shapes that the cluster's stack can express and that has room."""
        for shape in shapes:
            if self._stacks is not None and self._stacks.reject_shape(shape, cluster) is not None:
                continue
            outcome = self._memo.fitted(shape, cluster, self._fit)
            if isinstance(outcome, Candidate):
                within, _ = self._within_quota(outcome)
                if within is not None:
                    return within
        return None

    def _within_quota(self, candidate: Candidate) -> tuple[Candidate | None, Rejection | None]:
        """Return a candidate on pools that no exceeded quota covers; without one, which quota has no room.

        What a quota has no room for is looked for on the other pools of the cluster.
        """
        barred: frozenset[str] = frozenset()
        first: Rejection | None = None
        while self._quotas is not None:
            cluster, holding = candidate.cluster, QuotaHolding(candidate.nodes, candidate.devices)
            shortages = [*self._quotas.shortages(self._namespace, cluster.name, holding)]
            if not shortages:
                break
            first = first or shortages[0][0].rejection
            barred = barred.union(*(pools for _, pools in shortages))
            elsewhere = self._fit(candidate.shape, cluster, barred) if barred < {*cluster.by_name} else None
            if not isinstance(elsewhere, Candidate):
                return None, first
            candidate = elsewhere
        return candidate, None

    def _fit(
        self, shape: ReplicaShape, cluster: InferenceCluster, barred: Collection[str] = ()
    ) -> Candidate | Reason:
        """Search one cluster for pools that have room for every engine of one shape; none of the barred."""
        self._matcher.budget.turn(cluster.name)
        fit = self._matcher.fit(shape, cluster)
        if not fit.possible:
            return Reason.NoMatchingDevice
        free = _without(barred, cluster, self.ledger.capacities(cluster))
        # Nodes that are there come before nodes that are still to come: such a replica need not wait.
        present = self.ledger.present(cluster)
        present = present and _without(barred, cluster, present)
        now = None if present is None else self._search(cluster, fit, present)
        if now is not None and not isinstance(now, Reason):
            return Candidate(cluster, shape, now, free_left(now, free))
        outcome = self._search(cluster, fit, free)
        if isinstance(outcome, Reason):
            return outcome
        return Candidate(cluster, shape, outcome, free_left(outcome, free), grows=now is not None)

    def _search(
        self, cluster: InferenceCluster, fit: ClusterFit, free: Capacities
    ) -> tuple[EngineOption, ...] | Reason:
        """Search within the call's budget. What a hard search finds depends on what others left to it."""
        key = (fit, free, self._matcher.budget.allowance)
        easy = self._easy.get(key)
        if easy is not None:
            return easy
        budget = self._matcher.budget.open()
        solution = self._hard.ended(cluster, fit, free, budget.steps)
        if solution is not None:
            return solution
        outcome = search(fit, free, budget=budget, tightest=self._inputs.policy.strategy == "BinPack")
        if self._matcher.budget.settle(budget):
            self._hard.put(cluster, fit, free, budget.steps, outcome)
        else:
            self._easy[key] = outcome
        return outcome

    def _select(self, scored: Iterable[Scored]) -> Placement | None:
        """Take the best candidate and name the next."""
        first = nsmallest(2, scored, key=itemgetter(0))
        if not first:
            return None
        best, *others = first
        because = tuple(
            (score.description, value) for score, value in zip(self._scores, best.key, strict=True)
        )
        return Placement(best.candidate, because, others[0].candidate.cluster.name if others else "")

    # Taking it

    def place(self, replaces: OwnReplica | None = None) -> Placed | None:
        """Place one replica on the best place, or return None when it fits nowhere."""
        placement = self.best()
        if placement is None:
            return None
        candidate = placement.candidate
        identity, name = self.indices.take(candidate.cluster.name)
        # Before it is charged: a replica does not stand in the way of its own guarantee.
        guarantee = self._share(candidate, self._inputs.priority.value)
        self.take(candidate)
        return Placed(
            identity, name, candidate, placement.because, placement.runner_up, replaces, share=guarantee
        )

    def preempt(self) -> Placed | None:
        """Place one replica where others give way to it: where the least is lost, and enough can be spared.

        Least is lost where the dearest Ready replica that goes is of the lowest class, then the next dearest;
        then where the fewest go that never were Ready; then as any place is chosen. What is being deleted is
        no loss, so its nodes are counted on.
        """
        if self._claim is None:
            return None
        _, eligible = self._standing
        for shapes in self._turns():
            way = min(self._made_room(eligible, shapes), key=self._lost, default=None)
            if way is not None:
                candidate, gone = way
                identity, name = self.indices.take(candidate.cluster.name)
                share = self._entitled(candidate)
                self.take(candidate)
                return Placed(identity, name, candidate, preempts=tuple(gone), share=share)
        return None

    @cached_property
    def _claim(self) -> Preemptor | None:
        """The right of a new replica to make others give way; None where it has none."""
        priority, deployment = self._inputs.priority, self._inputs.deployment
        guarantees = self._quotas.team(self._namespace).guarantees if self._quotas else ()
        if not (priority.preempts or guarantees):
            return None
        team = frozenset(quota.name for quota in guarantees)
        value = priority.value if priority.preempts else LOWEST
        return Preemptor((deployment.namespace, deployment.name), value, team, reclaims=not priority.preempts)

    def _share(self, candidate: Candidate, above: int | None) -> GuaranteeShare | None:
        """How a new replica would stand to what is guaranteed to its namespace."""
        if self._quotas is None:
            return None
        holding = QuotaHolding(candidate.nodes, candidate.devices)
        return self._quotas.share(self._namespace, candidate.cluster.name, holding, above)

    def _entitled(self, candidate: Candidate) -> GuaranteeShare | None:
        """How one would stand that makes others give way: by its class, or where all of its team counts."""
        reclaims = self._claim is not None and self._claim.reclaims
        share = self._share(candidate, None if reclaims else self._inputs.priority.value)
        return share._replace(reclaims=reclaims) if share is not None else None

    def _lost(self, way: tuple[Candidate, list[ModelReplica]]) -> tuple[object, ...]:
        """The loss where some give way: the values of those that were Ready, dearest first; how many go."""
        candidate, gone = way
        ready = [replica.priority or 0 for replica in gone if not may_yield(replica)]
        scores = (score.value(candidate, self.ledger.counts) for score in self._scores)
        return (sorted(ready, reverse=True), len(gone), *scores)

    def _made_room(
        self, eligible: Iterable[InferenceCluster], shapes: tuple[ReplicaShape, ...]
    ) -> Iterator[tuple[Candidate, list[ModelReplica]]]:
        """Yield a place on every cluster that arbitrates and where enough give way, and who does."""
        for cluster in eligible:
            if not cluster.arbitrates or self._filter(cluster) is not None:
                continue
            for shape in shapes:
                if self._stacks is not None and self._stacks.reject_shape(shape, cluster) is not None:
                    continue
                # A quota depends on what is placed elsewhere.
                way = (
                    self._memo.made(shape, cluster, self._make_room)
                    if self._quotas is None
                    else self._make_room(shape, cluster)
                )
                if way is not None:
                    yield way
                    break

    def _make_room(
        self, shape: ReplicaShape, cluster: InferenceCluster
    ) -> tuple[Candidate, list[ModelReplica]] | None:
        """Choose who gives way on a cluster; None where it is not enough, or a quota has no room."""
        ledger, claim = self.ledger, self._claim
        assert claim is not None  # noqa: S101 - see preempt
        self._matcher.budget.turn(cluster.name)
        fit = self._matcher.fit(shape, cluster)
        options = (option for engine in fit.engines for option in engine.options)
        pools = frozenset(cluster.pools[taken.pool].name for option in options for taken in option.demands)
        barred: frozenset[str] = frozenset()
        while fit.possible:
            rooms = ledger.rooms(cluster)
            for leaving in ledger.living(cluster.name, deleting=True):
                rooms.occupy(cluster.name, leaving, -1)

            def placed(rooms: Rooms = rooms, barred: frozenset[str] = barred) -> Candidate | None:
                free = tuple(rooms.values())
                outcome = self._search(cluster, fit, _without(barred, cluster, free))
                if isinstance(outcome, Reason):
                    return None
                return Candidate(cluster, shape, outcome, free_left(outcome, free))

            able = self._spared(cluster, pools - barred, claim)
            way = fewest(able, ledger.demands, partial(rooms.charge, cluster.name), placed)
            if way is None:
                return None
            candidate = way[0]
            holding = QuotaHolding(candidate.nodes, candidate.devices)
            quotas = self._quotas
            short = [*quotas.shortages(self._namespace, cluster.name, holding)] if quotas else []
            share = self._entitled(candidate)
            entitled = not share.borrowed if share is not None else not claim.reclaims
            if entitled and not short:
                return way
            closed = () if entitled else candidate.nodes
            barred = barred.union(closed, *(covered for _, covered in short))
        return None

    def _spared(
        self, cluster: InferenceCluster, pools: frozenset[str], claim: Preemptor
    ) -> list[ModelReplica]:
        """Those on some pools of a cluster that may give way; the same for the whole pass."""
        if (cluster.name, pools) not in self._able:
            near = (other for other in self.ledger.living(cluster.name) if pools.intersection(other.nodes))
            self._able[cluster.name, pools] = Spared(by_cost(map(StandingReplica.of, near)), claim).replicas
        return self._able[cluster.name, pools]

    def take(self, candidate: Candidate) -> None:
        """Charge a replica to its place, and count it."""
        self._limit(candidate, 1)
        self.ledger.charge(candidate.cluster.name, candidate.demands)
        self.ledger.count(candidate.cluster.name)

    def give_back(self, candidate: Candidate) -> None:
        """Take a placement back."""
        self._limit(candidate, -1)
        self.ledger.release(candidate.cluster.name, candidate.demands)
        self.ledger.count(candidate.cluster.name, -1)

    def _limit(self, candidate: Candidate, sign: int) -> None:
        """Count a placement in the quotas of the deployment's namespace."""
        if self._quotas is not None:
            holding = QuotaHolding(candidate.nodes, candidate.devices)
            value = self._inputs.priority.value
            self._quotas.add(self._namespace, candidate.cluster.name, holding, sign, living=value)

    # Explaining

    def rejections(self) -> dict[str, Rejection]:
        """Why each cluster takes no other replica now; a cluster that would take one is not in it."""
        return self._memo.rejections(*self._standing, self._reject)

    def rejection(self, cluster: InferenceCluster) -> Rejection | None:
        """Why one cluster takes no other replica now; to explain all of a large fleet takes its time."""
        return self._standing[0].get(cluster.name) or self._reject(cluster)

    def _reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Why a cluster takes no other replica: a counting gate, or the shape that comes nearest."""
        gated = self._filter(cluster)
        if gated is not None:
            return gated
        below = [self._below(shape, cluster) for shape in self._inputs.deployment.shapes]
        if any(rejection is None for rejection in below):
            return None
        return max((rejection for rejection in below if rejection), key=lambda refusal: refusal.reason.depth)

    def _below(self, shape: ReplicaShape, cluster: InferenceCluster) -> Rejection | None:
        """Why a cluster that passed every gate takes no replica of one shape: its stack, a quota, or pools.

        None where it would take one.
        """
        rejection = self._stacks.reject_shape(shape, cluster) if self._stacks is not None else None
        if rejection is None:
            outcome = self._memo.fitted(shape, cluster, self._fit)
            if isinstance(outcome, Candidate):
                return self._within_quota(outcome)[1]
            fit = self._matcher.fit(shape, cluster)
            with self._room(cluster) as room:
                why = partial(self._matcher.rejections, shape, fit, cluster.pools)
                rejection = below_gates(fit, room, outcome, why)
        return rejection.at(alternative=shape.name) if shape.name else rejection

    def on_pools(self, cluster: InferenceCluster) -> Iterator[tuple[ReplicaShape, OnPools]]:
        """Every engine of every shape on every pool of a cluster, whatever gate the cluster fails."""
        for shape in self._inputs.deployment.shapes:
            fit = self._matcher.fit(shape, cluster)
            why = partial(self._matcher.rejections, shape, fit, cluster.pools)
            with self._room(cluster) as room:
                for on_pool in on_pools(fit, room, why):
                    yield shape, on_pool.of(shape.name)

    @contextmanager
    def _room(self, cluster: InferenceCluster) -> Iterator[Explained]:
        """Open what explains a cluster, with steps of the call's budget."""
        self._matcher.budget.turn(cluster.name)
        budget = self._matcher.budget.open()
        yield Explained(cluster, self.ledger, self.ledger.capacities(cluster), budget)
        self._matcher.budget.settle(budget)

    def headroom(self, cluster: InferenceCluster, limit: int) -> int:
        """How many more replicas the cluster would take, counted up to a limit: placed and taken back."""
        taken: list[Candidate] = []
        while len(taken) < limit and self._filter(cluster) is None:
            candidate = self._fit_first(cluster, self._inputs.deployment.shapes)
            if candidate is None:
                break
            taken.append(candidate)
            self.take(candidate)
        for candidate in taken:
            self.give_back(candidate)
        return len(taken)
