"""The static check of comprehensions: what they run over, the types of their names, what they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.checker.scope import Variable
from function.cel.errors import Mistake
from function.cel.syntax.descent import collect
from function.cel.syntax.macros import READ
from function.cel.syntax.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
)

if TYPE_CHECKING:
    from function.cel.checker.scope import Scope, TypeSteps
    from function.cel.checker.state import Checker
    from function.cel.syntax.nodes import Loop

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
