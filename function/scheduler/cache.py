"""Memory beside the algorithm.

Rules. Everything that the scheduler remembers must live here (what a pass knows of its clusters), in
`matching.cache` (what fits; `headroom` lets the deployments of one run share it), in `selectors`
(what selectors said) or `pass_values`; one function of small values holds its own results
(`device_accounting.load`). Parsed objects are in the parse cache of `boundary`, composed ones in
`compose.replicas`, whole answers in `deployment.answers`.
1. Nothing here changes an answer: without it the same is computed again.
2. A key is a value, or a version that the owner of the state raises (the journal of the ledger); never the
   identity of an object.
3. What drew on the budget of a call ends with the call: it depends on what other searches had left.
4. Each cache states its law, why nobody can see it, and what it buys.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from function.api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from function.api import InferenceCluster
    from function.api.engine import ReplicaShape
    from function.api.reasons import Rejection
    from function.scheduler.ledger import Capacities, Ledger
    from function.scheduler.matching.engine_options import Candidate, ClusterFit, EngineOption

SearchOutcome: TypeAlias = "tuple[EngineOption, ...] | Reason"
"""What a search ended with: an option for every engine, or what was missing."""


class Scored(NamedTuple):
    """A candidate with the values of its scores, weightiest first. No two of them are equal."""

    key: tuple[object, ...]
    candidate: Candidate


class PlacementCache:
    """Search results for each cluster of one pass, until the ledger's journal names the cluster.

    Law: what is asked of a cluster depends on its capacity and its counts, and every change of them is in the
    journal; where placements elsewhere matter too (`local` is False), on the counts of all.
    Buys: 2,000 clusters are evaluated once, and not again for each of 200 replicas.
    """

    def __init__(self, ledger: Ledger, *, local: bool) -> None:
        """Start with nothing. `local`: whether no placement on another cluster changes what is asked here."""
        self._ledger, self._local = ledger, local
        self._revision = ledger.revision
        self._fitted: dict[str, dict[str, Candidate | Reason]] = defaultdict(dict)
        self._scored: dict[tuple[str, ...], dict[str, Scored | None]] = defaultdict(dict)
        self._rejected: dict[str, Rejection | None] = {}
        self._counts = ledger.counts.key
        self._rejections: dict[str, Rejection] | None = None

    def _catch_up(self) -> None:
        """Read the journal on, and forget what changed."""
        if self._revision == self._ledger.revision:
            return
        for cluster in self._ledger.changed_since(self._revision):
            self._fitted.pop(cluster, None)
            self._rejected.pop(cluster, None)
            for scored in self._scored.values():
                scored.pop(cluster, None)
        self._revision, self._rejections = self._ledger.revision, None
        if not self._local:
            self._scored.clear()
            if self._counts != self._ledger.counts.key:
                self._counts = self._ledger.counts.key
                self._rejected.clear()

    def fitted(
        self,
        shape: ReplicaShape,
        cluster: InferenceCluster,
        find: Callable[[ReplicaShape, InferenceCluster], Candidate | Reason],
    ) -> Candidate | Reason:
        """Tell whether a cluster has room for a shape."""
        self._catch_up()
        fitted = self._fitted[cluster.name]
        outcome = fitted.get(shape.name)
        if outcome is None:
            outcome = fitted[shape.name] = find(shape, cluster)
        return outcome

    def scored(
        self,
        shapes: tuple[ReplicaShape, ...],
        clusters: list[InferenceCluster],
        find: Callable[[InferenceCluster, tuple[ReplicaShape, ...]], Scored | None],
    ) -> Iterable[Scored]:
        """Every cluster that takes one more replica of the shapes, with its scores."""
        self._catch_up()
        scored = self._scored[tuple([shape.name for shape in shapes])]
        if len(scored) < len(clusters):
            for cluster in clusters:
                if cluster.name not in scored:
                    scored[cluster.name] = find(cluster, shapes)
        return filter(None, scored.values())

    def rejections(
        self,
        gated: Mapping[str, Rejection],
        clusters: list[InferenceCluster],
        find: Callable[[InferenceCluster], Rejection | None],
    ) -> dict[str, Rejection]:
        """Every cluster that takes no replica more, and why, by name."""
        self._catch_up()
        if self._rejections is None:
            for cluster in clusters:
                if cluster.name not in self._rejected:
                    self._rejected[cluster.name] = find(cluster)
            below = {name: rejection for name, rejection in self._rejected.items() if rejection is not None}
            self._rejections = dict(sorted({**gated, **below}.items()))
        return self._rejections


class EasySearches:
    """Results of easy searches, for longer than a pass: see `headroom`."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.outcomes: dict[tuple[ClusterFit, Capacities], SearchOutcome] = {}


class SearchCache:
    """Results of the searches of one pass.

    Law: a search depends on what engines fit on, on what is free there, and on nothing else but its budget.
    Buys: a thousand equal clusters are searched once.

    A hard one drew on what others had left of the call's budget. It is shared by clusters with equal pools,
    whose content is the key: how often it is run must not depend on which of them share their device lists.
    """

    def __init__(self, easy: EasySearches | None = None) -> None:
        """Start with nothing, or with what is shared."""
        self._easy = (easy or EasySearches()).outcomes
        self._hard: dict[tuple[tuple[str, ...], Capacities], tuple[int, SearchOutcome]] = {}

    def easy(self, fit: ClusterFit, free: Capacities) -> SearchOutcome | None:
        """Return what an easy search ended with."""
        return self._easy.get((fit, free))

    def note_easy(self, fit: ClusterFit, free: Capacities, outcome: SearchOutcome) -> None:
        """Note what an easy search ended with."""
        self._easy[fit, free] = outcome

    def hard(
        self, cluster: InferenceCluster, fit: ClusterFit, free: Capacities, steps: int
    ) -> SearchOutcome | None:
        """Return what a hard search ended with, unless it ran out of fewer steps than there are now."""
        if not self._hard:
            return None
        earlier_steps, outcome = self._hard.get((_content(cluster, fit), free), (0, None))
        return None if outcome is Reason.SearchBudgetExceeded and earlier_steps < steps else outcome

    def note_hard(
        self, cluster: InferenceCluster, fit: ClusterFit, free: Capacities, steps: int, outcome: SearchOutcome
    ) -> None:
        """Note what a hard search ended with, and the steps it had."""
        self._hard[_content(cluster, fit), free] = steps, outcome


def _content(cluster: InferenceCluster, fit: ClusterFit) -> tuple[str, ...]:
    return (fit.shape, *(pool.canonical for pool in cluster.pools))
