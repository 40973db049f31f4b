"""Conversions between types, and the types themselves. With a constant they are settled at compile time.

Each is one `ConvertToType` of cel-go (`common/types/*.go`), and reads texts as Go's `strconv` does, which is
looser than CEL's own literals: `int("+1")` is 1, `double("0x1p-2")` and `double("1_0")` are numbers,
`bool("T")` is true. What Go writes has the shortest digits that read back as the number, with an exponent for
very large and very small ones; Python's `repr` has the same digits in another form (`text_of_double`).

Texts of more than `_LONGEST` characters are refused: no number needs them, and Python takes long over one.
"""

from __future__ import annotations

import math
import re

from function.cel import values
from function.cel.library import charges as cost
from function.cel.library.declarations import function
from function.cel.library.operators import int64, uint64
from function.cel.library.times import format_duration, format_timestamp, parse_duration, parse_timestamp
from function.cel.values import NANO, Duration, EvaluationError, Timestamp, TypeValue, UInt, Value, is_int64

_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UINT = re.compile(r"[0-9]+", re.ASCII)
_DIGITS, _HEX = "[0-9](?:_?[0-9])*", "[0-9a-f](?:_?[0-9a-f])*"
_DOUBLE = (
    rf"(?ai:[+-]?(?:inf|infinity|(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?"
    rf"|0x_?(?:{_HEX}\.?(?:{_HEX})?|\.{_HEX})p[+-]?{_DIGITS})|nan)"
)
"""Compiled when a text is first converted: few selectors do, and it takes as long as ten patterns do."""
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_LONGEST = 400
_PLAIN = range(-4, 6)
"""Powers of ten that are written out, without an exponent."""


def _failed(value: str, target: str) -> EvaluationError:
    """Return the error of a text that is no value of a type; of a long text only the beginning is shown."""
    return EvaluationError(f"type conversion error from 'string' to '{target}': {value[:40]!r}")


def text_of_double(number: float) -> str:
    """Return the shortest text that reads back as the number, as Go writes it.

    Go's `%g` with the fewest digits that tell the number from its neighbours. Between 1e-4 and 1e6 it is
    written out, elsewhere with an exponent of at least two digits. Python's `repr` finds the same digits.
    """
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    # The significant digits, and the power of ten of the first, from Python's shortest text.
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0").rstrip("0") or "0"
    leading = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0"))) - 1
    power = leading + int(exponent or 0)
    sign = "-" if number < 0 else ""
    if power not in _PLAIN:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    whole, fraction = digits[: power + 1].ljust(power + 1, "0"), digits[power + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def to_string(value: Value) -> str:  # noqa: PLR0911 - one for each type
    """Return a value as text. Types of other libraries write themselves."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is UInt:
        return str(int(value))
    if kind is float:
        return text_of_double(value)
    if kind is bytes:
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if kind is Duration:
        return format_duration(value)
    return format_timestamp(value) if kind is Timestamp else str(value)


def to_int(value: Value) -> int:
    """Return a value as int64; doubles lose their fraction, times become seconds, durations nanoseconds.

    The bounds of a double are exclusive: 2^63 itself does not fit, and the smallest integer as a double is
    refused too, as in cel-go (`doubleToInt64Checked`).
    """
    kind = type(value)
    if kind is float:
        if not -(2.0**63) < value < 2.0**63:
            raise EvaluationError("integer overflow")
        return int(value)
    if kind is str:
        if len(value) > _LONGEST or not _INT.fullmatch(value) or not is_int64(int(value)):
            raise _failed(value, "int")
        return int(value)
    if kind is Timestamp:
        return int(value.nanos // NANO)
    return int64(int(value.nanos if kind is Duration else value))


def to_uint(value: Value) -> UInt:
    """Return a value as uint64; doubles lose their fraction. A sign is not allowed, not even a plus."""
    if type(value) is float:
        if not 0 <= value < 2.0**64:
            raise EvaluationError("unsigned integer overflow")
        return UInt(int(value))
    if type(value) is str:
        if len(value) > _LONGEST or not _UINT.fullmatch(value) or not values.is_uint64(int(value)):
            raise _failed(value, "uint")
        return UInt(int(value))
    return uint64(int(value))


def to_double(value: Value) -> float:
    """Return a value as double.

    Go's `ParseFloat` takes underscores between digits and hexadecimal with an exponent of two. A text that
    rounds to infinity is out of range, unless it says so.
    """
    if type(value) is not str:
        return float(value)
    if len(value) > _LONGEST or not re.fullmatch(_DOUBLE, value):
        raise _failed(value, "double")
    digits = value.replace("_", "")
    try:
        number = float.fromhex(digits) if "x" in digits.lower() else float(digits)
    except (ValueError, OverflowError):
        raise _failed(value, "double") from None
    if math.isinf(number) and "inf" not in value.lower():
        raise _failed(value, "double")
    return number


def to_bool(value: Value) -> bool:
    """Return a value as bool. The texts are those of Go's `ParseBool`, and no others."""
    if type(value) is bool:
        return value
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise _failed(value, "bool")


def to_timestamp(value: Value) -> Timestamp:
    """Return a text, or seconds since 1970, as timestamp."""
    if type(value) is int:
        return Timestamp(value * NANO)
    return parse_timestamp(value) if type(value) is str else value


def to_duration(value: Value) -> Duration:
    """Return a text as duration. Kubernetes up to 1.36 declares this of an int too, and then cannot do it."""
    if type(value) is int:
        raise EvaluationError("type conversion error from 'int' to 'google.protobuf.Duration'")
    return parse_duration(value) if type(value) is str else value


_STRING = ("string", "bool", "bytes", "double", "duration", "int", "timestamp", "uint", "IP", "CIDR")
_CONVERSIONS = (
    ("string", to_string, _STRING),
    ("int", to_int, ("int", "double", "duration", "string", "timestamp", "uint")),
    ("uint", to_uint, ("uint", "double", "int", "string")),
    ("double", to_double, ("double", "int", "string", "uint")),
    ("bool", to_bool, ("bool", "string")),
    ("timestamp", to_timestamp, ("timestamp", "int", "string")),
    ("duration", to_duration, ("duration", "int", "string")),
)
"""In the order of cel-go's overloads: the first one binds a type that nothing else binds."""

LATER = tuple(function("duration", f"{given} -> duration", to_duration) for given in ("duration", "string"))
"""Conversions to a duration in Kubernetes 1.37, where none is from an int."""

DECLARATIONS = (
    *(
        function(name, f"{given} -> {name}", run, cost=cost.walk if given == "bytes" else 1)
        for name, run, kinds in _CONVERSIONS
        for given in kinds
    ),
    function("bytes", "bytes -> bytes", lambda value: value),
    function("bytes", "string -> bytes", lambda value: value.encode(errors="surrogatepass"), cost=cost.walk),
    function("dyn", "A -> dyn", lambda value: value),
    function("type", "A -> type<A>", lambda value: TypeValue(values.type_name(value))),
)
