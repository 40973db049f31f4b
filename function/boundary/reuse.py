"""Remember parsed objects between calls: the protocol readers use, and the memory that remembers nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.boundary.document import Document

T = TypeVar("T")


class Reuse(Protocol):
    """A memory of parsed documents. It may forget anything at any time and never changes an answer."""

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Return `parse(document)`, perhaps from an earlier call with an equal identity."""


class NoReuse:
    """Remembers nothing."""

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Parse, every time."""
        return parse(document)
