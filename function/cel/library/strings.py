"""Text: cel-go's string functions, and regular expressions. Positions count characters, not bytes.

The functions are cel-go's `ext/strings.go` at the version that Kubernetes enables (without `reverse`), and
the API server's `library/regex.go`. Regular expressions are RE2's own library: no other engine has its
syntax, and none is safe against a pattern that a user wrote. Python's strings are sequences of code points,
as cel-go's runes are, so most functions are one call; the differences are at the edges:

- an empty part is found at every position, also beyond the end (until Kubernetes 1.37);
- a limit of zero parts or replacements means none, a negative one all;
- white space is Unicode's, of which Python's `strip` has a few more.

What could make a text much longer than it was is bounded before it is made (`LONGEST`): copying costs units
only once it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import re2

from function.cel.library import charges as cost
from function.cel.library.declarations import Overload, both, function, method
from function.cel.values import CostExceeded, EvaluationError, Map, Value, no_overload, type_name

# Quoting a text as Go's `strconv.Quote` does.

_SHORT = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_FIRST_PRINTABLE, _DELETE, _PLANE = 0x20, 0x7F, 0x10000


def quoted(text: str) -> str:
    """Return a text in double quotes, with what does not print escaped."""
    return '"' + "".join(c if c.isprintable() and c not in '\\"' else _escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    """Return one character that does not print as Go escapes it: by a letter, or by its code."""
    short, code = _SHORT.get(character), ord(character)
    if short is not None:
        return short
    if code < _FIRST_PRINTABLE or code == _DELETE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _PLANE else f"\\U{code:08x}"


# Regular expressions, RE2's.

_QUIET = re2.Options()
_QUIET.log_errors = False


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re2._Regexp:
    """Return a pattern ready to use. Raises EvaluationError.

    Remembered for all programs: compiling one takes longer than most evaluations.
    """
    if _reads_bytes(pattern):
        raise EvaluationError("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        (complaint,) = error.args  # In bytes, as RE2 has it.
        text = complaint.decode(errors="replace") if isinstance(complaint, bytes) else str(complaint)
        raise EvaluationError(f"error parsing regexp: {text}") from None


def _reads_bytes(pattern: str) -> bool:
    """Tell whether a pattern has the escape for a single byte, which Go refuses and RE2 does not."""
    at = pattern.find("\\")
    while at >= 0:
        if pattern.startswith("\\C", at):
            return True
        end = pattern.find("\\E", at) if pattern.startswith("\\Q", at) else at
        at = pattern.find("\\", end + 2) if end >= 0 else -1
    return False


def find(text: str, pattern: str) -> str:
    """Return the first match, or nothing."""
    match = compiled(pattern).search(text)
    return str(match.group()) if match else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the first `limit` matches; all if it is negative.

    Go's rule for empty matches differs from Python's: right after a match an empty one does not count.
    """
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


REGEX = (
    *both(
        *("matches", "string, string -> bool"),
        lambda text, pattern: compiled(pattern).search(text) is not None,
        cost=cost.regex,
    ),
    method("find", "string, string -> string", find, cost=cost.regex),
    method("findAll", "string, string -> list<string>", find_all, cost=cost.matches),
    method("findAll", "string, string, int -> list<string>", find_all, cost=cost.matches),
)


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_ESCAPES = str.maketrans(_SHORT)
"""`strings.quote` escapes these and nothing else; what does not print stays."""
SIZED = frozenset({str, bytes, list, Map})
LONGEST = 10 * cost.LIMIT
"""Characters: walking through a longer text would cost more than an evaluation may."""


def _within(text: str, at: int) -> None:
    """Refuse a position that is not in the text; just past its end is one."""
    if not 0 <= at <= len(text):
        raise EvaluationError(f"index out of range: {at}")


def char_at(text: str, at: int) -> str:
    """Return one character, or nothing just past the end."""
    _within(text, at)
    return text[at : at + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    """Return where `part` first is at or after `start`, or -1. An empty part is wherever one looks."""
    if part == "":
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def clamped(search: Callable[..., int]) -> Callable[..., int]:
    """Return a search as Kubernetes has it from 1.37 on: an empty part is nowhere beyond the text."""

    def run(text: str, part: str, start: int) -> int:
        """Look from the end of the text where the start is beyond it."""
        if start < 0:
            raise EvaluationError(f"index out of range: {start}")
        return search(text, part, min(start, len(text)) if part == "" else start)

    return run


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    """Return where `part` last is at or before `start`, or -1. An empty part is wherever one looks."""
    if start is None:
        return text.rfind(part)
    if part == "":
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """Replace the first `limit` occurrences; all if it is negative.

    The length of the result is known before it is made. An empty `old` stands between all characters.
    """
    count = limit if limit >= 0 else -1
    if len(new) > len(old):
        times = text.count(old) if limit < 0 else min(limit, text.count(old))
        if len(text) + times * (len(new) - len(old)) > LONGEST:
            raise CostExceeded
    return text.replace(old, new, count)


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    """Split into at most `limit` parts; into characters if the separator is empty.

    As Go's `strings.SplitN`: of the last part nothing is split off, and no parts are asked for by zero.
    """
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or len(text) <= limit:
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def substring(text: str, start: int, end: int | None = None) -> str:
    """Return the characters in [start, end)."""
    end = len(text) if end is None else end
    _within(text, start)
    _within(text, end)
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


def join(parts: list[Value], separator: str = "") -> str:
    """Join texts."""
    if not all(type(part) is str for part in parts):
        raise no_overload("join: an element is not a string")
    if sum(map(len, parts)) + len(separator) * len(parts) > LONGEST:
        raise CostExceeded
    return separator.join(parts)


def length(value: Value) -> int:
    """Return how many characters, bytes, elements or entries there are.

    Characters are code points: an emoji with a modifier has two. The API server counts the same.
    """
    if type(value) not in SIZED:
        raise no_overload(f"size({type_name(value)})")
    return len(value)


def _positions(first: Callable[..., int], last: Callable[..., int]) -> tuple[Overload, ...]:
    """Declare the searches; `first` and `last` are those from a given place on."""
    return (
        method("indexOf", "string, string -> int", index_of, cost=cost.elements),
        method("indexOf", "string, string, int -> int", first, cost=cost.elements),
        method("lastIndexOf", "string, string -> int", last_index_of, cost=cost.elements),
        method("lastIndexOf", "string, string, int -> int", last, cost=cost.elements),
    )


LATER = _positions(clamped(index_of), clamped(last_index_of))
"""The searches of Kubernetes 1.37."""

DECLARATIONS = (
    *(
        overload
        for sized in ("bytes", "list<A>", "map<A, B>", "string")
        for overload in both("size", f"{sized} -> int", length, guarded=False)
    ),
    method("contains", "string, string -> bool", lambda text, part: part in text, cost=cost.product),
    method(
        "startsWith",
        "string, string -> bool",
        lambda text, part: text.startswith(part),
        cost=cost.walk,
    ),
    method("endsWith", "string, string -> bool", lambda text, part: text.endswith(part), cost=cost.walk),
    method("charAt", "string, int -> string", char_at),
    *_positions(index_of, last_index_of),
    method("lowerAscii", "string -> string", lambda text: text.translate(_LOWER), cost=cost.walk),
    method("upperAscii", "string -> string", lambda text: text.translate(_UPPER), cost=cost.walk),
    method("replace", "string, string, string -> string", replace, cost=cost.copy),
    method("replace", "string, string, string, int -> string", replace, cost=cost.copy),
    method("split", "string, string -> list<string>", split, cost=cost.copy),
    method("split", "string, string, int -> list<string>", split, cost=cost.copy),
    method("substring", "string, int -> string", substring, cost=cost.walk),
    method("substring", "string, int, int -> string", substring, cost=cost.walk),
    method("trim", "string -> string", lambda text: text.strip(_SPACE), cost=cost.walk),
    method("join", "list<string> -> string", join, cost=cost.joined),
    method("join", "list<string>, string -> string", join, cost=cost.joined),
    function(
        "strings.quote", "string -> string", lambda text: f'"{text.translate(_ESCAPES)}"', cost=cost.walk
    ),
)
