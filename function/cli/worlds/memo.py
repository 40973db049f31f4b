"""A memory for one run of the command line: each object is parsed once, however often it is asked about.

Nothing here changes an answer. What files hold has no version, and contents are never changed in place, so
the object itself is the key. A server has another memory, which recognises objects by their bytes and is
bounded (`function.boundary.memory`); this one ends with the command and needs no bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from function.boundary import PlainDocument
from function.deployment.forecast import Shared

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.boundary import Document

T = TypeVar("T")


class ParseMemo:
    """Remembers what was parsed, by the content it was parsed from."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self.shared = Shared()
        """What deployments that ask for the same have found out about the fleet."""
        self._parsed: dict[tuple[int, object], tuple[dict[str, Any], Any]] = {}

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Return `parse(document)`, from an earlier call with the same content if there was one."""
        if not isinstance(document, PlainDocument):
            return parse(document)
        key = (id(document.content), parse)
        entry = self._parsed.get(key)
        if entry is None:  # The content is kept along, so that its id stays its own.
            entry = self._parsed[key] = (document.content, parse(document))
        value: T = entry[1]
        return value

    def digest(self) -> None:
        """Files have no versions to tell them by."""
        return
