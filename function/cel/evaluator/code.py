"""The closure that a node compiles to, and how it is charged."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias

from function.cel.syntax.nodes import Call, Identifier, Node, Select
from function.cel.syntax.types import DYN, Type
from function.cel.values import Value

Frame: TypeAlias = list[Value]
Run: TypeAlias = Callable[[Frame], Value]

UNKNOWN: Any = object()


class Code(NamedTuple):
    """What a node compiles to: what runs, what it surely costs, its value if that is known.

    `certain` is the type that the value surely has, dyn where nothing is sure. The check alone makes no type
    certain: it lets the first overload of cel-go bind a parameter that nothing else binds, whatever the value
    is, and lets null pass for many types.
    """

    run: Run
    cost: int = 0
    constant: Value = UNKNOWN
    certain: Type = DYN

    @property
    def is_constant(self) -> bool:
        """Whether the value is known before any evaluation."""
        return self.constant is not UNKNOWN


CodeSteps: TypeAlias = Generator[Node, Code, Code]


def constant(value: Value, certain: Type = DYN) -> Code:
    """Return the code of a known value."""
    return Code(lambda _frame: value, 0, value, certain)


def is_path(node: Node) -> bool:
    """Whether Kubernetes reads the node as a path, so that its value arrives as it is."""
    if isinstance(node, Identifier | Select):
        return True
    return isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._", "_?_:_")


def relative(operand: Node) -> int:
    """Return the unit that Kubernetes charges for reaching into something computed."""
    if isinstance(operand, Identifier | Select):
        return 0
    if isinstance(operand, Call) and operand.function in ("_[_]", "_[?_]", "_?._"):
        return 0
    return 1
