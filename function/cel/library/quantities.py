"""Kubernetes quantities: memory, counts, anything a device publishes as capacity."""

from __future__ import annotations

from function.cel import cost
from function.cel.declarations import Overload, function, method
from function.cel.errors import EvaluationError
from function.cel.quantity import Quantity, quantity, whole


def is_quantity(text: str) -> bool:
    """Whether a text parses as a quantity."""
    try:
        quantity(text)
    except EvaluationError:
        return False
    return True


def as_integer(value: Quantity) -> int:
    """Return the integer that the int64 form holds."""
    number = value.integer()
    if number is None:
        raise EvaluationError("cannot convert value to integer")
    return number


def _operand(value: Quantity | int) -> Quantity:
    return value if isinstance(value, Quantity) else whole(value)


def _sums(*, shares: bool) -> tuple[Overload, ...]:
    """Declare add and sub; `shares` as in `Quantity.plus`."""

    def declare(name: str, sign: int, kind: str) -> Overload:
        return method(
            name,
            f"Quantity, {kind} -> Quantity",
            lambda one, two: one.plus(_operand(two), sign, shares=shares),
        )

    return tuple(
        declare(name, sign, kind) for name, sign in (("add", 1), ("sub", -1)) for kind in ("Quantity", "int")
    )


LATER = _sums(shares=False)
"""What Kubernetes 1.37 has in place of add and sub: the receiver does not change."""

DECLARATIONS = (
    function("quantity", "string -> Quantity", quantity, cost=cost.walk),
    function("isQuantity", "string -> bool", is_quantity, cost=cost.walk),
    function("sign", "Quantity -> int", Quantity.sign),
    method("compareTo", "Quantity, Quantity -> int", Quantity.compare),
    method("isGreaterThan", "Quantity, Quantity -> bool", lambda one, two: one.compare(two) > 0),
    method("isLessThan", "Quantity, Quantity -> bool", lambda one, two: one.compare(two) < 0),
    method("asInteger", "Quantity -> int", as_integer),
    method("isInteger", "Quantity -> bool", lambda value: value.integer() is not None),
    method("asApproximateFloat", "Quantity -> double", Quantity.real),
    *_sums(shares=True),
)

FORM_MATTERS = frozenset({"asInteger", "isInteger", "asApproximateFloat", "add", "sub"})
"""Functions that can tell the forms of a quantity apart, or change it."""
