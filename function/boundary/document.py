"""Read one Kubernetes object without knowing how it is encoded: protobuf bytes or YAML.

A door (`wire`, `cli`) hands every object over as a `Document`. Readers name the paths they want (`Shape`), so
that the rest of a large object is never decoded.

Limits that every reader lives with:

- an object may turn out unreadable when it is read, not before: `Unreadable` is a fault of that object, and
  what stands on it keeps what it has (Law 2: doubt deletes nothing);
- values have the type that somebody wrote, whatever a schema says. Saying so is the work of the parsers
  (`api`);
- what is returned may be shared with other readers. Nobody changes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

Plain: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict. Integral numbers arrive as int."""
JsonObject: TypeAlias = dict[str, Any]
"""A JSON object, such as a manifest."""

Shape: TypeAlias = "Mapping[str, Shape | None]"
"""The paths a reader wants: key to shape, None for a whole subtree, "*" for every key of a map.

For a list the shape applies to each element. A value of another type than the shape expects is
returned as it is; saying so is the parser's work."""

PACKED: Shape = {"": None}
"""The shape of a subtree that a door may hand over as a `Packed` instead of a plain value."""


class Packed(ABC):
    """A subtree that is compared by content before it is converted: most device lists of a fleet are equal.

    Equal contents have equal keys, whatever the order of their maps.
    """

    __slots__ = ()

    key: bytes | str

    @abstractmethod
    def items(self) -> Sequence[Packed] | None:
        """Return the items of a list; None for what is none."""

    @abstractmethod
    def plain(self) -> Plain:
        """Return it as plain values."""


T = TypeVar("T")

DocumentIdentity: TypeAlias = "tuple[Hashable, Hashable]"
"""Which object it is, and which version of it."""


class Unreadable(ValueError):
    """An object that cannot be decoded at all, or nests deeper than any real one: a fault of that object."""


class Document(Protocol):
    """One Kubernetes object as a door holds it: readable, perhaps not decoded yet.

    `plain` and `project` raise `Unreadable` for an object that cannot be decoded.
    """

    def opened(self) -> Document:
        """Return the same object, prepared for being asked several things at once."""

    @property
    def identity(self) -> DocumentIdentity | None:
        """Equal identities mean equal content; None means the content must be read every time."""

    @property
    def size(self) -> int:
        """How many bytes it has on the wire; 0 where it never was there."""

    def plain(self) -> dict[str, Plain]:
        """Return the whole object. The caller must not change it."""

    def project(self, shape: Shape) -> dict[str, Plain]:
        """Return the object cut down to `shape`, or more. The caller must not change it."""

    def charge(self, make: Callable[..., T], deployment_label: str) -> T | None:
        """Read what a ModelReplica is charged for in one step, and return `make(**fields)`.

        The fields are name, namespace, deployment (the value of `deployment_label`), cluster, deleting and
        nodes (by pool). None where a door has no quicker way than reading the object leniently.
        """

    def pool_charges(self, make: Callable[..., T | None]) -> dict[str, T]:
        """Read the charges that an InferenceCluster publishes in one step: `make(**fields)` by pool.

        The fields are nodes, named and others, see `api.charge.read_shares`. A pool is missing where a door
        has no quicker way than reading it leniently, or `make` returned None.
        """


def text_at(document: Document, *path: str) -> str:
    """Return the text at a path of a document, "" when there is none or it cannot be read."""
    shape: Any = None
    for key in reversed(path):
        shape = {key: shape}
    try:
        value: Plain = document.project(shape)
    except Unreadable:
        return ""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class PlainDocument:
    """A document that was plain from the start: YAML, a test."""

    content: dict[str, Plain]

    def opened(self) -> PlainDocument:
        """Return itself: it is decoded already."""
        return self

    identity: None = field(init=False, default=None)
    """Files have no resource version to trust, so they are read every time."""
    size: int = field(init=False, default=0)
    """Bytes on the wire: none, it was never there."""

    def plain(self) -> dict[str, Plain]:
        """Return the whole object."""
        return self.content

    def project(self, _shape: Shape) -> dict[str, Plain]:
        """Return the whole object: nothing is saved by cutting what is decoded already."""
        return self.content

    def charge(self, _make: Callable[..., T], _deployment_label: str) -> None:
        """Leave it to the lenient reader: nothing is saved by cutting what is decoded already."""

    def pool_charges(self, _make: Callable[..., T | None]) -> dict[str, T]:
        """Leave them to the lenient reader, as above."""
        return {}
