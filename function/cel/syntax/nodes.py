"""The tree of an expression after the macros are resolved. `at` is where an error points, in characters.

Nodes compare by identity: the checker hangs what it finds out about a node in tables keyed by the node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from function.cel.syntax.types import Type


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
