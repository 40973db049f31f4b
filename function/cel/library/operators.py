"""The operators: which types they take. What they do is in `function.cel.library.relations`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from function.cel.library import charges as cost
from function.cel.library.arithmetic import add, divide, int64, minus, multiply, remainder, subtract
from function.cel.library.declarations import Overload, function
from function.cel.library.relations import (
    at_least,
    at_most,
    contains,
    element,
    equal,
    less,
    more,
    negate,
    optional_element,
    unequal,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.cel.values import Value

_WALKED = ("string", "bytes")
_COMPARED = (
    ("bool", "bool"),
    *((one, two) for one in ("int", "uint", "double") for two in ("int", "uint", "double")),
    *((kind, kind) for kind in ("string", "bytes", "timestamp", "duration")),
)
_ORDER = (("_<_", less), ("_<=_", at_most), ("_>_", more), ("_>=_", at_least))


GENERIC: dict[str, Callable[..., Value]] = {
    "_==_": equal,
    "_!=_": unequal,
    "!_": negate,
    "-_": minus,
    "@in": contains,
    "_[_]": element,
    "_[?_]": optional_element,
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": remainder,
    **dict(_ORDER),
}
"""What an operator runs when the types only show at run time."""

_INTS: dict[str, Callable[..., Value]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
    "_+_": lambda one, two: int64(one + two),
    "_-_": lambda one, two: int64(one - two),
    "_*_": lambda one, two: int64(one * two),
}
"""The same for two ints: loops spend their time here."""


def _orders() -> list[Overload]:
    return [
        function(
            name,
            f"{one}, {two} -> bool",
            _INTS[name] if one == two == "int" else run,
            cost=cost.compare if one in _WALKED else 1,
        )
        for name, run in _ORDER
        for one, two in _COMPARED
    ]


def _arithmetic() -> list[Overload]:
    """Declare arithmetic, in the order of cel-go: the first that fits binds what nothing else binds."""
    return [
        function("_+_", "bytes, bytes -> bytes", add, cost=cost.walk_both),
        function("_+_", "double, double -> double", add),
        function("_+_", "duration, duration -> duration", add),
        function("_+_", "duration, timestamp -> timestamp", add),
        function("_+_", "timestamp, duration -> timestamp", add),
        function("_+_", "int, int -> int", _INTS["_+_"]),
        function("_+_", "list<A>, list<A> -> list<A>", add, cost=cost.join_lists),
        function("_+_", "string, string -> string", add, cost=cost.walk_both),
        function("_+_", "uint, uint -> uint", add),
        function("_-_", "double, double -> double", subtract),
        function("_-_", "duration, duration -> duration", subtract),
        function("_-_", "int, int -> int", _INTS["_-_"]),
        function("_-_", "timestamp, duration -> timestamp", subtract),
        function("_-_", "timestamp, timestamp -> duration", subtract),
        function("_-_", "uint, uint -> uint", subtract),
        function("_*_", "double, double -> double", multiply),
        function("_*_", "int, int -> int", _INTS["_*_"]),
        function("_*_", "uint, uint -> uint", multiply),
        *(function("_/_", f"{kind}, {kind} -> {kind}", divide) for kind in ("double", "int", "uint")),
        *(function("_%_", f"{kind}, {kind} -> {kind}", remainder) for kind in ("int", "uint")),
        *(function("-_", f"{kind} -> {kind}", minus) for kind in ("double", "int")),
    ]


DECLARATIONS = (
    function("_==_", "A, A -> bool", equal, cost=cost.compare),
    function("_!=_", "A, A -> bool", unequal, cost=cost.compare),
    function("!_", "bool -> bool", negate),
    function("@in", "A, list<A> -> bool", contains, cost=cost.search),
    function("@in", "A, map<A, B> -> bool", contains),
    function("_[_]", "list<A>, int -> A", element),
    function("_[_]", "map<A, B>, A -> B", element),
    function("_[_]", "optional<list<A>>, int -> optional<A>", element),
    function("_[_]", "optional<map<A, B>>, A -> optional<B>", element),
    function("_[?_]", "list<A>, int -> optional<A>", optional_element),
    function("_[?_]", "optional<list<A>>, int -> optional<A>", optional_element),
    function("_[?_]", "map<A, B>, A -> optional<B>", optional_element),
    function("_[?_]", "optional<map<A, B>>, A -> optional<B>", optional_element),
    *_orders(),
    *_arithmetic(),
)
