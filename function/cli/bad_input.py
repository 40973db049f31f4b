"""The error that every command answers in one line; light enough for a command line that only completes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cli.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

SHOWN = 10
"""How many names a message lists."""


class BadInput(Exception):
    """Something in the files that cannot be read: the message names file, object, field and value."""


def closest(name: str, existing: Iterable[str]) -> str:
    """Name what there is, for a message about what there is not."""
    names = sorted(existing)
    near = nearest(name, names)
    if near:
        return f"did you mean {' or '.join(near)}?"
    shown = [*names[:SHOWN], *(["..."] if len(names) > SHOWN else [])]
    return f"there is {', '.join(shown)}" if shown else "there is none"
