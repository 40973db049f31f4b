"""The error that every command answers in one line; light enough for a command line that only completes.

`BadInput` carries a message that names the file, the object, the field and the value. `closest` and
`nearest` add what was probably meant, for names of objects, fields, kinds and models alike. `is_lenient`
holds the one option that turns errors about unknown fields into warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable


# Find the nearest existing name for one that does not exist.

CUTOFF = 0.6
"""How alike two names must be, as `difflib` counts it."""
_SEPARATORS = str.maketrans("", "", "-_. ")


def nearest(name: str, existing: Iterable[str], *, most: int = 3, cutoff: float = CUTOFF) -> list[str]:
    """Return the names that are meant, the likeliest first; case and separators count for nothing."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    names = sorted(existing)
    folded = {text: text.casefold().translate(_SEPARATORS) for text in (name, *names)}
    same = [candidate for candidate in names if folded[candidate] == folded[name]]
    near = get_close_matches(name, names, n=most, cutoff=cutoff)
    return same[:most] or sorted(near, key=lambda candidate: not folded[candidate].startswith(folded[name]))


# Strictness: whether a field that no schema declares is an error, as for kubectl, or only a warning.

LENIENT = "function.cli.lenient"
"""Where the command line keeps it, for the time of one command."""


def is_lenient() -> bool:
    """Tell whether --lenient was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(LENIENT))


SHOWN = 10
"""How many names a message lists."""


class BadInput(Exception):
    """Something in the files that cannot be read: the message names file, object, field and value."""


def closest(name: str, existing: Iterable[str]) -> str:
    """Name what there is, for a message about what there is not; what has the name in it comes first."""
    names = sorted(existing, key=lambda text: (name.casefold() not in text.casefold(), text))
    near = nearest(name, names)
    if near:
        return f"did you mean {' or '.join(near)}?"
    shown = [*names[:SHOWN], *(["..."] if len(names) > SHOWN else [])]
    return f"there is {', '.join(shown)}" if shown else "there is none"
