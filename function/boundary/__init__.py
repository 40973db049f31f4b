"""The values that cross the doors: one request in, one response out, free of any encoding.

The doors (`wire`, `cli`) turn protobuf or YAML into a `Request` and a `Response` back into protobuf or
text. Nothing here, and nothing between the doors, knows either format. It imports no room above.

Limits that everyone who reads a `Document` lives with:

- an object may turn out unreadable when it is read, not before: `Unreadable` is a fault of that object, and
  what stands on it keeps what it has (Law 2: doubt deletes nothing);
- values have the type that somebody wrote, whatever a schema says. Saying so is the work of the parsers
  (`api`);
- what is returned may be shared with other readers, so a reader must not change it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import partial
from operator import attrgetter, eq, le, lt
from typing import Any, Protocol, TypeAlias, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[Any] | None = None, *, slots: bool = True, eq: bool = True, order: bool = False) -> Any:
    """Make a dataclass with slots, compared by its fields, that the type checker keeps frozen.

    `dataclass(frozen=True)` writes and compiles eight methods for a class, which took a fifth of the time of
    a small command, and every instance sets each field through `object.__setattr__`. Only `__init__` is
    compiled here (`_initialiser`), and it sets fields directly. A class that remembers what it derives needs
    `slots=False`. With `order`, values are ordered by their fields, too.
    """
    if kind is None:
        return partial(frozen, slots=slots, eq=eq, order=order)
    made = dataclass(slots=slots, eq=False, repr=False, init=False)(kind)
    values = attrgetter(*(item.name for item in fields(made) if item.compare))

    def shown(self: Any) -> str:
        stated = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
        return f"{self.__class__.__qualname__}({', '.join(stated)})"

    methods: dict[str, Any] = {"__init__": _initialiser(made), "__repr__": shown}
    if eq:
        methods["__eq__"] = lambda self, other: (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )
        methods["__hash__"] = lambda self: hash(values(self))
    if order:  # Python takes `>` and `>=` from the other side.
        for name, compare in (("__lt__", lt), ("__le__", le)):
            methods[name] = lambda self, other, compare=compare: (
                compare(values(self), values(other)) if other.__class__ is self.__class__ else NotImplemented
            )
    for name, method in methods.items():
        if name not in kind.__dict__:
            setattr(made, name, method)
    return made


def _initialiser(made: Any) -> Callable[..., None]:
    """Return the `__init__` of a dataclass: it is written and compiled when the first object is made.

    A small command makes objects of half of the classes that it imports, and to compile takes the time.
    """

    def first(self: Any, *given: Any, **named: Any) -> None:
        scope: dict[str, Any] = {"MISSING": MISSING}
        parameters, lines = ["self"], ["pass"]
        for item in fields(made):
            name, default = item.name, f"__default_{item.name}"
            anew = item.default_factory is not MISSING
            scope[default] = item.default_factory if anew else item.default
            value = f"{default}()" if anew else default
            if item.init and scope[default] is MISSING:
                parameters.append(name)
                value = name
            elif item.init:
                parameters.append(f"{name}={'MISSING' if anew else default}")
                value = f"{value} if {name} is MISSING else {name}" if anew else name
            if value == name or scope[default] is not MISSING:
                lines.append(f"self.{name} = {value}")
        if hasattr(made, "__post_init__"):
            lines.append("self.__post_init__()")
        exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), scope)  # noqa: S102 - of names
        made.__init__ = scope["__init__"]
        made.__init__.__qualname__ = f"{made.__qualname__}.__init__"
        made.__init__(self, *given, **named)

    return first


# One Kubernetes object, read without knowing how it is encoded: protobuf bytes or YAML. A door hands every
# object over as a `Document`. Readers name the paths they want (`Shape`), so that the rest of a large object
# is never decoded.

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
        """Return the items of a list; None for any other value."""

    @abstractmethod
    def plain(self) -> Plain:
        """Return it as plain values."""


DocumentIdentity: TypeAlias = "tuple[Hashable, Hashable]"
"""Which object it is, and which version of it."""


class Unreadable(ValueError):
    """An object that cannot be decoded at all, or nests deeper than any real one: a fault of that object."""


class Document(Protocol):
    """One Kubernetes object as a door holds it: readable, perhaps not decoded yet.

    `plain` and `project` raise `Unreadable` for an object that cannot be decoded.
    """

    def opened(self) -> OpenedDocument:
        """Return the same object, prepared for being asked several things at once."""

    @property
    def size(self) -> int:
        """How many bytes it has on the wire; 0 where it never was there."""

    def plain(self) -> dict[str, Plain]:
        """Return the whole object. The caller must not change it."""

    def project(self, shape: Shape) -> dict[str, Plain]:
        """Return the object cut down to `shape`, or more. The caller must not change it."""


class OpenedDocument(Document, Protocol):
    """One that is prepared for being asked several things at once."""

    @property
    def identity(self) -> DocumentIdentity | None:
        """Equal identities mean equal content; None means the content must be read every time."""

    def charge(self, make: Callable[..., T], deployment_label: str) -> T | None:
        """Read what a ModelReplica is charged for in one step, and return `make(**fields)`.

        The fields are name, namespace, deployment (the value of `deployment_label`), cluster, deleting and
        nodes (by pool). None where a door has no quicker way than reading the object leniently.
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


@frozen
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


# One call of the function, in plain values, whatever encoding it arrived in.


class Resolution(Enum):
    """The state of a requirement's delivery. Unresolved, absent and delivered are never the same (Law 2)."""

    UNRESOLVED = "unresolved"
    """Not delivered yet: nothing is known."""
    ABSENT = "absent"
    """Delivered without items: there is none."""
    DELIVERED = "delivered"


@frozen
class Request:
    """One question of Crossplane, or of the command line."""

    composite: Document
    observed: Mapping[str, Document] = field(default_factory=dict)
    """Observed composed resources by their key in the composition."""
    required: Mapping[str, tuple[Document, ...]] = field(default_factory=dict)
    """Required resources by requirement name. A missing name is unresolved, an empty tuple is absent.

    An item that holds no object at all (some versions send one for "not found") is left out by the door."""
    input: Mapping[str, Plain] = field(default_factory=dict)
    desired: frozenset[str] = frozenset()
    """Keys that earlier steps of the pipeline desire: theirs, never ours to touch."""
    desired_status: Mapping[str, Plain] = field(default_factory=dict)
    """The composite's status as earlier steps desire it."""
    stated: tuple[str, ...] = ()
    """The requirements that an earlier answer of this reconcile stated; all of them are delivered."""
    seeded: bool = False
    """An earlier call of this reconcile was seeded, see `watches`."""

    def asks(self, field: str, value: str) -> bool:
        """Tell whether the input says so. What else it says may be invalid."""
        return self.input.get(field) == value

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


@frozen
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


@frozen
class Condition:
    """One condition of the composite: one line of message, no time."""

    type: str
    status: bool
    reason: str
    message: str = ""

    @property
    def plain(self) -> dict[str, str]:
        """The condition as plain data."""
        return {
            "type": self.type,
            "status": str(self.status),
            "reason": self.reason,
            "message": self.message,
        }


@frozen
class Result:
    """One event on the composite. Severity is NORMAL, WARNING or FATAL."""

    severity: str
    reason: str
    message: str


@frozen
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

    @property
    def at_rest(self) -> bool:
        """Tell if nothing is pending and all that is composed is ready: Crossplane awaits what is not."""
        return self.settled and all(composed.ready for composed in self.desired.values())


@frozen
class InternalError:
    """The answer to a handler's failure: the door adds everything observed, as it is (`fail_static`)."""

    requirements: tuple[Requirement, ...]
    """What the handler declares, so that Crossplane goes on fetching."""
    conditions: tuple[Condition, ...]
    """Every condition of the handler, False: what is not returned would keep its last value and lie."""
    message: str
    """The one sentence that the client learns."""
    undelivered: bool
    """Whether something declared is missing: a fatal answer would then stop Crossplane from fetching it."""


# Remember parsed objects between calls: the protocol readers use, and the memory that remembers nothing.


class Part(Protocol):
    """Something that remembered values share, compared by identity: it is charged once, while one has it."""

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""


@frozen
class Extent:
    """A part that grows, as large as it is now: what an owner, compared by identity, has gathered."""

    owner: object
    size: int


@frozen
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


class Reuse:
    """A memory of parsed documents. It may forget anything at any time and never changes an answer.

    This one remembers nothing.
    """

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Return `parse(document)`, perhaps from an earlier call with an equal identity."""
        return parse(document)

    def digest(self) -> bytes | None:
        """Digest everything parsed so far in this call, in whatever order: equal digests decide the same.

        None where something was parsed that is not remembered, or that has no version to tell it by.
        """
        return None


NO_REUSE = Reuse()
