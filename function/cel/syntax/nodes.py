"""The tree of an expression after the macros are resolved, and the static types of its nodes.

Nodes compare by identity: the checker hangs what it finds out about a node in tables keyed by the node, and
two nodes written alike at different places are two. They are tuples all the same, because a tuple is quick to
make, cannot change, and holds nothing but what it is made of.

A node carries a `Span`. Its `at` is where an error points, which for a call is its parenthesis or operator,
as in cel-go's messages; `start` and `end` cut the node out of the source, for hints that propose a change.

Types are the names that cel-go's checker has (`common/types`), with their parameters. Three names are not of
a value: `'A` is a parameter of a declaration, `?3` a variable of one check, `any` an attribute of which an
API server without lists of attributes knows nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, TypeVar

# Static types, as cel-go has them.


class Type(NamedTuple):
    """A type: a name and its parameters. `'A` is a declaration's parameter, `?3` a variable of one check."""

    name: str
    args: tuple[Type, ...] = ()

    def __str__(self) -> str:
        """Return the type as the API server's messages have it."""
        if self.name[0] in "'?":
            return "dyn"
        name = "optional_type" if self.name == "optional" else self.name
        return f"{name}({', '.join(map(str, self.args))})" if self.args else name

    def cannot_be(self, parameter: Type) -> bool:
        """Tell whether no value of this type may be given for a parameter, as the names alone tell.

        Most overloads of a function fall away by this test, before anything is unified.
        """
        one, other = self.name, parameter.name
        return one != other and one not in _OPEN and one[0] != "?" and other not in _OPEN and other[0] != "'"


_OPEN = frozenset({"dyn", "any", "null", "wrapper"})
"""Types whose names do not tell what they may stand for."""
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
NULL = Type("null")
DYN = Type("dyn")
ANY = Type("any")
"""An attribute to an API server that knows no lists of them: like dyn, but nothing to iterate over."""
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
QUANTITY = Type("kubernetes.Quantity")
SEMVER = Type("kubernetes.Semver")
IP = Type("net.IP")
CIDR = Type("net.CIDR")
URL = Type("kubernetes.URL")
FORMAT = Type("kubernetes.NamedFormat")


def list_of(element: Type) -> Type:
    """Return the type of lists of `element`."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optionals."""
    return Type("optional", (value,))


DYNAMIC = frozenset({"dyn", "any"})
"""Types of which the check knows nothing: anything may stand for them, and they for anything."""
NULLABLE = frozenset({"null", "timestamp", "duration", "optional", "wrapper"})
"""Types that null may stand for, beside messages (`internalIsAssignableNull` in cel-go)."""


def has_parameter(kind: Type) -> bool:
    """Tell whether a declaration's type mentions a type parameter."""
    return kind.name[0] == "'" or any(map(has_parameter, kind.args))


Class = TypeVar("Class", bound=type)


def _by_identity(cls: Class) -> Class:
    """Let each node be equal to itself only; a tuple is quick to make and cannot change."""
    cls.__eq__ = object.__eq__  # type: ignore[assignment]
    cls.__hash__ = object.__hash__  # type: ignore[assignment]
    return cls


class Span(NamedTuple):
    """Where a node stands in the source: [start, end), and where its errors point."""

    at: int
    start: int
    end: int


@_by_identity
class Literal(NamedTuple):
    """A constant as written."""

    span: Span
    value: Any
    type: Type


@_by_identity
class Identifier(NamedTuple):
    """A bare identifier; one that was written with a leading dot keeps it."""

    span: Span
    name: str


@_by_identity
class Select(NamedTuple):
    """`operand.field`, or `has(operand.field)` when `test`."""

    span: Span
    operand: Node
    field: str
    test: bool = False


@_by_identity
class Call(NamedTuple):
    """A function, method or operator; operators carry cel-go's names (`_==_`, `@in`, `_[?_]`)."""

    span: Span
    function: str
    target: Node | None
    args: tuple[Node, ...]


class Item(NamedTuple):
    """An element of a list literal; `optional` is `?element`."""

    value: Node
    optional: bool


class MapEntry(NamedTuple):
    """An entry of a map literal; `optional` is `?key: value`."""

    key: Node
    value: Node
    optional: bool


@_by_identity
class ListLiteral(NamedTuple):
    """`[a, b]`."""

    span: Span
    items: tuple[Item, ...]


@_by_identity
class MapLiteral(NamedTuple):
    """`{k: v}`."""

    span: Span
    entries: tuple[MapEntry, ...]


@_by_identity
class MessageLiteral(NamedTuple):
    """`Name{field: value}`, a protobuf message. A field is its name, its value, whether it is `?field`."""

    span: Span
    name: str
    fields: tuple[tuple[str, Node, bool], ...]


@_by_identity
class Bind(NamedTuple):
    """`cel.bind(name, value, body)`; the value is computed when it is first needed."""

    span: Span
    name: str
    value: Node
    body: Node


@_by_identity
class Loop(NamedTuple):
    """A comprehension: `range.kind(names..., steps...)`."""

    span: Span
    kind: str
    range: Node
    names: tuple[str, ...]
    steps: tuple[Node, ...]


@_by_identity
class OptionalMap(NamedTuple):
    """`optional.optMap(name, body)`, or `optFlatMap` when `flat`."""

    span: Span
    optional: Node
    name: str
    body: Node
    flat: bool


Node: TypeAlias = (
    Literal
    | Identifier
    | Select
    | Call
    | ListLiteral
    | MapLiteral
    | MessageLiteral
    | Bind
    | Loop
    | OptionalMap
)


def dotted(node: Node) -> str | None:
    """Return `a.b.c` for a chain of plain selections, None for anything else."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Identifier) else None


def written(node: Node) -> str:
    """Return the text of a literal that the syntax made a field name."""
    if not isinstance(node, Literal):
        raise TypeError(f"a field name is a literal, not a {type(node).__name__}")
    return str(node.value)


def operands(call: Call) -> tuple[Node, ...]:
    """Return the receiver, if there is one, and the arguments."""
    return call.args if call.target is None else (call.target, *call.args)


def children(node: Node) -> list[Node]:  # noqa: PLR0911 - one for each kind of node
    """Return the nodes directly below a node."""
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, Call):
        return [*operands(node)]
    if isinstance(node, ListLiteral):
        return [item.value for item in node.items]
    if isinstance(node, MapLiteral):
        return [part for entry in node.entries for part in (entry.key, entry.value)]
    if isinstance(node, MessageLiteral):
        return [value for _, value, _ in node.fields]
    if isinstance(node, Bind):
        return [node.value, node.body]
    if isinstance(node, Loop):
        return [node.range, *node.steps]
    if isinstance(node, OptionalMap):
        return [node.optional, node.body]
    return []


def step(node: Node) -> tuple[Node, str | None, list[Node]] | None:
    """Return the operand of a selection or index, its key if it is written out, and what else it computes.

    `a.b`, `a["b"]`, `a.?b` and `a[?"b"]` read the same; `a[x]` reads all of a, and x besides.
    """
    if isinstance(node, Select):
        return node.operand, node.field, []
    if isinstance(node, Call) and node.target is None and node.function in ("_[_]", "_[?_]", "_?._"):
        operand, key = node.args
        if isinstance(key, Literal) and isinstance(key.value, str):
            return operand, key.value, []
        return operand, None, [key]
    return None
