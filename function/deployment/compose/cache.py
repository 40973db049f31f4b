"""Memory beside composing: what this answer shares, and the replicas that earlier ones desired.

Nothing here changes an answer; without it the same replica is composed, and written, again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from function.boundary import Extent
from function.deployment.compose.size import largest

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from function.api import ModelDeployment
    from function.api.engine import ReplicaShape
    from function.boundary import Desired, JsonObject
    from function.scheduler.matching.engine_options import EngineOption

T = TypeVar("T", bound="Desired | None")

BOUND = 512 * 1024
"""Bytes of composed replicas, about, that a deployment holds from answer to answer."""
AS_OBSERVED, MAX_AS_OBSERVED = 7, 4 * 1024 * 1024
"""Bytes that a replica which is desired as it is observed takes for each byte of its document, and the most
that all those of a deployment may take. They share no template with it."""


class PlacedFrom(NamedTuple):
    """What a new replica is composed of, besides its deployment and its key."""

    name: str
    shape: ReplicaShape
    options: tuple[EngineOption, ...]
    pools: tuple[str, ...]


class KeptFrom(NamedTuple):
    """What a replica that stays is composed of, besides its deployment and its key."""

    version: Hashable
    """The identity of its document: equal ones mean equal content."""
    shape: ReplicaShape | None
    observed: bool
    noted: bool
    waits: bool


ComposedFrom: TypeAlias = PlacedFrom | KeptFrom


class ComposedReplicas:
    """The desired replicas of earlier answers, by key, each with what it was composed of.

    Law: a replica depends on its deployment, which owns this cache, and on its source, which is compared by
    value. Buys: a settled deployment, which is what most calls are about, composes and writes nothing anew.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._by_key: dict[str, tuple[ComposedFrom, Desired]] = {}
        self._as_observed: dict[str, int] = {}
        """Bytes that those take which are desired as they are observed."""

    @property
    def extent(self) -> Extent:
        """What it takes besides `BOUND`."""
        return Extent(self, sum(self._as_observed.values()))

    def get(self, key: str, source: ComposedFrom) -> Desired | None:
        """Return what was desired under a key, if it was composed of the same."""
        earlier, desired = self._by_key.get(key, (None, None))
        return desired if earlier == source else None

    def put(self, key: str, source: ComposedFrom, desired: Desired, *, most: int, observed: int = 0) -> None:
        """Hold a composed replica in the place of the earlier one, or beside at `most` so many.

        `observed`: the bytes of its document, where it is desired as that is observed.
        """
        self._as_observed.pop(key, None)
        size = AS_OBSERVED * observed
        if size and sum(self._as_observed.values()) + size > MAX_AS_OBSERVED:
            self._by_key.pop(key, None)
        elif key in self._by_key or len(self._by_key) < most:
            self._by_key[key] = source, desired
            if size:
                self._as_observed[key] = size


def composed_once(
    deployment: ModelDeployment,
    key: str,
    source: ComposedFrom,
    compose: Callable[[], T],
    *,
    observed: int = 0,
) -> Desired | T:
    """Return what was desired under a key for an earlier answer if its source is equal, or compose it.

    `observed`: the bytes of the document that it is composed of as it stands, if it is.
    """
    cache = deployment.cache_of(ComposedReplicas)
    earlier = cache.get(key, source)
    if earlier is not None:
        return earlier
    desired = compose()
    if desired is not None:
        cache.put(key, source, desired, most=BOUND // largest(deployment), observed=observed)
    return desired


RankedClaims: TypeAlias = tuple[tuple[str, int, str], ...]
"""Request, rank and device class of each claim of a member."""


class EngineFrom(NamedTuple):
    """What an engine of a new replica is composed of, besides its deployment."""

    shape: str
    engine: str
    pools: tuple[str, ...]
    """The pool of each member."""
    claims: tuple[RankedClaims, ...]
    """What each member claims there."""


class EmittedEngines:
    """The engines of the new replicas of one answer.

    Law: an engine depends on its source, which is compared by value. Buys: most replicas of an answer share
    their engines, and what is shared is composed and written once.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._by_source: dict[EngineFrom, JsonObject] = {}

    def once(self, source: EngineFrom, emit: Callable[[], JsonObject]) -> JsonObject:
        """Return the engine that was emitted from a source, or emit it."""
        engine = self._by_source.get(source)
        if engine is None:
            engine = self._by_source[source] = emit()
        return engine
