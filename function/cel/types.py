"""Static types and how they unify, as cel-go's checker has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Type(NamedTuple):
    """A type: a name and its parameters. `'A` is a declaration's parameter, `?3` a variable of one check."""

    name: str
    args: tuple[Type, ...] = ()

    def __str__(self) -> str:
        """Return the type as the API server's messages have it."""
        if self.name[0] in "'?":
            return "dyn"
        name = "optional_type" if self.name == "optional" else self.name
        return f"{name}({', '.join(map(str, self.args))})" if self.args else name

    def cannot_be(self, parameter: Type) -> bool:
        """Whether no value of this type may be given for a parameter, as the names alone tell."""
        one, other = self.name, parameter.name
        return one != other and one not in _OPEN and one[0] != "?" and other not in _OPEN and other[0] != "'"

    @property
    def is_variable(self) -> bool:
        """Whether the check has still to find out what this is."""
        return self.name[0] == "?"


_OPEN = frozenset({"dyn", "any", "null", "wrapper"})
"""Types whose names do not tell what they may stand for."""
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
NULL = Type("null")
DYN = Type("dyn")
ANY = Type("any")
"""An attribute to an API server that knows no lists of them: like dyn, but nothing to iterate over."""
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
QUANTITY = Type("kubernetes.Quantity")
SEMVER = Type("kubernetes.Semver")
IP = Type("net.IP")
CIDR = Type("net.CIDR")
URL = Type("kubernetes.URL")
FORMAT = Type("kubernetes.NamedFormat")


def list_of(element: Type) -> Type:
    """Return the type of lists of `element`."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optionals."""
    return Type("optional", (value,))


def type_of(value: Type) -> Type:
    """Return the type of type values."""
    return Type("type", (value,))


def wrapper_of(value: Type) -> Type:
    """Return the type of a protobuf wrapper: the value or null."""
    return Type("wrapper", (value,))


DYNAMIC = frozenset({"dyn", "any"})
NULLABLE = frozenset({"timestamp", "duration", "optional", "wrapper"})


def accepts_null(other: Type) -> bool:
    """Whether null may stand where `other` is expected."""
    return other.name in NULLABLE or "." in other.name or other.name == "null"


class Substitution:
    """What the type variables of one check stand for so far."""

    def __init__(self) -> None:
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
            known = self._bound.get(kind)
            if known is None:
                return kind
            kind = known
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
        """Replace all variables; what nobody constrained is dyn. `settled` remembers by identity."""
        settled = {} if settled is None else settled
        known = settled.get(id(kind))
        if known is None:
            head = self.resolve(kind)
            args = []
            for arg in head.args:
                args.append(self.final(arg, settled))  # noqa: PERF401 - a comprehension is one more frame
            known = settled[id(kind)] = DYN if head.name[0] == "?" else Type(head.name, tuple(args))
        return known

    def fresh(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return `types` with each parameter replaced by a variable of this check."""
        return instantiate(types, self.variable)

    def unify(self, *pairs: tuple[Type, Type]) -> bool:
        """Whether every given type may stand where its partner is expected; binds variables if so."""
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

    def join(self, known: Type | None, other: Type) -> Type:
        """Return the type of a list that holds both."""
        if known is None:
            return other
        if not self.unify((known, other)):
            return DYN
        return known if _no_more_specific(known, other) else other

    def _set(self, variable: Type, kind: Type) -> None:
        self._undo.append((variable, self._bound.get(variable)))
        self._bound[variable] = kind

    def _assignable(self, given: Type, expected: Type) -> bool:  # noqa: PLR0911 - cel-go's cases, in its order
        if expected.name[0] == "?":
            done = self._bind(expected, given)
            if done is not None:
                return done
        if given.name[0] == "?":
            return bool(self._bind(given, expected))
        if given.name in DYNAMIC or expected.name in DYNAMIC:
            return True
        if given.name == "null" or expected.name == "null":
            return accepts_null(expected if given.name == "null" else given)
        if given.name == "wrapper" or expected.name == "wrapper":
            return _unwrapped(given) == _unwrapped(expected)
        if given.name != expected.name or len(given.args) != len(expected.args):
            return False
        return given.name == "type" or all(map(self._assignable, given.args, expected.args))

    def _bind(self, variable: Type, kind: Type) -> bool | None:
        """Let `variable` stand for `kind`; None if that would make a type contain itself."""
        if variable == kind:
            return True
        known = self._bound.get(variable)
        if known is None:
            if self._occurs(variable, kind):
                return None
            self._set(variable, kind)
            return True
        if kind == known:
            return True
        if not self._assignable(kind, known):
            return False
        general = kind if _no_more_specific(kind, known) else known
        if not self._occurs(variable, general):
            self._set(variable, general)
        return True

    def _occurs(self, variable: Type, kind: Type) -> bool:
        if kind == variable:
            return True
        if kind.name[0] == "?":
            return kind in self._bound and self._occurs(variable, self._bound[kind])
        for arg in kind.args:  # noqa: SIM110 - any() would be one more frame
            if self._occurs(variable, arg):
                return True
        return False


def _unwrapped(kind: Type) -> Type:
    return kind.args[0] if kind.name == "wrapper" else kind


def equivalent(one: Type, other: Type) -> bool:
    """Whether two final types are alike; a wrapper is like what it wraps, as in cel-go."""
    one, other = _unwrapped(one), _unwrapped(other)
    return one == other or (
        one.name == other.name
        and len(one.args) == len(other.args)
        and all(map(equivalent, one.args, other.args))
    )


def _no_more_specific(one: Type, other: Type) -> bool:
    if one.name in DYNAMIC or one.is_variable:
        return True
    if other.name in DYNAMIC or other.is_variable:
        return False
    if one.name == "wrapper" or other.name == "wrapper":
        return one.name == "wrapper"
    if one.name != other.name:
        return False
    return one.name == "type" or all(map(_no_more_specific, one.args, other.args))


def instantiate(types: tuple[Type, ...], variable: Callable[[], Type]) -> tuple[Type, ...]:
    """Return `types` with each parameter replaced by what `variable` makes for it."""
    made: dict[Type, Type] = {}
    return tuple([_instantiated(kind, variable, made) for kind in types])


def _instantiated(kind: Type, variable: Callable[[], Type], made: dict[Type, Type]) -> Type:
    """Return one type so, `made` holding what was made before: no closure, which would be a cycle."""
    if kind.name[0] == "'":
        if kind not in made:
            made[kind] = variable()
        return made[kind]
    return (
        Type(kind.name, tuple([_instantiated(arg, variable, made) for arg in kind.args]))
        if kind.args
        else kind
    )


def has_parameter(kind: Type) -> bool:
    """Whether a declaration's type mentions a type parameter."""
    return kind.name[0] == "'" or any(map(has_parameter, kind.args))
