"""Fold constants at compile time: conversions, literal quantities, sets of literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.errors import Aborted, EvaluationError, Mistake
from function.cel.evaluator.code import Code, Frame, Run, constant
from function.cel.evaluator.dispatch import admission
from function.cel.library.regex import compiled
from function.cel.library.relations import contains
from function.cel.syntax.types import BOOL
from function.cel.values import UInt, Value, type_name

if TYPE_CHECKING:
    from function.cel.evaluator.build import Build
    from function.cel.library.declarations import Overload
    from function.cel.syntax.nodes import Call

CONVERSIONS = frozenset(
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"]
)
PATTERNS = frozenset({"matches", "find", "findAll"})
LITERALS = frozenset({"quantity", "semver"})
_SETTABLE = frozenset({bool, float, int, UInt, str})
_UNHASHABLE = frozenset({"bytes", "kubernetes.Semver"})
"""Values that make cel-go's look-up in a set of literals fail."""


def folded(build: Build, node: Call, overloads: tuple[Overload, ...], codes: list[Code]) -> Code | None:
    """Return the code of a call that can be settled now, or None. Raises Mistake for a bad constant."""
    name = node.function
    if name in CONVERSIONS and len(codes) == 1 and codes[0].is_constant:
        return constant(_converted(node, overloads, codes[0].constant))
    if name in LITERALS and all(code.is_constant for code in codes):
        return _literal(build, overloads, codes)
    if name == "@in" and type(codes[1].constant) is list:
        return _membership(codes[0], codes[1].constant)
    if name in PATTERNS and len(codes) > 1 and codes[1].is_constant:
        _check_pattern(node, codes[1].constant)
    return None


def _converted(node: Call, overloads: tuple[Overload, ...], value: Value) -> Value:
    for overload in overloads:
        if admission(overload.parameters)([value]):
            try:
                return overload.run(value)
            except EvaluationError as error:
                at = (node.args or (node,))[0].span.at
                raise Mistake(f"invalid {node.function} argument: {error}", at) from None
    raise Mistake(f"no such overload: {node.function}({type_name(value)})", node.span.at)


def _literal(build: Build, overloads: tuple[Overload, ...], codes: list[Code]) -> Code | None:
    """Parse a literal quantity or version once. A bad one stays a runtime error, as in Kubernetes."""
    values = [code.constant for code in codes]
    (overload,) = overloads
    if not admission(overload.parameters)(values):
        return None
    try:
        value = overload.run(*values)
    except EvaluationError:
        return None
    units = overload.cost if isinstance(overload.cost, int) else overload.cost(value, *values)
    if build.forms and overload.name == "quantity":
        return Code(lambda _frame: value.copy(), units, certain=overload.result)
    return Code(lambda _frame: value, units, certain=overload.result)


def _membership(code: Code, elements: list[Value]) -> Code | None:
    """Settle `x in [literals]`: cel-go makes a set of the literals, and does not even look at x for none."""
    if not elements:
        return constant(value=False, certain=BOOL)
    if not all(type(element) in _SETTABLE for element in elements):
        return None
    return Code(_member(code.run, elements), code.cost, certain=BOOL)


def _member(run: Run, elements: list[Value]) -> Run:
    texts = frozenset(element for element in elements if type(element) is str)

    def test(frame: Frame) -> Value:
        value = run(frame)
        if type(value) is str:
            return value in texts
        if type_name(value) in _UNHASHABLE:
            raise Aborted(f"a {type_name(value)} cannot be looked up in a list of literals")
        return contains(value, elements)

    return test


def _check_pattern(node: Call, pattern: Value) -> None:
    if type(pattern) is not str:
        return
    try:
        compiled(pattern)
    except EvaluationError as error:
        at = node.args[-1 if node.target is None else 0]
        raise Mistake(f"invalid {node.function} argument: {error}", at.span.at) from None
