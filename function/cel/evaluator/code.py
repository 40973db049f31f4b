"""The closure that a node compiles to, and how it is charged."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from function.cel.checker.references import value_path
from function.cel.library.network import Cidr, Ip
from function.cel.library.quantity import Quantity, Semver
from function.cel.library.urls import Url
from function.cel.syntax.nodes import DYN, Call, Identifier, Node, Select, Type
from function.cel.values import SUBJECT, EvaluationError, Map, Optional, TypeValue, Value, type_name

if TYPE_CHECKING:
    from function.cel.checker.state import Checked
    from function.cel.library.declarations import Overload


# What closures are generated from: a checked expression, and whether its quantities need copies.


class Build(NamedTuple):
    """One expression to generate."""

    checked: Checked
    forms: bool
    """Whether it can tell the forms of a quantity apart, so that every evaluation needs its own copies."""

    def owning(self, overload: Overload) -> Callable[..., Value]:
        """Return what runs an overload; where forms matter a parsed quantity is the evaluation's own."""
        run = overload.run
        if self.forms and overload.name == "quantity":
            return lambda text: run(text).copy()
        return run


Frame: TypeAlias = list[Value]
Run: TypeAlias = Callable[[Frame], Value]

UNKNOWN: Any = object()


class Code(NamedTuple):
    """The result of compiling a node: the code, its certain cost, and its value where that is known.

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
        """Tell whether the value is known before any evaluation."""
        return self.constant is not UNKNOWN


CodeSteps: TypeAlias = Generator[Node, Code, Code]


def constant(value: Value, certain: Type = DYN) -> Code:
    """Return the code of a known value."""
    return Code(lambda _frame: value, 0, value, certain)


def is_path(node: Node) -> bool:
    """Tell whether Kubernetes reads the node as a path, so that its value arrives as it is."""
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


# Read the variable in one look-up: `device.attributes["gpu.nvidia.com"].architecture` is one, not four.

_MISSING = object()


def path_code(checked: Checked, node: Node) -> Run | None:
    """Return what reads a single value of the variable in one step, or None if it is no such path."""
    path = value_path(checked, node)
    if path is None:
        return None

    def run(frame: Frame) -> Value:
        value = frame[SUBJECT].values.get(path, _MISSING)
        if value is _MISSING:
            raise frame[SUBJECT].lacks(path)
        return value

    return run


def present(operand: Value, field: str) -> bool:
    """Return `has(operand.field)`."""
    kind = type(operand)
    if kind is Map:
        return operand.find(field) is not None
    if kind is Optional:
        return bool(operand.present) and present(operand.value, field)
    if kind is list:
        raise EvaluationError("unsupported index type 'string' in list")
    return False


# Drop what Kubernetes drops of an optional when it passes a name or a branch of `? :`.
#
# cel-go takes the optional apart there, down to a value of Go, and puts it together again. On the way
# optionals in optionals become one, a type becomes its name, and a value of Kubernetes' own types cannot be
# put together again: the optional is there, and an error to whoever reads it. A map forgets what it has for
# keys that are not there. Kubernetes 1.37 mends all that.

_FOREIGN = frozenset({Quantity, Semver, Ip, Cidr, Url})
_MAYBE = frozenset({"optional", "dyn"})


def passed(value: Value) -> Value:
    """Return what comes out on the other side."""
    if type(value) is not Optional or not value.present or value.fails:
        return value
    held = value.value
    while type(held) is Optional:
        if held.fails:
            return held
        held = held.value if held.present else None
    if type(held) is TypeValue:
        held = held.name
    if type(held) in _FOREIGN:
        return Optional(fails=f"unsupported conversion of an optional {type_name(held)}")
    if type(held) is Map and held.default is not None:
        held = Map(held.entries, of_texts=held.of_texts)
    return Optional(held)


def qualified(checked: Checked, operand: Node, run: Run) -> Run:
    """Return what runs the operand of a selection or index; a computed optional is taken apart there too."""
    return run if is_path(operand) else passing(run, checked, operand)


def passing(run: Run, checked: Checked, node: Node) -> Run:
    """Return what runs a node and passes its value on; itself for what is certainly no optional."""
    if checked.dialect.optionals_keep_values or checked.types[node].name not in _MAYBE:
        return run

    def through(frame: Frame) -> Value:
        value = run(frame)
        return passed(value) if type(value) is Optional else value

    return through
