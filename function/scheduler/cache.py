"""Memory beside the algorithm.

Rules. Everything that the scheduler remembers must live here, in `pass_values`, or in `matching.evaluations`
(what selectors said in one pass). Parsed objects are in the parse cache of `boundary`, composed ones in
`compose.cache`, whole answers in `deployment.answers`.
1. Nothing here changes an answer: without it the same is computed again.
2. A key is a value, or a version that the owner of the state raises (the journal of the ledger); never the
   identity of an object.
3. What drew on the budget of a call ends with the call: it depends on what other searches had left.
4. Each cache states its law, why nobody can see it, and what it buys.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from function.api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from function.api import InferenceCluster, ModelDeployment, Pool, StampedRequest
    from function.api.engine import NodeSelector, ReplicaShape
    from function.api.pool import DeviceKey
    from function.api.reasons import Rejection
    from function.cel import Subject
    from function.scheduler.candidate import Candidate
    from function.scheduler.capacity.ledger import Ledger
    from function.scheduler.capacity.pool_capacity import Capacities
    from function.scheduler.matching.engine_options import ClusterFit, EngineOption, Verdict

SearchOutcome: TypeAlias = "tuple[EngineOption, ...] | Reason"
"""What a search ended with: an option for every engine, or what was missing."""


class Scored(NamedTuple):
    """A candidate with the values of its scores, weightiest first. No two of them are equal."""

    key: tuple[object, ...]
    candidate: Candidate


class PlacementCache:
    """What was found out about each cluster of one pass, until the ledger's journal names the cluster.

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
        """Whether a cluster has room for a shape."""
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


MAX_CLASSES, MAX_CLUSTERS, MAX_LISTS = 256, 512, 1_024
"""Classes of pools, combinations of them on a cluster, and device lists remembered for a deployment."""


class FitCache:
    """What was found out about a deployment's members and engines on classes of pools.

    Law: it depends on nothing else, so it holds as long as the deployment does; one that is reused from an
    earlier call brings it along. Safe for many threads: at worst something is found out twice.
    Buys: a call about a deployment and pools that are known matches nothing.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.numbers = count()
        self.classes: dict[tuple[Hashable, Subject | None], int] = {}
        """Equivalence classes of pools, numbered."""
        self.lists: dict[tuple[DeviceKey, Subject | None], int] = {}
        """The class of each device list, with the pool itself where selectors read it."""
        self.matches: dict[tuple[NodeSelector | None, int], Verdict] = {}
        self.stamped: dict[tuple[NodeSelector | None, tuple[StampedRequest, ...], int], Verdict] = {}
        self.rows: dict[tuple[str, int, int], tuple[Verdict, ...]] = {}
        """The members of an engine: the name of its shape, its position there, the class."""
        self.singles: dict[tuple[str, int, int, int], tuple[EngineOption | Rejection, bool]] = {}
        """The same engine on the pool at one position of a cluster; whether it may strand a member there."""
        self.clusters: dict[tuple[Hashable, ...], ClusterFit] = {}

    def copy(self) -> FitCache:
        """A copy for one pass, for what must not be remembered longer."""
        copied = FitCache()
        copied.numbers = self.numbers
        for empty, held in zip(copied._maps, self._maps, strict=True):
            empty.update(held)
        return copied

    @property
    def _maps(self) -> tuple[dict[Any, Any], ...]:
        return (
            self.classes,
            self.lists,
            self.matches,
            self.stamped,
            self.rows,
            self.singles,
            self.clusters,
        )

    @property
    def entries(self) -> int:
        """How many things are remembered."""
        return sum(map(len, self._maps))

    @property
    def full(self) -> bool:
        """Whether there is no room for another combination of classes on a cluster."""
        return len(self.clusters) >= MAX_CLUSTERS

    @property
    def too_large(self) -> bool:
        """Whether it takes more room than a deployment has."""
        return (
            len(self.classes) > MAX_CLASSES or len(self.lists) > MAX_LISTS or len(self.stamped) > MAX_CLUSTERS
        )


class HardSearch(NamedTuple):
    """One search of the matcher, and the content of the pools it was about."""

    what: str
    of: tuple[Hashable, ...]
    """What it searched for: a member's requests, or an engine on some pools."""
    pools: tuple[str, ...]


class MatchCache:
    """What one pass found out about matching: the fit cache of its deployment, and what ends with the pass.

    Law: a hard search draws on what others left of the call's budget, so what it found, and what rests on it,
    holds for this pass only; its key is the content of the pools, so that how often it is run does not
    depend on which of them share their device lists. Fits beyond the bound of the fit cache end here too.
    Buys: a search that costs many steps is run once, not for each of the clusters that publish the same.
    """

    def __init__(self, lasting: FitCache) -> None:
        """Start with what the deployment's earlier passes found out."""
        self.fits = lasting
        self._beyond: dict[tuple[Hashable, ...], ClusterFit] = {}
        self._hard: dict[HardSearch, object] = {}

    def cluster(self, key: tuple[Hashable, ...]) -> ClusterFit | None:
        """Return what fits on a cluster."""
        return self.fits.clusters.get(key) or self._beyond.get(key)

    def note_cluster(self, key: tuple[Hashable, ...], fit: ClusterFit) -> None:
        """Note what fits on a cluster."""
        (self._beyond if self.fits.full else self.fits.clusters)[key] = fit

    def hard(self, what: str, of: tuple[Hashable, ...], pools: Sequence[Pool]) -> object | None:
        """Return what a hard search found."""
        if not self._hard:
            return None
        return self._hard.get(HardSearch(what, of, tuple(pool.canonical for pool in pools)))

    def note_hard(self, what: str, of: tuple[Hashable, ...], pools: Sequence[Pool], outcome: object) -> None:
        """Note what a hard search found; from now on nothing outlives the pass."""
        if not self._hard:
            self.fits = self.fits.copy()
        self._hard[HardSearch(what, of, tuple(pool.canonical for pool in pools))] = outcome


class FitCaches:
    """The fit caches of one deployment, by the steps every search has of its own and the release that reads.

    What is found within those steps depends on no other search.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.caches: dict[tuple[int, str], FitCache] = {}


def fit_cache(deployment: ModelDeployment, steps: int, release: str) -> FitCache:
    """Return the fit cache of a deployment, unless it has become too large."""
    caches = deployment.cache_of(FitCaches).caches
    cache = caches.get((steps, release))
    if cache is None or cache.too_large:
        if cache is not None:
            deployment.forget()  # What else is remembered may hold devices that nothing charges any more.
            caches = deployment.cache_of(FitCaches).caches
        cache = caches[steps, release] = FitCache()
    return cache


class SearchCache:
    """What the searches of one pass ended with.

    Law: a search depends on what engines fit on, on what is free there, and on nothing else but its budget.
    Buys: a thousand equal clusters are searched once.

    A hard one drew on what others had left of the call's budget. It is shared by clusters with equal pools,
    whose content is the key: how often it is run must not depend on which of them share their device lists.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._easy: dict[tuple[ClusterFit, Capacities], SearchOutcome] = {}
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
        had, outcome = self._hard.get((_content(cluster, fit), free), (0, None))
        return None if outcome is Reason.SearchBudgetExceeded and had < steps else outcome

    def note_hard(
        self, cluster: InferenceCluster, fit: ClusterFit, free: Capacities, steps: int, outcome: SearchOutcome
    ) -> None:
        """Note what a hard search ended with, and the steps it had."""
        self._hard[_content(cluster, fit), free] = steps, outcome


def _content(cluster: InferenceCluster, fit: ClusterFit) -> tuple[str, ...]:
    return (fit.shape, *(pool.canonical for pool in cluster.pools))
