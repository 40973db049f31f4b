"""Unify types as cel-go's checker does: bind type variables, and say which type may stand for which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.syntax.nodes import DYN, DYNAMIC, Type, accepts_null

if TYPE_CHECKING:
    from collections.abc import Callable


class Substitution:
    """The types that the type variables of one check stand for so far."""

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
        """Return `types` with each parameter replaced by a variable of this check."""
        return instantiate(types, self.variable)

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
        """Return the type of a list that holds both."""
        if joined is None:
            return other
        if not self.unify((joined, other)):
            return DYN
        return joined if _no_more_specific(joined, other) else other

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
    """Tell whether two final types are alike; a wrapper is like what it wraps, as in cel-go."""
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
