"""Memory beside the algorithm: all that the scheduler remembers, except what selectors said (`selectors`).

What a server remembers from call to call about a deployment and its fleet, and what each buys:
- parsed objects (`boundary.memory`): an object that did not change is not read again;
- device lists (`api.devices`): pools that publish the same are matched once;
- compiled selectors (`cel.selector`): a text is compiled once, however many deployments state it;
- fits (`FitMemo` here): a call about a deployment and pools that are known matches nothing;
- whole answers (`deployment.answers`): where nothing changed that a decision reads, nothing is decided;
- composed replicas (`compose.replicas`): a replica that did not change is not written again;
- bundles (`worst_packing`): equal pods in equal pools are packed once.
The other memos here end with the pass, or with the run of the command line that shares them.

Rules
1. Nothing here changes an answer: without it the same is computed again.
2. A key is a value, or a version that the owner of the state raises (the journal of the ledger); never the
   identity of an object.
3. What drew on the budget of a call ends with the call: it depends on what other searches had left.
4. Each memo states its law, which is why no answer shows it, and what it buys.

What depends on the deployment and on device lists lasts as long as the parsed deployment, which owns it; the
memory of `boundary` is charged for it (`parts_of`). `Shared` lets the deployments of one run share it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple, TypeAlias, TypeVar

from function.api import InferenceCluster, ModelDeployment, ModelReplica, Pool, StampedRequest
from function.api.cluster import DeviceKey
from function.api.deployment import NodeSelector, ReplicaShape
from function.api.reasons import Reason, Rejection
from function.boundary import Document, Extent, Part
from function.cel import Subject
from function.scheduler.engine_options import Candidate, ClusterFit, EngineOption, Row, Unfit, Verdict
from function.scheduler.ledger import Capacities, Ledger
from function.scheduler.quota import QuotaUsage
from function.scheduler.scheduling_input import Listing, SchedulingInput
from function.scheduler.selectors import programs_of

SearchOutcome: TypeAlias = "tuple[EngineOption, ...] | Reason"
"""What a search ended with: an option for every engine, or what was missing."""


MadeRoom: TypeAlias = "tuple[Candidate, list[ModelReplica]]"
"""A place where others give way, and those who do."""


class Scored(NamedTuple):
    """A candidate with the values of its scores, weightiest first. No two of them are equal."""

    key: tuple[object, ...]
    candidate: Candidate


class PlacementMemo:
    """Search results for each cluster of one pass, until the ledger's journal names the cluster.

    Law: what is asked of a cluster depends on its capacity and its counts, and every change of them is in the
    journal; where placements elsewhere matter too (`local` is False), on the counts of all. What quotas let
    in changes with their version, and what they say of it with every count.
    Buys: 2,000 clusters are evaluated once, and not again for each of 200 replicas. Where placements
    elsewhere matter, what does not depend on them is still found out once.
    """

    def __init__(self, ledger: Ledger, quotas: QuotaUsage | None, *, local: bool) -> None:
        """Start with nothing. `quotas`: of the namespace, if there are any.

        `local`: whether, but for quotas, no placement on another cluster changes what is asked here.
        """
        self._ledger, self._local, self._quotas = ledger, local, quotas
        self._version = quotas.version if quotas is not None else 0
        self._read = len(ledger.journal)
        """How much of the ledger's journal has been read."""
        self._fitted: dict[str, dict[str, Candidate | Reason]] = defaultdict(dict)
        self._scored: dict[tuple[str, ...], dict[str, Scored | None]] = defaultdict(dict)
        self._before: dict[tuple[str, ...], dict[str, Scored | None]] = defaultdict(dict)
        """Those that were scored before something was placed elsewhere: the candidates hold."""
        self._made: dict[str, dict[str, MadeRoom | None]] = defaultdict(dict)
        self._rejected: dict[str, Rejection | None] = {}
        self._counts = ledger.counts.key
        self._rejections: dict[str, Rejection] | None = None

    def _catch_up(self) -> None:
        """Read the journal on, and forget what changed."""
        journal = self._ledger.journal
        if self._read == len(journal):
            return
        for cluster in journal[self._read :]:
            self._fitted.pop(cluster, None)
            self._made.pop(cluster, None)
            self._rejected.pop(cluster, None)
            for scored in (*self._scored.values(), *self._before.values()):
                scored.pop(cluster, None)
        self._read, self._rejections = len(journal), None
        version = self._quotas.version if self._quotas is not None else 0
        if version != self._version:
            self._version = version
            self._scored.clear()
            self._before.clear()
        for shapes, scored in () if self._local else self._scored.items():
            self._before[shapes].update(scored)
            scored.clear()
        global_ = not self._local or self._quotas is not None
        if global_ and self._counts != self._ledger.counts.key:
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

    def made(
        self,
        shape: ReplicaShape,
        cluster: InferenceCluster,
        find: Callable[[ReplicaShape, InferenceCluster], MadeRoom | None],
    ) -> MadeRoom | None:
        """Tell where a cluster has room for a shape once some give way, and who does."""
        self._catch_up()
        made = self._made[cluster.name]
        if shape.name not in made:
            made[shape.name] = find(shape, cluster)
        return made[shape.name]

    def scored(
        self,
        shapes: tuple[ReplicaShape, ...],
        clusters: list[InferenceCluster],
        find: Callable[[InferenceCluster, tuple[ReplicaShape, ...], Scored | None], Scored | None],
    ) -> Iterable[Scored]:
        """Every cluster that takes one more replica of the shapes, with its scores.

        `find` is handed what was scored before something was placed elsewhere, if nothing else has changed.
        """
        self._catch_up()
        names = tuple([shape.name for shape in shapes])
        scored, before = self._scored[names], self._before[names]
        if len(scored) < len(clusters):
            for cluster in clusters:
                if cluster.name not in scored:
                    scored[cluster.name] = find(cluster, shapes, before.get(cluster.name))
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


class EasySearches(dict[tuple[ClusterFit, Capacities, int], SearchOutcome]):
    """The outcomes of easy searches, by fit, free capacities and the steps that each has of its own.

    Law: a search depends on what engines fit on, on what is free there, and on nothing else but its budget.
    Buys: a thousand equal clusters are searched once. It lasts longer than a pass where `Shared` holds it.
    """


class HardSearches(dict[tuple[tuple[str, ...], Capacities], tuple[int, SearchOutcome]]):
    """The outcomes of the hard searches of one pass.

    Law: as of easy ones, but that a hard one drew on what others had left of the call's budget. It is shared
    by clusters with equal pools, whose content is the key: how often it is run must not depend on which of
    them share their device lists.
    """

    def ended(
        self, cluster: InferenceCluster, fit: ClusterFit, free: Capacities, steps: int
    ) -> SearchOutcome | None:
        """Return what a search ended with, unless it ran out of fewer steps than there are now."""
        if not self:
            return None
        earlier_steps, outcome = self.get((_content(cluster, fit), free), (0, None))
        return None if outcome is Reason.SearchBudgetExceeded and earlier_steps < steps else outcome

    def put(
        self, cluster: InferenceCluster, fit: ClusterFit, free: Capacities, steps: int, outcome: SearchOutcome
    ) -> None:
        """Note what a search ended with, and the steps it had."""
        self[_content(cluster, fit), free] = steps, outcome


def _content(cluster: InferenceCluster, fit: ClusterFit) -> tuple[str, ...]:
    """The key of a cluster by what its pools are, whichever of them share a device list."""
    return (fit.shape, *(pool.canonical for pool in cluster.pools))


# Which pools the members and engines of a deployment fit.

ENTRY_SIZE, OPTION_SIZE = 800, 1_400
"""Bytes that one entry of a fit memo takes, and one option that no two fits share, about."""
MOST = 8_192
"""Entries of a fit memo at which the next pass begins a new one."""

PoolContent: TypeAlias = tuple[DeviceKey, Subject | None]
"""All that a match reads of a pool: its device list, and the pool itself where selectors read it."""


class FitMemo:
    """Matches of a deployment's members and engines on the contents of pools.

    Law: it depends on nothing else, so it holds as long as the deployment does; one that is reused from an
    earlier call brings it along. Safe for many threads: at worst something is found out twice.
    Buys: a call about a deployment and pools that are known matches nothing (`pool_matches` is 0).
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.numbers = count()
        self.matches: dict[tuple[NodeSelector | None, PoolContent], Verdict] = {}
        self.stamped: dict[tuple[NodeSelector | None, tuple[StampedRequest, ...], PoolContent], Verdict] = {}
        self.rows: dict[tuple[str, int, PoolContent], Row] = {}
        """The members of an engine on a pool: the name of its shape, its position there, the content."""
        self.kinds: dict[Hashable, int] = {}
        """Kinds of rows, numbered: a short key for what the members would claim."""
        self.singles: dict[tuple[str, int, int, int], EngineOption | Unfit] = {}
        """The same engine on the pool at one position of a cluster, by the kind of its row there."""
        self.shared: dict[tuple[Hashable, ...], ClusterFit] = {}
        """The fits of clusters by the kinds of their rows: equal ones are searched for room once."""
        self.clusters: dict[tuple[Hashable, ...], ClusterFit] = {}
        """The same by the devices of their pools, and what else decides them."""
        self.options = 0
        """Options that those have besides one for each pool, which fits share."""

    @property
    def _maps(self) -> tuple[dict[Any, Any], ...]:
        """All that is counted and copied. A map that is added must be in it."""
        return (
            *(self.matches, self.stamped, self.rows, self.kinds),
            *(self.singles, self.shared, self.clusters),
        )

    def copy(self) -> FitMemo:
        """A copy for one pass, for what must not be remembered longer."""
        copied = FitMemo()
        copied.numbers = self.numbers
        for empty, held in zip(copied._maps, self._maps, strict=True):
            empty.update(held)
        return copied

    @property
    def entries(self) -> int:
        """How many things are remembered."""
        return sum(map(len, self._maps))


class MatchMemo:
    """Matches of one pass: the fit memo of its deployment, and results that end with the pass.

    Law: a hard search draws on what others left of the call's budget, so what it found, and what rests on it,
    holds for this pass only; its key has the content of the pool, so that how often it is run does not
    depend on which pools share their device lists.
    Buys: a search that costs many steps is run once, not for each of the clusters that publish the same.
    """

    def __init__(self, lasting: FitMemo) -> None:
        """Start with what the deployment's earlier passes found out."""
        self.fits = lasting
        self._lasts = True
        self._hard: dict[tuple[Hashable, str], object] = {}

    def end_with_pass(self) -> None:
        """From now on nothing outlives the pass: what is noted drew on a budget."""
        if self._lasts:
            self.fits, self._lasts = self.fits.copy(), False

    def hard(self, of: Hashable, pool: Pool) -> object | None:
        """Return what a hard search on a pool found."""
        return self._hard.get((of, pool.canonical)) if self._hard else None

    def note_hard(self, of: Hashable, pool: Pool, outcome: object) -> None:
        """Note what a hard search found; from now on nothing outlives the pass."""
        self.end_with_pass()
        self._hard[of, pool.canonical] = outcome


class FitMemos(dict[tuple[int, str], FitMemo]):
    """The fit memos of one deployment, by the budget of a call and the release that reads.

    The steps that every search has of its own depend on no other search, so budgets of more share one memo. A
    smaller budget has a memo of its own: where it runs out, a larger one would go on.
    """


def fit_memo(deployment: ModelDeployment, steps: int, release: str) -> FitMemo:
    """Return the fit memo of a deployment, or a new one where it has become too large."""
    held = deployment.memo_of(FitMemos)
    memo = held.get((steps, release))
    if memo is not None and memo.entries > MOST:
        deployment.memos.clear()  # What else is remembered may hold devices that nothing charges any more.
        held, memo = deployment.memo_of(FitMemos), None
    if memo is None:
        memo = held[steps, release] = FitMemo()
    return memo


def parts_of(deployment: ModelDeployment) -> Iterator[Part]:
    """Yield the fit memos of a deployment, the device lists they hold, and its compiled selectors."""
    for memo in list(deployment.memo_of(FitMemos).values()):
        yield Extent(memo, ENTRY_SIZE * memo.entries + OPTION_SIZE * memo.options)
        contents = {key[1] for key in list(memo.matches)} | {key[2] for key in list(memo.stamped)}
        yield from {shared for (shared, _), _ in contents if shared is not None}
    yield from programs_of(deployment)


# Share what deployments that ask for the same find out, in one run over many of them.
#
# A server has nothing of it: each deployment there owns what it found out,
# and nothing would bound what all of them share.

T = TypeVar("T")

_MEMBERS: Any = {"__all__": {"members": {"__all__": {"template"}}}}
TEMPLATES: Any = {"engines": _MEMBERS, "alternatives": {"__all__": {"engines": _MEMBERS}}}
"""The fields of a replica's spec that hold pod templates."""
_SHAPES: Any = {"spec": {"template": {"spec": {"engines", "alternatives"}}}}
_SHAPES_LEAVE: Any = {"spec": {"template": {"spec": TEMPLATES}}}


class Shared:
    """Fits and results of easy searches by scheduling input, and the fleet, read and charged once.

    Law: both depend on the shapes of a replica without their templates, on the release that reads selectors,
    on the steps of a search and on the strategy, and on nothing else of a deployment.
    Buys: of 200 deployments on 1,000 clusters, the first that asks for something searches for all of them.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._caches: dict[tuple[str, ...], tuple[FitMemos, EasySearches]] = {}
        self._read: tuple[object, Any] | None = None
        self._listing: tuple[object, Listing] | None = None

    def once(self, key: object, read: Callable[[], T]) -> T:
        """Return what is read of the fleet, from the deployment before where its key was the same.

        Law: what is read depends on the key. Buys: a thousand clusters are sorted by name once.
        """
        if self._read is None or self._read[0] != key:
            self._read = key, read()
        value: T = self._read[1]
        return value

    def listing(
        self,
        documents: tuple[Document, ...],
        clusters: Mapping[str, InferenceCluster],
        parse: Callable[[Document], ModelReplica],
        *,
        of: object,
    ) -> Listing:
        """Return the listed replicas, read on from the deployment before where its list begins this one.

        `of` says how replicas are read: those that were read in another way are read again.
        """
        if self._listing is not None:
            before, listing = self._listing
            if before == of and listing.read(documents, clusters, parse):
                return listing
        listing = Listing(clusters)
        listing.read(documents, clusters, parse)
        self._listing = of, listing
        return listing

    def join(self, inputs: SchedulingInput) -> None:
        """Give a deployment what others that ask for the same have found out, and find out for them.

        One with an invalid selector is alone: what it reads of devices is not known.
        """
        caches = FitMemos(), EasySearches()
        if not inputs.selectors.invalid:
            caches = self._caches.setdefault(_question(inputs), caches)
        for cache in caches:
            inputs.deployment.memos[type(cache)] = cache


def _question(inputs: SchedulingInput) -> tuple[str, ...]:
    """Return what fits and easy searches depend on besides the fleet, as the law of `Shared` says."""
    deployment, config = inputs.deployment, inputs.config
    # Of the whole deployment, whose serializer is built already: one for the spec alone takes as long again.
    shapes = deployment.model_dump_json(include=_SHAPES, exclude=_SHAPES_LEAVE)
    return (shapes, config.cel_version, str(config.search_budget), str(inputs.policy.strategy))
