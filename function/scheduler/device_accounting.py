"""Capacity: what every pool has left, in nodes or in devices, and who holds the rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from function.api import Pool, StampedEngine


# Device accounting: pods share nodes, and still nothing can be stranded, however the cluster packs them.
#
# A pool has N equal nodes with D devices of a kind. A pod that needs s of them is blocked on a node only if
# more than D - s are taken there. With t = D - s + 1, the other pods block at most
#
#     (pods of size >= t) + floor(sum of the smaller sizes / t')
#
# nodes, t' being t rounded up to a multiple of the smaller sizes' greatest common divisor. With several
# kinds, a pod that blocks alone for any kind counts once, and the floors of the kinds are added up: a node
# that no single pod blocks is blocked by the small ones of some kind, which must reach t' there. A set of
# pods is admitted when that is below N for every one of them against all the others (pods restart in any
# order), and below N - k + 1 for a pod of a gang of k on distinct nodes, against those outside its gang.
#
# A claim names a device class, so a kind is one entry of the pool that a claim can bind. Where several
# entries have one class, a pod is taken to sit on each of them: what is unknown is counted against the set.


class Claim(NamedTuple):
    """One claimed request of a pod."""

    device_class: str
    number: int


Claims: TypeAlias = tuple[Claim, ...]
"""What one pod claims, sorted."""


class Pods(NamedTuple):
    """Equal pods of one gang."""

    claims: Claims
    number: int


Gang: TypeAlias = tuple[Pods, ...]
"""The pods of one copy of an engine that claim devices in one pool, sorted."""


class Copies(NamedTuple):
    """Equal gangs. A difference of two holds negative numbers."""

    gang: Gang
    number: int


Gangs: TypeAlias = tuple[Copies, ...]
"""Different gangs and how many there are of each, sorted."""


class Demand(NamedTuple):
    """What is wanted of one pool: nodes, and the pods themselves where devices are charged."""

    nodes: int
    gangs: Gangs = ()

    @property
    def released(self) -> Demand:
        """The same, given back."""
        return Demand(-self.nodes, minus(self.gangs))


class Shortage(NamedTuple):
    """Nodes that are needed, and those that are free."""

    needs: int
    free: int

    @property
    def missing(self) -> int:
        """How many more nodes it would take."""
        return self.needs - self.free


class DeviceKind(NamedTuple):
    """Devices of a node that one claim can bind: an entry of the pool."""

    device_class: str
    devices: int


class PodLoad(NamedTuple):
    """One pod on the kinds of a pool."""

    takes: tuple[int, ...]
    """Devices of each kind it may hold."""
    needs: tuple[int, ...]
    """Devices of each kind that must be free for it; all zero when no node could ever host it."""
    strange: bool = False
    """Whether it claims a class that the pool does not publish: it is taken to fill a node."""


def gang(pods: Iterable[Pods]) -> Gang:
    """Put a gang together from its members: what a pod of each claims, and how many there are."""
    counted: dict[Claims, int] = defaultdict(int)
    for claims, number in pods:
        if claims:
            counted[claims] += number
    return tuple(Pods(*entry) for entry in sorted(counted.items()))


def total(parts: Iterable[Gangs]) -> Gangs:
    """Add gangs up."""
    counted: dict[Gang, int] = defaultdict(int)
    for part in parts:
        for copies in part:
            counted[copies.gang] += copies.number
    return tuple(Copies(*entry) for entry in sorted(counted.items()) if all(entry))


def minus(gangs: Gangs) -> Gangs:
    """The same gangs, taken away."""
    return tuple(Copies(copies.gang, -copies.number) for copies in gangs)


def stamped_gangs(engines: Iterable[StampedEngine]) -> dict[str, Gangs]:
    """The gangs of an existing replica, by pool."""
    parts: dict[str, list[Gangs]] = {}
    for engine in engines:
        for pool in dict.fromkeys(member.pool for member in engine.members):
            pods = (
                Pods(
                    tuple(sorted(Claim(request.device_class, request.count) for request in member.requests)),
                    member.pods,
                )
                for member in engine.members
                if member.pool == pool
            )
            parts.setdefault(pool, []).append((Copies(gang(pods), engine.copies),))
    return {pool: added for pool, gangs in parts.items() if (added := total(gangs))}


def kinds_of(pool: Pool) -> tuple[DeviceKind, ...]:
    """The kinds of devices that claims can bind on a node of the pool."""
    bindable = (device for device in pool.devices or () if device.claimable and device.count)
    return tuple(DeviceKind(device.device_class_name, device.count) for device in bindable)


@lru_cache(maxsize=4096)
def load(claims: Claims, kinds: tuple[DeviceKind, ...]) -> PodLoad:
    """Lay one pod's claims on the kinds of a pool."""
    takes, needs = [], []
    for kind in kinds:
        counts = [count for device_class, count in claims if device_class == kind.device_class]
        takes.append(sum(counts))
        needs.append(min(sum(counts), kind.devices) if max(counts, default=0) <= kind.devices else 0)
    device_classes = {kind.device_class for kind in kinds}
    hosted = all(
        any(kind.device_class == device_class and count <= kind.devices for kind in kinds)
        for device_class, count in claims
    )
    strange = any(device_class not in device_classes for device_class, _ in claims)
    return PodLoad(tuple(takes), tuple(needs) if hosted else (0,) * len(kinds), strange)


def _blocked(needs: tuple[int, ...], kinds: tuple[DeviceKind, ...], others: Mapping[PodLoad, int]) -> int:
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
class DeviceCapacity:
    """What stands in one pool with Device accounting. Equal ones take the same."""

    nodes: int
    kinds: tuple[DeviceKind, ...]
    gangs: Gangs = ()

    def charged(self, demand: Demand) -> DeviceCapacity:
        """Return the pool with a demand charged to it, admitted or not."""
        if not demand.gangs:
            return self
        return DeviceCapacity(self.nodes, self.kinds, total((self.gangs, demand.gangs)))

    def take(self, demand: Demand) -> DeviceCapacity | None:
        """Return what is left after a demand, or None when there is not enough."""
        after = self.charged(demand)
        return after if after is self or after.stranded is None else None

    def shortage(self, demand: Demand) -> Shortage | None:
        """Say what stands against a demand; None when there is room."""
        return self.charged(demand).stranded if demand.gangs else None

    def touched_by(self, demand: Demand) -> bool:
        """Whether a demand takes anything of it."""
        return bool(demand.gangs)

    @cached_property
    def _loads(self) -> Counter[PodLoad]:
        counted: Counter[PodLoad] = Counter()
        for copies in self.gangs:
            for claims, pods in copies.gang:
                counted[load(claims, self.kinds)] += pods * copies.number
        return counted

    @cached_property
    def stranded(self) -> Shortage | None:
        """The pod that is worst off: nodes its gang needs, nodes surely open to it. None: all is well."""
        worst: Shortage | None = None
        for copies in self.gangs:
            if copies.number > 0:
                for shortage in self._of_gang(copies.gang):
                    if worst is None or shortage.missing > worst.missing:
                        worst = shortage
        return worst

    def _of_gang(self, gang: Gang) -> Iterable[Shortage]:
        """The shortages of the pods of one gang, against all pods outside it."""
        others = self._loads.copy()
        for claims, pods in gang:
            others[load(claims, self.kinds)] -= pods
        size = sum(pods for _, pods in gang)
        for claims, _ in gang:
            needs = load(claims, self.kinds).needs
            open_to = self.nodes - _blocked(needs, self.kinds, others)
            if any(needs) and open_to < size:
                yield Shortage(size, max(0, open_to))

    @cached_property
    def free_nodes(self) -> int:
        """Nodes' worth of free devices, by the scarcest kind; what scores and reports call free."""
        strange = sum(number for pod, number in self._loads.items() if pod.strange)
        taken = [
            -(-sum(pod.takes[at] * number for pod, number in self._loads.items()) // kind.devices)
            for at, kind in enumerate(self.kinds)
        ]
        return self.nodes - strange - max(taken, default=0)
