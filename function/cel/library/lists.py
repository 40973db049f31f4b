"""Lists: order, position, shape."""

from __future__ import annotations

import operator
from functools import cmp_to_key
from itertools import pairwise
from typing import TYPE_CHECKING

from function.cel import cost
from function.cel.arithmetic import add
from function.cel.declarations import Overload, function, method
from function.cel.errors import CostExceeded, EvaluationError
from function.cel.operators import EXACT, ORDERED, SPANS, equal, order
from function.cel.values import Duration, UInt, Value

if TYPE_CHECKING:
    from collections.abc import Callable

EXTENSIONS = "1.34"
_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SORTED = frozenset({int, UInt, float}) | ORDERED | SPANS


def _alike(values: list[Value]) -> bool:
    """Whether Python orders these as CEL does, so that its own functions may."""
    return len({*map(type, values)}) == 1 and type(values[0]) in EXACT


def is_sorted(values: list[Value]) -> bool:
    """Whether no element is more than the next."""
    if values and _alike(values):
        return all(map(operator.le, values, values[1:]))
    return all(order(one, two) <= 0 for one, two in pairwise(values))


def total(zero: Value) -> Callable[[list[Value]], Value]:
    """Return what sums up, from this zero."""

    def run(values: list[Value]) -> Value:
        if not values:
            return zero
        result, *others = values
        for value in others:
            result = add(result, value)
        return result

    return run


def extreme(name: str, sign: int) -> Callable[[list[Value]], Value]:
    """Return what finds the most (sign 1) or the least (sign -1)."""
    quick = max if sign == 1 else min

    def run(values: list[Value]) -> Value:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        if _alike(values):
            return quick(values)
        best = values[0]
        for value in values[1:]:
            if order(value, best) == sign:
                best = value
        return best

    return run


def _is(one: Value, two: Value) -> bool:
    try:
        return equal(one, two)
    except EvaluationError:
        return False


def index_of(values: list[Value], wanted: Value) -> int:
    """Return where the value first is, or -1."""
    return next((at for at, value in enumerate(values) if _is(value, wanted)), -1)


def last_index_of(values: list[Value], wanted: Value) -> int:
    """Return where the value last is, or -1."""
    return next((at for at in range(len(values) - 1, -1, -1) if _is(values[at], wanted)), -1)


def cut(values: list[Value], start: int, end: int) -> list[Value]:
    """Return the elements in [start, end)."""
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(values):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def flatten(values: list[Value], levels: int = 1) -> list[Value]:
    """Replace lists by their elements, so many levels deep."""
    if levels < 0:
        raise EvaluationError("level must be non-negative")
    while levels > 0 and any(type(value) is list for value in values):
        if sum(len(value) if type(value) is list else 1 for value in values) > cost.LIMIT:
            raise CostExceeded
        values = [inner for value in values for inner in (value if type(value) is list else [value])]
        levels -= 1
    return values


def _by_key(one: tuple[Value, Value], two: tuple[Value, Value]) -> int:
    return order(one[0], two[0])


def sorted_by(values: list[Value], keys: list[Value]) -> list[Value]:
    """Return the values in the order of their keys, which must be of one type that has an order."""
    kinds = {type(key) for key in keys}
    if len(kinds) > 1:
        raise EvaluationError("list elements must have the same type")
    if kinds - _SORTED:
        raise EvaluationError("list elements must be comparable")
    pairs = sorted(zip(keys, values, strict=True), key=cmp_to_key(_by_key))
    return [value for _, value in pairs]


def sort(values: list[Value]) -> list[Value]:
    """Return the values in order."""
    return sorted_by(values, values)


def distinct(values: list[Value]) -> list[Value]:
    """Return the values without those that an earlier one equals."""
    kept: list[Value] = []
    for value in values:
        if not any(_is(value, other) for other in kept):
            kept.append(value)
    return kept


def numbers(count: int) -> list[int]:
    """Return 0 to count - 1."""
    if count > cost.LIMIT:
        raise CostExceeded
    return list(range(count))


def _ordered() -> list[Overload]:
    made = []
    for kind in _ORDERED:
        made += [
            method("isSorted", f"list<{kind}> -> bool", is_sorted, cost=cost.elements),
            method("max", f"list<{kind}> -> {kind}", extreme("max", 1), cost=cost.elements),
            method("min", f"list<{kind}> -> {kind}", extreme("min", -1), cost=cost.elements),
            method("sort", f"list<{kind}> -> list<{kind}>", sort, cost=cost.pairwise, since=EXTENSIONS),
        ]
    return made


_SUMS = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}

DECLARATIONS = (
    *_ordered(),
    *(
        method("sum", f"list<{kind}> -> {kind}", total(zero), cost=cost.elements)
        for kind, zero in _SUMS.items()
    ),
    method("indexOf", "list<A>, A -> int", index_of, cost=cost.elements),
    method("lastIndexOf", "list<A>, A -> int", last_index_of, cost=cost.elements),
    method("slice", "list<A>, int, int -> list<A>", cut, cost=cost.allocate, since=EXTENSIONS),
    method("flatten", "list<list<A>> -> list<A>", flatten, cost=cost.allocate, since=EXTENSIONS),
    method("flatten", "list<dyn> -> list<dyn>", flatten, cost=cost.allocate, since=EXTENSIONS),
    method("flatten", "list<dyn>, int -> list<dyn>", flatten, cost=cost.allocate, since=EXTENSIONS),
    method("distinct", "list<A> -> list<A>", distinct, cost=cost.pairwise, since=EXTENSIONS),
    method(
        "reverse", "list<A> -> list<A>", lambda values: values[::-1], cost=cost.allocate, since=EXTENSIONS
    ),
    function("lists.range", "int -> list<int>", numbers, cost=cost.allocate, since=EXTENSIONS),
)
