"""Read a large dump of YAML block by block: a fleet repeats itself, and what is written twice is read once.

A dump is maps and lists in block style, a line for each key. Such a text comes apart at its indentation
without a scanner: `    name: a` begins an entry of the map that stands four columns in, and what stands
deeper belongs to it. Entries are recognised by their text, at every depth.

A scalar that is no plain name is read by PyYAML, once; so is an entry whose value goes on over several lines
(a folded or a literal text), as a document of its own. Whatever else there is (a comment, a tag, an anchor, a
map in flow style, a key that is no text or is given twice) is `Irregular`: then PyYAML reads the whole text,
and its messages have lines. A property test holds both readers against each other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import yaml

from function.cli.bad_input import BadInput
from function.cli.dump import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ENTRY = re.compile(
    r" *(?:(?P<plain>[A-Za-z_][^\s#]{0,300}?|\.)|'(?P<quoted>[^'\n]{0,300})'):(?: (?P<value>.*))?(?:\n|\Z)"
)
_QUOTED = re.compile("'[^']*'")
_NO_TEXT = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_ODD = tuple("&*!|>[{%@`?#")
"""What a value begins with that is more than a scalar, or less."""


_MARKERS = ("--- ", "...", "%")
"""What a line begins with between documents: more than their end."""


class Irregular(ValueError):
    """A text that PyYAML has to read."""


def documents_of(text: str, read: Callable[[str], Iterable[object]]) -> list[object] | None:
    """Return the documents of a text as `read` would; None where that is in doubt."""
    # A line end is the only character that is not printed: tabs and other line ends have rules of their own.
    if not text.endswith("\n") or not text.replace("\n", "").isprintable():
        return None
    if text.startswith(_MARKERS) or any(f"\n{marker}" in text for marker in _MARKERS):
        return None
    blocks = _Blocks(read)
    try:
        parts = text.removeprefix("---\n")[:-1].split("\n---\n")
        return [blocks.block(part, _column(part)) for part in parts]
    except (Irregular, BadInput, yaml.YAMLError, RecursionError):
        return None


@lru_cache
def _between(column: int, *, is_list: bool) -> re.Pattern[str]:
    """Where the next entry of a map or of a list begins; the items of a list may stand below its key."""
    begins = "- " if is_list else r"(?!- |-$)[^ \n]"
    return re.compile(rf"\n(?= {{{column}}}{begins})", re.MULTILINE)


def _column(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


class _Blocks:
    def __init__(self, read: Callable[[str], Iterable[object]]) -> None:
        self._read = read
        self._scalars: dict[str, Any] = {}
        self._entries: dict[str, tuple[str, Any]] = {}
        self._items: dict[str, Any] = {}

    def block(self, text: str, column: int) -> Any:
        """Return the map or the list of a text whose first line begins at a column."""
        if text.startswith("- ", column):
            return self._list(text, column)
        before, entries = self._entries, {}
        parts = _between(column, is_list=False).split(text)
        for part in parts:
            pair = before.get(part) or self._entry(part, column)
            entries[pair[0]] = pair[1]
        if len(entries) < len(parts):
            raise Irregular
        return entries

    def _list(self, text: str, column: int) -> list[Any]:
        items = []
        for part in _between(column, is_list=True).split(text):
            if part not in self._items:
                self._items[part] = self._item(part, column)
            items.append(self._items[part])
        return items

    def _entry(self, part: str, column: int) -> tuple[str, Any]:
        """A key and its value."""
        head = _ENTRY.match(part)
        if head is None:
            raise Irregular
        plain, quoted, value = head.groups()
        if plain is not None and plain.lower() in _NO_TEXT:
            raise Irregular
        key, rest = quoted if plain is None else plain, part[head.end() :]
        if "\n" not in part:
            pair = key, None if value is None else self._scalar(value)
        elif value is None:
            below = _column(rest)
            if below < column or (below == column and not rest.startswith("- ", below)):
                raise Irregular
            pair = key, self.block(rest, below)
        else:
            pair = key, self._alone(part)[key]
        self._entries[part] = pair
        return pair

    def _item(self, part: str, column: int) -> Any:
        inner = f"{' ' * column}  {part[column + 2 :]}"
        below = _column(inner)
        if inner.startswith("- ", below) or _ENTRY.match(inner):
            return self.block(inner, below)
        if "\n" in part:
            return self._alone(part)[0]
        return self._scalar(inner[column + 2 :])

    def _alone(self, part: str) -> Any:
        """Read a part over several lines as a document that has nothing else."""
        documents = [*self._read(f"{part}\n")]
        if len(documents) != 1 or not isinstance(documents[0], dict | list) or len(documents[0]) != 1:
            raise Irregular
        return documents[0]

    def _scalar(self, text: str) -> Any:
        """Read a value on one line."""
        if PLAIN.fullmatch(text):
            return text
        if text in self._scalars:
            return self._scalars[text]
        if _QUOTED.fullmatch(text):
            value: Any = text[1:-1]
        elif text in ("{}", "[]"):
            value = {} if text == "{}" else []
        elif text.startswith(_ODD):
            raise Irregular
        else:
            (document,) = self._read(f"a: {text}\n")
            if not isinstance(document, dict) or [*document] != ["a"]:
                raise Irregular
            value = document["a"]
        self._scalars[text] = value
        return value
