"""The values an expression computes with, where Python's own do not fit.

bool, int (int64), float (double), str, bytes, None and list are themselves. Everything here is immutable once
built, except what one evaluation owns.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from function.cel.errors import EvaluationError

Value: TypeAlias = Any

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UINT64_MAX = 2**64 - 1
NANO = 10**9
TIMESTAMP_MIN, TIMESTAMP_MAX = -62_135_596_800 * NANO, 253_402_300_800 * NANO - 1
"""From year 1 to the end of year 9999, in nanoseconds since 1970."""


def is_int64(number: int) -> bool:
    """Whether the number fits in 64 bits with a sign."""
    return INT64_MIN <= number <= INT64_MAX


def is_uint64(number: int) -> bool:
    """Whether the number fits in 64 bits without a sign."""
    return 0 <= number <= UINT64_MAX


class UInt(int):
    """An unsigned 64-bit integer; only its type tells it from an int."""

    __slots__ = ()


class Duration:
    """A span of time in nanoseconds."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        if not is_int64(nanos):
            raise EvaluationError("integer overflow")
        self.nanos = nanos


class Timestamp:
    """A point in time in nanoseconds since 1970, UTC."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        if not TIMESTAMP_MIN <= nanos <= TIMESTAMP_MAX:
            raise EvaluationError("timestamp overflow")
        self.nanos = nanos


class TypeValue:
    """What `type(x)` returns."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Optional:
    """A value that may be missing."""

    __slots__ = ("present", "value")

    def __init__(self, value: Value = None, *, present: bool = True) -> None:
        self.present = present
        self.value = value


NONE = Optional(present=False)


class Opaque(Protocol):
    """A value of a library type: an address, a URL, a format. It knows its type and its equals."""

    TYPE_NAME: str

    def same(self, other: Value) -> bool:
        """Whether `other` is the same value. Raises EvaluationError where cel-go has no such overload."""


class Map:
    """A map: normalised key to (key, value). `default` stands for every key that is not there."""

    __slots__ = ("default", "entries")

    def __init__(self, entries: dict[Value, tuple[Value, Value]], default: Value = None) -> None:
        self.entries = entries
        self.default = default

    @classmethod
    def of(cls, pairs: dict[str, Value], default: Value = None) -> Map:
        """Return the map of string keys to values."""
        return cls({key: (key, value) for key, value in pairs.items()}, default)

    def find(self, key: Value) -> tuple[Value, Value] | None:
        """Return the entry of `key`, or None; the default counts as an entry."""
        entry = self.entries.get(normal_key(key))
        return (key, self.default) if entry is None and self.default is not None else entry

    def __len__(self) -> int:
        return len(self.entries)


def normal_key(key: Value) -> Value:
    """Return a key under which equal CEL keys meet: 1, 1u and 1.0 are one key, true is another."""
    kind = type(key)
    if kind is str:
        return key
    if kind is bool:
        return (bool, key)
    if kind is int or kind is UInt:
        return int(key)
    if kind is float:
        return int(key) if key.is_integer() else (float, key)
    raise EvaluationError("unsupported key type")


TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    Map: "map",
    Optional: "optional_type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
}


def type_name(value: Value) -> str:
    """Return the name of a value's type, for `type()` and for messages."""
    return TYPE_NAMES.get(type(value)) or str(value.TYPE_NAME)
