"""One call of the function, in plain values, whatever encoding it arrived in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary.document import Document, Plain


class Resolution(Enum):
    """What Crossplane delivered for a requirement. The three are never the same thing (Law 2)."""

    UNRESOLVED = "unresolved"
    """Not delivered yet: nothing is known."""
    ABSENT = "absent"
    """Delivered without items: there is none."""
    DELIVERED = "delivered"


@dataclass(frozen=True, slots=True)
class Request:
    """One question of Crossplane, or of the command line."""

    composite: Document
    observed: Mapping[str, Document] = field(default_factory=dict)
    """Observed composed resources by their key in the composition."""
    required: Mapping[str, tuple[Document, ...]] = field(default_factory=dict)
    """Required resources by requirement name. A missing name is unresolved, an empty tuple is absent.

    An item that holds no object at all (some versions send one for "not found") is left out by the door."""
    input: Mapping[str, Plain] | None = None
    desired: frozenset[str] = frozenset()
    """Keys that earlier steps of the pipeline desire: theirs, never ours to touch."""
    desired_status: Mapping[str, Plain] = field(default_factory=dict)
    """The composite's status as earlier steps desire it."""

    def resolution(self, name: str) -> Resolution:
        """Return whether a requirement was delivered, and with anything in it."""
        items = self.required.get(name)
        if items is None:
            return Resolution.UNRESOLVED
        return Resolution.DELIVERED if items else Resolution.ABSENT
