"""Check pools accounted by devices: whether the worst packing could strand a pod, by trying packings.

The scheduler bounds the worst packing with a formula. Here the promise itself is tried: however the other
pods stand on the nodes, a gang of k pods must find k nodes with enough devices left.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from function.verify.state import pools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from function.api import ModelReplica, Pool
    from function.verify.state import State

SMALL_PODS, SIZES = 48, 4
"""Up to so many small pods of so many sizes every packing is tried; beyond, only the obvious one."""

Pod = tuple[tuple[str, int], ...]
"""Devices a pod claims, by device class."""


class PodGang(NamedTuple):
    """The pods of one copy of an engine on one pool."""

    pods: tuple[Pod, ...]


def gangs_on(pool: str, replicas: Iterable[ModelReplica]) -> list[PodGang]:
    """Every gang that replicas of a cluster have on one of its pools."""
    gangs = []
    for replica in replicas:
        for engine in replica.engines:
            pods: list[Pod] = []
            for member in engine.members:
                counts: Counter[str] = Counter()
                for request in member.requests:
                    counts[request.device_class] += request.count
                if counts and member.pool == pool:
                    pods += [tuple(sorted(counts.items()))] * member.pods
            if pods:
                gangs += [PodGang(tuple(pods))] * engine.copies
    return gangs


def most_blocked(sizes: Iterable[int], devices: int, least: int) -> int:
    """On how many nodes pods of these sizes can leave fewer than needed: loads from `least` to `devices`."""
    listed = [size for size in sizes if size]
    alone = sum(item >= least for item in listed)
    small = Counter(item for item in listed if item < least)
    if len(small) > SIZES or small.total() > SMALL_PODS:
        return alone
    kinds = tuple(sorted(small))
    return alone + _cover(kinds, tuple(small[kind] for kind in kinds), devices, least)


@lru_cache(maxsize=100_000)
def _cover(kinds: tuple[int, ...], counts: tuple[int, ...], devices: int, least: int) -> int:
    """The most nodes that small pods can fill to at least `least`, by trying every way to fill the next."""
    best = 0
    for taken in _fillings(kinds, counts, devices, least):
        left = tuple(count - used for count, used in zip(counts, taken, strict=True))
        best = max(best, 1 + _cover(kinds, left, devices, least))
    return best


def _fillings(
    kinds: tuple[int, ...], counts: tuple[int, ...], devices: int, least: int
) -> Iterator[tuple[int, ...]]:
    """Every way to load one node that blocks it."""
    if not kinds:
        if least <= 0 <= devices:
            yield ()
        return
    for used in range(min(counts[0], devices // kinds[0]) + 1):
        taken = used * kinds[0]
        for rest in _fillings(kinds[1:], counts[1:], devices - taken, least - taken):
            yield (used, *rest)


def stranded(pool: Pool, replicas: Iterable[ModelReplica]) -> str:
    """Say which pods could be stranded by the worst packing; empty when none can be."""
    gangs = Counter(gangs_on(pool.name, replicas))
    entries = [device for device in pool.devices or () if device.claim == "DRA"]
    classes = Counter(entry.device_class_name for entry in entries)
    for entry in (entry for entry in entries if classes[entry.device_class_name] == 1):
        for gang in gangs:
            others = gangs - Counter([gang])
            sizes = [
                dict(pod).get(entry.device_class_name, 0)
                for pod in (p for g in others.elements() for p in g.pods)
            ]
            counts = {dict(pod).get(entry.device_class_name, 0) for pod in gang.pods}
            for size in counts & set(range(1, entry.count + 1)):  # More than a node has fits nowhere anyway.
                blocked = min(pool.nodes, most_blocked(sizes, entry.count, entry.count - size + 1))
                if pool.nodes - blocked < len(gang.pods):
                    nodes = f"{pool.nodes - blocked} of {pool.nodes} nodes"
                    return f"a pod of {size} {entry.name or entry.driver} may find {nodes} open"
    return ""


def strandings(state: State, replicas: Sequence[ModelReplica]) -> Iterator[tuple[tuple[str, str], str]]:
    """Pools accounted by devices in which the worst packing could strand a pod, each with the numbers."""
    for (cluster, name), pool in pools(state).items():
        text = (
            stranded(pool, [replica for replica in replicas if replica.cluster == cluster])
            if pool.accounting == "Device"
            else ""
        )
        if text:
            yield (cluster, name), text
