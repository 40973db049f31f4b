"""The static check: every name is known, every call has an overload, the result can be a bool.

It walks the tree once and hangs what it finds on the nodes: their types, the overloads a call may run, the slots
of the variables. One instance checks one expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.cel.check_loops import loop_type
from function.cel.environment import TYPE_IDENTIFIERS
from function.cel.errors import Mistake
from function.cel.library import FUNCTIONS
from function.cel.messages import MESSAGES
from function.cel.nodes import (
    Bind,
    Call,
    ListLiteral,
    Literal,
    Loop,
    MapLiteral,
    Message,
    Name,
    Node,
    OptionalMap,
    Select,
)
from function.cel.scope import FIRST_SLOT, SUBJECT, Scope, Variable
from function.cel.syntax import dotted
from function.cel.types import BOOL, DYN, Substitution, Type, list_of, map_of, optional_of, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.cel.declarations import Overload
    from function.cel.environment import Environment


@dataclass(slots=True)
class Checked:
    """An expression that passed, and what was found out about its nodes."""

    root: Node
    environment: Environment
    types: dict[Node, Type]
    overloads: dict[Call, tuple[Overload, ...]]
    variables: dict[Name, Variable]
    slots: dict[Node, tuple[int, ...]]
    type_values: dict[Node, str]
    global_calls: set[Call]
    size: int = FIRST_SLOT


def check(root: Node, environment: Environment) -> Checked:
    """Check an expression whose result must be a bool. Raises Mistake."""
    checker = Checker(root, environment)
    result = checker.final(checker.check(root, {environment.variable: Variable(environment.type, SUBJECT)}))
    checker.finish()
    if result not in (BOOL, DYN):
        raise Mistake(f"must evaluate to bool or the unknown type, not {result}", root.span.start)
    return checker.checked


class Checker:
    def __init__(self, root: Node, environment: Environment) -> None:
        self.checked = Checked(root, environment, {}, {}, {}, {}, {}, set())
        self.substitution = Substitution()
        self.resolve = self.substitution.resolve
        self.final = self.substitution.final
        self.unify = self.substitution.unify
        self.alike: list[list[tuple[Type, int]]] = []
        self.in_format = 0

    def check(self, node: Node, scope: Scope) -> Type:
        found = RULES[type(node)](self, node, scope)
        self.checked.types[node] = found
        return found

    def finish(self) -> None:
        """Settle all types, then refuse literals of mixed types."""
        kinds = self.checked.types
        for node, kind in kinds.items():
            kinds[node] = self.final(kind)
        for elements in self.alike:
            first = self.final(elements[0][0])
            for kind, at in elements[1:]:
                if self.final(kind) != first:
                    raise Mistake(f"expected type '{first}' but found '{self.final(kind)}'", at)

    def slot(self) -> int:
        self.checked.size += 1
        return self.checked.size - 1

    def literal(self, node: Literal, _scope: Scope) -> Type:
        return node.type

    def name(self, node: Name, scope: Scope) -> Type:
        variable = scope.get(node.name)
        if variable is not None:
            self.checked.variables[node] = variable
            return variable.type
        return self.type_value(node, node.name)

    def type_value(self, node: Name | Select, name: str) -> Type:
        if name not in TYPE_IDENTIFIERS:
            raise Mistake(f"undeclared reference to '{name}' (in container '')", node.span.at)
        self.checked.type_values[node] = name
        return type_of(TYPE_IDENTIFIERS[name])

    def select(self, node: Select, scope: Scope) -> Type:
        name = None if node.test else self.qualified(node, scope)
        if name in TYPE_IDENTIFIERS:
            return self.type_value(node, str(name))
        found = self.field(self.check(node.operand, scope), node.field, node.span.at)
        return BOOL if node.test else found

    def qualified(self, node: Node, scope: Scope) -> str | None:
        """Return the dotted name of a node that no variable in scope begins."""
        name = dotted(node)
        return None if name is None or name.split(".", 1)[0] in scope else name

    def field(self, operand: Type, field: str, at: int, *, optional: bool = False) -> Type:
        operand = self.resolve(operand)
        if operand.name == "optional":
            operand, optional = self.resolve(operand.args[0]), True
        if operand.name == "map":
            found = operand.args[1]
        elif operand == self.checked.environment.type:
            found = self.variable_field(field, at)
        elif operand.name == "dyn":
            found = DYN
        elif operand.is_variable:
            self.unify((DYN, operand))
            found = DYN
        else:
            raise Mistake(f"type '{operand}' does not support field selection", at)
        return optional_of(found) if optional else found

    def variable_field(self, field: str, at: int) -> Type:
        environment = self.checked.environment
        if field not in environment.fields:
            known = ", ".join(environment.fields)
            raise Mistake(f"undefined field '{field}': {environment.variable} has {known}", at)
        return environment.fields[field].type

    def call(self, node: Call, scope: Scope) -> Type:
        if node.function == "_?._":
            operand, field = node.args
            self.check(field, scope)
            return self.field(self.check(operand, scope), field.value, node.span.at, optional=True)  # type: ignore[union-attr]
        exempt = node.function == "format"
        self.in_format += exempt
        found = self.known_call(node, scope)
        self.in_format -= exempt
        return found

    def known_call(self, node: Call, scope: Scope) -> Type:
        function, target = self.function(node, scope)
        kinds = []
        for arg in node.args:
            kinds.append(self.check(arg, scope))  # noqa: PERF401 - a comprehension would be one more frame
        if function in ("_&&_", "_||_"):
            return self.logic(node, kinds)
        if function == "_?_:_":
            return self.choice(node, kinds)
        if target is not None:
            kinds.insert(0, self.check(target, scope))
        return self.overloaded(node, function, kinds, member=target is not None)

    def function(self, node: Call, scope: Scope) -> tuple[str, Node | None]:
        """Return the function a call means: `sets.contains(...)` is one name, not a method."""
        if node.target is not None:
            prefix = self.qualified(node.target, scope)
            if prefix is not None and f"{prefix}.{node.function}" in FUNCTIONS:
                self.checked.global_calls.add(node)
                return f"{prefix}.{node.function}", None
        return node.function, node.target

    def logic(self, node: Call, kinds: list[Type]) -> Type:
        for arg, kind in zip(node.args, kinds, strict=True):
            self.boolean(kind, arg)
        return BOOL

    def boolean(self, kind: Type, node: Node) -> None:
        if not self.unify((kind, BOOL)):
            raise Mistake(f"expected type 'bool' but found '{self.final(kind)}'", node.span.at)

    def choice(self, node: Call, kinds: list[Type]) -> Type:
        result = self.substitution.variable()
        condition, one, other = kinds
        if not self.unify((condition, BOOL), (one, result), (other, result)):
            raise self.mismatch("_?_:_", kinds, node, member=False)
        return self.resolve(result)

    def overloaded(self, node: Call, function: str, kinds: list[Type], *, member: bool) -> Type:
        declared = FUNCTIONS.get(function)
        if declared is None:
            raise Mistake(f"undeclared reference to '{function}' (in container '')", node.span.at)
        matching = []
        result: Type | None = None
        for overload in declared:
            if overload.member != member or len(overload.parameters) != len(kinds):
                continue
            parameters, made = self.instance(overload)
            if self.unify(*zip(kinds, parameters, strict=True)):
                matching.append(overload)
                found = self.resolve(made)
                result = found if result is None or result == found else DYN
        if result is None:
            raise self.mismatch(function, kinds, node, member=member)
        self.checked.overloads[node] = tuple(matching)
        return result

    def instance(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        if not overload.generic:
            return overload.parameters, overload.result
        *parameters, result = self.substitution.fresh((*overload.parameters, overload.result))
        return tuple(parameters), result

    def mismatch(self, function: str, kinds: list[Type], node: Call, *, member: bool) -> Mistake:
        shown = [str(self.final(kind)) for kind in kinds]
        receiver = f"{shown.pop(0)}." if member else ""
        applied = f"{receiver}({', '.join(shown)})"
        return Mistake(f"found no matching overload for '{function}' applied to '{applied}'", node.span.at)

    def list_literal(self, node: ListLiteral, scope: Scope) -> Type:
        joined: Type | None = None
        kinds = []
        for item in node.items:
            kind = self.element(self.check(item.value, scope), item.value, optional=item.optional)
            joined = self.substitution.join(joined, kind)
            kinds.append((kind, item.value.span.at))
        self.same_types(kinds)
        return list_of(joined or self.substitution.variable())

    def element(self, kind: Type, node: Node, *, optional: bool) -> Type:
        if not optional:
            return kind
        kind = self.resolve(kind)
        if kind.name == "optional":
            return kind.args[0]
        if kind.name != "dyn":
            raise Mistake(f"expected type 'optional_type({kind})' but found '{kind}'", node.span.at)
        return kind

    def same_types(self, kinds: list[tuple[Type, int]]) -> None:
        if kinds and not self.in_format:
            self.alike.append(kinds)

    def map_literal(self, node: MapLiteral, scope: Scope) -> Type:
        key: Type | None = None
        value: Type | None = None
        keys, values = [], []
        for entry in node.entries:
            found = self.check(entry.key, scope)
            key = self.substitution.join(key, found)
            keys.append((found, entry.key.span.at))
            found = self.element(self.check(entry.value, scope), entry.value, optional=entry.optional)
            value = self.substitution.join(value, found)
            values.append((found, entry.value.span.at))
        self.same_types(keys)
        self.same_types(values)
        return map_of(key or self.substitution.variable(), value or self.substitution.variable())

    def message(self, node: Message, scope: Scope) -> Type:
        known = MESSAGES.get(node.name)
        if known is None:
            raise Mistake(f"undeclared reference to '{node.name}' (in container '')", node.span.at)
        for field, value in node.fields:
            kind = self.check(value, scope)
            if field not in known.fields:
                raise Mistake(f"undefined field '{field}'", value.span.at)
            expected = known.fields[field]
            if not self.unify((kind, expected)):
                raise Mistake(
                    f"expected type of field '{field}' is '{expected}' but provided '{kind}'", value.span.at
                )
        return known.type

    def bind(self, node: Bind, scope: Scope) -> Type:
        kind = self.check(node.value, scope)
        slot = self.slot()
        self.checked.slots[node] = (slot,)
        return self.check(node.body, {**scope, node.name: Variable(kind, slot, lazy=True)})

    def optional_map(self, node: OptionalMap, scope: Scope) -> Type:
        value = self.substitution.variable()
        given = self.check(node.optional, scope)
        if not self.unify((given, optional_of(value))):
            raise self.mismatch("hasValue", [given], Call(node.span, "", None, ()), member=True)
        slot = self.slot()
        self.checked.slots[node] = (slot,)
        body = self.check(node.body, {**scope, node.name: Variable(value, slot)})
        if not node.flat:
            return optional_of(body)
        if not self.unify((body, optional_of(self.substitution.variable()))):
            raise Mistake(f"optFlatMap needs an optional, not '{self.final(body)}'", node.body.span.at)
        return body


RULES: Mapping[type, Callable[[Checker, object, Scope], Type]] = {
    Literal: Checker.literal,  # type: ignore[dict-item]
    Name: Checker.name,  # type: ignore[dict-item]
    Select: Checker.select,  # type: ignore[dict-item]
    Call: Checker.call,  # type: ignore[dict-item]
    ListLiteral: Checker.list_literal,  # type: ignore[dict-item]
    MapLiteral: Checker.map_literal,  # type: ignore[dict-item]
    Message: Checker.message,  # type: ignore[dict-item]
    Bind: Checker.bind,  # type: ignore[dict-item]
    OptionalMap: Checker.optional_map,  # type: ignore[dict-item]
    Loop: loop_type,  # type: ignore[dict-item]
}
