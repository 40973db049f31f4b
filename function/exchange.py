"""What crosses the doors: one request in, one response out, in plain values.

The doors (`wire`, `cli`) turn protobuf or YAML into a `Request` and a `Response` back into protobuf or
text. Nothing here, and nothing below, knows either format.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from function.api import ModelReplica
    from function.scheduler.decision import Decision

Plain: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict. Integral numbers arrive as int."""

Shape: TypeAlias = "Mapping[str, Shape | None]"
"""The paths a reader wants: key to shape, None for a whole subtree, "*" for every key of a map.

For a list the shape applies to each element. A value of another type than the shape expects is
returned as it is; saying so is the parser's work."""

PACKED: Shape = {"": None}
"""The shape of a subtree that a door may hand over as a `Packed` instead of a plain value."""


class Packed(Protocol):
    """A subtree that is compared by content before it is decoded: most device lists of a fleet are equal."""

    def __hash__(self) -> int:
        """Equal contents have equal hashes, whatever the order of their maps."""

    def __eq__(self, other: object) -> bool:
        """Whether the contents are equal."""

    @property
    def size(self) -> int:
        """How many bytes it has, about."""

    def items(self) -> Sequence[Packed] | None:
        """Return the items of a list; None for what is none."""

    def plain(self) -> Plain:
        """Decode it."""


T = TypeVar("T")


class Unreadable(ValueError):
    """An object that cannot be decoded at all, or nests deeper than any real one: a fault of that object."""


class Document(Protocol):
    """One Kubernetes object as a door holds it: readable, perhaps not decoded yet.

    `plain` and `project` raise `Unreadable` for an object that cannot be decoded.
    """

    def opened(self) -> Document:
        """Return the same object, prepared for being asked several things at once."""

    @property
    def identity(self) -> Hashable | None:
        """Equal identities mean equal content; None means the content must be read every time."""

    def plain(self) -> dict[str, Plain]:
        """Return the whole object. The caller must not change it."""

    def project(self, shape: Shape) -> dict[str, Plain]:
        """Return the object cut down to `shape`, or more. The caller must not change it."""

    def charged(self) -> ModelReplica | None:
        """Return what a ModelReplica is charged for; None: to be found out by reading it leniently."""


def text_at(document: Document, *path: str) -> str:
    """Return the text at a path of a document, "" when there is none or it cannot be read."""
    shape: Any = None
    for key in reversed(path):
        shape = {key: shape}
    try:
        found: Plain = document.project(shape)
    except Unreadable:
        return ""
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


@dataclass(frozen=True, slots=True)
class PlainDocument:
    """A document that was plain from the start: YAML, a test."""

    content: dict[str, Plain]

    def opened(self) -> PlainDocument:
        """Return itself: it is decoded already."""
        return self

    @property
    def identity(self) -> None:
        """Files have no resource version to trust, so they are read every time."""
        return

    def plain(self) -> dict[str, Plain]:
        """Return the whole object."""
        return self.content

    def project(self, _shape: Shape) -> dict[str, Plain]:
        """Return the whole object: nothing is saved by cutting what is decoded already."""
        return self.content

    def charged(self) -> None:
        """Leave it to the lenient reader."""
        return


class Reuse(Protocol):
    """A memory of parsed documents. It may forget anything at any time and never changes an answer."""

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Return `parse(document)`, perhaps from an earlier call with an equal identity."""


class NoReuse:
    """Remembers nothing."""

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Parse, every time."""
        return parse(document)


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


@dataclass(frozen=True, slots=True)
class Requirement:
    """Something Crossplane must fetch before it calls again. No match_name: every object of the kind."""

    name: str
    api_version: str
    kind: str
    match_name: str | None = None
    namespace: str | None = None
    served_by: str | None = None
    """The requirement whose objects include this one's: where it is delivered, this one is."""

    def delivered(self, request: Request) -> bool:
        """Whether a request holds what is required, perhaps as an empty list."""
        return self.name in request.required or self.served_by in request.required


@dataclass(slots=True)
class Desired:
    """One desired composed resource. `ready` True marks it ready; False says nothing."""

    resource: dict[str, Plain]
    ready: bool = False
    written: bytes | None = field(default=None, compare=False, repr=False)
    """The resource as a door has written it, noted by that door: desired again, it is not written again."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of the composite: one line of message, no time."""

    type: str
    status: bool
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One event on the composite. Severity is NORMAL, WARNING or FATAL."""

    severity: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Response:
    """The whole answer to one request."""

    requirements: tuple[Requirement, ...]
    desired: Mapping[str, Desired] = field(default_factory=dict)
    status: Mapping[str, Plain] = field(default_factory=dict)
    """Fields of the composite's status to set, merged into what earlier steps desire."""
    unready: bool = False
    """True marks the composite not ready; False leaves readiness to Crossplane."""
    conditions: tuple[Condition, ...] = ()
    results: tuple[Result, ...] = ()
    settled: bool = False
    """True when nothing is pending: the door picks the long time to live."""
    ttl: tuple[float | None, float | None] = (None, None)
    """Seconds (pending, settled) asked for by the function's input; None leaves it to the door's flags."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Work and outcome in numbers, for the log line and the metrics."""
    rejections: Mapping[str, int] = field(default_factory=dict)
    """How many clusters were rejected, by headline reason."""
    decision: Decision | None = None
    """The decision itself, for explanation on the command line. Not sent."""
