"""The static check of comprehensions: what they run over, the types of their names, what they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.errors import Mistake
from function.cel.scope import Variable
from function.cel.syntax.descent import each
from function.cel.types import BOOL, DYN, INT, Type, list_of, map_of

if TYPE_CHECKING:
    from function.cel.check import Checker
    from function.cel.scope import Scope, TypeSteps
    from function.cel.syntax.nodes import Loop

PREDICATES = frozenset({"all", "exists", "exists_one"})
SORTABLE = frozenset({"int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes", "dyn"})


def loop_type(checker: Checker, node: Loop, scope: Scope) -> TypeSteps:
    """Return the type of a comprehension. Raises Mistake."""
    over = checker.resolve((yield node.range, scope))
    kinds = _names(checker, node, over)
    slots = tuple(checker.slot() for _ in node.names)
    checker.checked.slots[node] = slots
    inner = dict(scope)
    for name, kind, slot in zip(node.names, kinds, slots, strict=True):
        inner[name] = Variable(kind, slot)
    steps = yield from each((step, inner) for step in node.steps)
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
        return list_of(names[0])
    if node.kind == "sortBy":
        return _sorted(checker, node, over, steps[0])
    if len(steps) > 1:
        checker.boolean(steps[0], node.steps[0])
    if node.kind == "transformMap":
        return map_of(names[0], steps[-1])
    if node.kind == "transformMapEntry":
        return _entries(checker, node, steps[-1])
    return list_of(steps[-1])


def _sorted(checker: Checker, node: Loop, over: Type, key: Type) -> Type:
    if over.name not in ("list", "dyn"):
        raise Mistake(f"sortBy needs a list, not '{checker.final(over)}'", node.range.span.at)
    if checker.final(key).name not in SORTABLE:
        raise Mistake(f"sortBy cannot order '{checker.final(key)}'", node.steps[0].span.at)
    return list_of(DYN) if over.name == "dyn" else over


def _entries(checker: Checker, node: Loop, entry: Type) -> Type:
    made = map_of(checker.substitution.variable(), checker.substitution.variable())
    if not checker.unify((entry, made)):
        found = checker.final(entry)
        raise Mistake(f"transformMapEntry needs a map of one entry, not '{found}'", node.steps[-1].span.at)
    return checker.resolve(made)
