"""The operators: what they do to values, and which types they take.

Two halves. The functions work on values of any type, because through dyn the type only shows at run time
(`GENERIC`). The declarations at the end say which types the check lets pass, and what runs when it is sure of
them: for two ints, for example, Python's own comparison.

The rules are cel-go's `common/types` (one file for each type) and `interpreter/attributes.go`:

- numbers are equal by value across int, uint and double; everything else only within its type, and values of
  different types are unequal, not an error. Kubernetes' own types are the exception: comparing one with a
  value of another type is an error (`no_overload`);
- an element that cannot be compared makes no list or map unequal, and is never found in one;
- order exists within a type and among numbers; NaN has none;
- integers overflow with an error, doubles follow IEEE 754, durations and timestamps stay in their range.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from function.cel.library import charges as cost
from function.cel.library.declarations import function
from function.cel.values import (
    INT64_MIN,
    NONE,
    Duration,
    EvaluationError,
    Map,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    is_int64,
    is_uint64,
    no_overload,
    type_name,
)

# Equality, order and look-up across the types of values, as cel-go has them at run time.

NUMBERS = frozenset({int, UInt, float})
"""Types that are equal and ordered by value among each other."""
ORDERED = frozenset({str, bytes, bool})
"""Types that have an order within themselves only."""
EXACT = frozenset({str, int, bool, bytes})
"""Types whose lists Python compares as CEL does; a double is not among them, for NaN is not itself."""
SPANS = frozenset({Duration, Timestamp})
"""Types that are a number of nanoseconds."""


def equal(one: Value, two: Value) -> bool:  # noqa: C901, PLR0911, PLR0912 - one for each kind of value
    """Tell whether two values are equal: numbers by value across types, everything else within its type.

    Values of different types are unequal. Raises EvaluationError where a value of Kubernetes' own types meets
    another type: their `Equal` in Go returns an error, which `==` passes on.

    Texts come first, because nearly all comparisons of a selector are of texts. A list or a map is compared
    to its end even where an element cannot be compared: only an unequal element decides.
    """
    kind, other = type(one), type(two)
    if kind is str or kind is bool or kind is bytes:
        return kind is other and bool(one == two)
    if kind in NUMBERS:
        if other not in NUMBERS:
            return False
        return float(one) == float(two) if kind is float or other is float else int(one) == int(two)
    if one is None or two is None:
        return one is two
    if kind is list:
        if other is not list or len(one) != len(two):
            return False
        kinds = {*map(type, one), *map(type, two)}
        if len(kinds) == 1 and kinds <= EXACT:
            return bool(one == two)
        for left, right in zip(one, two, strict=True):
            try:
                if not equal(left, right):
                    return False
            except EvaluationError:  # An element that cannot be compared does not make lists unequal.
                continue
        return True
    if kind is Map:
        return other is Map and _same_map(one, two)
    if kind in SPANS:
        return kind is other and bool(one.nanos == two.nanos)
    if kind is Optional:
        if other is not Optional or not (one.present and two.present):
            return other is Optional and bool(one.present == two.present)
        return equal(one.value, two.value)
    if kind is TypeValue:
        return other is TypeValue and bool(one.name == two.name)
    if kind is not other:
        raise no_overload()
    return bool(one == two)


def _same_map(one: Map, two: Map) -> bool:
    """Tell whether maps are equal. Each key of the first is looked up in both, as Go does."""
    if len(one.entries) != len(two.entries):
        return False
    for key, value in one.entries.values():
        first, entry = one.find(key), two.find(key)
        if entry is None:
            return False
        try:
            if not equal(value if first is None else first[1], entry[1]):
                return False
        except EvaluationError:  # As in lists.
            continue
    return True


def unequal(one: Value, two: Value) -> bool:
    """Tell whether two values differ. What cannot be compared differs.

    So `!=` is not the negation of `==`: cel-go's `evalNe` turns every error of the comparison into true.
    """
    try:
        return not equal(one, two)
    except EvaluationError:
        return True


def negate(value: Value) -> bool:
    """Return `!value`."""
    if type(value) is not bool:
        raise no_overload(f"!{type_name(value)}")
    return not value


def order(one: Value, two: Value) -> int:
    """Return -1, 0 or 1. Raises EvaluationError for what has no order.

    A number beside a double is compared as one, so two large ones may come out equal. Texts are ordered by
    code point and false is less than true.
    """
    kind, other = type(one), type(two)
    if kind in NUMBERS and other in NUMBERS:
        if kind is float or other is float:
            one, two = float(one), float(two)
            if one != one or two != two:  # noqa: PLR0124 - NaN is what differs from itself
                raise EvaluationError("NaN values cannot be ordered")
    elif kind is other and kind in SPANS:
        one, two = one.nanos, two.nanos
    elif kind is not other or kind not in ORDERED:
        raise no_overload(f"{type_name(one)} and {type_name(two)} have no order")
    return int(one > two) - int(one < two)


def contains(value: Value, container: Value) -> bool:
    """Return `value in container`. An element that cannot be compared is not the one.

    In a map the key is looked up; the default of an unknown domain does not count, so `"nosuch" in
    device.attributes` is false while the domain can be read.
    """
    kind = type(container)
    if kind is list:
        return _in_list(value, container)
    if kind is Map:
        return container.held(value) is not None
    raise no_overload(f"in {type_name(container)}")


def _in_list(value: Value, values: list[Value]) -> bool:
    """Look for a value. A plain one is looked for by Python's own search, which is quick.

    To Python True is 1, and NaN is itself where it is one object; `is_equal` has the last word.
    """
    start = 0
    if type(value) in EXACT or type(value) is float:
        if value not in values:
            return False
        start = values.index(value)
    return any(is_equal(value, values[at]) for at in range(start, len(values)))


def is_equal(one: Value, two: Value) -> bool:
    """Tell whether two values are equal. What cannot be compared is not."""
    try:
        return equal(one, two)
    except EvaluationError:
        return False


def position(index: Value) -> int:
    """Return a list index. Raises EvaluationError for what is none.

    A double or an unsigned integer that holds a whole number is one; a bool is not.
    """
    if type(index) is float and index.is_integer():
        return int(index)
    if type(index) is int or type(index) is UInt:
        return int(index)
    raise EvaluationError(f"unsupported index type '{type_name(index)}' in list")


KEYS = frozenset({str, int, UInt, float, bool})
"""Types that cel-go has a qualifier for: of these a map may have keys, and a list positions."""


def _check_key(key: Value) -> None:
    """Refuse what cel-go has no qualifier for, whatever it stands in front of. Raises EvaluationError.

    `newQualifier` in `attributes.go`: a list, a map or a time as a key is an error even where the container
    is empty.
    """
    if type(key) not in KEYS:
        raise EvaluationError(f"invalid qualifier type: {type_name(key)}")


def element(container: Value, key: Value) -> Value:
    """Return `container[key]`.

    A key of a type that no map can have is an error before anything is looked up.
    """
    kind = type(container)
    if kind is not Optional:
        _check_key(key)
    if kind is Map:
        entry = container.find(key)
        if entry is None:
            raise EvaluationError(f"no such key: {key}")
        return entry[1]
    if kind is list:
        at = position(key)
        if not 0 <= at < len(container):
            raise EvaluationError(f"index out of bounds: {at}")
        return container[at]
    if kind is Optional:
        return optional_element(container, key)
    raise no_overload(f"{type_name(container)}[{type_name(key)}]")


def optional_element(container: Value, key: Value) -> Optional:
    """Return `container[?key]`: nothing where there is no such key; what is no container holds nothing."""
    kind = type(container)
    if kind is Optional:
        return optional_element(container.value, key) if container.present else NONE
    _check_key(key)
    if kind is Map:
        entry = container.find(key)
        return NONE if entry is None else Optional(entry[1])
    if kind is list:
        at = position(key)
        return Optional(container[at]) if 0 <= at < len(container) else NONE
    return NONE


# Arithmetic across the types of values: 64-bit integers overflow, doubles follow IEEE, times shift.


def int64(number: int) -> int:
    """Return the number, or raise EvaluationError if it overflows."""
    if not is_int64(number):
        raise EvaluationError("integer overflow")
    return number


def uint64(number: int) -> UInt:
    """Return the number as unsigned, or raise EvaluationError if it overflows."""
    if not is_uint64(number):
        raise EvaluationError("unsigned integer overflow")
    return UInt(number)


def _mismatch(symbol: str, one: Value, two: Value) -> EvaluationError:
    """Return the error of an operator whose two values do not go together."""
    return no_overload(f"{type_name(one)} {symbol} {type_name(two)}")


def add(one: Value, two: Value) -> Value:
    """Return `one + two`.

    Texts, bytes and lists are joined, a duration shifts a timestamp, which keeps the zone it was written in.
    Types do not mix otherwise: `1 + 1.0` is an error, though `1 == 1.0` through dyn is true.
    """
    kind = type(one)
    if kind is type(two):
        if kind is int:
            return int64(one + two)
        if kind is str or kind is float or kind is bytes or kind is list:
            return one + two
        if kind is UInt:
            return uint64(int(one) + int(two))
        if kind is Duration:
            return Duration(one.nanos + two.nanos)
    elif kind in SPANS and type(two) in SPANS:
        return Timestamp(one.nanos + two.nanos, (one if kind is Timestamp else two).offset)
    raise _mismatch("+", one, two)


def subtract(one: Value, two: Value) -> Value:
    """Return `one - two`: between two timestamps it is a duration, which may not fit."""
    kind = type(one)
    if kind is type(two):
        if kind is int:
            return int64(one - two)
        if kind is float:
            return one - two
        if kind is UInt:
            return uint64(int(one) - int(two))
        if kind in SPANS:
            return Duration(one.nanos - two.nanos)
    elif kind is Timestamp and type(two) is Duration:
        return Timestamp(one.nanos - two.nanos, one.offset)
    raise _mismatch("-", one, two)


def multiply(one: Value, two: Value) -> Value:
    """Return `one * two`."""
    kind = type(one)
    if kind is type(two):
        if kind is int:
            return int64(one * two)
        if kind is float:
            return one * two
        if kind is UInt:
            return uint64(int(one) * int(two))
    raise _mismatch("*", one, two)


def divide(one: Value, two: Value) -> Value:
    """Return `one / two`; integers truncate towards zero, doubles follow IEEE.

    Python rounds down, so the signs are taken off first. The smallest integer by -1 overflows.
    """
    kind = type(one)
    if kind is not type(two) or kind not in NUMBERS:
        raise _mismatch("/", one, two)
    if kind is float:
        return _divide_doubles(one, two)
    if two == 0:
        raise EvaluationError("division by zero")
    if kind is UInt:
        return UInt(int(one) // int(two))
    quotient = abs(one) // abs(two)
    return int64(quotient if (one < 0) == (two < 0) else -quotient)


def _divide_doubles(one: float, two: float) -> float:
    """Divide as IEEE 754 does, where Python raises: by zero is infinity with a sign, or NaN."""
    if two != 0:
        return one / two
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, two)


def remainder(one: Value, two: Value) -> Value:
    """Return `one % two`, with the sign of `one`."""
    kind = type(one)
    if kind is not type(two) or kind not in (int, UInt):
        raise _mismatch("%", one, two)
    if two == 0:
        raise EvaluationError("modulus by zero")
    if kind is UInt:
        return UInt(int(one) % int(two))
    if one == INT64_MIN and two == -1:
        raise EvaluationError("integer overflow")
    rest = abs(one) % abs(two)
    return -rest if one < 0 else rest


def minus(value: Value) -> Value:
    """Return `-value`. There is none of an unsigned integer, and the smallest integer has none."""
    if type(value) is int:
        return int64(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return Duration(-value.nanos)
    raise no_overload(f"-{type_name(value)}")


_WALKED = ("string", "bytes")
_COMPARED = (
    ("bool", "bool"),
    *((one, two) for one in ("int", "uint", "double") for two in ("int", "uint", "double")),
    *((kind, kind) for kind in ("string", "bytes", "timestamp", "duration")),
)
_ORDER: dict[str, Callable[..., Value]] = {
    "_<_": lambda one, two: order(one, two) < 0,
    "_<=_": lambda one, two: order(one, two) <= 0,
    "_>_": lambda one, two: order(one, two) > 0,
    "_>=_": lambda one, two: order(one, two) >= 0,
}

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
    **_ORDER,
}
"""The function that an operator runs when the types only show at run time."""

_INTS: dict[str, Callable[..., Value]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
    "_+_": lambda one, two: int64(one + two),
    "_-_": lambda one, two: int64(one - two),
    "_*_": lambda one, two: int64(one * two),
}
"""The same for two ints, of which the check is sure: loops spend their time here."""


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
    *(
        function(
            name,
            f"{one}, {two} -> bool",
            _INTS[name] if one == two == "int" else run,
            cost=cost.compare if one in _WALKED else 1,
        )
        for name, run in _ORDER.items()
        for one, two in _COMPARED
    ),
    # Arithmetic, in the order of cel-go: the first that fits binds what nothing else binds.
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
)
