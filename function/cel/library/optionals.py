"""Optionals: values that may be missing. `or` and `orValue` are lazy; see `function.cel.evaluator.calls`."""

from __future__ import annotations

from function.cel.errors import EvaluationError, no_overload
from function.cel.library import charges as cost
from function.cel.library.declarations import function, method
from function.cel.values import NONE, TIMESTAMP_MIN, Duration, Map, Optional, Timestamp, UInt, Value

_SIZED = (str, bytes, list, Map)
_NUMERIC = (bool, int, UInt, float)


def unwrap(optional: Optional) -> Value:
    """Return the value that is there."""
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def of_non_zero(value: Value) -> Optional:
    """Return none for null, for zero, for what is empty and for the first moment of the year 1."""
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
    """Stand in for what the generator does itself."""
    raise AssertionError("the generator runs this lazily")


DECLARATIONS = (
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
