"""Kubernetes quantities, exactly: what parses, how it rounds, and which of its two forms a number is in.

Why so exact: "at least 80Gi of memory" is what most selectors ask. A number that is read, rounded or compared
otherwise than in Kubernetes places a replica where its claim never binds.

The rules are those of `k8s.io/apimachinery/pkg/api/resource` (`quantity.go`, `amount.go`, `suffix.go`), and
the functions those of the API server's `library/quantity.go`. The grammar is looser than its documentation:
`Mi`, `.` and `-` are zero, while `1K` and ` 1` do not parse. Values below nano round away from zero; binary
suffixes stop at 2^63 - 1, decimal ones do not.

A quantity is in the int64 form (a 64-bit number times a power of ten) or in the decimal form (any number).
Which one shows: only the int64 form converts to an integer, and comparing an int64 receiver with a decimal
operand turns the receiver decimal for the rest of the evaluation. So a selector that can tell the forms apart
(`FORM_MATTERS`) gets copies of its own; all others share one value with every thread.

One limit is ours: exponents beyond `MAX_EXPONENT` are refused. Kubernetes takes them and computes for
minutes.

Semantic versions stand here too: the other opaque type that devices publish.
"""

from __future__ import annotations

import operator
import re
from functools import lru_cache
from typing import ClassVar

from function.boundary import frozen
from function.cel.library import charges as cost
from function.cel.library.declarations import Overload, function, method, parses
from function.cel.values import INT64_MAX, INT64_MIN, EvaluationError, is_int64, is_uint64, no_overload

DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
NANO = -9
"""The smallest power of ten a quantity keeps; what is below rounds away from zero."""
MAX_EXPONENT = 5000
"""Kubernetes accepts more and then computes for minutes; we refuse."""
MAX_LENGTH = 4000
"""In characters: Python refuses to read much longer numbers."""
MAX_POWER = 18
MAX_POWER_OF_TEN, MIN_POWER_OF_TEN = 308, -323
"""Of a float."""
DIGITS = 18
"""Digits that surely fit in the int64 form."""

_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<zeros>0*)(?P<whole>[0-9]*)(?P<point>\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[eEinumkKMGTP]*(?P<tail>[-+]?[0-9]*))",
    re.ASCII,
)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)", re.ASCII)


class Quantity:
    """`number` times ten to `exponent`. `small` is the int64 form, `computed` a result of add or sub.

    A quantity that is not `owned` belongs to a device or a program and never changes; an owned one belongs to
    one evaluation. The decimal number sits in `cell`, because Kubernetes shares it between sum and receiver.
    """

    TYPE_NAME = "kubernetes.Quantity"
    __slots__ = ("cell", "computed", "owned", "small")
    __hash__ = None  # type: ignore[assignment] # It may change its form.

    def __init__(self, cell: list[int], *, small: bool, computed: bool = False, owned: bool = False) -> None:
        """`cell` holds number and exponent; a list, since a sum can share it with its receiver."""
        self.cell = cell
        self.small = small
        self.computed = computed
        self.owned = owned

    def copy(self) -> Quantity:
        """Return a copy for one evaluation."""
        return Quantity([*self.cell], small=self.small, computed=self.computed, owned=True)

    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self.cell[0] > 0) - (self.cell[0] < 0)

    def order(self, other: Quantity) -> int:
        """Return -1, 0 or 1 as this is less than, equal to or more than the other; exact in either form."""
        (one, power), (two, other_power) = self.cell, other.cell
        if power != other_power:
            lowest = min(power, other_power)
            one *= 10 ** (power - lowest)
            two *= 10 ** (other_power - lowest)
        return (one > two) - (one < two)

    def compare(self, other: Quantity) -> int:
        """Compare as `compareTo` does, with its effect on the receiver's form."""
        if self.owned and self.small and not other.small:
            self.small = False
        return self.order(other)

    def __eq__(self, other: object) -> bool:
        """Tell whether the values are equal, whatever their forms. A computed right side has no equality.

        Python asks this too, when it looks through a list for something else; that is only not equal.
        """
        if not isinstance(other, Quantity):
            return NotImplemented
        if other.computed:
            raise no_overload()
        return self.order(other) == 0

    def integer(self) -> int | None:
        """Return the value if the int64 form holds it as an integer."""
        number, power = self.cell
        if not self.small or power < 0:
            return None
        if number == 0 or power == 0:
            return number
        if power > MAX_POWER or number == INT64_MIN:
            return None
        scaled: int = number * 10**power
        if not is_int64(scaled):
            return None
        return scaled

    def real(self) -> float:
        """Return the nearest float, as Kubernetes approximates it."""
        number, power = self.cell
        try:
            base = float(number)
        except OverflowError:
            base = float("inf") if number > 0 else float("-inf")
        return base * _power_of_ten(power) if power else base

    def plus(self, other: Quantity, sign: int, *, shares: bool) -> Quantity:
        """Return this plus `sign` times the other.

        Up to Kubernetes 1.36 the sum `shares` the receiver's decimal digits, a fault of it: adding
        to a quantity changes it.
        """
        if self.small and other.small:
            total = _small_sum(self.cell, other.cell, sign)
            if total is not None:
                return Quantity(total, small=True, computed=True, owned=True)
        (one, power), (two, other_power) = self.cell, other.cell
        lowest = min(power, other_power)
        total = [one * 10 ** (power - lowest) + sign * two * 10 ** (other_power - lowest), lowest]
        if shares and self.owned and not self.small:
            self.cell[:] = total
            total = self.cell
        return Quantity(total, small=False, computed=True, owned=True)


def _power_of_ten(power: int) -> float:
    """Return the power of ten as Go multiplies it from two tables, which is not always the nearest float."""
    high, low = divmod(abs(power), 32)
    if power >= 0:
        return float(f"1e{high * 32}") * float(f"1e{low}") if power <= MAX_POWER_OF_TEN else float("inf")
    return float(f"1e-{high * 32}") / float(f"1e{low}") if power >= MIN_POWER_OF_TEN else 0.0


def _small_sum(one: list[int], two: list[int], sign: int) -> list[int] | None:
    """Add in the int64 form; None when it overflows (`int64Amount.Add` and `Sub`).

    `Sub` negates its operand, which of the smallest number is itself: a fault that is part of the rule.
    """
    (left, power), (right, other_power) = one, two
    right = right if sign > 0 or right == INT64_MIN else -right
    if right == 0:
        return [left, power]
    if left == 0:
        return [right, other_power]
    lowest = min(power, other_power)
    left *= 10 ** (power - lowest)
    right *= 10 ** (other_power - lowest)
    in_range = is_int64(left) and is_int64(right) and is_int64(left + right)
    return [left + right, lowest] if in_range else None


def whole(number: int) -> Quantity:
    """Return the quantity of an integer."""
    return Quantity([number, 0], small=True)


@lru_cache(maxsize=4096)
def quantity(text: str) -> Quantity:
    """Return the quantity that a text is. Raises EvaluationError, in Kubernetes' words where it has them."""
    match = _FORM.fullmatch(text)
    if match is None or not text or len(text) > MAX_LENGTH:
        raise EvaluationError(f"not a quantity: {text!r}")
    sign = -1 if match["sign"] == "-" else 1
    if not (match["whole"] or match["point"] or match["suffix"]):
        return whole(0)
    power, shift = _scale(match["suffix"], text)
    digits, fraction = match["whole"] or "0", match["fraction"] or ""
    small = _int64_form(digits, fraction, power, shift)
    if small is not None:
        return Quantity([sign * small[0], small[1]], small=True)
    if not (match["zeros"] or match["whole"] or fraction):
        raise EvaluationError(f"unable to parse the number of the quantity {text!r}")
    number, exponent = _to_nano(int(digits + fraction) << shift, power - len(fraction))
    if shift and number > INT64_MAX * 10**-exponent:
        number, exponent = INT64_MAX, 0
    return Quantity([sign * number, exponent], small=False)


def _scale(suffix: str, text: str) -> tuple[int, int]:
    """Return the power of ten and the power of two that a suffix means (`suffixer` in Kubernetes)."""
    if suffix in DECIMAL:
        return DECIMAL[suffix], 0
    if suffix in BINARY:
        return 0, BINARY[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(match[1]) > MAX_POWER + 2 or not is_int64(int(match[1])):
        raise EvaluationError(f"unable to parse the suffix of the quantity {text!r}")
    exponent = _int32(int(match[1]))
    if exponent > MAX_EXPONENT:
        raise EvaluationError(f"the exponent of the quantity {text!r} is beyond {MAX_EXPONENT}")
    return exponent, 0


def _int64_form(digits: str, fraction: str, power: int, shift: int) -> tuple[int, int] | None:
    """Return (number, exponent) if Kubernetes keeps this number in the int64 form.

    `ParseQuantity` estimates the digits before it computes: a binary suffix takes three tenths of a digit for
    each power of two. So `7Ei`, which would fit, is in the decimal form; the estimate is part of the rule.
    """
    if shift:
        room = DIGITS - 3 - len(digits) - shift * 3 // 10 - 1 if not fraction else -1
    else:
        room = DIGITS - len(digits) - len(fraction)
    exponent = _int32(power - len(fraction))
    if room < 0 or exponent < NANO:
        return None
    number = int(digits + fraction) << shift
    return (number, exponent) if is_int64(number) else None


def _to_nano(number: int, exponent: int) -> tuple[int, int]:
    """Bring a decimal to nanos, rounding away from zero; zero keeps its exponent."""
    if number == 0:
        return 0, exponent
    if exponent >= NANO:
        return number * 10 ** (exponent - NANO), NANO
    drop = NANO - exponent
    if drop > number.bit_length():  # Surely less than one nano.
        return 1, NANO
    return -(-number // 10**drop), NANO


def _int32(number: int) -> int:
    """Wrap around as Go's conversion to int32 does."""
    return (number + 2**31) % 2**32 - 2**31


is_quantity = parses(quantity)


def as_integer(value: Quantity) -> int:
    """Return the integer that the int64 form holds."""
    number = value.integer()
    if number is None:
        raise EvaluationError("cannot convert value to integer")
    return number


def _sums(*, shares: bool) -> tuple[Overload, ...]:
    """Declare add and sub; `shares` as in `Quantity.plus`."""
    return tuple(
        method(
            name,
            f"Quantity, {kind} -> Quantity",
            lambda one, two, sign=sign: one.plus(
                two if isinstance(two, Quantity) else whole(two), sign, shares=shares
            ),
        )
        for name, sign in (("add", 1), ("sub", -1))
        for kind in ("Quantity", "int")
    )


LATER = _sums(shares=False)
"""Add and sub of Kubernetes 1.37: the receiver does not change."""

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


# Semantic versions: strict 2.0, and the tolerant reading that `semver(text, true)` asks for. The functions
# are the API server's `library/semverlib.go`, which reads with github.com/blang/semver: three parts, no
# leading v, no leading zeros; numbers of 64 bits without a sign, which `major` and its neighbours return with
# one.

_NUMBER = r"(0|[1-9][0-9]*)"
_IDENTIFIERS = r"([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)"
_STRICT = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_IDENTIFIERS})?(?:\+{_IDENTIFIERS})?"
_PARTS = 3
_LONGEST = 10_240
"""In characters, as an expression: nobody writes a longer version, and reading one takes time and room."""
_LONGEST_NUMBER = 20
"""Digits of the largest number of 64 bits; Python refuses to read much longer ones."""
_DIGITS = frozenset("0123456789")


@frozen(order=True)
class Semver:
    """A version, ordered by precedence, field after field. Build metadata takes no part in anything."""

    TYPE_NAME: ClassVar = "kubernetes.Semver"
    major: int
    minor: int
    patch: int
    is_release: bool
    """One without a prerelease comes after those with one."""
    prerelease: tuple[tuple[int, int | str], ...]

    def compare(self, other: Semver) -> int:
        """Return -1, 0 or 1."""
        return (self > other) - (self < other)


@lru_cache(maxsize=4096)
def semver(text: str, normalize: bool = False) -> Semver:  # noqa: FBT001, FBT002 - CEL calls it by position
    """Return the version that a text is. Raises EvaluationError."""
    if len(text) > _LONGEST:
        raise EvaluationError(f"not a semantic version, longer than {_LONGEST} characters")
    match = re.fullmatch(_STRICT, normalized(text) if normalize else text)
    if match is None:
        raise EvaluationError(f"not a semantic version (major.minor.patch): {text!r}")
    major, minor, patch = (_number(part, text) for part in match.groups()[:_PARTS])
    prerelease = tuple(_identifier(part, text) for part in match[4].split(".")) if match[4] else ()
    return Semver(major, minor, patch, not prerelease, prerelease)


def _identifier(text: str, whole: str) -> tuple[int, int | str]:
    """Return the order of a prerelease identifier: numbers first, by value, then words."""
    if not text.isdigit():
        return (1, text)
    if text[0] == "0" and len(text) > 1:
        raise EvaluationError(f"a number of the prerelease of {whole!r} has a leading zero")
    return (0, _number(text, whole))


def _number(digits: str, whole: str) -> int:
    """Return a number of a version. Raises EvaluationError beyond 64 bits, where blang/semver overflows."""
    if len(digits) > _LONGEST_NUMBER or not is_uint64(int(digits)):
        raise EvaluationError(f"a number of the version {whole!r} does not fit in 64 bits")
    return int(digits)


def normalized(text: str) -> str:
    """Strip one leading v, strip leading zeros, pad to three parts; nothing else. Raises EvaluationError.

    `normalizeAndParse` of the API server. A part that is short and has a prerelease is ambiguous, and
    refused.
    """
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", _PARTS - 1)]
    if len(parts) < _PARTS and ("+" in parts[-1] or "-" in parts[-1]):
        raise EvaluationError(f"the short version {text!r} cannot have a prerelease or build metadata")
    return ".".join([*parts, *["0"] * (_PARTS - len(parts))])


def _without_zeros(part: str) -> str:
    """Strip leading zeros of a part; one that has nothing else, or letters behind, keeps one."""
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in _DIGITS else "0" + stripped


NORMALIZATION = "1.33"


def _signed(number: int) -> int:
    """Return an unsigned number as Go converts it to int64."""
    return number - 2**64 if number > INT64_MAX else number


SEMVER = (
    function("semver", "string -> Semver", semver, cost=cost.walk),
    function("semver", "string, bool -> Semver", semver, cost=cost.walk, since=NORMALIZATION),
    function("isSemver", "string -> bool", parses(semver), cost=cost.walk),
    function("isSemver", "string, bool -> bool", parses(semver), cost=cost.walk, since=NORMALIZATION),
    method("compareTo", "Semver, Semver -> int", Semver.compare),
    method("isGreaterThan", "Semver, Semver -> bool", operator.gt),
    method("isLessThan", "Semver, Semver -> bool", operator.lt),
    method("major", "Semver -> int", lambda version: _signed(version.major)),
    method("minor", "Semver -> int", lambda version: _signed(version.minor)),
    method("patch", "Semver -> int", lambda version: _signed(version.patch)),
)
