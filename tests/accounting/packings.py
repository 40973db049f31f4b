"""Every packing of a small pool, by brute force: whether some order and placement of pods strands one.

Imports nothing of the scheduler. A pod is the set of ways in which it may be served, each a number of devices
for each kind; a gang is a list of pods.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Way: TypeAlias = tuple[int, ...]
"""Devices of each kind."""
Pod: TypeAlias = tuple[Way, ...]
"""Each way in which a pod may be served."""
Gangs: TypeAlias = list[list[Pod]]
Nodes: TypeAlias = tuple[tuple[int, ...], ...]
"""Free devices of every node, per kind."""


def plain(*devices: int) -> Pod:
    """A pod that is served in one way."""
    return (devices,)


def strands(nodes: int, devices: Way, gangs: Gangs, *, apart: bool, full: bool = False) -> bool:
    """Say whether some pod can find no node while others stand somewhere, however few of them do.

    With `apart`, the pods of a gang must be on distinct nodes. With `full`, all others stand somewhere.
    """
    pods = [(pod, number) for number, gang in enumerate(gangs) for pod in gang]
    return any(
        _stuck(pods[at], pods[:at] + pods[at + 1 :], nodes, devices, apart=apart, full=full)
        for at in range(len(pods))
        if pods[at] not in pods[:at] and any(map(any, pods[at][0]))
    )


def _stuck(
    waiting: tuple[Pod, int],
    others: list[tuple[Pod, int]],
    nodes: int,
    devices: Way,
    *,
    apart: bool,
    full: bool,
) -> bool:
    seen: set[object] = set()

    def search(at: int, free: Nodes, used: tuple[frozenset[int], ...]) -> bool:
        state = (at, tuple(sorted(zip(free, map(tuple, map(sorted, used)), strict=True))))
        if state in seen:
            return False
        seen.add(state)
        stuck = not any(list(_served(waiting, free[n], used[n], apart=apart)) for n in range(nodes))
        if stuck and (at == len(others) or not full):
            return True
        if at == len(others):
            return False
        if not full and search(at + 1, free, used):
            return True
        _, gang = others[at]
        return any(
            search(
                at + 1,
                (*free[:n], left, *free[n + 1 :]),
                (*used[:n], used[n] | {gang} if apart else used[n], *used[n + 1 :]),
            )
            for n in range(nodes)
            for left in _served(others[at], free[n], used[n], apart=apart)
        )

    return search(0, (devices,) * nodes, (frozenset(),) * nodes)


def _served(pod: tuple[Pod, int], free: Way, used: frozenset[int], *, apart: bool) -> list[Way]:
    """What each way of serving a pod leaves free on a node."""
    ways, gang = pod
    if apart and gang in used:
        return []
    left = [tuple(have - need for have, need in zip(free, way, strict=True)) for way in ways]
    return [rest for rest in left if min(rest) >= 0]


class TooManyPackings(Exception):
    """The steps ran out."""


def strands_one(nodes: int, devices: Way, pods: Mapping[Pod, int], steps: int) -> bool:
    """Say what `strands` says of pods that may share nodes, node by node: for pools with many of them."""
    return any(
        can_close(nodes, pod, Counter(pods) - Counter([pod]), devices, steps)
        for pod in pods
        if pods[pod] > 0 and any(map(any, pod))
    )


def can_close(nodes: int, needs: Pod, others: Mapping[Pod, int], devices: Way, steps: int) -> bool:
    """Say whether others can take so many nodes at once that none of them has a way left for a pod.

    A node to which nothing more needs to come is closed, and what is left is all that counts from then on.
    """
    counted: Counter[object] = Counter()
    dead: set[object] = set()

    def close(left: Mapping[Pod, int], nodes: int) -> bool:
        state = nodes, frozenset(left.items())
        if not nodes or state in dead:
            return not nodes
        for taken in _loads(needs, sorted(left), left, devices, counted, steps):
            if close(Counter(left) - taken, nodes - 1):
                return True
        dead.add(state)
        return False

    return close(others, nodes)


def _loads(
    waiting: Pod,
    order: list[Pod],
    left: Mapping[Pod, int],
    devices: Way,
    counted: Counter[object],
    steps: int,
) -> Iterator[Counter[Pod]]:
    """Every choice of pods that stand on one node together and leave a pod no way, none of them in vain."""
    given: set[frozenset[tuple[Pod, int]]] = set()

    def add(at: int, free: Way, taken: Counter[Pod]) -> Iterator[Counter[Pod]]:
        counted["steps"] += 1
        if counted["steps"] > steps:
            raise TooManyPackings
        if not any(_room(free, way) for way in waiting):
            key = frozenset(taken.items())
            if key not in given:
                given.add(key)
                yield taken
            return
        for number in range(at, len(order)):
            pod = order[number]
            if taken[pod] == left[pod]:
                continue
            for way in pod:
                if _room(free, way):
                    rest = tuple(have - need for have, need in zip(free, way, strict=True))
                    yield from add(number, rest, taken + Counter([pod]))

    return add(0, devices, Counter())


def _room(free: Way, way: Way) -> bool:
    return all(have >= need for have, need in zip(free, way, strict=True))
