"""Text for a terminal: what files say is shown, never obeyed, and long names keep the end that differs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import yaml
from rich import markup
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

WIDEST = 30
"""Characters of a name in a table."""
TAIL = 12
"""Characters of its end that are always shown: the part that tells replicas apart."""

_LINE_ENDS = re.compile(r"(\n)")


def printable(text: str) -> str:
    """Escape what a terminal would obey or hide: control characters, line ends, bidirectional controls.

    A name from somebody's file must not move the cursor, nor read in another order than it is stored.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    return repr(character)[1:-1]


def escape(text: str) -> str:
    """Text from a file as part of a line with markup: printable, and its brackets are no markup."""
    return markup.escape(printable(text))


class Screen(Console):
    """A console that prints every text in a printable form; only line ends go through.

    `escape` is for single values; this is for whatever was not passed through it.
    """

    def __init__(self, **options: Any) -> None:
        """Print as is: no word is taken for an emoji or a number to highlight."""
        super().__init__(highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Any:
        """Render text that came as a string: all that is printed, and every cell of a table."""
        lines = "".join(part if part == "\n" else printable(part) for part in _LINE_ENDS.split(text))
        return super().render_str(lines, **options)


def as_json(told: object) -> str:
    """JSON for people and programs: readable, and without a character that a terminal obeys."""
    text = json.dumps(told, indent=2, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    # Outside of strings JSON has only printable characters and line ends, so every other one is in a string.
    return "".join(_in_json(character) for character in text)


def _in_json(character: str) -> str:
    return character if character == "\n" or character.isprintable() else json.dumps(character)[1:-1]


def as_yaml(told: object) -> str:
    """YAML, likewise."""
    return _dumped(yaml.safe_dump, told)


def as_yaml_stream(documents: Iterable[object]) -> str:
    """Several documents of YAML, likewise."""
    return _dumped(yaml.safe_dump_all, list(documents))


def _dumped(dump: Callable[..., str], told: object) -> str:
    """Dump with letters as they are where all is printable, else with ASCII only: YAML escapes the rest."""
    text = dump(told, sort_keys=False, width=1_000, allow_unicode=True)
    return text if text.replace("\n", "").isprintable() else dump(told, sort_keys=False, width=1_000)


def short(name: str) -> str:
    """Cut a long name in the middle."""
    clean = printable(name)
    return clean if len(clean) <= WIDEST else f"{clean[: WIDEST - TAIL - 1]}…{clean[-TAIL:]}"
