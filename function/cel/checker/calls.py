"""The static check of calls: which function a name means, which overloads the arguments allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.errors import EvaluationError, Mistake
from function.cel.library.text_format import check_template
from function.cel.syntax.descent import collect
from function.cel.syntax.nodes import ListLiteral, Literal, written
from function.cel.syntax.types import BOOL, DYN, Type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.cel.checker.scope import Scope, TypeSteps
    from function.cel.checker.state import Checker
    from function.cel.library.declarations import Overload
    from function.cel.syntax.nodes import Call, Node


def call_type(checker: Checker, node: Call, scope: Scope) -> TypeSteps:
    """Return the type of a call. Raises Mistake."""
    if node.function == "_?._":
        operand, field = node.args
        yield field, scope
        kind = checker.field((yield operand, scope), written(field), node.span.at, optional=True)
        return checker.substitute(kind)
    exempt = node.function == "format"
    checker.in_format += exempt
    kind = yield from _checked_call(checker, node, scope)
    checker.in_format -= exempt
    return kind


def _checked_call(checker: Checker, node: Call, scope: Scope) -> TypeSteps:
    function, target = _function(checker, node, scope)
    kinds = yield from collect((arg, scope) for arg in node.args)
    if function in ("_&&_", "_||_"):
        return _logic(checker, node, kinds)
    if function == "_?_:_":
        return _choice(checker, node, kinds)
    if target is not None:
        kinds.insert(0, (yield target, scope))
    return _overloaded(checker, node, function, kinds, member=target is not None)


def _function(checker: Checker, node: Call, scope: Scope) -> tuple[str, Node | None]:
    """Return the function a call means: `sets.contains(...)` is one name, not a method."""
    if node.target is not None:
        prefix = checker.qualified(node.target, scope)
        if prefix is not None and f"{prefix}.{node.function}" in checker.functions:
            checker.checked.global_calls.add(node)
            return f"{prefix}.{node.function}", None
    return node.function, node.target


def _logic(checker: Checker, node: Call, kinds: list[Type]) -> Type:
    for arg, kind in zip(node.args, kinds, strict=True):
        checker.boolean(kind, arg)
    return BOOL


def _choice(checker: Checker, node: Call, kinds: list[Type]) -> Type:
    result = checker.substitution.variable()
    condition, one, other = kinds
    if not checker.unify((condition, BOOL), (one, result), (other, result)):
        raise mismatch(checker, "_?_:_", kinds, node.span.at, member=False)
    return checker.substitute(result)


def _overloaded(checker: Checker, node: Call, function: str, kinds: list[Type], *, member: bool) -> Type:
    declared = checker.functions.get(function)
    if declared is None:
        raise Mistake(f"undeclared reference to '{function}' (in container '')", node.span.at)
    matching = []
    result: Type | None = None
    count, first = len(kinds), checker.resolve(kinds[0]) if kinds else DYN
    for overload in declared:
        if overload.member != member or len(overload.parameters) != count:
            continue
        if count and first.cannot_be(overload.parameters[0]):
            continue
        parameters, made = _instance(checker, overload)
        if checker.unify(*zip(kinds, parameters, strict=True)):
            matching.append(overload)
            returned = checker.substitute(made) if overload.generic else made
            result = returned if result is None or result == returned else DYN
    if result is None:
        raise mismatch(checker, function, kinds, node.span.at, member=member)
    checker.checked.overloads[node] = tuple(matching)
    return result


def _instance(checker: Checker, overload: Overload) -> tuple[tuple[Type, ...], Type]:
    if not overload.generic:
        return overload.parameters, overload.result
    *parameters, result = checker.substitution.fresh((*overload.parameters, overload.result))
    return tuple(parameters), result


def check_format(node: Call, types: Mapping[Node, Type]) -> None:
    """Check a literal template of format against the types of arguments written out. Raises Mistake."""
    given = node.args[-1] if node.args else None
    if not isinstance(node.target, Literal) or not isinstance(given, ListLiteral):
        return
    if type(node.target.value) is not str:
        return
    try:
        check_template(node.target.value, given, types)
    except EvaluationError as error:
        raise Mistake(str(error), given.span.at) from None


def mismatch(checker: Checker, function: str, kinds: list[Type], at: int, *, member: bool) -> Mistake:
    """Return the mistake of calling a function with what it does not take."""
    shown = [str(checker.final(kind)) for kind in kinds]
    receiver = f"{shown.pop(0)}." if member else ""
    applied = f"{receiver}({', '.join(shown)})"
    return Mistake(f"found no matching overload for '{function}' applied to '{applied}'", at)
