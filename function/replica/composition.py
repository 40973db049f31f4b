"""What is composed for a replica, and a cache of the latest: most calls are about replicas at rest."""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.boundary import Desired
    from function.replica.state import EngineState


@dataclass(frozen=True, slots=True)
class Composition:
    """What is desired, and how far the engines are."""

    desired: dict[str, Desired]
    states: tuple[EngineState, ...]
    kept: int
    """How many resources stay exactly as observed."""


class _Earlier(NamedTuple):
    """A composition, and what it was made of: values that were read, by identity, the rest by content."""

    values: tuple[object, ...]
    facts: tuple[object, ...]
    composition: Composition


class CompositionCache:
    """What was composed last for one replica. It lives with the replica as it was read.

    Law: a composition is a pure function of the replica, of the other values that were read and of the facts.
    What was read is kept as long as uid, resource version and length are the same, so the same values are the
    same content. Buys: a settled replica, which is what most calls are about, composes and writes nothing
    anew.
    """

    __slots__ = ("_earlier", "digest")

    def __init__(self) -> None:
        """Start with nothing."""
        self._earlier: _Earlier | None = None
        self.digest: str | None = None
        """The digest of what its pods run."""

    def composed(
        self, values: tuple[object, ...], facts: tuple[object, ...], compose: Callable[[], Composition]
    ) -> Composition:
        """Return what is composed of these values and facts: as it was last, or anew."""
        earlier = self._earlier
        if earlier is not None and earlier.facts == facts and all(map(is_, earlier.values, values)):
            return earlier.composition
        made = compose()
        self._earlier = _Earlier(values, facts, made)
        return made
