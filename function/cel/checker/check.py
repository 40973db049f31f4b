"""The static check: every name is known, every call has an overload, the result can be a bool.

The check is what makes a selector here the selector that Kubernetes has: an API server refuses what does not
pass it, so passing too much would place on devices that no claim can ever select, and passing too little
would refuse what a cluster accepts. So each rule is cel-go's (`checker/checker.go`), in its order where the
order shows.

It walks the tree once and hangs what it finds on the nodes (`Checked`): their types, the overloads that a
call may run, the slots of the variables. A rule is a function in the table `RULES`; it returns a type, or
yields the nodes below it and is sent their types (`descend`), so that no selector is too deep.

Three things have to wait until all types are known, and are done at the end of `check`:

- literals must be of one type (`[1, "a"]` does not compile in the environment of the API server);
- a name that a macro binds must not stand for a type: cel-go takes it for the name of one;
- a literal template of `format` must fit its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from function.cel.checker import state
from function.cel.checker.state import TYPE_IDENTIFIERS, Checked, Checker, Scope, TypeSteps, Variable
from function.cel.library import Dialect
from function.cel.library.declarations import MESSAGES
from function.cel.library.formats import check_template
from function.cel.syntax import nodes
from function.cel.syntax.builders import READ
from function.cel.syntax.nodes import Call, Literal, Loop, Node, Type, list_of, map_of, optional_of, written
from function.cel.syntax.parser import collect, descend
from function.cel.values import SUBJECT, EvaluationError, Mistake

# Comprehensions: what they run over, the types of their names, what they make. In cel-go a comprehension is
# a fold over an accumulator (`checkComprehension`); a loop here stays one node, so its type is a rule.

PREDICATES = frozenset({"all", "exists", "exists_one"})
SORTABLE = tuple(map(Type, ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")))
"""Types of keys that sortBy takes, in the order of cel-go's overloads."""


def loop_type(checker: Checker, node: Loop, scope: Scope) -> TypeSteps:
    """Return the type of a comprehension. Raises Mistake.

    The steps see the names of the loop; a name hides one of the same spelling further out. A macro that reads
    its first name itself (`READ`) is noted, for what is read must not be a type.
    """
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
    """Return the types of the loop's names: element or key; of two, position and element or key and value.

    A range of which nothing is known becomes dyn, as in cel-go.
    """
    two = len(node.names) > 1
    if over.name[0] == "?":  # The check has still to find out what it is.
        checker.unify((nodes.DYN, over))
        over = nodes.DYN
    if over.name == "list":
        return (nodes.INT, *over.args) if two else over.args
    if over.name == "map":
        return over.args if two else over.args[:1]
    if over.name == "dyn":
        return (nodes.DYN,) * len(node.names)
    shown = checker.final(over)
    raise Mistake(
        f"expression of type '{shown}' cannot be range of a comprehension (must be list, map, or dynamic)",
        node.range.span.at,
    )


def _result(checker: Checker, node: Loop, over: Type, names: tuple[Type, ...], steps: list[Type]) -> Type:
    """Return the type of what a loop makes; a step before the last is a predicate."""
    if node.kind in PREDICATES:
        checker.boolean(steps[0], node.steps[0])
        return nodes.BOOL
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
        made = map_of(checker.substitution.variable(), checker.substitution.variable())
        if not checker.unify((steps[-1], made)):
            given = checker.final(steps[-1])
            raise Mistake(
                f"transformMapEntry needs a map of one entry, not '{given}'", node.steps[-1].span.at
            )
        return checker.substitute(made)
    return list_of(checker.substitute(steps[-1]))


def _sorted(checker: Checker, node: Loop, over: Type, key: Type) -> Type:
    """Return the type of sortBy, of which cel-go has an overload for each type of key.

    Several may fit where the key is dyn. As for any call the result is then their common type, or dyn; where
    none fits the message names the range or the key, whichever is to blame.
    """
    result: Type | None = None
    for sortable in SORTABLE:
        element = checker.substitution.variable()
        if checker.unify((over, list_of(element)), (key, sortable)):
            sorted_type = list_of(checker.substitute(element))
            result = sorted_type if result is None or result == sorted_type else nodes.DYN
    if result is None:
        given, by = checker.final(over), checker.final(key)
        culprit = node.steps[0] if given.name in ("list", "dyn") else node.range
        raise Mistake(f"sortBy cannot sort a {given} by a {by}", culprit.span.at)
    return result


def call_type(checker: Checker, node: Call, scope: Scope) -> TypeSteps:
    """Return the type of a call. Raises Mistake.

    `&&` and `||` take any number of terms, `? :` unifies its branches, `a.?b` is a selection. Everything else
    is a function, found by its name and the types of its arguments (cel-go's `checkCall`).
    """
    if node.function == "_?._":
        operand, field = node.args
        yield field, scope
        kind = checker.field((yield operand, scope), written(field), node.span.at, optional=True)
        return checker.substitute(kind)
    # The arguments of format are the one list literal that may mix types.
    exempt = node.function == "format"
    checker.in_format += exempt
    function, target = _function(checker, node, scope)
    kinds = yield from collect((arg, scope) for arg in node.args)
    if function in ("_&&_", "_||_"):
        for arg, given in zip(node.args, kinds, strict=True):
            checker.boolean(given, arg)
        kind = nodes.BOOL
    elif function == "_?_:_":
        kind = checker.substitution.variable()
        condition, one, other = kinds
        if not checker.unify((condition, nodes.BOOL), (one, kind), (other, kind)):
            raise mismatch(checker, "_?_:_", kinds, node.span.at, member=False)
        kind = checker.substitute(kind)
    else:
        # cel-go looks at the arguments before the receiver, which decides who is to blame in a message.
        if target is not None:
            kinds.insert(0, (yield target, scope))
        kind = _overloaded(checker, node, function, kinds, member=target is not None)
    checker.in_format -= exempt
    return kind


def _function(checker: Checker, node: Call, scope: Scope) -> tuple[str, Node | None]:
    """Return the function a call means: `sets.contains(...)` is one name, not a method.

    The longest dotted name wins, unless a variable in scope begins it. Such a call has no receiver: what
    stood before the last dot is part of its name.
    """
    if node.target is not None:
        prefix = checker.qualified(node.target, scope)
        if prefix is not None and f"{prefix}.{node.function}" in checker.functions:
            checker.checked.global_calls.add(node)
            return f"{prefix}.{node.function}", None
    return node.function, node.target


def _overloaded(checker: Checker, node: Call, function: str, kinds: list[Type], *, member: bool) -> Type:
    """Return the type of a call, and note every overload that the arguments may have.

    All that fit are kept, as in cel-go's `resolveOverload`: through dyn only the values tell which one runs.
    Where they return different types the result is dyn. Each overload that fits binds type variables, so
    that an earlier one narrows what a later one sees; the order of declarations is therefore cel-go's.
    """
    declared = checker.functions.get(function)
    if declared is None:
        raise Mistake(f"undeclared reference to '{function}' (in container '')", node.span.at)
    matching = []
    result: Type | None = None
    count, first = len(kinds), checker.resolve(kinds[0]) if kinds else nodes.DYN
    for overload in declared:
        if overload.member != member or len(overload.parameters) != count:
            continue
        if count and first.cannot_be(overload.parameters[0]):
            continue
        signature = (*overload.parameters, overload.result)
        *parameters, made = checker.substitution.fresh(signature) if overload.generic else signature
        if checker.unify(*zip(kinds, parameters, strict=True)):
            matching.append(overload)
            returned = checker.substitute(made) if overload.generic else made
            result = returned if result is None or result == returned else nodes.DYN
    if result is None:
        raise mismatch(checker, function, kinds, node.span.at, member=member)
    checker.checked.overloads[node] = tuple(matching)
    return result


def check_format(node: Call, types: Mapping[Node, Type]) -> None:
    """Check a literal template of format against the types of arguments written out. Raises Mistake.

    Done when all types are final: an argument may be a name whose type is found later.
    """
    given = node.args[-1] if node.args else None
    if not isinstance(node.target, Literal) or not isinstance(given, nodes.ListLiteral):
        return
    if type(node.target.value) is not str:
        return
    try:
        check_template(node.target.value, given, types)
    except EvaluationError as error:
        raise Mistake(str(error), given.span.at) from None


def mismatch(checker: Checker, function: str, kinds: list[Type], at: int, *, member: bool) -> Mistake:
    """Return the mistake of calling a function with what it does not take.

    The sentence is cel-go's, with the types of the arguments as far as they are known by now.
    """
    shown = [str(checker.final(kind)) for kind in kinds]
    receiver = f"{shown.pop(0)}." if member else ""
    applied = f"{receiver}({', '.join(shown)})"
    return Mistake(f"found no matching overload for '{function}' applied to '{applied}'", at)


def check(root: nodes.Node, environment: state.Environment, dialect: Dialect) -> Checked:
    """Check an expression whose result must be a bool. Raises Mistake.

    A result of unknown type passes too: the evaluation then sees if it is a bool, and it is an error if not.
    From Kubernetes 1.37 on a wrapper of a bool passes as well.
    """
    checker = Checker(root, environment, dialect)
    scope = {environment.variable: Variable(environment.type, SUBJECT)}
    result = checker.final(descend(partial(_note, checker), (root, scope)))
    settled: dict[int, Type] = {}
    kinds = checker.checked.types
    for node, kind in kinds.items():
        kinds[node] = checker.final(kind, settled)
    _refuse_bound_types(checker)
    for call in checker.checked.overloads:
        if call.function == "format":
            check_format(call, kinds)
    # Kubernetes forbids literals of mixed types (`HomogeneousAggregateLiterals`).
    for (first, _), *others in checker.literals:
        wanted = checker.final(first, settled)
        for kind, at in others:
            if not state.equivalent(checker.final(kind, settled), wanted):
                raise Mistake(f"expected type '{wanted}' but found '{checker.final(kind)}'", at)
    accepted = {nodes.BOOL, environment.unknown} | (
        {Type("wrapper", (nodes.BOOL,))} if dialect.wrapper_results else set()
    )
    if result not in accepted:
        raise Mistake(f"must evaluate to bool or the unknown type, not {result}", root.span.start)
    return checker.checked


def _note(checker: Checker, wanted: state.ScopedNode) -> TypeSteps:
    """Return the type of a node and note it. Raises Mistake."""
    node, scope = wanted
    steps = RULES[type(node)](checker, node, scope)
    kind: Type = (yield from steps) if isinstance(steps, Generator) else steps
    checker.checked.types[node] = kind
    return kind


def _refuse_bound_types(checker: Checker) -> None:
    """Refuse names that stand for a type: cel-go takes them for names of types, not of variables.

    `cel.bind(t, int, type(1) == t)` does not compile there, because an identifier of type "type" is resolved
    as a type of that name. A name that is the name of a type too is taken for the type.
    """
    for kind, name, at in checker.read:
        if checker.final(kind).name == "type" and name not in TYPE_IDENTIFIERS:
            raise Mistake(f"reference to undefined type: {name}", at)
    for node in [node for node in checker.checked.variables if checker.checked.types[node].name == "type"]:
        name = node.name.removeprefix(".")
        if name not in TYPE_IDENTIFIERS:
            raise Mistake(f"reference to undefined type: {name}", node.span.at)
        del checker.checked.variables[node]
        checker.checked.type_values[node] = name


def _name(checker: Checker, node: nodes.Identifier, scope: Scope) -> Type:
    """Return the type of a name: a variable's, or of a type's name. A variable hides a type."""
    variable = checker.variable(node.name, scope)
    if variable is not None:
        checker.checked.variables[node] = variable
        return variable.type
    return checker.type_value(node, node.name.removeprefix("."))


def _select(checker: Checker, node: nodes.Select, scope: Scope) -> TypeSteps:
    """Return the type of a selection, of has(), or of a dotted name of a type such as net.IP."""
    name = checker.qualified(node, scope)
    if name in TYPE_IDENTIFIERS:
        return checker.type_value(node, str(name))
    kind = checker.field((yield node.operand, scope), node.field, node.span.at)
    return nodes.BOOL if node.test else checker.substitute(kind)


def _list_literal(checker: Checker, node: nodes.ListLiteral, scope: Scope) -> TypeSteps:
    """Return the type of a list literal: of an empty one the element is a variable, bound by its use."""
    joined: Type | None = None
    kinds = []
    for item in node.items:
        kind = checker.element((yield item.value, scope), item.value, optional=item.optional)
        joined = checker.substitution.join(joined, kind)
        kinds.append((kind, item.value.span.at))
    checker.same_types(kinds)
    return list_of(joined or checker.substitution.variable())


def _map_literal(checker: Checker, node: nodes.MapLiteral, scope: Scope) -> TypeSteps:
    """Return the type of a map literal: keys and values have a common type each, or a variable if empty."""
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
    """Return the type of a message literal, which only protobuf's well-known types have (`MESSAGES`)."""
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
    """Return the type of cel.bind, whose name is lazy: its value is computed where it is first read."""
    kind = yield node.value, scope
    checker.read.append((kind, node.name, node.span.at))
    slot = checker.slot()
    checker.checked.slots[node] = (slot,)
    body = yield node.body, {**scope, node.name: Variable(kind, slot, lazy=True)}
    return checker.substitute(body)


def _optional_map(checker: Checker, node: nodes.OptionalMap, scope: Scope) -> TypeSteps:
    """Return the type of optMap, an optional of its body, or of optFlatMap, whose body is one already."""
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
    nodes.Literal: lambda _checker, node, _scope: node.type,
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
