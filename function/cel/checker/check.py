"""The static check: every name is known, every call has an overload, the result can be a bool.

It walks the tree once and hangs what it finds on the nodes: their types, the overloads a call may run, the
slots of the variables.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from function.cel.checker.calls import call_type, check_format, loop_type, mismatch
from function.cel.checker.state import (
    TYPE_IDENTIFIERS,
    Checked,
    Checker,
    Scope,
    ScopedNode,
    TypeSteps,
    Variable,
)
from function.cel.checker.unification import equivalent
from function.cel.library.declarations import MESSAGES
from function.cel.syntax import nodes
from function.cel.syntax.nodes import BOOL, Type, list_of, map_of, optional_of, wrapper_of
from function.cel.syntax.parser import descend
from function.cel.values import SUBJECT, Mistake

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.cel.checker.state import Environment
    from function.cel.library import Dialect


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
