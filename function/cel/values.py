"""The values an expression computes with, where Python's own do not fit, and the errors of a selector.

bool, int (int64), float (double), str, bytes, None and list are themselves. What Python would mix up has a
type of its own: an unsigned integer (`UInt`) is no int to a selector. Types with one library (`Quantity`,
`Ip`) stand beside it; they have `TYPE_NAME`, and Python's equality where Go knows one.

Everything here is immutable once built, except what one evaluation owns. So a program and a subject can be
shared by any number of threads.

Errors come in two families. A `Mistake` is in the text, before anything runs: the API server would refuse the
selector. The others are of one evaluation; they differ in what absorbs them:

| error | meaning | absorbed by `&&`, `||`, `all`, `exists` |
|---|---|---|
| `EvaluationError` | the expression has no value on this subject | yes |
| `Aborted` | Go panics, and its evaluation fails as a whole | no |
| `CostExceeded` | more work than Kubernetes allows | no |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

CARET_WINDOW = 120
"""How many characters of a long line are shown around the caret."""


class Mistake(Exception):
    """A mistake in the text of a selector, at a character offset."""

    def __init__(self, message: str, at: int) -> None:
        """`at` counts characters of the source."""
        super().__init__(message)
        self.message = message
        self.at = at


class CompileError(Exception):
    """The API server would refuse this selector. `line` and `column` count from 1, in characters.

    What leaves this package in place of a `Mistake`, with the source that its offset is of.
    """

    def __init__(self, message: str, source: str, at: int) -> None:
        """Find line and column of an offset into the source."""
        before = source[:at]
        self.message = message
        self.source = source
        self.line = before.count("\n") + 1
        self.column = at - (before.rfind("\n") + 1) + 1
        super().__init__(f"{self.line}:{self.column}: {message}")

    def caret(self) -> str:
        """Return the source line and, under it, a caret at the place; a long line is cut around it."""
        text = self.source.split("\n")[self.line - 1].rstrip("\r")
        start = max(0, self.column - 1 - CARET_WINDOW // 2) if len(text) > CARET_WINDOW else 0
        shown = text[start : start + CARET_WINDOW]
        pad = "".join("\t" if c == "\t" else " " for c in shown[: self.column - 1 - start])
        return f"{shown}\n{pad}^"


class EvaluationError(Exception):
    """The expression has no value on this subject. `&&` and `||` absorb it, the ternary does not."""


class CostExceeded(Exception):
    """The evaluation did more work than Kubernetes allows. Nothing absorbs it."""


class Aborted(Exception):
    """Go's code fails as a whole, which is an error of the evaluation that nothing absorbs."""


def no_overload(what: str = "") -> EvaluationError:
    """Return the error of an operation that does not exist for the types it met."""
    return EvaluationError(f"no such overload: {what}" if what else "no such overload")


# The frame of one evaluation: a list of the subject, the budget, the steps left and a slot for each name. A
# list, because a closure reaches into it at every step: an index is the quickest look-up that Python has.

SUBJECT = 0
BUDGET = 1
WORK = 2
FIRST_SLOT = 3


Value: TypeAlias = Any

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UINT64_MAX = 2**64 - 1
NANO = 10**9
TIMESTAMP_MIN, TIMESTAMP_MAX = -62_135_596_800 * NANO, 253_402_300_800 * NANO - 1
"""From year 1 to the end of year 9999, in nanoseconds since 1970."""


def is_int64(number: int) -> bool:
    """Tell whether the number fits in 64 bits with a sign."""
    return INT64_MIN <= number <= INT64_MAX


def is_uint64(number: int) -> bool:
    """Tell whether the number fits in 64 bits without a sign."""
    return 0 <= number <= UINT64_MAX


class UInt(int):
    """An unsigned 64-bit integer; only its type tells it from an int."""

    __slots__ = ()


class Duration:
    """A span of time in nanoseconds, which 64 bits must hold: 292 years."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        """Raises EvaluationError beyond 64 bits of nanoseconds."""
        if not is_int64(nanos):
            raise EvaluationError("integer overflow")
        self.nanos = nanos


class Timestamp:
    """A point in time in nanoseconds since 1970, and how many seconds east of UTC it was written.

    The offset shows in its text only; two timestamps are equal where their points in time are.
    """

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        """`offset` is in seconds. Raises EvaluationError outside the years 1 to 9999."""
        if not TIMESTAMP_MIN <= nanos <= TIMESTAMP_MAX:
            raise EvaluationError("timestamp overflow")
        self.nanos = nanos
        self.offset = offset


@dataclass(eq=False, slots=True)
class TypeValue:
    """The result of `type(x)`. Two are equal by name, which `operators.equal` looks at."""

    name: str


class Optional:
    """A value that may be missing. One that `fails` is there and is an error to whoever reads it."""

    __slots__ = ("fails", "present", "unread")

    def __init__(self, value: Value = None, *, present: bool = True, fails: str = "") -> None:
        """`fails` is the message of the error that reading the value raises."""
        self.present = present
        self.fails = fails
        self.unread = value
        """The value for whoever only measures it; None if it is an error."""

    @property
    def value(self) -> Value:
        """The value. Raises EvaluationError if it is an error."""
        if self.fails:
            raise EvaluationError(self.fails)
        return self.unread


NONE = Optional(present=False)


class Map:
    """A map: normalised key to (key, value). `default` stands for every key that is not there.

    Keys are normalised because to Python 1, 1.0 and True are one key, and to Go three. A default exists for
    the domains of a device only: an unknown domain is an empty map, as the allocator makes it
    (`newStringInterfaceMapWithDefault`). A map `of_texts` was made by Go from a map of strings: no other key
    is ever found in it.
    """

    __slots__ = ("default", "entries", "of_texts")

    def __init__(
        self, entries: dict[Value, tuple[Value, Value]], default: Value = None, *, of_texts: bool = False
    ) -> None:
        """`entries` are keyed by `normal_key`; a reader of the map finds its own key beside the value."""
        self.entries = entries
        self.default = default
        self.of_texts = of_texts

    @classmethod
    def of(cls, pairs: Mapping[str, Value], default: Value = None) -> Map:
        """Return the map of string keys to values."""
        return cls({key: (key, value) for key, value in pairs.items()}, default, of_texts=True)

    def held(self, key: Value) -> tuple[Value, Value] | None:
        """Return the entry of `key`, or None. Raises Aborted for a key that cannot be looked up."""
        if type(key) is str:
            return self.entries.get(key)
        if self.of_texts or not self.entries:
            return None
        entry = self.entries.get(normal_key(key))
        if entry is not None or type(key) not in (int, UInt, float):
            return entry
        # A number is looked up as an int and as a uint too, where nothing is lost by it.
        if type(key) is float and not key.is_integer():
            return None
        number = int(key)
        entry = self.entries.get(number) if is_int64(number) and type(key) is not int else None
        if entry is None and is_uint64(number) and type(key) is not UInt:
            entry = self.entries.get((UInt, number))
        return entry

    def find(self, key: Value) -> tuple[Value, Value] | None:
        """Return the entry of `key`, or None; the default counts as an entry."""
        entry = self.held(key)
        return (key, self.default) if entry is None and self.default is not None else entry

    def __len__(self) -> int:
        """Return the number of entries; the default does not count."""
        return len(self.entries)


_UNHASHABLE = frozenset({"bytes", "kubernetes.Semver", "kubernetes.NamedFormat"})
"""Values that Go cannot use as a key of a map: it fails when it tries."""
_BY_ADDRESS = frozenset({"null_type", "list", "map", "optional_type", "kubernetes.URL"})
"""Values that Go knows by their address only, each as a key by itself."""


def normal_key(key: Value) -> Value:  # noqa: PLR0911 - one for each kind of key
    """Return what Go compares when it looks a key up. Raises Aborted for what it cannot look up.

    1, 1u and 1.0 are three keys, NaN is never found again, and what Go knows by its address only is itself:
    its `id`, which no other value gets while a map holds it as a key.
    """
    kind = type(key)
    if kind is str or kind is int:
        return key
    if kind is bool:
        return (bool, key)
    if kind is UInt:
        return (UInt, int(key))
    if kind is float:
        return (float, key) if key == key else object()  # noqa: PLR0124 - NaN is what differs from itself
    if kind is Duration:
        return (Duration, key.nanos)
    if kind is Timestamp:
        return (Timestamp, key.nanos, key.offset)
    if kind is TypeValue:
        return (TypeValue, key.name)
    name = type_name(key)
    if name in _UNHASHABLE:
        raise Aborted(f"a {name} cannot be looked up")
    if name == "kubernetes.Quantity":  # Go knows it by its address too, new with each call: none is found.
        return object()
    return (kind, id(key)) if name in _BY_ADDRESS else key


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
