"""Make a world that shows a difference as small as it can be made by leaving things out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.world import World

Plain = dict[str, Any]


def minimise(world: World, shows: Callable[[World], bool]) -> World:
    """Return the smallest world found that still `shows` what the given one does."""
    while True:
        smaller = next((item for item in _smaller(world) if _shows(item, shows)), None)
        if smaller is None:
            return world
        world = smaller


def _shows(world: World, shows: Callable[[World], bool]) -> bool:
    try:
        return shows(world)
    except (AssertionError, KeyError, IndexError, StopIteration, ValueError):
        return False  # What was left out was needed to make a world at all.


def _smaller(world: World) -> Iterator[World]:
    """Yield worlds with one thing less."""
    for name in ("clusters", "replicas"):
        items = getattr(world, name) or ()
        for number in range(len(items)):
            yield world.but(**{name: [*items[:number], *items[number + 1 :]]})
    for key in world.observed:
        yield world.but(observed={name: manifest for name, manifest in world.observed.items() if name != key})
    if world.cache:
        yield _without_cache(world)
    yield from _fewer_wanted(world)
    yield from _cut(world)


def _without_cache(world: World) -> World:
    made = world.copy()
    made.deployment["spec"]["template"]["spec"].pop("modelCacheRef", None)
    return made.but(cache=None)


def _fewer_wanted(world: World) -> Iterator[World]:
    if world.deployment["spec"]["replicas"] > 0:
        made = world.copy()
        made.deployment["spec"]["replicas"] -= 1
        yield made


def _cut(world: World) -> Iterator[World]:
    """Yield worlds with one element of some list, or one optional field, left out."""
    for path in _paths(world):
        made = world.copy()
        holder: Any = {"deployment": made.deployment, "clusters": made.clusters}
        for step in path[:-1]:
            holder = holder[step]
        del holder[path[-1]]
        yield made


def _paths(world: World) -> list[tuple[Any, ...]]:
    collected: list[tuple[Any, ...]] = []
    inner = ("deployment", "spec", "template", "spec")
    spec = world.deployment["spec"]["template"]["spec"]
    collected += [(*inner, "engines", n) for n in range(len(spec["engines"])) if len(spec["engines"]) > 1]
    collected += [(*inner, label) for label in ("clusterSelector", "tolerations", "serving") if label in spec]
    for number, engine in enumerate(spec["engines"]):
        here = (*inner, "engines", number)
        collected += [(*here, name) for name in ("copies", "phase") if name in engine]
        collected += [
            (*here, "members", n) for n in range(len(engine["members"])) if len(engine["members"]) > 1
        ]
        for place, member in enumerate(engine["members"]):
            devices = member.get("nodeSelector", {}).get("devices", [])
            there = (*here, "members", place, "nodeSelector", "devices")
            collected += [(*there, n) for n in range(len(devices)) if len(devices) > 1]
    for number, cluster in enumerate(world.clusters or ()):
        collected += list(_cluster_paths(number, cluster))
    return collected


def _cluster_paths(number: int, cluster: Plain) -> Iterator[tuple[Any, ...]]:
    pools = cluster.get("status", {}).get("gpuPools", [])
    for place, pool in enumerate(pools):
        yield ("clusters", number, "status", "gpuPools", place)
        for entry in range(len(pool["devices"])):
            yield ("clusters", number, "status", "gpuPools", place, "devices", entry)
    if "taints" in cluster["spec"]:
        yield ("clusters", number, "spec", "taints")
