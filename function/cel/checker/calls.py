"""The static check of calls: which function a name means, which overloads the arguments allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.checker.state import Variable
from function.cel.library.formats import check_template
from function.cel.syntax.builders import READ
from function.cel.syntax.nodes import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    ListLiteral,
    Literal,
    Type,
    list_of,
    map_of,
    written,
)
from function.cel.syntax.parser import collect
from function.cel.values import EvaluationError, Mistake

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.cel.checker.state import Checker, Scope, TypeSteps
    from function.cel.library.declarations import Overload
    from function.cel.syntax.nodes import Call, Loop, Node


# The static check of comprehensions: what they run over, the types of their names, what they make.

PREDICATES = frozenset({"all", "exists", "exists_one"})
SORTABLE = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
"""Types of keys that sortBy takes, in the order of cel-go's overloads."""


def loop_type(checker: Checker, node: Loop, scope: Scope) -> TypeSteps:
    """Return the type of a comprehension. Raises Mistake."""
    over = checker.substitute((yield node.range, scope))
    kinds = _names(checker, node, over)
    if node.kind in READ:
        checker.read.append((kinds[0], node.names[0], node.span.at))
    slots = tuple(checker.slot() for _ in node.names)
    checker.checked.slots[node] = slots
    inner = dict(scope)
    for name, kind, slot in zip(node.names, kinds, slots, strict=True):
        inner[name] = Variable(kind, slot)
    steps = yield from collect((step, inner) for step in node.steps)
    return _result(checker, node, over, kinds, steps)


def _names(checker: Checker, node: Loop, over: Type) -> tuple[Type, ...]:
    """Return the types of the loop's names."""
    two = len(node.names) > 1
    if over.is_variable:
        checker.unify((DYN, over))
        over = DYN
    if over.name == "list":
        return (INT, *over.args) if two else over.args
    if over.name == "map":
        return over.args if two else over.args[:1]
    if over.name == "dyn":
        return (DYN,) * len(node.names)
    shown = checker.final(over)
    raise Mistake(
        f"expression of type '{shown}' cannot be range of a comprehension (must be list, map, or dynamic)",
        node.range.span.at,
    )


def _result(checker: Checker, node: Loop, over: Type, names: tuple[Type, ...], steps: list[Type]) -> Type:
    if node.kind in PREDICATES:
        checker.boolean(steps[0], node.steps[0])
        return BOOL
    if node.kind == "filter":
        checker.boolean(steps[0], node.steps[0])
        return list_of(checker.substitute(names[0]))
    if node.kind == "sortBy":
        return _sorted(checker, node, over, steps[0])
    if len(steps) > 1:
        checker.boolean(steps[0], node.steps[0])
    if node.kind == "transformMap":
        return map_of(names[0], checker.substitute(steps[-1]))
    if node.kind == "transformMapEntry":
        return _entries(checker, node, steps[-1])
    return list_of(checker.substitute(steps[-1]))


def _sorted(checker: Checker, node: Loop, over: Type, key: Type) -> Type:
    """Return the type of sortBy, of which cel-go has an overload for each type of key."""
    result: Type | None = None
    for sortable in SORTABLE:
        element = checker.substitution.variable()
        if checker.unify((over, list_of(element)), (key, sortable)):
            sorted_type = list_of(checker.substitute(element))
            result = sorted_type if result is None or result == sorted_type else DYN
    if result is None:
        given, by = checker.final(over), checker.final(key)
        culprit = node.steps[0] if given.name in ("list", "dyn") else node.range
        raise Mistake(f"sortBy cannot sort a {given} by a {by}", culprit.span.at)
    return result


def _entries(checker: Checker, node: Loop, entry: Type) -> Type:
    made = map_of(checker.substitution.variable(), checker.substitution.variable())
    if not checker.unify((entry, made)):
        given = checker.final(entry)
        raise Mistake(f"transformMapEntry needs a map of one entry, not '{given}'", node.steps[-1].span.at)
    return checker.substitute(made)


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
