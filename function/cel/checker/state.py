"""State of one check: the declarations, types and names that all of its rules share.

Four parts, from the bottom up:

- `Substitution` unifies types. It is cel-go's `checker/types.go` and `checker/mapping.go`: the same cases in
  the same order, for two reasons. What is inferred decides which overload runs, and messages name types.
- `Scope` and `Variable` are the names that a node sees, and the slot of the frame that each one fills.
- `Environment` is the one variable of a selector with its fields: a device, a cluster, or a node pool.
- `Checked` is what a check found out, and `Checker` the check while it goes on.

Types nest only as deep as the selector that they are inferred from, which the parser bounds. Recursion over
types is therefore safe, and costs one frame a level: hence the loops in place of comprehensions below.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from function.boundary import frozen
from function.cel.library import Dialect
from function.cel.library.declarations import Overload
from function.cel.subject import ReadPath
from function.cel.syntax import nodes
from function.cel.syntax.nodes import BOOL, DYN, DYNAMIC, Call, Identifier, Node, Select, Type, dotted
from function.cel.values import FIRST_SLOT, SUBJECT, Mistake


class Substitution:
    """The types that the type variables of one check stand for so far.

    cel-go copies its mapping before each attempt; here an attempt that fails is undone (`unify`), which is
    the same and costs nothing where it succeeds.
    """

    def __init__(self) -> None:
        """Start with no variable bound; `_undo` takes back what a failed unification bound."""
        self._bound: dict[Type, Type] = {}
        self._undo: list[tuple[Type, Type | None]] = []
        self._count = 0

    def variable(self) -> Type:
        """Return a new variable."""
        self._count += 1
        return Type(f"?{self._count}")

    def resolve(self, kind: Type) -> Type:
        """Return what a variable stands for, as far as is known; its parameters stay as they are."""
        while kind.name[0] == "?":
            bound = self._bound.get(kind)
            if bound is None:
                return kind
            kind = bound
        return kind

    def substitute(self, kind: Type) -> Type:
        """Replace all variables that stand for something, now: what they stand for later changes nothing."""
        if kind.name[0] == "?":
            kind = self.resolve(kind)
        if not kind.args:
            return kind
        args = tuple([self.substitute(arg) for arg in kind.args])
        return kind if args == kind.args else Type(kind.name, args)

    def final(self, kind: Type, settled: dict[int, Type] | None = None) -> Type:
        """Replace all variables; what nobody constrained is dyn.

        `settled` remembers by identity: types share their parts, so each part is gone through once, where
        comparing two by value goes through all of both.
        """
        settled = {} if settled is None else settled
        replaced = settled.get(id(kind))
        if replaced is None:
            head = self.resolve(kind)
            args = []
            for arg in head.args:
                args.append(self.final(arg, settled))  # noqa: PERF401 - a comprehension is one more frame
            replaced = settled[id(kind)] = DYN if head.name[0] == "?" else Type(head.name, tuple(args))
        return replaced

    def fresh(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return `types` with each parameter replaced by a variable of this check: `'A` is one in all."""
        made: dict[Type, Type] = {}
        return tuple([self._instantiated(kind, made) for kind in types])

    def _instantiated(self, kind: Type, made: dict[Type, Type]) -> Type:
        """Return one type so, `made` holding what was made before: no closure, which would be a cycle."""
        if kind.name[0] == "'":
            if kind not in made:
                made[kind] = self.variable()
            return made[kind]
        if not kind.args:
            return kind
        return Type(kind.name, tuple([self._instantiated(arg, made) for arg in kind.args]))

    def unify(self, *pairs: tuple[Type, Type]) -> bool:
        """Tell whether every given type may stand where its partner is expected; binds variables if so."""
        self._undo.clear()
        for given, expected in pairs:
            if not self._assignable(given, expected):
                for variable, before in reversed(self._undo):
                    if before is None:
                        del self._bound[variable]
                    else:
                        self._bound[variable] = before
                return False
        return True

    def join(self, joined: Type | None, other: Type) -> Type:
        """Return the type of a list that holds both: the more general one, or dyn (cel-go's `joinTypes`)."""
        if joined is None:
            return other
        if not self.unify((joined, other)):
            return DYN
        return joined if _no_more_specific(joined, other) else other

    def _set(self, variable: Type, kind: Type) -> None:
        """Bind a variable, and note what it was bound to, so that it can be taken back."""
        self._undo.append((variable, self._bound.get(variable)))
        self._bound[variable] = kind

    def _assignable(self, given: Type, expected: Type) -> bool:  # noqa: PLR0911 - cel-go's cases, in its order
        """Tell whether one type may stand where the other is expected (`internalIsAssignable`)."""
        if expected.name[0] == "?":
            done = self._bind(expected, given)
            if done is not None:
                return done
        if given.name[0] == "?":
            return bool(self._bind(given, expected))
        if given.name in DYNAMIC or expected.name in DYNAMIC:
            return True
        if given.name == "null" or expected.name == "null":
            beside = expected if given.name == "null" else given
            # A dot in the name says that the type is a message or one of Kubernetes' own.
            return beside.name in nodes.NULLABLE or "." in beside.name
        if given.name == "wrapper" or expected.name == "wrapper":
            return _unwrapped(given) == _unwrapped(expected)
        if given.name != expected.name or len(given.args) != len(expected.args):
            return False
        # A type is a type: `type(x) == int` compares values, and their parameters tell nothing.
        return given.name == "type" or all(map(self._assignable, given.args, expected.args))

    def _bind(self, variable: Type, kind: Type) -> bool | None:
        """Let `variable` stand for `kind`; None if that would make a type contain itself.

        cel-go's `isValidTypeSubstitution`: a variable that is bound takes another type if that is
        assignable, and then stands for the more general of the two. None lets the caller try the other way.
        """
        if variable == kind:
            return True
        bound = self._bound.get(variable)
        if bound is None:
            if self._occurs(variable, kind):
                return None
            self._set(variable, kind)
            return True
        if kind == bound:
            return True
        if not self._assignable(kind, bound):
            return False
        general = kind if _no_more_specific(kind, bound) else bound
        if not self._occurs(variable, general):
            self._set(variable, general)
        return True

    def _occurs(self, variable: Type, kind: Type) -> bool:
        """Tell whether a variable is part of a type: cel-go's `notReferencedIn`, turned around."""
        if kind == variable:
            return True
        if kind.name[0] == "?":
            return kind in self._bound and self._occurs(variable, self._bound[kind])
        for arg in kind.args:  # noqa: SIM110 - any() would be one more frame
            if self._occurs(variable, arg):
                return True
        return False


def _unwrapped(kind: Type) -> Type:
    """Return the type that a protobuf wrapper holds: cel-go takes one for the other."""
    return kind.args[0] if kind.name == "wrapper" else kind


def equivalent(one: Type, other: Type) -> bool:
    """Tell whether two final types are alike; a wrapper is like what it wraps, as in cel-go."""
    one, other = _unwrapped(one), _unwrapped(other)
    return one == other or (
        one.name == other.name
        and len(one.args) == len(other.args)
        and all(map(equivalent, one.args, other.args))
    )


def _no_more_specific(one: Type, other: Type) -> bool:
    """Tell whether the first type says no more than the second (cel-go's `isEqualOrLessSpecific`)."""
    if one.name in DYNAMIC or one.name[0] == "?":
        return True
    if other.name in DYNAMIC or other.name[0] == "?":
        return False
    if one.name == "wrapper" or other.name == "wrapper":
        return one.name == "wrapper"
    if one.name != other.name:
        return False
    return one.name == "type" or all(map(_no_more_specific, one.args, other.args))


# Scopes: a node together with the names that it sees, which is what the check walks over.


class Variable(NamedTuple):
    """A name in scope. The slot of a lazy one holds its value or the error of computing it."""

    type: Type
    slot: int
    lazy: bool = False


Scope: TypeAlias = dict[str, Variable]
ScopedNode: TypeAlias = tuple[Node, Scope]
"""A node and the names it sees."""
TypeSteps: TypeAlias = Generator[ScopedNode, Type, Type]


# The environment of a selector: its one variable with fixed fields, for devices, clusters and nodes.

_BY_NAME = nodes.map_of(nodes.STRING, nodes.DYN)


@frozen
class VariableField:
    """A field of the variable, and what reading it reads: the word for it in messages and references."""

    type: Type
    kind: str
    since: str = "1.31"

    @property
    def depth(self) -> int:
        """Return how many keys lead from the field to a single value."""
        depth, kind = 0, self.type
        while kind.name == "map":
            depth, kind = depth + 1, kind.args[1]
        return depth


@frozen(eq=False)
class Environment:
    """The variable of one level of selectors."""

    variable: str
    type: Type
    fields: Mapping[str, VariableField]
    unknown: Type = nodes.DYN
    """The type of a value of which the check knows nothing: a whole selector may have it."""


DEVICE = Environment(
    "device",
    Type("kubernetes.DRADevice"),
    {
        "driver": VariableField(nodes.STRING, "driver"),
        "attributes": VariableField(nodes.map_of(nodes.STRING, _BY_NAME), "attribute"),
        "capacity": VariableField(
            nodes.map_of(nodes.STRING, nodes.map_of(nodes.STRING, nodes.QUANTITY)), "capacity"
        ),
        "allowMultipleAllocations": VariableField(nodes.BOOL, "allowMultipleAllocations", "1.34"),
    },
)
_WITHOUT_LISTS = nodes.map_of(nodes.STRING, nodes.map_of(nodes.STRING, nodes.ANY))
DEVICE_WITHOUT_LISTS = Environment(
    DEVICE.variable,
    DEVICE.type,
    {**DEVICE.fields, "attributes": VariableField(_WITHOUT_LISTS, "attribute")},
    unknown=nodes.ANY,
)
"""The device of an API server whose gate DRAListTypeAttributes is off, as it is by default.

An attribute is then of type any, which nothing can iterate over. A claim that does is refused when it is
created; lint says so (`Selector.gated`), while matching takes lists as they are meant."""
CLUSTER = Environment(
    "cluster",
    Type("fleet.Cluster"),
    {
        "name": VariableField(nodes.STRING, "name"),
        "labels": VariableField(nodes.map_of(nodes.STRING, nodes.STRING), "label"),
        "attributes": VariableField(_BY_NAME, "attribute"),
    },
)
NODE = Environment(
    "node",
    Type("fleet.Node"),
    {
        "name": VariableField(nodes.STRING, "name"),
        "className": VariableField(nodes.STRING, "className"),
        "attributes": VariableField(_BY_NAME, "attribute"),
    },
)

TYPE_IDENTIFIERS: Mapping[str, Type] = {
    "bool": nodes.BOOL,
    "bytes": nodes.BYTES,
    "double": nodes.DOUBLE,
    "int": nodes.INT,
    "uint": nodes.UINT,
    "string": nodes.STRING,
    "null_type": nodes.NULL,
    "list": nodes.list_of(nodes.DYN),
    "map": nodes.map_of(nodes.DYN, nodes.DYN),
    "type": nodes.Type("type", (nodes.DYN,)),
    "optional_type": nodes.optional_of(nodes.DYN),
    "google.protobuf.Timestamp": nodes.TIMESTAMP,
    "google.protobuf.Duration": nodes.DURATION,
    "net.IP": nodes.IP,
    "net.CIDR": nodes.CIDR,
}
"""Names that stand for a type, as in `type(x) == int`."""


@dataclass(slots=True)
class Checked:
    """An expression that passed, and what was found out about its nodes.

    `type_values` are names that stand for a type, `global_calls` calls whose receiver is part of the name,
    `slots` the places in the frame that a macro fills, `size` how long the frame is.
    """

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

    def value_path(self, node: Node) -> ReadPath | None:
        """Return the keys that lead from the variable to a node that is a single value, not a map of several.

        None where a key is computed, or one of the steps is optional.
        """
        keys: list[str] = []
        while not isinstance(node, Identifier):
            optional = isinstance(node, Call) and node.function in ("_[?_]", "_?._")
            step = None if optional or (isinstance(node, Select) and node.test) else nodes.step(node)
            key = None if step is None else step[1]
            if step is None or key is None:
                return None
            node = step[0]
            keys.append(key)
        variable = self.variables.get(node)
        if variable is None or variable.slot != SUBJECT or not keys:
            return None
        path = tuple(reversed(keys))
        return path if len(path) == self.environment.fields[path[0]].depth + 1 else None


class Checker:
    """One check of one expression: what is known so far.

    `literals` are the groups of types that must turn out equal, `in_format` how many calls of format are
    around the node, inside of which literals may mix types.
    """

    def __init__(self, root: Node, environment: Environment, dialect: Dialect) -> None:
        """Start one check. Methods of the substitution are at hand: they run at every node."""
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
        """Return what a name stands for, with or without its leading dot; None if it is no variable.

        A leading dot means the outermost scope. Kubernetes up to 1.36 looks in the loop's scope all the same.
        """
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
        return nodes.Type("type", (TYPE_IDENTIFIERS[name],))

    def qualified(self, node: Node, scope: Scope) -> str | None:
        """Return the dotted name of a node that no variable in scope begins: `sets.contains` of the library.

        A variable wins: in `all(sets, sets.contains(x))` the word is a name that the macro bound.
        """
        name = dotted(node)
        if name is None:
            return None
        name = name.removeprefix(".")
        return None if name.split(".", 1)[0] in scope else name

    def field(self, operand: Type, field: str, at: int, *, optional: bool = False) -> Type:
        """Return the type of a field of something of this type (cel-go's `checkSelectField`).

        A field of an optional is an optional. A map has every field, whatever its keys are: a wrong one is
        an error of the evaluation.
        """
        operand = self.resolve(operand)
        if operand.name == "optional":
            operand, optional = self.resolve(operand.args[0]), True
        if operand.name == "map":
            kind = operand.args[1]
        elif operand == self.checked.environment.type:
            environment = self.checked.environment
            if field not in environment.fields:
                names = ", ".join(environment.fields)
                raise Mistake(f"undefined field '{field}': {environment.variable} has {names}", at)
            kind = environment.fields[field].type
        elif operand.name in DYNAMIC:
            kind = DYN
        elif operand.name[0] == "?":
            self.unify((DYN, operand))
            kind = DYN
        else:
            raise Mistake(f"type '{operand}' does not support field selection", at)
        return nodes.optional_of(kind) if optional else kind

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
