"""The function libraries of the dialect, one file each; `declared` has all of them by name."""

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
    quantity,
    regex,
    semver,
    sets,
    strings,
    text_format,
    times,
    urls,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from function.cel.library.declarations import Overload

LIBRARIES = (
    operators,
    conversions,
    urls,
    regex,
    lists,
    optionals,
    quantity,
    strings,
    text_format,
    sets,
    network,
    named_formats,
    semver,
    includes,
    times,
)
"""In the order in which Kubernetes registers them, and so that of a function's overloads: the first that fits
binds a type that nothing else binds."""


def declared(changed: Iterable[Overload] = ()) -> Mapping[str, tuple[Overload, ...]]:
    """Return all functions by name; those in `changed` replace every overload of their names."""
    named: dict[str, list[Overload]] = {}
    for library in LIBRARIES:
        for overload in library.DECLARATIONS:
            named.setdefault(overload.name, []).append(overload)
    replaced: dict[str, list[Overload]] = {}
    for overload in changed:
        replaced.setdefault(overload.name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in (named | replaced).items()}
