"""Was a refusal needed? Every packing of the pods of a pool, tried in full.

Shares nothing with the scheduler but the reading of devices and selectors. A refusal that binds when it is
written by hand is right where some other order of starts leaves a pod without a node, or where the allocator,
on its way to a device, meets one on which a selector errs.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

from function.api.devices import Device, values_of
from function.cel import compile_device
from tests.accounting.packings import TooManyPackings, strands_one

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.accounting.packings import Pod

Plain = dict[str, Any]
STEPS = 400_000
"""States of packings that are looked at for one pool."""
NOWHERE, RIGHT, ORDER, WRONG, UNJUDGED = (
    "right: an empty node has no place for a pod",
    "right by full packing",
    "right: a selector errs on another device",
    "wrong",
    "too many packings to judge",
)


def verdict(pools: dict[str, tuple[int, Sequence[Plain]]], replicas: Sequence[Plain]) -> str:
    """Judge the refusal of the last of some replicas: pools are nodes and device entries, by name."""
    last = {pool for pool, _, _ in _pods(replicas[-1:])}
    said = [
        _of_pool(*pools[pool], [row for row in _pods(replicas) if row[0] == pool]) for pool in sorted(last)
    ]
    return next((answer for answer in (NOWHERE, RIGHT, ORDER, UNJUDGED) if answer in said), WRONG)


def _pods(replicas: Sequence[Plain]) -> list[tuple[str, Plain, int]]:
    """The pods that claim devices: their pool, their member, how many."""
    return [
        (
            member["nodePoolName"],
            member,
            (member.get("worker") or {}).get("nodes", 1) * engine.get("copies", 1),
        )
        for replica in replicas
        for engine in replica["spec"]["engines"]
        for member in engine["members"]
        if member.get("deviceRequests")
    ]


def _of_pool(nodes: int, entries: Sequence[Plain], rows: Sequence[tuple[str, Plain, int]]) -> str:
    devices = map(Device.model_validate, entries)
    claimable = [device for device in devices if device.claimable and device.count]
    pods: Counter[Pod] = Counter()
    for _, member, number in rows:
        if any(_errs(request, claimable) for request in member["deviceRequests"]):
            return ORDER
        pods[tuple(sorted(set(_ways(member, claimable))))] += number
    if () in pods:
        return NOWHERE
    kinds, counts = _kinds(pods, [device.count for device in claimable])
    try:
        return RIGHT if strands_one(nodes, counts, kinds, STEPS) else WRONG
    except TooManyPackings:
        return UNJUDGED


def _kinds(pods: Counter[Pod], counts: Sequence[int]) -> tuple[Counter[Pod], tuple[int, ...]]:
    """Leave out the devices that no pod may take: they tell no packings apart."""
    used = [at for at in range(len(counts)) if any(way[at] for pod in pods for way in pod)]
    again: Counter[Pod] = Counter()
    for pod, number in pods.items():
        again[tuple(sorted({tuple(way[at] for at in used) for way in pod}))] += number
    return again, tuple(counts[at] for at in used)


def _ways(member: Plain, devices: Sequence[Device]) -> Iterator[tuple[int, ...]]:
    """Every way to take the claimed devices of the entries of an empty node."""
    constraints = [
        (one["matchAttribute"], one.get("requests")) for one in member.get("deviceConstraints") or ()
    ]
    shared = [
        sorted({value for device in devices for value in values_of(device, attribute)})
        for attribute, _ in constraints
    ]
    for values in product(*shared):
        loads = {(0,) * len(devices)}
        for request in member["deviceRequests"]:
            needed = [
                (attribute, value)
                for (attribute, names), value in zip(constraints, values, strict=True)
                if not names or request["name"] in names
            ]
            fitting = [
                at
                for at, device in enumerate(devices)
                if _says(request, device) == "match"
                and all(value in values_of(device, attribute) for attribute, value in needed)
            ]
            loads = {
                more
                for load in loads
                for more in _taken(load, request.get("count", 1), fitting, [one.count for one in devices])
            }
        yield from loads


def _taken(
    load: tuple[int, ...], number: int, entries: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    if not entries:
        if not number:
            yield load
        return
    at, *others = entries
    for some in range(min(number, counts[at] - load[at]) + 1):
        yield from _taken((*load[:at], load[at] + some, *load[at + 1 :]), number - some, others, counts)


def _errs(request: Plain, devices: Sequence[Device]) -> bool:
    return any(_says(request, device) not in ("match", "nomatch") for device in devices)


def _says(request: Plain, device: Device) -> str:
    """Ask the selectors in their order, as the allocator does: the first that does not match decides."""
    if device.device_class_name != request["deviceClassName"]:
        return "nomatch"
    for selector in request.get("selectors", ()):
        said = _program(selector["cel"]).evaluate(device.subject).kind
        if said != "match":
            return str(said)
    return "match"


@cache
def _program(text: str) -> Any:
    return compile_device(text)
