"""Regular expressions, RE2's."""

from __future__ import annotations

from functools import lru_cache

import re2

from function.cel import cost
from function.cel.declarations import both, method
from function.cel.errors import EvaluationError

_QUIET = re2.Options()
_QUIET.log_errors = False


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re2._Regexp:
    """Return a pattern ready to use. Raises EvaluationError."""
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        raise EvaluationError(f"error parsing regexp: {error}") from None


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern matches anywhere in the text."""
    return compiled(pattern).search(text) is not None


def find(text: str, pattern: str) -> str:
    """Return the first match, or nothing."""
    match = compiled(pattern).search(text)
    return str(match.group()) if match else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the first `limit` matches; all if it is negative."""
    expression = compiled(pattern)
    found: list[str] = []
    start, last_end = 0, -1
    while start <= len(text) and len(found) != limit:
        match = expression.search(text, start)
        if match is None:
            break
        begin, end = match.span()
        if begin == end == last_end:  # An empty match right after a match does not count.
            start = end + 1
            continue
        found.append(str(match.group()))
        start, last_end = (end + 1 if begin == end else end), end
    return found


DECLARATIONS = (
    *both("matches", "string, string -> bool", matches, cost=cost.regex),
    method("find", "string, string -> string", find, cost=cost.regex),
    method("findAll", "string, string -> list<string>", find_all, cost=cost.regex),
    method("findAll", "string, string, int -> list<string>", find_all, cost=cost.regex),
)
