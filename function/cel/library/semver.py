"""Semantic versions: strict 2.0, and the tolerant reading that `semver(text, true)` asks for."""

from __future__ import annotations

import re
from functools import lru_cache

from function.cel.errors import EvaluationError
from function.cel.library import charges as cost
from function.cel.library.declarations import function, method
from function.cel.values import INT64_MAX, Value, is_uint64

_NUMBER = r"(0|[1-9][0-9]*)"
_IDENTIFIERS = r"([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)"
_STRICT = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_IDENTIFIERS})?(?:\+{_IDENTIFIERS})?", re.ASCII)
_PARTS = 3
_LONGEST = 10_240
"""In characters, as an expression: nobody writes a longer version, and reading one takes time and room."""
_LONGEST_NUMBER = 20
"""Digits of the largest number of 64 bits; Python refuses to read much longer ones."""
_DIGITS = frozenset("0123456789")


class Semver:
    """A version. Build metadata takes no part in anything."""

    TYPE_NAME = "kubernetes.Semver"
    __slots__ = ("major", "minor", "patch", "precedence")

    def __init__(
        self, major: int, minor: int, patch: int, prerelease: tuple[tuple[int, int | str], ...]
    ) -> None:
        self.major, self.minor, self.patch = major, minor, patch
        self.precedence = (major, minor, patch, not prerelease, prerelease)

    def compare(self, other: Semver) -> int:
        """Return -1, 0 or 1."""
        return (self.precedence > other.precedence) - (self.precedence < other.precedence)

    def same(self, other: Value) -> bool:
        """Whether the versions have equal precedence."""
        return bool(self.precedence == other.precedence)


@lru_cache(maxsize=4096)
def semver(text: str, normalize: bool = False) -> Semver:  # noqa: FBT001, FBT002 - CEL calls it by position
    """Return the version that a text is. Raises EvaluationError."""
    if len(text) > _LONGEST:
        raise EvaluationError(f"not a semantic version, longer than {_LONGEST} characters")
    match = _STRICT.fullmatch(normalized(text) if normalize else text)
    if match is None:
        raise EvaluationError(f"not a semantic version (major.minor.patch): {text!r}")
    major, minor, patch = (_number(part, text) for part in match.groups()[:_PARTS])
    prerelease = tuple(_identifier(part, text) for part in match[4].split(".")) if match[4] else ()
    return Semver(major, minor, patch, prerelease)


def _identifier(text: str, whole: str) -> tuple[int, int | str]:
    """Return the order of a prerelease identifier: numbers first, by value, then words."""
    if not text.isdigit():
        return (1, text)
    if text[0] == "0" and len(text) > 1:
        raise EvaluationError(f"a number of the prerelease of {whole!r} has a leading zero")
    return (0, _number(text, whole))


def _number(digits: str, whole: str) -> int:
    if len(digits) > _LONGEST_NUMBER or not is_uint64(int(digits)):
        raise EvaluationError(f"a number of the version {whole!r} does not fit in 64 bits")
    return int(digits)


def normalized(text: str) -> str:
    """Strip one leading v, strip leading zeros, pad to three parts. Raises EvaluationError."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", _PARTS - 1)]
    if len(parts) < _PARTS and ("+" in parts[-1] or "-" in parts[-1]):
        raise EvaluationError(f"the short version {text!r} cannot have a prerelease or build metadata")
    return ".".join([*parts, *["0"] * (_PARTS - len(parts))])


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in _DIGITS else "0" + stripped


NORMALIZATION = "1.33"


def is_semver(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002 - CEL calls it by position
    """Whether a text parses as a version."""
    try:
        semver(text, normalize)
    except EvaluationError:
        return False
    return True


def _signed(number: int) -> int:
    """Return an unsigned number as Go converts it to int64."""
    return number - 2**64 if number > INT64_MAX else number


DECLARATIONS = (
    function("semver", "string -> Semver", semver, cost=cost.walk),
    function("semver", "string, bool -> Semver", semver, cost=cost.walk, since=NORMALIZATION),
    function("isSemver", "string -> bool", is_semver, cost=cost.walk),
    function("isSemver", "string, bool -> bool", is_semver, cost=cost.walk, since=NORMALIZATION),
    method("compareTo", "Semver, Semver -> int", Semver.compare),
    method("isGreaterThan", "Semver, Semver -> bool", lambda one, two: one.compare(two) > 0),
    method("isLessThan", "Semver, Semver -> bool", lambda one, two: one.compare(two) < 0),
    method("major", "Semver -> int", lambda version: _signed(version.major)),
    method("minor", "Semver -> int", lambda version: _signed(version.minor)),
    method("patch", "Semver -> int", lambda version: _signed(version.patch)),
)
