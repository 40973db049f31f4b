"""Values that nobody expects in a field, and the paths of an object where one may be put."""

from __future__ import annotations

from typing import Any

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**18,
    "",
    "x",
    "é\n{}",
    [],
    [None],
    ["x"],
    {},
    {"": None},
    [[{}]],
)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return found + [place for key in keys for place in paths_of(value[key], (*path, key))]
