"""The static check: every name is known, every call has an overload, the result can be a bool.

It walks the tree once and hangs what it finds on the nodes: their types, the overloads a call may run, the
slots of the variables. One instance checks one expression.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.cel.checker.calls import call_type, check_format, mismatch
from function.cel.checker.comprehensions import loop_type
from function.cel.checker.environment import TYPE_IDENTIFIERS
from function.cel.checker.scope import Place, Scope, TypeSteps, Variable
from function.cel.checker.unification import Substitution, equivalent
from function.cel.cost.frame import FIRST_SLOT, SUBJECT
from function.cel.errors import Mistake
from function.cel.library.messages import MESSAGES
from function.cel.syntax.descent import descend
from function.cel.syntax.nodes import (
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
    dotted,
)
from function.cel.syntax.types import (
    BOOL,
    DYN,
    DYNAMIC,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
    wrapper_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.cel.checker.environment import Environment
    from function.cel.library.declarations import Overload
    from function.cel.library.dialects import Dialect


@dataclass(slots=True)
class Checked:
    """An expression that passed, and what was found out about its nodes."""

    root: Node
    environment: Environment
    dialect: Dialect
    types: dict[Node, Type]
    overloads: dict[Call, tuple[Overload, ...]]
    variables: dict[Name, Variable]
    slots: dict[Node, tuple[int, ...]]
    type_values: dict[Node, str]
    global_calls: set[Call]
    size: int = FIRST_SLOT


def check(root: Node, environment: Environment, dialect: Dialect) -> Checked:
    """Check an expression whose result must be a bool. Raises Mistake."""
    checker = Checker(root, environment, dialect)
    scope = {environment.variable: Variable(environment.type, SUBJECT)}
    result = checker.final(descend(checker.note, (root, scope)))
    checker.finish()
    accepted = {BOOL, environment.unknown} | ({wrapper_of(BOOL)} if dialect.wrapper_results else set())
    if result not in accepted:
        raise Mistake(f"must evaluate to bool or the unknown type, not {result}", root.span.start)
    return checker.checked


class Checker:
    """One check of one expression: what is known so far."""

    def __init__(self, root: Node, environment: Environment, dialect: Dialect) -> None:
        self.checked = Checked(root, environment, dialect, {}, {}, {}, {}, {}, set())
        self.functions = dialect.functions
        self.substitution = Substitution()
        self.resolve = self.substitution.resolve
        self.final = self.substitution.final
        self.unify = self.substitution.unify
        self.substitute = self.substitution.substitute
        self.literals: list[list[tuple[Type, int]]] = []
        self.in_format = 0
        self.read: list[tuple[Type, str, int]] = []
        """Names that a macro reads itself, whatever its arguments say: their types and where they stand."""

    def rule(self, wanted: Place) -> Type | TypeSteps:
        """Return the type of a node, or the steps to it."""
        node, scope = wanted
        return RULES[type(node)](self, node, scope)

    def note(self, wanted: Place) -> TypeSteps:
        """Return the type of a node and note it. Raises Mistake."""
        steps = self.rule(wanted)
        kind: Type = (yield from steps) if isinstance(steps, Generator) else steps
        self.checked.types[wanted[0]] = kind
        return kind

    def finish(self) -> None:
        """Settle all types, then refuse literals of mixed types."""
        settled: dict[int, Type] = {}
        kinds = self.checked.types
        for node, kind in kinds.items():
            kinds[node] = self.final(kind, settled)
        self.refuse_bound_types()
        for call in self.checked.overloads:
            if call.function == "format":
                check_format(call, kinds)
        for (first, _), *others in self.literals:
            wanted = self.final(first, settled)
            for kind, at in others:
                if not equivalent(self.final(kind, settled), wanted):
                    raise Mistake(f"expected type '{wanted}' but found '{self.final(kind)}'", at)

    def refuse_bound_types(self) -> None:
        """Refuse names that stand for a type: cel-go takes them for names of types, not of variables."""
        for kind, name, at in self.read:
            if self.final(kind).name == "type" and name not in TYPE_IDENTIFIERS:
                raise Mistake(f"reference to undefined type: {name}", at)
        for node in [node for node in self.checked.variables if self.checked.types[node].name == "type"]:
            name = node.name.removeprefix(".")
            if name not in TYPE_IDENTIFIERS:
                raise Mistake(f"reference to undefined type: {name}", node.span.at)
            del self.checked.variables[node]
            self.checked.type_values[node] = name

    def slot(self) -> int:
        """Return a slot for a new name."""
        self.checked.size += 1
        return self.checked.size - 1

    def literal(self, node: Literal, _scope: Scope) -> Type:
        """Return the type of a literal."""
        return node.type

    def name(self, node: Name, scope: Scope) -> Type:
        """Return the type of a name: a variable's, or of a type's name."""
        variable = self.variable(node.name, scope)
        if variable is not None:
            self.checked.variables[node] = variable
            return variable.type
        return self.type_value(node, node.name.removeprefix("."))

    def variable(self, name: str, scope: Scope) -> Variable | None:
        """Return what a name stands for, with or without its leading dot; None if it is no variable."""
        if not name.startswith("."):
            return scope.get(name)
        if not self.checked.dialect.rooted_names_are_global:
            return scope.get(name[1:])
        environment = self.checked.environment
        return Variable(environment.type, SUBJECT) if name[1:] == environment.variable else None

    def type_value(self, node: Name | Select, name: str) -> Type:
        """Return the type of a name that stands for a type."""
        if name not in TYPE_IDENTIFIERS:
            raise Mistake(f"undeclared reference to '{name}' (in container '')", node.span.at)
        self.checked.type_values[node] = name
        return type_of(TYPE_IDENTIFIERS[name])

    def select(self, node: Select, scope: Scope) -> TypeSteps:
        """Return the type of a selection."""
        name = self.qualified(node, scope)
        if name in TYPE_IDENTIFIERS:
            return self.type_value(node, str(name))
        kind = self.field((yield node.operand, scope), node.field, node.span.at)
        return BOOL if node.test else self.substitute(kind)

    def qualified(self, node: Node, scope: Scope) -> str | None:
        """Return the dotted name of a node that no variable in scope begins."""
        name = dotted(node)
        if name is None:
            return None
        name = name.removeprefix(".")
        return None if name.split(".", 1)[0] in scope else name

    def field(self, operand: Type, field: str, at: int, *, optional: bool = False) -> Type:
        """Return the type of a field of something of this type."""
        operand = self.resolve(operand)
        if operand.name == "optional":
            operand, optional = self.resolve(operand.args[0]), True
        if operand.name == "map":
            kind = operand.args[1]
        elif operand == self.checked.environment.type:
            kind = self.variable_field(field, at)
        elif operand.name in DYNAMIC:
            kind = DYN
        elif operand.is_variable:
            self.unify((DYN, operand))
            kind = DYN
        else:
            raise Mistake(f"type '{operand}' does not support field selection", at)
        return optional_of(kind) if optional else kind

    def variable_field(self, field: str, at: int) -> Type:
        """Return the type of a field of the selector's variable."""
        environment = self.checked.environment
        if field not in environment.fields:
            names = ", ".join(environment.fields)
            raise Mistake(f"undefined field '{field}': {environment.variable} has {names}", at)
        return environment.fields[field].type

    def boolean(self, kind: Type, node: Node) -> None:
        """Refuse what cannot be a bool."""
        if not self.unify((kind, BOOL)):
            raise Mistake(f"expected type 'bool' but found '{self.final(kind)}'", node.span.at)

    def list_literal(self, node: ListLiteral, scope: Scope) -> TypeSteps:
        """Return the type of a list literal."""
        joined: Type | None = None
        kinds = []
        for item in node.items:
            kind = self.element((yield item.value, scope), item.value, optional=item.optional)
            joined = self.substitution.join(joined, kind)
            kinds.append((kind, item.value.span.at))
        self.same_types(kinds)
        return list_of(joined or self.substitution.variable())

    def element(self, kind: Type, node: Node, *, optional: bool) -> Type:
        """Return the type of an element, which `?` unwraps."""
        if not optional:
            return kind
        kind = self.resolve(kind)
        if kind.name != "optional":
            shown = self.final(kind)
            raise Mistake(f"expected type 'optional_type({shown})' but found '{shown}'", node.span.at)
        return kind.args[0]

    def same_types(self, kinds: list[tuple[Type, int]]) -> None:
        """Note that these must turn out to be of one type, unless they are the arguments of format."""
        if kinds and not self.in_format:
            self.literals.append(kinds)

    def map_literal(self, node: MapLiteral, scope: Scope) -> TypeSteps:
        """Return the type of a map literal."""
        key: Type | None = None
        value: Type | None = None
        keys, values = [], []
        for entry in node.entries:
            kind = yield entry.key, scope
            key = self.substitution.join(key, kind)
            keys.append((kind, entry.key.span.at))
            kind = self.element((yield entry.value, scope), entry.value, optional=entry.optional)
            value = self.substitution.join(value, kind)
            values.append((kind, entry.value.span.at))
        self.same_types(keys)
        self.same_types(values)
        return map_of(key or self.substitution.variable(), value or self.substitution.variable())

    def message(self, node: Message, scope: Scope) -> TypeSteps:
        """Return the type of a message literal."""
        declared = MESSAGES.get(node.name)
        if declared is None:
            raise Mistake(f"undeclared reference to '{node.name}' (in container '')", node.span.at)
        for field, value, _ in node.fields:
            kind = yield value, scope
            if field not in declared.fields:
                raise Mistake(f"undefined field '{field}'", value.span.at)
            expected = declared.fields[field]
            if not self.unify((kind, expected)):
                raise Mistake(
                    f"expected type of field '{field}' is '{expected}' but provided '{kind}'", value.span.at
                )
        return declared.type

    def bind(self, node: Bind, scope: Scope) -> TypeSteps:
        """Return the type of cel.bind."""
        kind = yield node.value, scope
        self.read.append((kind, node.name, node.span.at))
        slot = self.slot()
        self.checked.slots[node] = (slot,)
        body = yield node.body, {**scope, node.name: Variable(kind, slot, lazy=True)}
        return self.substitute(body)

    def optional_map(self, node: OptionalMap, scope: Scope) -> TypeSteps:
        """Return the type of optMap or optFlatMap."""
        value = self.substitution.variable()
        given = yield node.optional, scope
        if not self.unify((given, optional_of(value))):
            raise mismatch(self, "hasValue", [given], node.span.at, member=True)
        self.read.append((value, node.name, node.span.at))
        slot = self.slot()
        self.checked.slots[node] = (slot,)
        body = yield node.body, {**scope, node.name: Variable(value, slot)}
        if not node.flat:
            return optional_of(self.substitute(body))
        if not self.unify((body, optional_of(self.substitution.variable()))):
            raise Mistake(f"optFlatMap needs an optional, not '{self.final(body)}'", node.body.span.at)
        return self.substitute(body)


RULES: Mapping[type, Callable[[Checker, Any, Scope], Type | TypeSteps]] = {
    Literal: Checker.literal,
    Name: Checker.name,
    Select: Checker.select,
    Call: call_type,
    ListLiteral: Checker.list_literal,
    MapLiteral: Checker.map_literal,
    Message: Checker.message,
    Bind: Checker.bind,
    OptionalMap: Checker.optional_map,
    Loop: loop_type,
}
