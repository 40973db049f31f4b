"""Parse the text of a file, YAML or JSON, as Kubernetes does; refuse what would take the machine down.

JSON is parsed as JSON. YAML is parsed in Rust where that is sure to read the same as PyYAML
(`read_quickly`), else by PyYAML, which has the words of 1.1 and messages with lines (`yaml_loader`).

Refused before it is parsed, or while: nesting deeper than any object has, aliases that stand for far more
values than are written, and integers that Python would take minutes to read. Each message has a line
where the parser knows one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from itertools import accumulate, filterfalse
from typing import TYPE_CHECKING, Any

from function.cli.bad_input import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DEEPEST = 500
"""Levels of nesting a file may have; Kubernetes objects stay below 30."""
USUAL = 30
"""Levels that objects have."""
SHOWN = 60
"""Digits of a number that are shown."""

_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_COMPACT = re.compile(rf"(?:[-?][ \t]+){{{DEEPEST}}}")
_FAR_IN = re.compile(rf" {{{2 * DEEPEST},}}((?:[-?][ \t]+)*)")
"""A line of a deeper level than one of a thousand columns can have, and the lists that it opens."""
_LINE = re.compile(r"\bline (\d+)")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""How JSON escapes half a surrogate pair."""
_JSON_START = re.compile(r"\s*(?=\S)")


# YAML that is read by a parser in Rust: a large dump takes a fifth of the time, and PyYAML, which takes as
# long to import as a large file to read, is not imported.
#
# `ryaml` has a translation of the same scanner and parser in C that PyYAML has, so that both take and refuse
# the same texts, and both refuse the same nesting. They differ in which plain scalars are numbers and truths
# (YAML 1.2 against 1.1), in tags, in merges, and in keys that are no texts. A text that may have any of these
# is left to PyYAML, as is one that is refused: its messages have lines.

_DIGITS = r"[0-9][0-9_]*"
_NO_TEXT = r"(?:[-+]?[0-9][0-9.]*|(?i:true|false|null)|~)"
_UNLIKE = (
    r"[-+]?0[0-9_]+(?:\.[0-9_]*)?",  # Octal for 1.1, a text or decimal for 1.2.
    r"[-+]?0[xXoObB][0-9a-fA-F_]+",
    rf"[-+]?(?:{_DIGITS})?\.?[0-9]*_[0-9_.]*(?:[eE][-+]?[0-9]+)?",
    rf"[-+]?(?:{_DIGITS}\.?[0-9_]*|\.[0-9_]+)[eE][-+]?[0-9]+",  # 1e3 is a text for 1.1.
    rf"[-+]?{_DIGITS}(?::[0-9_]+)+(?:\.[0-9_]*)?",  # A time is a number of seconds for 1.1.
    r"[-+]?\.[0-9_]+|[-+]?[0-9]+\.|\+[0-9][0-9.]*|-0",
    r"[-+]?[0-9]{19,}(?:\.[0-9]*)?",
    r"[-+]?\.?(?i:inf|infinity|nan)|(?i:yes|no|on|off)|=|<<",
    rf"{_NO_TEXT}(?=:)|\?.*",  # Keys that are no texts, or no scalars.
    r"[&*][0-9A-Za-z_-].*",
)
_DOUBT = re.compile(rf"(?:.*[\"']:)?(?:{'|'.join(_UNLIKE)})(?:[:#].*)?")
"""A word of a text that the two readers may take differently. More is found: prose has a `no` too."""
_SHAPES = (
    re.compile(r":(?<![^\s\[{,]:)(?![^\s\]},])"),
    re.compile(r"(?:^|[-:?,\[{])[ \t]*!|^%", re.MULTILINE),
    re.compile(rf"(?:^|[{{,])[ \t]*{_NO_TEXT}[ \t]*(?:[,}}#]|$)", re.MULTILINE),
)
"""A key that is empty; a tag or a directive; what may be a key of {1, 2}."""
_COMMENT = re.compile(r"[ \t]*#.*")
"""A line that is a comment, or stands in a text of several lines: for either reader no scalar of its own."""
_PLAIN = re.compile(r"[ -]*[A-Za-z][\w./-]*:(?: [\w\"'/.-]*)?")
"""A line that has none of the shapes, as nearly all lines of a dump: a key, and a word at most."""
_LISTED = re.compile(r"(apiVersion: [\w./]+\nitems:\n)- ")
_ENGINES = re.compile(r"\n    engines:((?:\n    (?: |-(?: |$)).*)+)(?=\n *[^ \n]|\Z)", re.MULTILINE)
"""The engines in the spec of an item: lines that are further in or begin an entry. No blank line may follow:
it can belong to the last text."""
_STAND_IN = "engines that another item has too"
_LINE_ENDS = ("\r", "\x85", "\u2028", "\u2029")
"""Line ends of YAML beside the usual one."""
_DOCUMENTS = ("\n---", "\n...", *_LINE_ENDS)
"""How another document may begin, and line ends that it may begin after."""
_FLOW = str.maketrans(dict.fromkeys("[]{},", " "))


def lines_of(text: str) -> Iterable[str]:
    """Return the lines of a text as YAML ends them, each once: a dump repeats itself."""
    for end in _LINE_ENDS:
        text = text.replace(end, "\n")
    return dict.fromkeys(text.split("\n"))


def read_quickly(text: str, lines: Iterable[str]) -> list[object] | None:
    """Read a text as `yaml_loader` would; None where that is in doubt, or where ryaml is not installed.

    `lines`: see `lines_of`.
    """
    try:
        from ryaml import loads_all  # type: ignore[attr-defined]  # noqa: PLC0415 - only for YAML
    except ModuleNotFoundError:
        return None
    if "\ufeff" in text:  # Which of them is a mark, and which a letter, is read differently.
        return None
    if "#" in text:
        lines = [*filterfalse(_COMMENT.fullmatch, lines)]
    words = dict.fromkeys("\n".join(lines).translate(_FLOW).split())
    unusual = "\n".join(filterfalse(_PLAIN.fullmatch, lines))
    if any(map(_DOUBT.fullmatch, words)) or any(shape.search(unusual) for shape in _SHAPES):
        return None
    try:
        documents = _listed_quickly(text, loads_all) or loads_all(text)
    except ValueError:  # Its own error among them.
        return None
    # A text of comments only: no document for the one, an empty one for the other.
    return documents if isinstance(documents, list) and None not in documents else None


def _listed_quickly(text: str, loads_all: Callable[[str], Any]) -> list[object] | None:
    """Read a list as kubectl prints it, item by item; None for another text. Raises ValueError for doubt.

    ryaml holds a whole text a second time before it makes objects of it: apart, the items take three quarters
    of the time and a third of the memory. A line that begins with `- ` begins an item, unless it stands in
    quotes or brackets: those are then not closed in the part before, which is refused.
    """
    begun = _LISTED.match(text)
    items, ended, below = text.rpartition("\nkind: ")
    if not (begun and ended) or any(mark in text for mark in _DOCUMENTS):
        return None
    [document] = loads_all(f"{begun[1]}kind: {below}")
    engines: dict[str, object] = {}
    parts = items[begun.end() :].split("\n- ")
    document["items"] = [_item(part, engines, loads_all) for part in parts]
    return [document]


def _item(part: str, engines: dict[str, object], loads_all: Callable[[str], Any]) -> object:
    """Read an item of a list; replicas of a deployment share their engines, which are read once.

    They are half of the text of a fleet. Where they stand in a text, or elsewhere, the item is read whole.
    """
    match = _ENGINES.search(part)
    if match and _STAND_IN not in part:
        [[item]] = loads_all(f"- {part[: match.start()]}\n    engines: {_STAND_IN}{part[match.end() :]}\n")
        spec = item.get("spec") if isinstance(item, dict) else None
        if isinstance(spec, dict) and spec.get("engines") == _STAND_IN:
            if match[1] not in engines:
                # As far in as in the item: further out a text may begin where the item has its next field.
                [[alone]] = loads_all(f"- spec:\n    engines:{match[1]}\n")
                engines[match[1]] = alone["spec"]["engines"]
            spec["engines"] = engines[match[1]]
            return item
    [[whole]] = loads_all(f"- {part}\n")
    return whole


def parse_documents(name: str, text: str) -> Iterator[object]:
    """Parse the documents of the file `name`. Raises BadInput.

    JSON is tried first where a text begins like it; what is no JSON may still be YAML.
    """
    try:
        _refuse_brackets(text)
        if text.lstrip().startswith("{"):  # JSON is YAML, but is read thirty times as fast.
            with suppress(json.JSONDecodeError):
                yield from _json_documents(text)
                return
        lines = lines_of(text)
        _refuse_compact_lists(lines)
        documents: Iterable[object] | None = read_quickly(text, lines)
        if documents is None:
            from function.cli.worlds.yaml_loader import loaded  # noqa: PLC0415 - takes longer than to read

            documents = loaded(text)
        yield from documents
    except BadInput as error:
        raise BadInput(f"{name}: {_with_cause(str(error), text)}") from None
    except RecursionError:
        raise BadInput(f"{name}: nested too deeply") from None


def _json_documents(text: str) -> list[object]:
    """One object of JSON, or several after each other, as `jq -c` writes them. Raises JSONDecodeError."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number, parse_int=_whole)
    documents, place = [], 0
    while match := _JSON_START.match(text, place):
        document, place = decoder.raw_decode(text, match.end())
        documents.append(document)
    if _HALF.search(text):  # JSON can escape half a surrogate pair, and no text can hold it. YAML has none.
        try:
            json.dumps(documents, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BadInput("half a surrogate pair is no text") from None
    return documents


def _no_number(constant: str) -> object:
    """Refuse NaN and infinity: Python reads them in JSON, and no API server does."""
    raise BadInput(f"{constant} is no number of JSON")


def _whole(digits: str) -> int:
    """A whole number of JSON. Raises BadInput for one of more digits than Python reads."""
    try:
        return int(digits)
    except ValueError:  # Python reads no more than some thousand digits.
        raise BadInput(f"a number of {len(digits)} digits: {digits[:SHOWN]}…") from None


_CAUSES = (
    ("{{", "it looks like a Helm template, which has to be rendered first (helm template)"),
    ("<<<<<<<", "a merge conflict is not resolved"),
    ("```", "a fence of Markdown is no YAML"),
    ("<html", "it looks like a web page: take the raw file"),
    ("\u00a0", "it has a no-break space, which is no space to YAML"),
    ("\ufeff", "it has the mark that files of Windows begin with, perhaps since two were joined"),
    ("\0", "it is no text, or UTF-16 without its mark: save the file as UTF-8"),
)
"""What stands where a fault is, and what that is a sign of."""


def _with_cause(message: str, text: str) -> str:
    """A message, with the cause where its line or one beside it shows one; without a line, the whole text."""
    number = _LINE.search(message)
    near = "\n".join(text.split("\n")[max(0, int(number[1]) - 2) : int(number[1]) + 1]) if number else text
    cause = next((cause for sign, cause in _CAUSES if sign in near), "")
    return f"{message}; {cause}" if cause else message


def _refuse_brackets(text: str) -> None:
    """Refuse absurd nesting before the parser recurses into it: the one in C has no limit of its own."""
    brackets = text.encode("utf-8", "replace").translate(None, _NO_BRACKETS)
    inner, levels = brackets, 0
    while inner and levels <= USUAL:  # Pairs leave from the inside, a level each time.
        inner, levels = inner.replace(b"{}", b"").replace(b"[]", b""), levels + 1
    # What is left has brackets in texts, or is deep: a step for each bracket tells.
    steps = (1 if bracket in b"[{" else -1 for bracket in (brackets if inner else b""))
    if max(accumulate(steps), default=0) > DEEPEST:
        raise BadInput("nested too deeply")


def _refuse_compact_lists(lines: Iterable[str]) -> None:
    """Refuse absurd nesting by lists on one line, likewise: `- - - -`, which JSON has not.

    Lines may go on where the one before ended: the parsers end Python at some twenty thousand levels.
    """
    long = [line for line in lines if len(line) >= 2 * DEEPEST]
    levels = sum(1 + len(line[1].split()) for line in filter(None, map(_FAR_IN.match, long)))
    if levels > 20 * DEEPEST or any(map(_COMPACT.search, long)):
        raise BadInput("nested too deeply")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A map of JSON. Raises BadInput where a key stands twice: which of the two is meant?"""
    unique = dict(pairs)
    if len(unique) < len(pairs):
        numbers = Counter(key for key, _ in pairs)
        key = next(key for key, number in numbers.items() if number > 1)
        raise BadInput(f'the key "{key}" is given twice')
    return unique
