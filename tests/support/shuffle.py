"""Worlds, and objects on the wire, that say the same in another order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from function.wire import write

if TYPE_CHECKING:
    from tests.support.world import World

SETS = frozenset({"conditions", "taints", "tolerations", "ownerReferences"})
"""Lists whose order means nothing. The order of engines, members, requests, pools and devices is input."""


def shuffled(world: World, seed: int) -> World:
    """Return the same world with maps, items, conditions, taints and tolerations in another order."""
    draw = random.Random(seed)
    changes = {name: _value(draw, getattr(world, name)) for name in ("deployment", "observed", "input")}
    for name in ("clusters", "replicas", "cache"):
        items = getattr(world, name)
        changes[name] = None if items is None else _permuted(draw, [_value(draw, item) for item in items])
    changes["more"] = {name: _permuted(draw, _value(draw, items)) for name, items in world.more.items()}
    return world.but(**changes)


def _permuted(draw: random.Random, items: list[Any]) -> list[Any]:
    return draw.sample(items, len(items))


def _value(draw: random.Random, value: Any) -> Any:
    if isinstance(value, list):
        return [_value(draw, item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: _value(draw, value[key]) for key in _permuted(draw, list(value))}
    for key in SETS & made.keys():
        if isinstance(made[key], list):
            made[key] = _permuted(draw, made[key])
    return made


def shuffled_bytes(content: dict[str, Any], order: random.Random) -> bytes:
    """Serialise as Crossplane does: map entries in any order."""
    keys = list(content)
    order.shuffle(keys)
    return b"".join(write.entry(key, _bytes(content[key], order)) for key in keys)


def _bytes(value: Any, order: random.Random) -> bytes:
    return write.wrapped(shuffled_bytes(value, order)) if isinstance(value, dict) else write.value(value)
