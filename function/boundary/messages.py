"""One call of the function, in plain values, whatever encoding it arrived in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import eq
from typing import Any, Protocol, TypeAlias, TypeVar

from function.boundary.document import Document, Plain


class Resolution(Enum):
    """The state of a requirement's delivery. Unresolved, absent and delivered are never the same (Law 2)."""

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
    stated: tuple[str, ...] = ()
    """The requirements that an earlier answer of this reconcile stated; all of them are delivered."""
    seeded: bool = False
    """An earlier call of this reconcile was seeded, see `watches`."""

    def watches(self, requirements: Iterable[Requirement]) -> bool:
        """Tell if Crossplane watches what is required: from 2.4 on, when it has been stated once.

        It then hands over in the first call what the last reconcile stated (its seeds).
        """
        return self.seeded or (not self.stated and any(item.name in self.required for item in requirements))

    def resolution(self, name: str) -> Resolution:
        """Return whether a requirement was delivered, and with anything in it."""
        items = self.required.get(name)
        if items is None:
            return Resolution.UNRESOLVED
        return Resolution.DELIVERED if items else Resolution.ABSENT


# The answer to one call, in plain values; a door writes it in its own encoding.


@dataclass(frozen=True, slots=True)
class Requirement:
    """Something Crossplane must fetch before it calls again.

    Without a name and without labels: every object of the kind.
    """

    name: str
    api_version: str
    kind: str
    match_name: str | None = None
    namespace: str | None = None
    match_labels: tuple[tuple[str, str], ...] = ()
    """Labels that all must be equal, sorted by key."""
    watched: bool = field(default=True, compare=False)
    """False: it is read, and no write to it wakes the composite or takes tokens of its circuit breaker."""
    served_by: str | None = None
    """The requirement whose objects include this one's: where it is delivered, this one is."""

    def delivered(self, request: Request) -> bool:
        """Tell whether a request holds what is required, perhaps as an empty list."""
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
    """What Crossplane is to fetch. Stated again, it is what Crossplane 2.4 watches."""
    desired: Mapping[str, Desired] = field(default_factory=dict)
    status: Mapping[str, Plain] = field(default_factory=dict)
    """Fields of the composite's status to set, merged into what earlier steps desire."""
    unready: bool = False
    """True marks the composite not ready; False leaves readiness to Crossplane."""
    conditions: tuple[Condition, ...] = ()
    results: tuple[Result, ...] = ()
    settled: bool = False
    """True when nothing is pending: the door picks the long time to live."""
    woken: bool = False
    """True when all that can end what is pending is stated as watched: then asking often is no use."""
    ttl: tuple[float | None, float | None] = (None, None)
    """Seconds (pending, settled) asked for by the function's input; None leaves it to the door's flags."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Work and outcome in numbers, for the log line and the metrics."""
    rejections: Mapping[str, int] = field(default_factory=dict)
    """How many clusters were rejected, by headline reason."""
    written: dict[Hashable, bytes] = field(init=False, default_factory=dict, compare=False, repr=False)
    """The answer as a door has written it, noted by that door: given again, it is not written again. A copy
    with something replaced starts without."""


# Remember parsed objects between calls: the protocol readers use, and the memory that remembers nothing.

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
    """The memory that a remembered parse result takes, in bytes of memory and not of the wire."""

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
