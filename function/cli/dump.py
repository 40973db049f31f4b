"""Write YAML as PyYAML does, byte for byte, where a document has nothing that takes an emitter to write.

PyYAML makes a node and an event of every value, which is half of what `snapshot` takes for a large fleet.
Most values are maps, lists and texts on one line, and a fleet repeats them. So PyYAML writes a scalar once,
and an item of a list is recognised by its bytes. What spreads over several lines (a folded text, a long key)
is left to PyYAML, with the document it stands in.

Nothing is written as an alias: where two fields share a value, a reader is shown both.
"""

from __future__ import annotations

import marshal
import re
from functools import partial
from typing import Any

import yaml

WIDTH = 1_000
"""Columns at which PyYAML folds a text."""
SHORT = 500
"""Characters of a text with spaces that is not folded, however deep it stands."""
DEEP = 300
"""Columns from which a value stands too deep to be sure of that."""
ONE_FORM = 2
"""The format of marshal that writes equal values alike, and values of different types differently."""

PLAIN = re.compile(
    r"[A-Za-z][A-Za-z0-9./-]{5,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+(?:[.][0-9]+){3}"
)
"""Names, uids and addresses, which are all different; what is no text without quotes is shorter."""

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # Written in C where PyYAML has it.


class _Dumper(_Base):  # type: ignore[misc]
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - as PyYAML has it
        return True


dumped = partial(yaml.dump_all, Dumper=_Dumper, sort_keys=False, width=WIDTH)
"""The text that PyYAML writes."""


def written(documents: tuple[Any, ...]) -> str:
    """Return the text of documents, letters as they are."""
    if not all(type(document) is dict and document for document in documents):
        return str(dumped(documents, allow_unicode=True))
    return "---\n".join(map(_Writer().document, documents))


class _Involved(ValueError):
    """A value that is left to PyYAML."""


class _Keys(dict[Any, str]):
    """Keys as they are written, with the colon."""

    def __missing__(self, key: object) -> str:
        text = str(dumped([{key: 0}], allow_unicode=True))
        line = text[: -len(" 0\n")]
        if type(key) is not str or not line.isprintable() or not line.endswith(":"):
            raise _Involved
        self[key] = line
        return line


class _Scalars(dict[Any, str]):
    """Texts as they are written after a key or a dash, and other scalars, by their type and value."""

    def __missing__(self, key: Any) -> str:
        value = key if type(key) is str else key[1]
        is_plain = type(key) is str and PLAIN.fullmatch(key)
        text = f" {key}" if is_plain else str(dumped([[value]], allow_unicode=True))[len("-") : -1]
        if not text.isprintable() or (len(text) > SHORT and " " in text[1:]):
            raise _Involved
        self[key] = text
        return text


class _Writer:
    """The parts that documents have in common, written once."""

    def __init__(self) -> None:
        self._keys, self._scalars = _Keys(), _Scalars()
        self._items: dict[tuple[str, bytes], str] = {}

    def document(self, content: dict[str, Any]) -> str:
        """Write one."""
        try:
            return f"{self._map(content, chr(10))}\n"
        except (_Involved, ValueError):  # Of marshal.
            return str(dumped([content], allow_unicode=True))

    def _map(self, content: dict[str, Any], begin: str) -> str:
        """Write a map; `begin` ends a line, and has the spaces that the next begins with."""
        if len(begin) > DEEP:
            raise _Involved
        keys, scalars = self._keys, self._scalars
        parts = []
        for key, value in content.items():
            kind = type(value)
            if kind is str:
                parts.append(keys[key] + scalars[value])
            elif kind is dict:
                below = f"{begin}  "
                parts.append(keys[key] + (below + self._map(value, below) if value else " {}"))
            elif kind is list:
                parts.append(keys[key] + (begin + self._list(value, begin) if value else " []"))
            else:
                parts.append(keys[key] + scalars[_typed(value)])
        return begin.join(parts)

    def _list(self, content: list[Any], begin: str) -> str:
        if len(begin) > DEEP:
            raise _Involved
        below = f"{begin}  "
        parts = []
        for value in content:
            kind = type(value)
            if kind is str:
                parts.append(self._scalars[value])
            elif kind is dict or kind is list:
                key = (begin, marshal.dumps(value, ONE_FORM))
                text = self._items.get(key)
                if text is None:
                    write = self._map if kind is dict else self._list
                    text = write(value, below) if value else "{}" if kind is dict else "[]"
                    self._items[key] = text
                parts.append(f" {text}")
            else:
                parts.append(self._scalars[_typed(value)])
        return f"-{f'{begin}-'.join(parts)}"


def _typed(value: object) -> tuple[object, ...]:
    """Tell scalars apart that are equal and written differently: 1, true and 1.0, 0.0 and -0.0."""
    if isinstance(value, str):
        raise _Involved
    return type(value), value, repr(value)
