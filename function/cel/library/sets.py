"""Lists read as sets. An element that cannot be compared is in no set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.library.charges import MET, excess, weight
from function.cel.library.declarations import function
from function.cel.library.relations import EXACT, contains

if TYPE_CHECKING:
    from function.cel.values import Value


def contains_all(one: list[Value], two: list[Value]) -> bool:
    """Whether every element of the second is in the first."""
    return all(contains(value, one) for value in two)


def equivalent(one: list[Value], two: list[Value]) -> bool:
    """Whether each holds all of the other."""
    return contains_all(one, two) and contains_all(two, one)


def intersects(one: list[Value], two: list[Value]) -> bool:
    """Whether they share an element."""
    return any(contains(value, two) for value in one)


def crossed(_result: Value, one: list[Value], two: list[Value]) -> int:
    """Cost of comparing each element with each."""
    pairs = len(one) * len(two)
    if {*map(type, one), *map(type, two)} <= EXACT:
        return 1 + pairs
    return 1 + pairs + excess(weight(one) * len(two), MET)


def crossed_twice(_result: Value, one: list[Value], two: list[Value]) -> int:
    """Cost of comparing each with each, both ways."""
    return 2 * crossed(None, one, two) - 1


DECLARATIONS = (
    function("sets.contains", "list<A>, list<A> -> bool", contains_all, cost=crossed),
    function("sets.equivalent", "list<A>, list<A> -> bool", equivalent, cost=crossed_twice),
    function("sets.intersects", "list<A>, list<A> -> bool", intersects, cost=crossed),
)
