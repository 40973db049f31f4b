"""Semantic versions: driver versions, compute capabilities."""

from __future__ import annotations

from function.cel import cost
from function.cel.declarations import function, method
from function.cel.errors import EvaluationError
from function.cel.semver import Semver, semver
from function.cel.values import INT64_MAX

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
