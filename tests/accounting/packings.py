"""Every packing of a small pool, by brute force: whether some order and placement of pods strands one.

Imports nothing of the scheduler. A pod is a tuple of device counts, one per kind; a gang is a list of pods.
"""

from __future__ import annotations

from typing import TypeAlias

Pod: TypeAlias = tuple[int, ...]
Gangs: TypeAlias = list[list[Pod]]
Nodes: TypeAlias = tuple[tuple[int, ...], ...]
"""Free devices of every node, per kind."""


def strands(nodes: int, devices: Pod, gangs: Gangs, *, apart: bool) -> bool:
    """Say whether some pod can find no node while others stand somewhere, however few of them do.

    With `apart`, the pods of a gang must be on distinct nodes.
    """
    pods = [(pod, number) for number, gang in enumerate(gangs) for pod in gang]
    return any(
        _stuck(pods[at], pods[:at] + pods[at + 1 :], nodes, devices, apart=apart)
        for at in range(len(pods))
        if any(pods[at][0])
    )


def _stuck(
    waiting: tuple[Pod, int], others: list[tuple[Pod, int]], nodes: int, devices: Pod, *, apart: bool
) -> bool:
    seen: set[object] = set()

    def search(at: int, free: Nodes, used: tuple[frozenset[int], ...]) -> bool:
        state = (at, tuple(sorted(zip(free, map(tuple, map(sorted, used)), strict=True))))
        if state in seen:
            return False
        seen.add(state)
        if not any(_hosts(waiting, free[n], used[n], apart=apart) for n in range(nodes)):
            return True
        if at == len(others):
            return False
        if search(at + 1, free, used):
            return True
        pod, gang = others[at]
        return any(
            search(
                at + 1,
                (*free[:n], tuple(f - p for f, p in zip(free[n], pod, strict=True)), *free[n + 1 :]),
                (*used[:n], used[n] | {gang}, *used[n + 1 :]),
            )
            for n in range(nodes)
            if _hosts(others[at], free[n], used[n], apart=apart)
        )

    return search(0, (devices,) * nodes, (frozenset(),) * nodes)


def _hosts(pod: tuple[Pod, int], free: tuple[int, ...], used: frozenset[int], *, apart: bool) -> bool:
    needs, gang = pod
    return all(f >= need for f, need in zip(free, needs, strict=True)) and not (apart and gang in used)
