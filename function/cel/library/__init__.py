"""The function libraries of the dialect, one file each; `FUNCTIONS` is all of them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.library import lists, operators, optionals, regex, quantities, semvers, strings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.cel.declarations import Overload

LIBRARIES = (lists, operators, optionals, regex, quantities, semvers, strings)


def _by_name() -> Mapping[str, tuple[Overload, ...]]:
    named: dict[str, list[Overload]] = {}
    for library in LIBRARIES:
        for overload in library.DECLARATIONS:
            named.setdefault(overload.name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in named.items()}


FUNCTIONS = _by_name()
