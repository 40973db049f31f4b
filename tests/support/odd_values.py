"""Values that nobody expects in a field, the paths of an object where one may be put, and damaged bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

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
    paths = [path] if path else []
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return paths + [place for key in keys for place in paths_of(value[key], (*path, key))]


def put(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """Return a copy of plain values with another one at a path."""
    if not path:
        return odd
    copied = value.copy()
    copied[path[0]] = put(value[path[0]], path[1:], odd)
    return copied


def damaged(content: bytes, draw: random.Random, times: int) -> bytes:
    """Return bytes of which some are others."""
    changed = bytearray(content)
    for _ in range(times):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)
