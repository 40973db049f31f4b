"""What is known of an expression while it is checked, and what all rules of the check ask of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.cel.checker.environment import TYPE_IDENTIFIERS
from function.cel.checker.scope import Variable
from function.cel.checker.unification import Substitution
from function.cel.errors import Mistake
from function.cel.frame import FIRST_SLOT, SUBJECT
from function.cel.syntax.nodes import Call, Identifier, Node, Select, dotted
from function.cel.syntax.types import BOOL, DYN, DYNAMIC, Type, optional_of, type_of

if TYPE_CHECKING:
    from function.cel.checker.environment import Environment
    from function.cel.checker.scope import Scope
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
    variables: dict[Identifier, Variable]
    slots: dict[Node, tuple[int, ...]]
    type_values: dict[Node, str]
    global_calls: set[Call]
    size: int = FIRST_SLOT


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

    def slot(self) -> int:
        """Return a slot for a new name."""
        self.checked.size += 1
        return self.checked.size - 1

    def variable(self, name: str, scope: Scope) -> Variable | None:
        """Return what a name stands for, with or without its leading dot; None if it is no variable."""
        if not name.startswith("."):
            return scope.get(name)
        if not self.checked.dialect.rooted_names_are_global:
            return scope.get(name[1:])
        environment = self.checked.environment
        return Variable(environment.type, SUBJECT) if name[1:] == environment.variable else None

    def type_value(self, node: Identifier | Select, name: str) -> Type:
        """Return the type of a name that stands for a type."""
        if name not in TYPE_IDENTIFIERS:
            raise Mistake(f"undeclared reference to '{name}' (in container '')", node.span.at)
        self.checked.type_values[node] = name
        return type_of(TYPE_IDENTIFIERS[name])

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
