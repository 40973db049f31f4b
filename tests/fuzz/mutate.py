"""Random mutations anywhere in a tree of plain values, and in bytes. The same for the same seed."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

    from tests.support.world import World

Plain = dict[str, Any]

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    -3,
    1.5,
    float("nan"),
    float("inf"),
    -float("inf"),
    float(2**53),
    1e300,
    "",
    " ",
    "a",
    "True",
    "x" * 300,
    "\u0000\u202e\U0001f600",
    "../../etc/passwd",
    "2026-03-01T08:00:00Z",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": None},
    {"name": "p0"},
    ["a", 1, {"b": None}],
)


def _deep(draw: random.Random) -> Any:
    """Return something nested deeper than any real object."""
    value: Any = None
    for _ in range(draw.choice((40, 80))):
        value = [value] if draw.random() < 0.5 else {"a": value}
    return value


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in a tree."""
    prefixes = [prefix] if prefix else []
    if isinstance(value, dict):
        for key in value:
            prefixes += paths(value[key], (*prefix, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            prefixes += paths(item, (*prefix, number))
    return prefixes


def mutated(draw: random.Random, tree: Any, *, keep: tuple[tuple[Any, ...], ...] = ()) -> Any:
    """Return a copy of a tree with one mutation, anywhere but at or above the paths to `keep`."""
    made = copy.deepcopy(tree)
    allowed = [path for path in paths(made) if not any(one[: len(path)] == path for one in keep)]
    if not allowed:
        return made
    path = draw.choice(allowed)
    holder: Any = made
    for step in path[:-1]:
        holder = holder[step]
    _strike(draw, holder, path[-1])
    return made


def _strike(draw: random.Random, holder: Any, last: Any) -> None:
    """Do one thing to one value of a map or a list."""
    what = draw.randrange(7)
    if what == 0:
        del holder[last]
    elif what == 1 and isinstance(holder, list):
        holder.insert(last, copy.deepcopy(holder[last]))
    elif what == 1:
        holder[draw.choice(("odd", "", "name", "count", "x" * 80))] = holder[last]
    elif what == 2 and isinstance(holder, dict):
        holder[f"{last}x"] = holder.pop(last)
    elif what == 3:
        holder[last] = [holder[last]]
    elif what == 4:
        holder[last] = _deep(draw)
    else:
        holder[last] = draw.choice(ODD)


def mutated_world(draw: random.Random, world: World, times: int) -> World:
    """Return a world with some mutations anywhere in its objects."""
    tree = {
        "deployment": world.deployment,
        "clusters": list(world.clusters or ()),
        "replicas": list(world.replicas or ()),
        "observed": dict(world.observed),
        "cache": list(world.cache or ()),
        "input": world.input
        or {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"},
    }
    tops = tuple((name,) for name in tree)
    for _ in range(times):
        tree = mutated(draw, tree, keep=tops)
    delivered = {name: None if getattr(world, name) is None else _objects(tree[name]) for name in _LISTS}
    observed = {key: manifest for key, manifest in tree["observed"].items() if isinstance(manifest, dict)}  # type: ignore[attr-defined]
    given = None if world.input is None and draw.random() < 0.9 else tree["input"]
    return world.but(deployment=tree["deployment"], observed=observed, input=given, **delivered)


_LISTS = ("clusters", "replicas", "cache")


def _objects(items: Any) -> list[Plain]:
    """Return the elements that a request can carry: an item of a request is a map."""
    return [item for item in items if isinstance(item, dict)]


def mutated_bytes(draw: random.Random, content: bytes) -> bytes:
    """Return bytes with some flipped, cut out, put in or repeated."""
    made = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        place = draw.randrange(len(made) + 1)
        what = draw.randrange(5)
        if what == 0:
            made = made[:place]
        elif what == 1:
            made[place:place] = draw.randbytes(draw.choice((1, 2, 8)))
        elif what == 2:
            del made[place : place + draw.choice((1, 3, 50))]
        elif what == 3:
            made[place:place] = made[place : place + 40]
        elif place < len(made):
            made[place] = draw.randrange(256)
    return bytes(made)
