"""The static check: every name is known, every call has an overload, the result can be a bool.

It walks the tree once and hangs what it finds on the nodes: their types, the overloads a call may run, the
slots of the variables.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from function.cel.checker.state import (
    TYPE_IDENTIFIERS,
    Checked,
    Checker,
    Environment,
    Scope,
    ScopedNode,
    TypeSteps,
    Variable,
    equivalent,
)
from function.cel.library import Dialect
from function.cel.library.declarations import MESSAGES, Overload
from function.cel.library.formats import check_template
from function.cel.syntax import nodes
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
    Call,
    ListLiteral,
    Literal,
    Loop,
    Node,
    Type,
    list_of,
    map_of,
    optional_of,
    wrapper_of,
    written,
)
from function.cel.syntax.parser import collect, descend
from function.cel.values import SUBJECT, EvaluationError, Mistake

# The static check of calls: which function a name means, which overloads the arguments allow.


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


def check(root: nodes.Node, environment: Environment, dialect: Dialect) -> Checked:
    """Check an expression whose result must be a bool. Raises Mistake."""
    checker = Checker(root, environment, dialect)
    scope = {environment.variable: Variable(environment.type, SUBJECT)}
    result = checker.final(descend(partial(_note, checker), (root, scope)))
    _finish(checker)
    accepted = {BOOL, environment.unknown} | ({wrapper_of(BOOL)} if dialect.wrapper_results else set())
    if result not in accepted:
        raise Mistake(f"must evaluate to bool or the unknown type, not {result}", root.span.start)
    return checker.checked


def _note(checker: Checker, wanted: ScopedNode) -> TypeSteps:
    """Return the type of a node and note it. Raises Mistake."""
    node, scope = wanted
    steps = RULES[type(node)](checker, node, scope)
    kind: Type = (yield from steps) if isinstance(steps, Generator) else steps
    checker.checked.types[node] = kind
    return kind


def _finish(checker: Checker) -> None:
    """Settle all types, then refuse literals of mixed types."""
    settled: dict[int, Type] = {}
    kinds = checker.checked.types
    for node, kind in kinds.items():
        kinds[node] = checker.final(kind, settled)
    _refuse_bound_types(checker)
    for call in checker.checked.overloads:
        if call.function == "format":
            check_format(call, kinds)
    for (first, _), *others in checker.literals:
        wanted = checker.final(first, settled)
        for kind, at in others:
            if not equivalent(checker.final(kind, settled), wanted):
                raise Mistake(f"expected type '{wanted}' but found '{checker.final(kind)}'", at)


def _refuse_bound_types(checker: Checker) -> None:
    """Refuse names that stand for a type: cel-go takes them for names of types, not of variables."""
    for kind, name, at in checker.read:
        if checker.final(kind).name == "type" and name not in TYPE_IDENTIFIERS:
            raise Mistake(f"reference to undefined type: {name}", at)
    for node in [node for node in checker.checked.variables if checker.checked.types[node].name == "type"]:
        name = node.name.removeprefix(".")
        if name not in TYPE_IDENTIFIERS:
            raise Mistake(f"reference to undefined type: {name}", node.span.at)
        del checker.checked.variables[node]
        checker.checked.type_values[node] = name


def _literal(_checker: Checker, node: nodes.Literal, _scope: Scope) -> Type:
    """Return the type of a literal."""
    return node.type


def _name(checker: Checker, node: nodes.Identifier, scope: Scope) -> Type:
    """Return the type of a name: a variable's, or of a type's name."""
    variable = checker.variable(node.name, scope)
    if variable is not None:
        checker.checked.variables[node] = variable
        return variable.type
    return checker.type_value(node, node.name.removeprefix("."))


def _select(checker: Checker, node: nodes.Select, scope: Scope) -> TypeSteps:
    """Return the type of a selection."""
    name = checker.qualified(node, scope)
    if name in TYPE_IDENTIFIERS:
        return checker.type_value(node, str(name))
    kind = checker.field((yield node.operand, scope), node.field, node.span.at)
    return BOOL if node.test else checker.substitute(kind)


def _list_literal(checker: Checker, node: nodes.ListLiteral, scope: Scope) -> TypeSteps:
    """Return the type of a list literal."""
    joined: Type | None = None
    kinds = []
    for item in node.items:
        kind = checker.element((yield item.value, scope), item.value, optional=item.optional)
        joined = checker.substitution.join(joined, kind)
        kinds.append((kind, item.value.span.at))
    checker.same_types(kinds)
    return list_of(joined or checker.substitution.variable())


def _map_literal(checker: Checker, node: nodes.MapLiteral, scope: Scope) -> TypeSteps:
    """Return the type of a map literal."""
    key: Type | None = None
    value: Type | None = None
    keys, values = [], []
    for entry in node.entries:
        kind = yield entry.key, scope
        key = checker.substitution.join(key, kind)
        keys.append((kind, entry.key.span.at))
        kind = checker.element((yield entry.value, scope), entry.value, optional=entry.optional)
        value = checker.substitution.join(value, kind)
        values.append((kind, entry.value.span.at))
    checker.same_types(keys)
    checker.same_types(values)
    return map_of(key or checker.substitution.variable(), value or checker.substitution.variable())


def _message(checker: Checker, node: nodes.MessageLiteral, scope: Scope) -> TypeSteps:
    """Return the type of a message literal."""
    declared = MESSAGES.get(node.name)
    if declared is None:
        raise Mistake(f"undeclared reference to '{node.name}' (in container '')", node.span.at)
    for field, value, _ in node.fields:
        kind = yield value, scope
        if field not in declared.fields:
            raise Mistake(f"undefined field '{field}'", value.span.at)
        expected = declared.fields[field]
        if not checker.unify((kind, expected)):
            raise Mistake(
                f"expected type of field '{field}' is '{expected}' but provided '{kind}'", value.span.at
            )
    return declared.type


def _bind(checker: Checker, node: nodes.Bind, scope: Scope) -> TypeSteps:
    """Return the type of cel.bind."""
    kind = yield node.value, scope
    checker.read.append((kind, node.name, node.span.at))
    slot = checker.slot()
    checker.checked.slots[node] = (slot,)
    body = yield node.body, {**scope, node.name: Variable(kind, slot, lazy=True)}
    return checker.substitute(body)


def _optional_map(checker: Checker, node: nodes.OptionalMap, scope: Scope) -> TypeSteps:
    """Return the type of optMap or optFlatMap."""
    value = checker.substitution.variable()
    given = yield node.optional, scope
    if not checker.unify((given, optional_of(value))):
        raise mismatch(checker, "hasValue", [given], node.span.at, member=True)
    checker.read.append((value, node.name, node.span.at))
    slot = checker.slot()
    checker.checked.slots[node] = (slot,)
    body = yield node.body, {**scope, node.name: Variable(value, slot)}
    if not node.flat:
        return optional_of(checker.substitute(body))
    if not checker.unify((body, optional_of(checker.substitution.variable()))):
        raise Mistake(f"optFlatMap needs an optional, not '{checker.final(body)}'", node.body.span.at)
    return checker.substitute(body)


RULES: Mapping[type, Callable[[Checker, Any, Scope], Type | TypeSteps]] = {
    nodes.Literal: _literal,
    nodes.Identifier: _name,
    nodes.Select: _select,
    nodes.Call: call_type,
    nodes.ListLiteral: _list_literal,
    nodes.MapLiteral: _map_literal,
    nodes.MessageLiteral: _message,
    nodes.Bind: _bind,
    nodes.OptionalMap: _optional_map,
    nodes.Loop: loop_type,
}
