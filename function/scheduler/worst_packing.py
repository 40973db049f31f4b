"""The worst packing: on how many nodes other pods can stand in the way of one pod, all at once.

Rules
1. Pods start and restart in any order, each on any node with room for it. The workload cluster decides that,
   and nothing here sees it. A pod is safe when it finds a node wherever the others are, all or some of them.
2. What is answered is never too low: where the steps run out, the others block as many nodes as a bound
   allows. So a pod that is called safe is safe.

Theory of operation
A pool has equal nodes with devices of some kinds. A pod takes devices in one of its ways (`Footprint`): a way
is a number for each kind. Pods that stand on one node together and leave a pod no way are a *bundle*. Nodes
are equal and some pods may be missing, so the others can block k nodes exactly when k disjoint bundles can be
made of them. Only minimal bundles matter, those without a pod to spare. That is a packing problem, and it is
settled by the first of these that can:

- Count. Every bundle has a pod in it, so pods block no more nodes than there are pods. Device accounting is
  therefore never stricter than counting a node for each pod.
- Add up. For a pod that needs s of D devices of a kind, a node is blocked when t = D - s + 1 are taken. A pod
  of that size blocks one alone; smaller ones block at most floor(their sum / t') nodes, t' being t rounded up
  to a multiple of their greatest common divisor. The kinds are added: a node may be blocked by any of them.
- Load. On a blocked node each way lacks a kind. The fewest devices that do that are listed way by way; pods
  that take n devices together block at most n over that number. It tells most where a pod has many ways.
- Weigh. Give each pod a weight so that every bundle weighs at least 1: then there are no more bundles than
  all pods weigh. The best weights are the dual values of a linear program with a row for each footprint and a
  column for each bundle; it is solved in whole numbers.
- Search. Take bundles one after the other, and turn back where the weight of what is left is too little.

The first three need no bundles. With many sizes on many devices there are too many to list; then these are
the answer. Steps are counted, so the answer depends on the pods and nothing else. All that is looked at is
taken from the caller's budget; where that ends there is no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import gcd
from typing import NamedTuple, TypeAlias

from function.scheduler.budget import Budget, OutOfSteps, TooManyCases

NodeLoad: TypeAlias = tuple[int, ...]
"""Devices of each kind."""
Counts: TypeAlias = tuple[int, ...]
"""Pods of each footprint."""

MAX_LISTED = 300
"""Bundles that are listed for one pod: pods of 1, 2, 3 and 14 of 28 devices make 227."""
LISTING_STEPS, WEIGHING_STEPS, SEARCH_STEPS = 2_000, 60_000, 1_000
"""Steps of listing bundles, of finding the weights (entries of tables), and of the search."""


class Footprint(NamedTuple):
    """The devices that one pod takes of a node."""

    ways: tuple[NodeLoad, ...]
    """Each way in which it may be served. Empty: not known, and then it is taken to fill a node."""
    needs: tuple[NodeLoad, ...]
    """Ways of which each surely serves it. None: no node would host it, so nothing is kept free for it."""


class Weights(NamedTuple):
    """A weight for a pod of each footprint, so that no bundle weighs less than the unit."""

    weights: Counts
    unit: int

    def of(self, counts: Counts) -> int:
        """Return the weight of some pods together."""
        return sum(weight * number for weight, number in zip(self.weights, counts, strict=True))


def can_block(
    nodes: int, pod: Footprint, others: Mapping[Footprint, int], devices: NodeLoad, budget: Budget
) -> bool:
    """Tell whether others, of each one or more, can block so many nodes for a pod at once.

    Raises TooManyCases where the bundles are too many, and OutOfSteps where the budget has fewer units than
    are looked at.
    """
    budget.spend(len(devices) * len(pod.needs) * sum(1 + len(other.ways) for other in others))
    alone, small = 0, {}
    for other, number in others.items():
        if not other.ways or any(_blocks(way, pod, devices) for way in other.ways):
            alone += number
        elif any(_meets(way, pod) for way in other.ways):
            small[other] = number
    missing = nodes - alone
    if missing <= 0:
        return True
    if sum(small.values()) < missing:
        return False
    # The floors of the kinds, for the pod's best way: small pods block no more nodes than these allow.
    floors = min(
        sum(
            _floor(most - need + 1, [[way[at] for way in other.ways] for other in small], small.values())
            for at, (need, most) in enumerate(zip(way, devices, strict=True))
            if need
        )
        for way in pod.needs
    )
    if floors < missing or _loaded(pod, small, devices, budget) < missing:
        return False
    kinds = tuple(sorted(small))
    counts = tuple(small[kind] for kind in kinds)
    # More pods of a kind than a node has devices are never on one node.
    limits, units = tuple(min(count, sum(devices)) for count in counts), len(devices) * len(pod.needs)
    affordable = min(LISTING_STEPS, budget.units // units)
    if affordable < LISTING_STEPS:  # A power of two, so that what is listed is remembered nevertheless.
        affordable = 1 << affordable.bit_length() >> 1
    bundles, steps = _bundles(pod, kinds, limits, devices, affordable)
    budget.spend(steps * units)
    if bundles is None and steps >= affordable < LISTING_STEPS:
        raise OutOfSteps
    if bundles is None:
        raise TooManyCases
    return _disjoint(bundles, counts, missing, budget)


def _blocks(load: NodeLoad, pod: Footprint, devices: NodeLoad) -> bool:
    """Tell whether a node with this load has no way left for a pod."""
    return all(
        any(need and taken + need > most for taken, need, most in zip(load, way, devices, strict=True))
        for way in pod.needs
    )


def _meets(way: NodeLoad, pod: Footprint) -> bool:
    """Tell whether it takes a kind of devices that a pod needs."""
    return any(taken and need for needs in pod.needs for taken, need in zip(way, needs, strict=True))


def _loaded(pod: Footprint, small: Mapping[Footprint, int], devices: NodeLoad, budget: Budget) -> int:
    """How many nodes small pods can block at most: the devices they take, over those of the least load."""
    needed = [at for at in range(len(devices)) if any(way[at] for way in pod.needs)]
    taken = [sum(max(way[at] for way in other.ways) * small[other] for other in small) for at in needed]
    together = sum(max(sum(way[at] for at in needed) for way in other.ways) * small[other] for other in small)
    most = tuple(min(number, devices[at]) for number, at in zip(taken, needed, strict=True))
    ways = tuple(tuple(way[at] for at in needed) for way in pod.needs)
    return together // _least_load(ways, most, tuple(devices[at] for at in needed), budget)


def _least_load(needs: tuple[NodeLoad, ...], taken: NodeLoad, devices: NodeLoad, budget: Budget) -> int:
    """How many devices are taken at least on a node that leaves a pod no way: one or more.

    `taken`: so many of each kind are taken at most. They bar each way, or the floors would have settled it.
    """
    loads = {(0,) * len(devices)}
    for way in needs:
        budget.spend(len(loads) * len(devices))
        loads = {more for load in loads for more in _barring(way, load, taken, devices)}
        if len(loads) > MAX_LISTED:
            return 1
    return min(map(sum, loads))


def _barring(way: NodeLoad, load: NodeLoad, taken: NodeLoad, devices: NodeLoad) -> Iterator[NodeLoad]:
    """Extend a load until it leaves a way no room, by devices of one kind."""
    enough = [most - need + 1 for need, most in zip(way, devices, strict=True)]
    if any(map(int.__ge__, load, enough)):
        yield load
        return
    for at, number in enumerate(enough):
        if number <= taken[at]:
            yield (*load[:at], number, *load[at + 1 :])


def _floor(limit: int, sizes: Sequence[Sequence[int]], numbers: Iterable[int]) -> int:
    """How many nodes pods of these sizes can fill to a limit of one kind, if they could be cut at will.

    All sizes are multiples of their divisor, so no node is filled with less than the limit rounded up to one.
    """
    total, divisor = 0, 0
    for of_pod, number in zip(sizes, numbers, strict=True):
        different = set(of_pod)
        total += max(different) * number
        divisor = gcd(divisor, *different)
    return total // (-(-limit // divisor) * divisor) if total else 0


@lru_cache(maxsize=1024)
def _bundles(
    pod: Footprint, kinds: tuple[Footprint, ...], counts: Counts, devices: NodeLoad, limit: int
) -> tuple[tuple[Counts, ...] | None, int]:
    """List the minimal bundles for a pod that can be made of others; None when there are too many.

    With the steps that it took, at most `limit`; they count again when the list is remembered.
    """
    variants = [(at, way) for at, kind in enumerate(kinds) for way in kind.ways if _meets(way, pod)]
    listed: set[Counts] = set()
    steps = limit

    def add(first: int, load: NodeLoad, taken: Counts, ways: tuple[NodeLoad, ...]) -> bool:
        """Put further pods on the node, in the order of the variants; False when there are too many."""
        nonlocal steps
        for number in range(first, len(variants)):
            steps -= 1
            at, way = variants[number]
            more = tuple(map(int.__add__, load, way))
            if taken[at] == counts[at] or not all(map(int.__le__, more, devices)):
                continue
            both = (*taken[:at], taken[at] + 1, *taken[at + 1 :])
            if not _blocks(more, pod, devices):
                add(number, more, both, (*ways, way))
            elif not any(_blocks(tuple(map(int.__sub__, more, one)), pod, devices) for one in set(ways)):
                listed.add(both)
            if steps <= 0 or len(listed) > MAX_LISTED:
                return False
        return True

    complete = add(0, (0,) * len(devices), (0,) * len(kinds), ())
    return tuple(sorted(listed)) if complete else None, limit - steps


def _disjoint(bundles: Sequence[Counts], counts: Counts, wanted: int, budget: Budget) -> bool:
    """Tell whether so many disjoint bundles can be made of some pods. Raises as `can_block`."""
    weighed = _weigh(bundles, counts, budget)
    if weighed.of(counts) < wanted * weighed.unit:
        return False
    # As many bundles as the weights allow are of no more kinds than there are pods: rounded down, one of each
    # kind is lost at most.
    if weighed.of(counts) >= (wanted + len(counts)) * weighed.unit:
        return True
    lightest = sorted((weighed.of(bundle), bundle) for bundle in bundles)
    dead: set[tuple[int, Counts]] = set()
    steps = SEARCH_STEPS

    def make(at: int, left: Counts, wanted: int) -> bool:
        """Make bundles of what is left, of none before `at`: those that are left weigh as much or more."""
        nonlocal steps
        steps -= 1
        budget.spend(len(left))
        if not wanted:
            return True
        if steps < 0:
            raise TooManyCases
        if at == len(lightest) or weighed.of(left) < wanted * lightest[at][0] or (at, left) in dead:
            return False
        bundle = lightest[at][1]
        most = min(wanted, *(have // takes for have, takes in zip(left, bundle, strict=True) if takes))
        for times in range(most, -1, -1):
            rest = tuple(have - times * takes for have, takes in zip(left, bundle, strict=True))
            if make(at + 1, rest, wanted - times):
                return True
        dead.add((at, left))
        return False

    return make(0, counts, wanted)


def _weigh(bundles: Sequence[Counts], counts: Counts, budget: Budget) -> Weights:
    """Find the weights by which pods weigh least: the simplex method, in whole numbers.

    It starts with no bundle and makes more of that which gains most. All entries have one denominator, the
    pivot before, so every division is exact. Raises as `can_block`.
    """
    rows, columns = len(counts), len(bundles)
    budget.spend(rows * columns)
    table = [
        [*(bundle[row] for bundle in bundles), *(int(row == at) for at in range(rows)), counts[row]]
        for row in range(rows)
    ]
    table.append([*[-1] * columns, *[0] * rows, 0])
    basis, unit = list(range(columns, columns + rows)), 1
    for _ in range(WEIGHING_STEPS // ((rows + 1) * (columns + rows + 1))):
        gains = table[-1][:-1]
        entering = gains.index(min(gains))
        if gains[entering] >= 0:
            return Weights(tuple(table[-1][columns:-1]), unit)
        candidates = [row for row in range(rows) if table[row][entering] > 0]
        leaving = candidates[0]
        for row in candidates[1:]:
            left = table[row][-1] * table[leaving][entering]
            right = table[leaving][-1] * table[row][entering]
            if left < right or (left == right and basis[row] < basis[leaving]):
                leaving = row
        budget.spend((rows + 1) * (columns + rows + 1) // 4)  # Whole rows are made at once.
        pivot, pivots = table[leaving][entering], table[leaving]
        for row, entries in enumerate(table):
            if row != leaving:
                table[row] = [
                    (entry * pivot - entries[entering] * other) // unit
                    for entry, other in zip(entries, pivots, strict=True)
                ]
        basis[leaving], unit = entering, pivot
    raise TooManyCases
