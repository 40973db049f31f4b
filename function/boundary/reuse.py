"""Remember parsed objects between calls: the protocol readers use, and the memory that remembers nothing."""

from __future__ import annotations

from dataclasses import dataclass
from operator import eq
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from function.boundary.document import Document

T = TypeVar("T")


class Part(Protocol):
    """Something that remembered values share, compared by identity: it is charged once, while one has it."""

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""


@dataclass(frozen=True, slots=True)
class Extent:
    """A part that grows, as large as it is now: what an owner, compared by identity, has gathered."""

    owner: object
    size: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What it takes to remember what a parse function returns, in bytes of memory and not of the wire."""

    factor: float = 1.0
    """Bytes for each byte that the object has on the wire."""
    fixed: int = 0
    """Bytes besides, those included that it may grow by while it is remembered."""
    size: Callable[[Any], int] | None = None
    """Bytes besides, where that depends on the value."""
    parts: Callable[[Any], Iterable[Part]] | None = None
    """What a value shares with others, as of now."""
    grows: bool = False
    """Whether its parts may be others after a call that used it."""
    equivalent: Callable[[Any, Any], bool] = eq
    """Whether what is read of two versions of one object decides the same."""


Costs: TypeAlias = "Mapping[object, Cost]"
"""Costs by parse function."""


class Reuse(Protocol):
    """A memory of parsed documents. It may forget anything at any time and never changes an answer."""

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Return `parse(document)`, perhaps from an earlier call with an equal identity."""

    def digest(self) -> bytes | None:
        """Digest everything parsed so far in this call, in whatever order: equal digests decide the same.

        None where something was parsed that is not remembered.
        """


class NoReuse:
    """Remembers nothing."""

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Parse, every time."""
        return parse(document)

    def digest(self) -> None:
        """Nothing is remembered to tell it by."""
        return
