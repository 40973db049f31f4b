"""Regular expressions, RE2's."""

from __future__ import annotations

from functools import lru_cache

import re2

from function.cel.errors import EvaluationError
from function.cel.library import charges as cost
from function.cel.library.declarations import both, method

_QUIET = re2.Options()
_QUIET.log_errors = False


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re2._Regexp:
    """Return a pattern ready to use. Raises EvaluationError."""
    if _reads_bytes(pattern):
        raise EvaluationError("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        raise EvaluationError(f"error parsing regexp: {_complaint(error)}") from None


def _reads_bytes(pattern: str) -> bool:
    """Whether a pattern has the escape for a single byte, which Go refuses and RE2 does not."""
    at = pattern.find("\\")
    while at >= 0:
        if pattern.startswith("\\C", at):
            return True
        end = pattern.find("\\E", at) if pattern.startswith("\\Q", at) else at
        at = pattern.find("\\", end + 2) if end >= 0 else -1
    return False


def _complaint(error: re2.error) -> str:
    """Return what RE2 says is wrong, which it says in bytes."""
    (complaint,) = error.args
    return complaint.decode(errors="replace") if isinstance(complaint, bytes) else str(complaint)


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern matches anywhere in the text."""
    return compiled(pattern).search(text) is not None


def find(text: str, pattern: str) -> str:
    """Return the first match, or nothing."""
    match = compiled(pattern).search(text)
    return str(match.group()) if match else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the first `limit` matches; all if it is negative."""
    matching: list[str] = []
    last_end = -1
    for match in compiled(pattern).finditer(text):
        if len(matching) == limit:
            break
        begin, end = match.span()
        if begin == end == last_end:  # An empty match right after a match does not count.
            continue
        matching.append(str(match.group()))
        last_end = end
    return matching


DECLARATIONS = (
    *both("matches", "string, string -> bool", matches, cost=cost.regex),
    method("find", "string, string -> string", find, cost=cost.regex),
    method("findAll", "string, string -> list<string>", find_all, cost=cost.matches),
    method("findAll", "string, string, int -> list<string>", find_all, cost=cost.matches),
)
