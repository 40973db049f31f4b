"""The tree of an expression after the macros are resolved. `at` is where an error points, in characters.

Nodes compare by identity: the checker hangs what it finds out about a node in tables keyed by the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from function.cel.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Where a node stands in the source: [start, end), and where its errors point."""

    at: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant as written."""

    span: Span
    value: Any
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A bare identifier."""

    span: Span
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    """`operand.field`, or `has(operand.field)` when `test`."""

    span: Span
    operand: Node
    field: str
    test: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A function, method or operator; operators carry cel-go's names (`_==_`, `@in`, `_[?_]`)."""

    span: Span
    function: str
    target: Node | None
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """An element of a list literal; `optional` is `?element`."""

    value: Node
    optional: bool


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An entry of a map literal; `optional` is `?key: value`."""

    key: Node
    value: Node
    optional: bool


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral:
    """`[a, b]`."""

    span: Span
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MapLiteral:
    """`{k: v}`."""

    span: Span
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """`Name{field: value}`, a protobuf message."""

    span: Span
    name: str
    fields: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Bind:
    """`cel.bind(name, value, body)`; the value is computed when it is first needed."""

    span: Span
    name: str
    value: Node
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A comprehension: `range.kind(names..., steps...)`."""

    span: Span
    kind: str
    range: Node
    names: tuple[str, ...]
    steps: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OptionalMap:
    """`optional.optMap(name, body)`, or `optFlatMap` when `flat`."""

    span: Span
    optional: Node
    name: str
    body: Node
    flat: bool


Node: TypeAlias = (
    Literal | Name | Select | Call | ListLiteral | MapLiteral | Message | Bind | Loop | OptionalMap
)


def dotted(node: Node) -> str | None:
    """Return `a.b.c` for a chain of plain selections, None for anything else."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Name) else None


def written(node: Node) -> str:
    """Return the text of a literal that the syntax made a field name."""
    if not isinstance(node, Literal):
        raise TypeError(f"a field name is a literal, not a {type(node).__name__}")
    return str(node.value)


def operands(call: Call) -> tuple[Node, ...]:
    """Return the receiver, if there is one, and the arguments."""
    return call.args if call.target is None else (call.target, *call.args)
