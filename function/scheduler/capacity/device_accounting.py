"""Device accounting: pods share nodes, and still nothing can be stranded, however the cluster packs them.

A pool has N equal nodes with D devices of a kind. A pod that needs s of them is blocked on a node only if
more than D - s are taken there. With t = D - s + 1, the other pods block at most

    (pods of size >= t) + floor(sum of the smaller sizes / t')

nodes, t' being t rounded up to a multiple of the smaller sizes' greatest common divisor. With several kinds,
a pod that blocks alone for any kind counts once, and the floors of the kinds are added up: a node that no
single pod blocks is blocked by the small ones of some kind, which must reach t' there. A set of pods is
admitted when that is below N for every one of them against all the others (pods restart in any order), and
below N - k + 1 for a pod of a gang of k on distinct nodes, against those outside its gang.

A claim names a device class, so a kind is one entry of the pool that a claim can bind. Where several entries
have one class, a pod is taken to sit on each of them: what cannot be told is counted against the set.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from function.api import Pool, StampedEngine

Claims: TypeAlias = tuple[tuple[str, int], ...]
"""What one pod claims: device class and count of each request, sorted."""
Gang: TypeAlias = tuple[tuple[Claims, int], ...]
"""The pods of one copy of an engine that claim devices in one pool: claims and number of pods, sorted."""
Gangs: TypeAlias = tuple[tuple[Gang, int], ...]
"""Gangs and how many there are of each, sorted. A difference of two holds negative numbers."""


class Kind(NamedTuple):
    """Devices of a node that one claim can bind: an entry of the pool."""

    device_class: str
    devices: int


class Load(NamedTuple):
    """One pod on the kinds of a pool."""

    takes: tuple[int, ...]
    """Devices of each kind it may hold."""
    needs: tuple[int, ...]
    """Devices of each kind that must be free for it; all zero when no node could ever host it."""
    strange: bool = False
    """Whether it claims a class that the pool does not publish: it is taken to fill a node."""


def gang(pods: Iterable[tuple[Claims, int]]) -> Gang:
    """Put a gang together from its members: what a pod of each claims, and how many there are."""
    counted: Counter[Claims] = Counter()
    for claims, number in pods:
        if claims:
            counted[claims] += number
    return tuple(sorted(counted.items()))


def total(parts: Iterable[Gangs]) -> Gangs:
    """Add gangs up."""
    counted: Counter[Gang] = Counter()
    for part in parts:
        for each, number in part:
            counted[each] += number
    return tuple(sorted((each, number) for each, number in counted.items() if each and number))


def minus(gangs: Gangs) -> Gangs:
    """The same gangs, taken away."""
    return tuple((each, -number) for each, number in gangs)


def stamped_gangs(engines: Iterable[StampedEngine]) -> dict[str, Gangs]:
    """The gangs of an existing replica, by pool."""
    found: dict[str, list[Gangs]] = {}
    for engine in engines:
        for pool in dict.fromkeys(member.pool for member in engine.members):
            pods = (
                (tuple(sorted((each.device_class, each.count) for each in member.requests)), member.pods)
                for member in engine.members
                if member.pool == pool
            )
            found.setdefault(pool, []).append(((gang(pods), engine.copies),))
    return {pool: added for pool, parts in found.items() if (added := total(parts))}


def kinds_of(pool: Pool) -> tuple[Kind, ...]:
    """The kinds of devices that claims can bind on a node of the pool."""
    bindable = (each for each in pool.devices or () if each.claimable and each.count)
    return tuple(Kind(each.device_class_name, each.count) for each in bindable)


@lru_cache(maxsize=4096)
def load(claims: Claims, kinds: tuple[Kind, ...]) -> Load:
    """Lay one pod's claims on the kinds of a pool."""
    takes, needs = [], []
    for kind in kinds:
        counts = [count for device_class, count in claims if device_class == kind.device_class]
        takes.append(sum(counts))
        needs.append(min(sum(counts), kind.devices) if max(counts, default=0) <= kind.devices else 0)
    known = {kind.device_class for kind in kinds}
    hosted = all(
        any(kind.device_class == device_class and count <= kind.devices for kind in kinds)
        for device_class, count in claims
    )
    strange = any(device_class not in known for device_class, _ in claims)
    return Load(tuple(takes), tuple(needs) if hosted else (0,) * len(kinds), strange)


def _blocked(needs: tuple[int, ...], kinds: tuple[Kind, ...], others: Mapping[Load, int]) -> int:
    """How many nodes the others can block at most for a pod with these needs."""
    limits = [kind.devices - need + 1 if need else 0 for kind, need in zip(kinds, needs, strict=True)]
    alone, small, divisor = 0, [0] * len(kinds), [0] * len(kinds)
    for other, number in others.items():
        if number <= 0:
            continue
        if other.strange or any(t and take >= t for t, take in zip(limits, other.takes, strict=True)):
            alone += number
            continue
        for at, take in enumerate(other.takes):
            small[at] += take * number
            divisor[at] = gcd(divisor[at], take)
    return alone + sum(
        taken // (-(-limit // divided) * divided)
        for limit, taken, divided in zip(limits, small, divisor, strict=True)
        if limit and taken
    )


@dataclass(frozen=True)
class Packing:
    """What stands in one pool with Device accounting. Equal packings take the same."""

    nodes: int
    kinds: tuple[Kind, ...]
    gangs: Gangs = ()

    def plus(self, gangs: Gangs) -> Packing:
        """Return the packing with more gangs, admitted or not."""
        return Packing(self.nodes, self.kinds, total((self.gangs, gangs))) if gangs else self

    @cached_property
    def _loads(self) -> Counter[Load]:
        counted: Counter[Load] = Counter()
        for each, number in self.gangs:
            for claims, pods in each:
                counted[load(claims, self.kinds)] += pods * number
        return counted

    @cached_property
    def shortage(self) -> tuple[int, int] | None:
        """The pod that is worst off: nodes its gang needs, nodes surely open to it. None: all is well."""
        worst: tuple[int, int] | None = None
        for each, number in self.gangs:
            if number > 0:
                for found in self._of_gang(each):
                    if worst is None or found[0] - found[1] > worst[0] - worst[1]:
                        worst = found
        return worst

    def _of_gang(self, each: Gang) -> Iterable[tuple[int, int]]:
        """The shortages of the pods of one gang, against all pods outside it."""
        others = self._loads.copy()
        for claims, pods in each:
            others[load(claims, self.kinds)] -= pods
        size = sum(pods for _, pods in each)
        for claims, _ in each:
            needs = load(claims, self.kinds).needs
            open_to = self.nodes - _blocked(needs, self.kinds, others)
            if any(needs) and open_to < size:
                yield size, max(0, open_to)

    @cached_property
    def free_nodes(self) -> int:
        """Nodes' worth of free devices, by the scarcest kind; what scores and reports call free."""
        strange = sum(number for each, number in self._loads.items() if each.strange)
        taken = [
            -(-sum(each.takes[at] * number for each, number in self._loads.items()) // kind.devices)
            for at, kind in enumerate(self.kinds)
        ]
        return self.nodes - strange - max(taken, default=0)


Room: TypeAlias = "int | Packing"
"""What a pool has left: free nodes, or (with Device accounting) everything that stands in it."""


def free_nodes(room: Room) -> int:
    """Free nodes of either accounting."""
    return room if isinstance(room, int) else room.free_nodes


def lacking(room: Room, nodes: int, gangs: Gangs) -> tuple[int, int] | None:
    """What stands against taking so much: nodes needed and nodes free; None when there is room."""
    if isinstance(room, int):
        return (nodes, room) if nodes > room else None
    return room.plus(gangs).shortage if gangs else None


def taking(room: Room, nodes: int, gangs: Gangs) -> Room | None:
    """The room that is left after taking so much, or None when there is not enough."""
    if isinstance(room, int):
        return room - nodes if nodes <= room else None
    after = room.plus(gangs)
    return after if after.shortage is None or not gangs else None
