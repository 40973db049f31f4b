"""Arithmetic across the types of values: 64-bit integers overflow, doubles follow IEEE, times shift."""

from __future__ import annotations

import math

from function.cel.errors import EvaluationError, no_overload
from function.cel.library.relations import NUMBERS, SPANS
from function.cel.values import (
    INT64_MIN,
    Duration,
    Timestamp,
    UInt,
    Value,
    is_int64,
    is_uint64,
    type_name,
)


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
    return no_overload(f"{type_name(one)} {symbol} {type_name(two)}")


def add(one: Value, two: Value) -> Value:
    """Return `one + two`."""
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
    """Return `one - two`."""
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
    """Return `one / two`; integers truncate towards zero, doubles follow IEEE."""
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
    """Return `-value`."""
    if type(value) is int:
        return int64(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return Duration(-value.nanos)
    raise no_overload(f"-{type_name(value)}")
