"""Lists: order, position, shape; lists read as sets; optionals; and `includes` over list attributes.

Four libraries that work on lists, each a table at the end of its part:

- `INCLUDES` is Kubernetes' own, for attributes that may be a list or a single value;
- `OPTIONALS` is cel-go's `cel/library.go`: values that may be missing;
- `SETS` is cel-go's `ext/sets.go`;
- `DECLARATIONS` is Kubernetes' `library/lists.go` with what cel-go's `ext/lists.go` added to it in 1.34.

A library has to hold for lists of any size that a selector can build within its cost. Where Python can do the
work on a whole list at once and means the same (`EXACT`), it does; elsewhere elements are compared one by
one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cmp_to_key, partial
from itertools import pairwise

from function.cel.library import charges as cost
from function.cel.library.charges import MET, excess, weight
from function.cel.library.declarations import function, method
from function.cel.library.operators import EXACT, ORDERED, SPANS, add, contains, is_equal, order
from function.cel.values import (
    NONE,
    TIMESTAMP_MIN,
    CostExceeded,
    Duration,
    EvaluationError,
    Map,
    Optional,
    Timestamp,
    UInt,
    Value,
    no_overload,
    type_name,
)

# `includes`: whether an attribute has a value, be it a list or a single one.

LONGEST = 48
"""Elements that a list may have; Kubernetes looks no further and fails instead."""


def includes(value: Value, wanted: Value) -> bool:
    """Tell whether a list contains, or a single value is, what is wanted.

    An attribute can become a list when its driver is upgraded; a selector with `includes` holds before and
    after.
    """
    if type(value) is not list:
        return is_equal(value, wanted)
    for at, element in enumerate(value):
        if at >= LONGEST:
            raise EvaluationError(
                f"'includes' function cannot be applied to lists longer than {LONGEST} values"
            )
        if is_equal(element, wanted):
            return True
    return False


def held(value: Value, wanted: Value) -> bool:
    """Tell whether a list contains, or a single value is, what is wanted; however long the list is."""
    return (
        any(is_equal(element, wanted) for element in value)
        if type(value) is list
        else is_equal(value, wanted)
    )


INCLUDES_LATER = (method("includes", "dyn, dyn -> bool", held, cost=cost.searched, since="1.36"),)
"""The same in Kubernetes 1.37: charged for each element, and without a limit of its own."""

INCLUDES = (method("includes", "dyn, dyn -> bool", includes, cost=cost.held, since="1.36"),)


# Optionals: values that may be missing. `or` and `orValue` are lazy; see `function.cel.evaluator.calls`.

_SIZED = (str, bytes, list, Map)
_NUMERIC = (bool, int, UInt, float)


def unwrap(optional: Optional) -> Value:
    """Return the value that is there. An empty optional has none, which is an error."""
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def of_non_zero(value: Value) -> Optional:
    """Return none for null, for zero, for what is empty and for the first moment of the year 1.

    These are the zero values of Go's types: a timestamp of year 1 is what Go has where none was set.
    """
    kind = type(value)
    zero = value is None or (kind in _SIZED and len(value) == 0) or (kind in _NUMERIC and value == 0)
    zero = zero or (kind is Duration and value.nanos == 0)
    zero = zero or (kind is Timestamp and value.nanos == TIMESTAMP_MIN)
    return NONE if zero else Optional(value)


def present(values: list[Optional]) -> list[Value]:
    """Return the values that are there. Raises EvaluationError for an element that is no optional."""
    if not all(type(optional) is Optional for optional in values):
        raise no_overload("unwrap: an element is not an optional")
    return [optional.value for optional in values if optional.present]


def never(*_args: Value) -> Value:
    """Stand in for what the generator does itself: an argument that may not run cannot be computed first."""
    raise AssertionError("the generator runs this lazily")


OPTIONALS = (
    function("optional.of", "A -> optional<A>", Optional),
    function("optional.none", "-> optional<A>", lambda: NONE),
    function("optional.ofNonZeroValue", "A -> optional<A>", of_non_zero),
    method("hasValue", "optional<A> -> bool", lambda optional: optional.present),
    method("value", "optional<A> -> A", unwrap),
    method("or", "optional<A>, optional<A> -> optional<A>", never),
    method("orValue", "optional<A>, A -> A", never),
    function("optional.unwrap", "list<optional<A>> -> list<A>", present, cost=cost.unwrapped, since="1.33"),
    method("unwrapOpt", "list<optional<A>> -> list<A>", present, cost=cost.unwrapped, since="1.33"),
    method("first", "list<A> -> optional<A>", lambda v: Optional(v[0]) if v else NONE, since="1.33"),
    method("last", "list<A> -> optional<A>", lambda v: Optional(v[-1]) if v else NONE, since="1.33"),
)


# Lists read as sets. An element that cannot be compared is in no set.


def contains_all(one: list[Value], two: list[Value]) -> bool:
    """Tell whether every element of the second is in the first. Every set contains the empty one."""
    return all(contains(value, one) for value in two)


def crossed(_result: Value, one: list[Value], two: list[Value]) -> int:
    """Cost of comparing each element with each.

    Kubernetes charges the product of the lengths. Elements that hold others are compared to their bottom,
    which is charged here where it is much.
    """
    pairs = len(one) * len(two)
    if {*map(type, one), *map(type, two)} <= EXACT:
        return 1 + pairs
    return 1 + pairs + excess(weight(one) * len(two), MET)


def crossed_twice(_result: Value, one: list[Value], two: list[Value]) -> int:
    """Cost of comparing each with each, both ways."""
    return 2 * crossed(None, one, two) - 1


SETS = (
    function("sets.contains", "list<A>, list<A> -> bool", contains_all, cost=crossed),
    function(
        *("sets.equivalent", "list<A>, list<A> -> bool"),
        lambda one, two: contains_all(one, two) and contains_all(two, one),
        cost=crossed_twice,
    ),
    function(
        *("sets.intersects", "list<A>, list<A> -> bool"),
        lambda one, two: any(contains(value, two) for value in one),
        cost=crossed,
    ),
)


EXTENSIONS = "1.34"
_late_method = partial(method, since=EXTENSIONS)
_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
INSERTED = 12
"""Elements that Go sorts by insertion."""
_SORTED = frozenset({int, UInt, float}) | ORDERED | SPANS


def _ordered_by_python(values: list[Value]) -> bool:
    """Tell whether Python orders these as CEL does, so that its own functions may."""
    return len({*map(type, values)}) == 1 and type(values[0]) in EXACT


def is_sorted(values: list[Value]) -> bool:
    """Tell if no element is more than the next. What has no order with its neighbour does not disturb.

    A list of one plain type is Python's own work; mixed numbers and NaN go through `compared`.
    """
    if values and _ordered_by_python(values):
        return all(map(operator.le, values, values[1:]))
    _refuse_unordered(values)
    return all(compared(one, two) != 1 for one, two in pairwise(values))


def compared(one: Value, two: Value) -> int | None:
    """Return -1, 0 or 1; None for two that cannot be compared, such as NaN with anything.

    Go compares such a pair to an error value, and an error is neither -1 nor 1.
    """
    try:
        return order(one, two)
    except EvaluationError:
        return None


def _refuse_unordered(values: list[Value]) -> None:
    """Refuse a list with an element of a type that has no order, before anything is compared."""
    for value in values:
        if type(value) not in _SORTED:
            raise no_overload(type_name(value))


def total(zero: Value) -> Callable[[list[Value]], Value]:
    """Return what sums up, from this zero: an empty list of ints is 0, of durations 0s.

    Each sum is an operator's, so it overflows as `+` does.
    """

    def run(values: list[Value]) -> Value:
        """Add from the left, so that the sum that overflows first is the error."""
        result = zero
        for value in values:
            result = add(result, value)
        return result

    return run


def extreme(name: str, sign: int) -> Callable[[list[Value]], Value]:
    """Return what finds the most (sign 1) or the least (sign -1).

    Of equal elements the first is kept. NaN is neither more nor less than anything, so where it is first it
    stays.
    """
    quick = max if sign == 1 else min

    def run(values: list[Value]) -> Value:
        """Let Python search where it orders as CEL does; else compare each with the best so far."""
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        if _ordered_by_python(values):
            return quick(values)
        _refuse_unordered(values)
        best = values[0]
        for value in values[1:]:
            if compared(best, value) == -sign:
                best = value
        return best

    return run


def position(values: list[Value], wanted: Value, *, step: int = 1) -> int:
    """Return the first position of a value, or with `step` -1 the last one; -1 where it is not."""
    places = range(len(values))[::step]
    return next((at for at in places if is_equal(values[at], wanted)), -1)


def cut(values: list[Value], start: int, end: int) -> list[Value]:
    """Return the elements in [start, end). Unlike in Python nothing is clamped or counts from the end."""
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(values):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def flatten(values: Value, levels: Value = 1) -> list[Value]:
    """Replace lists by their elements, so many levels deep. cel-go looks at the types here, not before.

    A list can double with each level while it is small to write; its length is bounded before it is made.
    """
    if type(values) is not list or type(levels) is not int:
        raise no_overload(f"{type_name(values)}.flatten({type_name(levels)})")
    if levels < 0:
        raise EvaluationError("level must be non-negative")
    while levels > 0 and any(type(value) is list for value in values):
        if sum(len(value) if type(value) is list else 1 for value in values) > cost.LIMIT:
            raise CostExceeded
        values = [inner for value in values for inner in (value if type(value) is list else [value])]
        levels -= 1
    flat: list[Value] = values
    return flat


def sorted_by(values: list[Value], keys: list[Value]) -> list[Value]:
    """Return the values in the order of their keys, which must be of one type that has an order.

    Go sorts up to a dozen by insertion, which shows where NaN is among the keys. Above it does not keep equal
    keys in their order; we do.
    """
    if keys and type(keys[0]) not in _SORTED:
        raise EvaluationError("list elements must be comparable")
    if len({type(key) for key in keys}) > 1:
        raise EvaluationError("list elements must have the same type")
    if len(keys) > INSERTED or not any(key != key for key in keys):  # noqa: PLR0124 - NaN differs from itself
        # Keys without an order are as equals, which keeps their places.
        by_key = cmp_to_key(lambda one, two: compared(one, two) or 0)
        return [values[place] for place in sorted(range(len(keys)), key=lambda place: by_key(keys[place]))]
    positions: list[int] = []
    for place, key in enumerate(keys):
        at = len(positions)
        while at and compared(key, keys[positions[at - 1]]) == -1:
            at -= 1
        positions.insert(at, place)
    return [values[place] for place in positions]


def sort(values: Value) -> list[Value]:
    """Return the values in order."""
    if type(values) is not list:
        raise no_overload(f"sort({type_name(values)})")
    return sorted_by(values, values)


def distinct(values: list[Value]) -> list[Value]:
    """Return the values without those that an earlier one equals."""
    kept: list[Value] = []
    for value in values:
        if not any(is_equal(value, other) for other in kept):
            kept.append(value)
    return kept


def counted(count: int) -> list[int]:
    """Return 0 to count - 1; none of them is an error from Kubernetes 1.37 on."""
    if count < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {count}")
    return numbers(count)


def numbers(count: int) -> list[int]:
    """Return 0 to count - 1. More than an evaluation may cost is refused before the list is made."""
    if count > cost.LIMIT:
        raise CostExceeded
    return list(range(count))


POSITIONS = (
    method("indexOf", "list<A>, A -> int", position, cost=cost.elements),
    method("lastIndexOf", "list<A>, A -> int", partial(position, step=-1), cost=cost.elements),
)


_SUMS = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}

DECLARATIONS = (
    *(
        overload
        for kind in _ORDERED
        for overload in (
            method("isSorted", f"list<{kind}> -> bool", is_sorted, cost=cost.elements),
            method("max", f"list<{kind}> -> {kind}", extreme("max", 1), cost=cost.elements),
            method("min", f"list<{kind}> -> {kind}", extreme("min", -1), cost=cost.elements),
            _late_method("sort", f"list<{kind}> -> list<{kind}>", sort, cost=cost.pairwise, guarded=False),
        )
    ),
    *(
        method("sum", f"list<{kind}> -> {kind}", total(zero), cost=cost.elements)
        for kind, zero in _SUMS.items()
    ),
    *POSITIONS,
    _late_method("slice", "list<A>, int, int -> list<A>", cut, cost=cost.allocate),
    *(
        _late_method("flatten", signature, flatten, cost=cost.flattened, guarded=False)
        for signature in ("list<list<A>> -> list<A>", "list<dyn>, int -> list<dyn>")
    ),
    _late_method("distinct", "list<A> -> list<A>", distinct, cost=cost.pairwise),
    _late_method("reverse", "list<A> -> list<A>", lambda values: values[::-1], cost=cost.allocate),
    function("lists.range", "int -> list<int>", numbers, cost=cost.allocate, since=EXTENSIONS),
)

LATER = (function("lists.range", "int -> list<int>", counted, cost=cost.allocate, since=EXTENSIONS),)
"""The same in Kubernetes 1.37, where a negative number is an error."""
