"""Remember which pools the members and engines of a deployment fit. The rules are those of `scheduler.cache`.

What depends on the deployment and on classes of pools lasts as long as the parsed deployment, which owns it;
the parse cache of `boundary` is charged for it (`parts_of`). What drew on a call's budget ends with the pass.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from function.boundary import Extent
from function.scheduler.selectors import HeldPrograms

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from function.api import ModelDeployment, Pool, StampedRequest
    from function.api.cluster import DeviceKey
    from function.api.engine import NodeSelector
    from function.boundary import Part
    from function.cel import Subject
    from function.scheduler.matching.engine_options import ClusterFit, EngineOption, Row, Unfit, Verdict

ENTRY_SIZE, OPTION_SIZE = 800, 1_400
"""Bytes that one entry of a fit cache takes, and one option that no two fits share, about."""
MAX_CLASSES, MAX_CLUSTERS, MAX_LISTS = 256, 512, 1_024
"""Classes of pools, combinations of them on a cluster, and device lists remembered for a deployment."""
OPTIONS_EACH = 40
"""Options of their own that the fits of clusters may have, on average: an engine on eight pools has 56."""


class FitCache:
    """Matches of a deployment's members and engines on classes of pools.

    Law: it depends on nothing else, so it holds as long as the deployment does; one that is reused from an
    earlier call brings it along. Safe for many threads: at worst something is found out twice.
    Buys: a call about a deployment and pools that are known matches nothing.
    """

    def __init__(self, most: int = MAX_CLUSTERS) -> None:
        """Start with nothing. `most`: how many combinations of classes on a cluster are remembered."""
        self.most = most
        self.numbers = count()
        self.classes: dict[tuple[Hashable, Subject | None], int] = {}
        """Equivalence classes of pools, numbered."""
        self.lists: dict[tuple[DeviceKey, Subject | None], int] = {}
        """The class of each device list, with the pool itself where selectors read it."""
        self.matches: dict[tuple[NodeSelector | None, int], Verdict] = {}
        self.stamped: dict[tuple[NodeSelector | None, tuple[StampedRequest, ...], int], Verdict] = {}
        self.rows: dict[tuple[str, int, int], Row] = {}
        """The members of an engine: the name of its shape, its position there, the class."""
        self.kinds: dict[Hashable, int] = {}
        """Kinds of rows, numbered."""
        self.singles: dict[tuple[str, int, int, int], tuple[EngineOption | Unfit, bool]] = {}
        """The same engine on the pool at one position of a cluster, by the kind of its row there; whether it
        may strand a member."""
        self.shared: dict[tuple[Hashable, ...], ClusterFit] = {}
        """The fits of clusters by the kinds of their rows."""
        self.clusters: dict[tuple[Hashable, ...], ClusterFit] = {}
        """The same by the devices of their pools, and what else decides them."""
        self.options = 0
        """Options that those have besides one for each pool, which fits share."""

    def share(self, key: tuple[Hashable, ...], fit: ClusterFit) -> None:
        """Note what fits on clusters by the kinds of their rows, where there is room."""
        if len(self.shared) < self.most:
            self.shared[key] = fit

    def copy(self) -> FitCache:
        """A copy for one pass, for what must not be remembered longer."""
        copied = FitCache(self.most)
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
            self.kinds,
            self.singles,
            self.shared,
            self.clusters,
        )

    @property
    def entries(self) -> int:
        """How many things are remembered."""
        return sum(map(len, self._maps))

    @property
    def size(self) -> int:
        """Bytes that they take, about."""
        return ENTRY_SIZE * self.entries + OPTION_SIZE * self.options

    @property
    def full(self) -> bool:
        """Tell whether there is no room for another combination of classes on a cluster."""
        return len(self.clusters) >= self.most or self.options >= self.most * OPTIONS_EACH

    @property
    def too_large(self) -> bool:
        """Tell whether it takes more room than a deployment has."""
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
    """Matches of one pass: the fit memo of its deployment, and results that end with the pass.

    Law: a hard search draws on what others left of the call's budget, so what it found, and what rests on it,
    holds for this pass only; its key is the content of the pools, so that how often it is run does not
    depend on which of them share their device lists. Fits beyond the bound of the fit cache end here too.
    Buys: a search that costs many steps is run once, not for each of the clusters that publish the same.
    """

    def __init__(self, lasting: FitCache) -> None:
        """Start with what the deployment's earlier passes found out."""
        self.fits = lasting
        self._beyond: dict[tuple[Hashable, ...], ClusterFit] = {}
        self._lasts = True
        self._hard: dict[HardSearch, object] = {}

    def cluster(self, key: tuple[Hashable, ...]) -> ClusterFit | None:
        """Return what fits on a cluster."""
        return self.fits.clusters.get(key) or self._beyond.get(key)

    def note_cluster(self, key: tuple[Hashable, ...], fit: ClusterFit, options: int) -> None:
        """Note what fits on a cluster, and how many options it has that no other fit shares."""
        if self.fits.full:
            self._beyond[key] = fit
        else:
            self.fits.clusters[key] = fit
            self.fits.options += options

    def end_with_pass(self) -> None:
        """From now on nothing outlives the pass: what is noted drew on a budget."""
        if self._lasts:
            self.fits, self._lasts = self.fits.copy(), False

    def hard(self, what: str, of: tuple[Hashable, ...], pools: Sequence[Pool]) -> object | None:
        """Return what a hard search found."""
        if not self._hard:
            return None
        return self._hard.get(HardSearch(what, of, tuple(pool.canonical for pool in pools)))

    def note_hard(self, what: str, of: tuple[Hashable, ...], pools: Sequence[Pool], outcome: object) -> None:
        """Note what a hard search found; from now on nothing outlives the pass."""
        self.end_with_pass()
        self._hard[HardSearch(what, of, tuple(pool.canonical for pool in pools))] = outcome


class FitCaches:
    """The fit caches of one deployment, by the budget of a call and the release that reads.

    What is found within the steps every search has of its own depends on no other search, so budgets of more
    share one. A budget of just so many is apart: where it runs out, the others go on.
    """

    def __init__(self, most: int = MAX_CLUSTERS) -> None:
        """Start with nothing."""
        self.most = most
        self.caches: dict[tuple[int, str], FitCache] = {}


def fit_cache(deployment: ModelDeployment, steps: int, release: str) -> FitCache:
    """Return the fit cache of a deployment, unless it has become too large."""
    held = deployment.cache_of(FitCaches)
    cache = held.caches.get((steps, release))
    if cache is None or cache.too_large:
        if cache is not None:
            deployment.forget()  # What else is remembered may hold devices that nothing charges any more.
            held = deployment.cache_of(FitCaches)
        cache = held.caches[steps, release] = FitCache(held.most)
    return cache


def parts_of(deployment: ModelDeployment) -> Iterator[Part]:
    """Yield the fit caches of a deployment, the device lists they know, and its compiled selectors."""
    for cache in list(deployment.cache_of(FitCaches).caches.values()):
        yield Extent(cache, cache.size)
        for (shared, _), _ in list(cache.lists):
            if shared is not None:
                yield shared
    yield from deployment.cache_of(HeldPrograms).programs
