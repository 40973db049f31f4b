"""Places: which clusters can take a new replica, and which of them is best.

Filter, score, select, in that order. What was found about a cluster holds until its ledger changes.
"""

from __future__ import annotations

from heapq import nsmallest
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from function.api.reasons import Reason, Rejection
from function.scheduler.candidate import Candidate
from function.scheduler.diagnosis import below_gates, on_pools
from function.scheduler.filters import counting, standing
from function.scheduler.scores import scores
from function.scheduler.search import free_left, search

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import InferenceCluster
    from function.api.deployment import Shape
    from function.scheduler.capacity.ledger import Ledger
    from function.scheduler.diagnosis import OnPools
    from function.scheduler.matching.engine_options import EngineOption
    from function.scheduler.matching.matcher import ClusterFit, Fits
    from function.scheduler.scheduling_input import SchedulingInput
    from function.scheduler.search import Free
    from function.scheduler.tally import Tally

Because = tuple[tuple[str, object], ...]
Scored = tuple[tuple[Any, ...], Candidate]


class Places:
    """The clusters of one pass as places for a new replica."""

    def __init__(self, inputs: SchedulingInput, fits: Fits, ledger: Ledger, tally: Tally) -> None:
        """Apply the standing filters once; everything below them is found out when it is needed."""
        self._inputs, self._fits, self._ledger, self.tally = inputs, fits, ledger, tally
        self._counting = counting(inputs)
        self._scores = scores(inputs)
        self._gated: dict[str, Rejection] = {
            name: Rejection(Reason.MalformedCluster, detail=broken.fault)
            for name, broken in inputs.fleet.unreadable.items()
        }
        self._eligible = self._filtered()
        self._searched: dict[tuple[int, str], Candidate | Reason] = {}
        self._keyed: dict[tuple[int, ...], dict[str, Scored | None]] = {}
        self._local = not self._counting and not any(each.elsewhere for each in self._scores)
        self._rejections: dict[str, Rejection] | None = None
        self._results: dict[tuple[object, Free], tuple[EngineOption, ...] | Reason] = {}
        self._hard: dict[tuple[object, Free], tuple[int, tuple[EngineOption, ...] | Reason]] = {}

    def _filtered(self) -> list[InferenceCluster]:
        filters = standing(self._inputs)
        eligible = []
        for name, cluster in self._inputs.fleet.clusters.items():
            for each in filters:
                rejected = each.reject(cluster)
                if rejected is not None:
                    self._gated[name] = rejected
                    break
            else:
                eligible.append(cluster)
        return eligible

    def touch(self, cluster: str) -> None:
        """Forget what was found about a cluster: its ledger or its count changed."""
        self._rejections = None
        for keyed in self._keyed.values():
            keyed.pop(cluster, None)
        for shape in range(len(self._inputs.deployment.shapes)):
            self._searched.pop((shape, cluster), None)

    def count(self, tally: Tally) -> Tally:
        """Count replicas by another tally from now on; returns the one before."""
        before, self.tally = self.tally, tally
        for cluster in before.clusters() | tally.clusters():
            self.touch(cluster)
        return before

    def best(self) -> tuple[Candidate, Because, str] | None:
        """The best place for one more replica, why, and the runner-up; None when there is no place."""
        every = tuple(range(len(self._inputs.deployment.shapes)))
        if self._inputs.policy.alternative_policy == "ClusterFirst":
            return self._select(every)
        return next((chosen for shape in every if (chosen := self._select((shape,)))), None)

    def _first(self, cluster: InferenceCluster, shapes: tuple[int, ...]) -> Candidate | None:
        for shape in shapes:
            found = self._search(shape, cluster)
            if isinstance(found, Candidate):
                return found
        return None

    def _select(self, shapes: tuple[int, ...]) -> tuple[Candidate, Because, str] | None:
        """Take the best candidate and name the next; an earlier score outweighs every later one."""
        keyed = self._keyed.setdefault(shapes, {}) if self._local else {}
        if len(keyed) < len(self._eligible):
            for cluster in self._eligible:
                if cluster.name not in keyed:
                    keyed[cluster.name] = self._scored(cluster, shapes)
        found = nsmallest(2, filter(None, keyed.values()), key=itemgetter(0))
        if not found:
            return None
        key, chosen = found[0]
        because = tuple((each.description, value) for each, value in zip(self._scores, key, strict=True))
        return chosen, because, found[1][1].cluster.name if len(found) > 1 else ""

    def _scored(self, cluster: InferenceCluster, shapes: tuple[int, ...]) -> Scored | None:
        """A cluster as a candidate with its scores; None when it takes no replica now."""
        if any(each.reject(cluster, self.tally) for each in self._counting):
            return None
        found = self._first(cluster, shapes)
        if found is None:
            return None
        return tuple(each.value(found, self.tally) for each in self._scores), found

    def free(self, cluster: InferenceCluster) -> Free:
        """What a cluster's pools have left, in their order."""
        return tuple(self._ledger.room(cluster.name, pool.name) for pool in cluster.pools)

    def _search(self, shape: int, cluster: InferenceCluster) -> Candidate | Reason:
        key = (shape, cluster.name)
        if key not in self._searched:
            self._searched[key] = self._look(self._inputs.deployment.shapes[shape], cluster)
        return self._searched[key]

    def _look(self, shape: Shape, cluster: InferenceCluster) -> Candidate | Reason:
        """Fit and search, the search once per distinct (fit, free nodes)."""
        self._fits.budget.turn(cluster.name)
        fit = self._fits.cluster(shape.engines, cluster)
        if not fit.possible:
            return Reason.NoMatchingDevice
        free = self.free(cluster)
        found = self._results.get((id(fit), free)) or self._chosen(shape, cluster, fit, free)
        if isinstance(found, Reason):
            return found
        return Candidate(cluster, shape, found, free_left(found, free))

    def _chosen(
        self, shape: Shape, cluster: InferenceCluster, fit: ClusterFit, free: Free
    ) -> tuple[EngineOption, ...] | Reason:
        """Search within the call's budget. A hard search is run once for all clusters with equal pools."""
        equal = (shape.name, *(pool.canonical for pool in cluster.pools)) if self._hard else ()
        budget = self._fits.budget.open()
        steps, known = self._hard.get((equal, free), (0, None))
        if known is not None and (known is not Reason.SearchBudgetExceeded or steps >= budget.steps):
            return known
        tightest = self._inputs.policy.strategy == "BinPack"
        found = search(fit, free, budget=budget, tightest=tightest)
        if not self._fits.budget.settle(budget):
            self._results[id(fit), free] = found
        else:
            self._hard[(shape.name, *(pool.canonical for pool in cluster.pools)), free] = budget.steps, found
        return found

    def rejections(self) -> dict[str, Rejection]:
        """Why each cluster takes no other replica now; a cluster that would take one is not in it."""
        if self._rejections is None:
            told = {each.name: self._rejection(each) for each in self._eligible}
            below = {name: rejected for name, rejected in told.items() if rejected is not None}
            self._rejections = dict(sorted({**self._gated, **below}.items()))
        return self._rejections

    def on_pools(self, cluster: InferenceCluster) -> Iterator[tuple[Shape, OnPools]]:
        """Every engine of every shape on every pool of a cluster, whatever gate the cluster fails."""
        for shape in self._inputs.deployment.shapes:
            fit = self._fits.cluster(shape.engines, cluster)
            for each in on_pools(fit, cluster, self._ledger, self.free(cluster)):
                yield shape, each.of(shape.name)

    def headroom(self, cluster: InferenceCluster, limit: int) -> int:
        """How many more replicas the cluster would take, counted up to a limit: placed and taken back."""
        taken, known = list[Candidate](), self._rejections
        while len(taken) < limit and not any(each.reject(cluster, self.tally) for each in self._counting):
            found = self._first(cluster, tuple(range(len(self._inputs.deployment.shapes))))
            if found is None:
                break
            taken.append(found)
            self._ledger.charge(cluster.name, found.nodes, found.gangs)
            self.tally.add(cluster.name)
            self.touch(cluster.name)
        for each in taken:
            self._ledger.release(cluster.name, each.nodes, each.gangs)
            self.tally.remove(cluster.name)
        self.touch(cluster.name)
        self._rejections = known
        return len(taken)

    def _rejection(self, cluster: InferenceCluster) -> Rejection | None:
        for each in self._counting:
            rejected = each.reject(cluster, self.tally)
            if rejected is not None:
                return rejected
        below = [
            self._below(number, shape, cluster) for number, shape in enumerate(self._inputs.deployment.shapes)
        ]
        if any(each is None for each in below):
            return None
        return max((each for each in below if each), key=lambda each: each.reason.depth)

    def _below(self, number: int, shape: Shape, cluster: InferenceCluster) -> Rejection | None:
        found = self._search(number, cluster)
        if isinstance(found, Candidate):
            return None
        fit = self._fits.cluster(shape.engines, cluster)
        rejected = below_gates(fit, cluster, self._ledger, self.free(cluster), found)
        return rejected.at(alternative=shape.name) if shape.name else rejected
