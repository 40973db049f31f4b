"""Equality, order and look-up across the types of values, as cel-go has them at run time."""

from __future__ import annotations

from function.cel.errors import EvaluationError, no_overload
from function.cel.values import (
    NONE,
    Duration,
    Map,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    type_name,
)

NUMBERS = frozenset({int, UInt, float})
ORDERED = frozenset({str, bytes, bool})
EXACT = frozenset({str, int, bool, bytes})
"""Types whose lists Python compares as CEL does; a double is not among them, for NaN is not itself."""
SPANS = frozenset({Duration, Timestamp})


def equal(one: Value, two: Value) -> bool:  # noqa: C901, PLR0911, PLR0912 - one for each kind of value
    """Whether two values are equal: numbers by value across types, everything else within its type."""
    kind, other = type(one), type(two)
    if kind is str or kind is bool or kind is bytes:
        return kind is other and bool(one == two)
    if kind in NUMBERS:
        return other in NUMBERS and _same_number(one, two)
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
        return other is Optional and _same_optional(one, two)
    if kind is TypeValue:
        return other is TypeValue and bool(one.name == two.name)
    if kind is not other:
        raise no_overload()
    return bool(one.same(two))


def _same_number(one: Value, two: Value) -> bool:
    if type(one) is float or type(two) is float:
        return float(one) == float(two)
    return int(one) == int(two)


def _not_unequal(one: Value, two: Value) -> bool:
    """Whether an element passes in a list or map: an error in it does not make the whole unequal."""
    try:
        return equal(one, two)
    except EvaluationError:
        return True


def _same_map(one: Map, two: Map) -> bool:
    if len(one.entries) != len(two.entries):
        return False
    for key, value in one.entries.values():
        first, entry = one.find(key), two.find(key)
        if entry is None or not _not_unequal(value if first is None else first[1], entry[1]):
            return False
    return True


def _same_optional(one: Optional, two: Optional) -> bool:
    if not one.present or not two.present:
        return one.present == two.present
    return equal(one.value, two.value)


def unequal(one: Value, two: Value) -> bool:
    """Whether two values differ. What cannot be compared differs."""
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
    """Return -1, 0 or 1. Raises EvaluationError for what has no order."""
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


def less(one: Value, two: Value) -> bool:
    """Return `one < two`."""
    return order(one, two) < 0


def at_most(one: Value, two: Value) -> bool:
    """Return `one <= two`."""
    return order(one, two) <= 0


def more(one: Value, two: Value) -> bool:
    """Return `one > two`."""
    return order(one, two) > 0


def at_least(one: Value, two: Value) -> bool:
    """Return `one >= two`."""
    return order(one, two) >= 0


def contains(value: Value, container: Value) -> bool:
    """Return `value in container`. An element that cannot be compared is not the one."""
    kind = type(container)
    if kind is list:
        return _in_list(value, container)
    if kind is Map:
        return container.held(value) is not None
    raise no_overload(f"in {type_name(container)}")


def _in_list(value: Value, values: list[Value]) -> bool:
    """Look for a value; a plain one with Python's own search, which only takes true for 1."""
    start = 0
    if type(value) in EXACT or type(value) is float:
        if value not in values:
            return False
        start = values.index(value)
    return any(is_equal(value, values[at]) for at in range(start, len(values)))


def is_equal(one: Value, two: Value) -> bool:
    """Whether two values are equal. What cannot be compared is not."""
    try:
        return equal(one, two)
    except EvaluationError:
        return False


def position(index: Value) -> int:
    """Return a list index. Raises EvaluationError for what is none."""
    if type(index) is float and index.is_integer():
        return int(index)
    if type(index) is int or type(index) is UInt:
        return int(index)
    raise EvaluationError(f"unsupported index type '{type_name(index)}' in list")


KEYS = frozenset({str, int, UInt, float, bool})


def _check_key(key: Value) -> None:
    """Refuse what cel-go has no qualifier for, whatever it stands in front of. Raises EvaluationError."""
    if type(key) not in KEYS:
        raise EvaluationError(f"invalid qualifier type: {type_name(key)}")


def element(container: Value, key: Value) -> Value:
    """Return `container[key]`."""
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
    """Return `container[?key]`."""
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
