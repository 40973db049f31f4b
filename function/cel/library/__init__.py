"""The function libraries of the dialect, one file each; `FUNCTIONS` is all of them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.library import (
    conversions,
    includes,
    lists,
    named_formats,
    network,
    operators,
    optionals,
    quantities,
    regex,
    semvers,
    sets,
    strings,
    text_format,
    times,
    urls,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.cel.declarations import Overload

LIBRARIES = (
    operators,
    conversions,
    strings,
    text_format,
    lists,
    sets,
    optionals,
    quantities,
    semvers,
    includes,
    regex,
    network,
    urls,
    named_formats,
    times,
)


def _by_name() -> Mapping[str, tuple[Overload, ...]]:
    named: dict[str, list[Overload]] = {}
    for library in LIBRARIES:
        for overload in library.DECLARATIONS:
            named.setdefault(overload.name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in named.items()}


FUNCTIONS = _by_name()
