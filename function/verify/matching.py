"""Matching, by trying everything: which assignments of a member's requests to a pool's devices there are.

Slow and obvious on purpose: the scheduler searches cleverly, and this is what tells whether it searches
right. Where there is too much to try, that is said (`TooMany`), never guessed.

First part: claims. Every request is assigned in every way to the devices of a node, the constraints are
applied, and what Kubernetes' allocator would refuse is left out for new replicas (docs/selectors.md).

Second part: packings. In a pool that is accounted by devices, a pod may be stranded although the numbers
add up, when other pods stand on every node in its way. That is tried out too, node by node.

Limits: selectors are asked by the same dialect (`function.cel`) as everybody asks them. A fault there is
found by its own tests, not here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from math import perm
from typing import Any, NamedTuple

from function.api import Device, Member, ModelReplica, Pool, StampedMember
from function.api.deployment import MatchConstraint, NodeSelector, SubRequest
from function.api.replica import StampedRequest
from function.cel import DIALECTS, CompileError, compile_device, compile_node
from function.verify.state import State, pools

LIMIT = 200_000
"""Assignments that are tried."""


class TooMany(Exception):
    """There is more to try than is reasonable."""


MOST = 32
"""Devices, and selectors of a request or constraints, that Kubernetes takes in one claim."""


def _repels(sub: SubRequest, device: Device) -> bool:
    """Tell if a device has a taint that the request does not tolerate; its effect does not matter."""
    return any(
        not any(
            (toleration.effect is None or toleration.effect == taint.effect)
            and (not toleration.key or toleration.key == taint.key)
            and (toleration.operator == "Exists" or toleration.value == taint.value)
            for toleration in sub.tolerations
        )
        for taint in device.taints
    )


class Chosen(NamedTuple):
    """One request with the devices that cover it."""

    request: str
    sub: SubRequest
    taken: tuple[tuple[int, int], ...]
    """Device entries, and how many of each."""
    device: Device
    """The first of them: all that one request claims are of one driver and class."""
    ways: int
    """In how many ways the allocator may choose among the devices of a node."""


MemberClaim = tuple[tuple[str, str, int], ...]
"""The requests of the pods' claim: name, device class, count."""


def _matches(sub: SubRequest, device: Device) -> bool:
    """Tell if the device matches as some Kubernetes release reads it; which one runs is not known here."""
    for release in DIALECTS:
        try:
            selectors = [compile_device(selector.cel, release) for selector in sub.selectors]
        except CompileError:
            continue
        if all(selector.evaluate(device.subject).kind == "match" for selector in selectors):
            return True
    return False


def _aborts(sub: SubRequest, device: Device, devices: tuple[Device, ...]) -> bool:
    """Tell whether a claim of the device's class makes the allocator ask a device that a selector errs on."""
    return device.claim == "DRA" and any(
        other.claim == "DRA"
        and other.count
        and other.device_class_name == device.device_class_name
        and all(_errs_in(release, sub, other) for release in DIALECTS)
        for other in devices
    )


def _errs_in(release: str, sub: SubRequest, device: Device) -> bool:
    """Tell whether the first selector that does not match errs."""
    try:
        selectors = [compile_device(selector.cel, release) for selector in sub.selectors]
    except CompileError:
        return True
    kinds = (selector.evaluate(device.subject).kind for selector in selectors)
    return next((kind for kind in kinds if kind != "match"), "match") not in ("match", "nomatch")


def values_of(device: Device, attribute: str) -> set[tuple[str, str]]:
    """The values of an attribute, by its qualified name or, in the driver's own domain, the short one."""
    domain, _, short = attribute.rpartition("/")
    held = device.attributes.get(attribute)
    if held is None and domain in ("", device.driver):
        held = device.attributes.get(short)
    if held is None:
        return set()
    (kind, value), *_ = held.items()
    if kind == "list":
        (kind, values), *_ = value.items()
        return {(kind, str(value)) for value in values}
    return {(kind, str(value))}


def _agree(
    constraints: tuple[MatchConstraint, ...], chosen: tuple[Chosen, ...], devices: tuple[Device, ...]
) -> bool:
    """Tell whether the devices that each constraint is about have a value of its attribute in common."""
    for constraint in constraints:
        among = [
            devices[entry]
            for choice in chosen
            for entry, _ in choice.taken
            if not constraint.requests or choice.request in constraint.requests
        ]
        common: set[Any] | None = None
        for device in among:
            values = values_of(device, constraint.match_attribute)
            common = values if common is None else common & values
        if common is not None and not common:
            return False
    return True


def _choices(name: str, sub: SubRequest, devices: tuple[Device, ...], *, new: bool) -> Iterator[Chosen]:
    """Every choice of devices for one way of a request: of one entry, or of several that one claim binds."""
    matching = [
        at
        for at, device in enumerate(devices)
        if _matches(sub, device) and not (new and _repels(sub, device))
    ]
    # One claim may bind several entries, but of one driver and one class only.
    for at in matching:
        device = devices[at]
        same = (device.driver, device.device_class_name)
        group = [
            other
            for other in matching
            if devices[other].claim == device.claim == "DRA"
            and (devices[other].driver, devices[other].device_class_name) == same
        ]
        # What Kubernetes refuses of a claim, or aborts on, gates new placements only (Law 2, mismatched).
        large = sub.count > MOST or len(sub.selectors) + len(sub.claim_selectors) > MOST
        if new and device.claim == "DRA" and (large or _aborts(sub, device, devices)):
            continue
        ways = perm(max(sub.count, sum(devices[other].count for other in group)), sub.count)
        if sub.count <= device.count:
            yield Chosen(name, sub, ((at, sub.count),), device, ways)
        for numbers in _dealt(sub.count, [devices[other].count for other in group]):
            taken = tuple((entry, number) for entry, number in zip(group, numbers, strict=True) if number)
            if len(taken) > 1 and taken[0][0] == at:
                yield Chosen(name, sub, taken, device, ways)


def _dealt(number: int, most: list[int]) -> Iterator[tuple[int, ...]]:
    """Every way to take so many devices from entries that have so many."""
    if not most:
        yield from () if number else ((),)
        return
    for taken in range(max(0, number - sum(most[1:])), min(number, most[0]) + 1):
        for rest in _dealt(number - taken, most[1:]):
            yield (taken, *rest)


def assignments(member: Member, pool: Pool, *, new: bool) -> Iterator[tuple[Chosen, ...]]:
    """Every assignment of the member's requests to the pool's devices. Raises TooMany.

    What Kubernetes would not allocate is left out for what is `new`: a running replica has its claim.
    """
    devices = pool.devices or ()
    options, tried = [], 1
    for request in member.requests:
        ways = (choice for sub in request.ranked for choice in _choices(request.name, sub, devices, new=new))
        options.append(list(islice(ways, LIMIT + 1)))
        tried *= len(options[-1])
        if tried > LIMIT:
            raise TooMany
    # Every request at once: a device serves one of them, and constraints are about several.
    for chosen in product(*options):
        taken, claimed = [0] * len(devices), 0
        for choice in chosen:
            claimed += choice.sub.count * (choice.device.claim == "DRA")
            for entry, number in choice.taken:
                taken[entry] += number
        fits = all(count <= device.count for count, device in zip(taken, devices, strict=True))
        large = new and (claimed > MOST or (claimed and len(member.constraints) > MOST))
        if fits and not large and _agree(member.constraints, chosen, devices):
            yield chosen


class Matching(dict[tuple[NodeSelector | None, Pool, bool], frozenset[MemberClaim]]):
    """Remembers what was tried, for one check: the roles of most gangs ask for the same.

    A memo of another check could be of another fleet.
    """

    def claims(self, member: Member, pool: Pool, *, new: bool = True) -> frozenset[MemberClaim]:
        """Return every claim that the member could be stamped with there. Raises TooMany."""
        key = (member.node_selector, pool, new)
        if key not in self:
            try:
                outcomes = [
                    compile_node(selector.cel).evaluate(pool.node)
                    for selector in member.node_selector.selectors
                ]
            except CompileError:
                return self.setdefault(key, frozenset())
            claims = set()
            if all(outcome.kind == "match" for outcome in outcomes):
                for chosen in assignments(member, pool, new=new):
                    # The request with the fewest ways comes first, as the allocator takes them in order.
                    claimed = [choice for choice in chosen if choice.device.claim == "DRA"]
                    claimed.sort(key=lambda choice: choice.ways)
                    claims.add(
                        tuple((one.request, one.device.device_class_name, one.sub.count) for one in claimed)
                    )
            self[key] = frozenset(claims)
        return self[key]

    def claimable(self, member: Member, pool: Pool) -> bool:
        """Tell whether the member could bind a device there. Raises TooMany."""
        return any(self.claims(member, pool))


# Check pools accounted by devices: whether some packing could strand a pod, by trying packings.
#
# The scheduler bounds the worst packing. Here the promise itself is tried: one node after the other is
# loaded with other pods so that it has no room for one more, in every way, until all nodes are, or none is
# left that could be. Only what is proven is said: pools with too many different pods to try are passed
# over.

TRIES = 60_000
"""Pods put on a node, in all that is tried for one pool."""
WAYS = 200
"""Ways to serve one pod that are tried."""

Way = tuple[int, ...]
"""Devices of each entry."""
Pod = tuple[Way, ...]
"""Every way in which a pod may be served, sorted."""


class GaveUp(Exception):
    """There is more to try than is reasonable."""


def _entries(request: StampedRequest, devices: Sequence[Device]) -> list[int]:
    """Return the entries that a request can bind: all of its class where its selectors match none."""
    of_class = [at for at, device in enumerate(devices) if device.device_class_name == request.device_class]
    try:
        programs = [compile_device(selector) for selector in request.selectors]
    except CompileError:
        return of_class
    return [
        at
        for at in of_class
        if all(program.evaluate(devices[at].subject).kind == "match" for program in programs)
    ] or of_class


def _shares(number: int, entries: Sequence[int], devices: Sequence[Device]) -> Iterator[dict[int, int]]:
    """Every way to take so many devices of some entries."""
    if not entries:
        if not number:
            yield {}
        return
    at, *others = entries
    for taken in range(min(number, devices[at].count) + 1):
        for rest in _shares(number - taken, others, devices):
            yield {**rest, at: taken} if taken else rest


def ways_of(member: StampedMember, devices: Sequence[Device]) -> Pod:
    """Every way to serve a pod of a member on an empty node. Raises GaveUp."""
    options = []
    for request in member.requests:
        shares: list[dict[int, int]] = []
        for share in _shares(request.count, _entries(request, devices), devices):
            shares.append(share)
            if len(shares) > WAYS:
                raise GaveUp
        options.append(shares)
    ways: set[Way] = set()
    for tried, chosen in enumerate(product(*options)):
        if tried > WAYS * WAYS:
            raise GaveUp
        held = Counter[int]()
        for share in chosen:
            held.update(share)
        if all(held[at] <= device.count for at, device in enumerate(devices)) and _share_values(
            member, chosen, devices
        ):
            ways.add(tuple(held[at] for at in range(len(devices))))
    if len(ways) > WAYS:
        raise GaveUp
    return tuple(sorted(ways))


def _share_values(member: StampedMember, chosen: Sequence[dict[int, int]], devices: Sequence[Device]) -> bool:
    """Tell whether the devices of all constrained requests have a value in common."""
    for constraint in member.constraints:
        bound = {
            at
            for request, share in zip(member.requests, chosen, strict=True)
            for at in share
            if not constraint.requests or request.name in constraint.requests
        }
        if bound and not set.intersection(*(values_of(devices[at], constraint.attribute) for at in bound)):
            return False
    return True


class PlacedPod(NamedTuple):
    """One of a pool's pods: how it may be served, and the pods that it may share no node with."""

    ways: Pod
    engine: tuple[str, ...] = ()
    """The engine whose pods all stand on different nodes; empty where they need not."""


def pods_on(pool: Pool, devices: Sequence[Device], replicas: Iterable[ModelReplica]) -> Counter[PlacedPod]:
    """Every pod that replicas of a cluster have on one of its pools. Raises GaveUp."""
    pods: Counter[PlacedPod] = Counter()
    for replica in replicas:
        for engine in replica.engines:
            apart = (replica.namespace, replica.name, engine.name) if pool.across_nodes else ()
            for member in engine.members:
                if member.requests and member.pool == pool.name:
                    pods[PlacedPod(ways_of(member, devices), apart)] += member.pods * engine.copies
    return pods


class _Packings:
    """Every packing of some pods that leaves none of so many nodes open to one more."""

    def __init__(self, pod: PlacedPod, others: Sequence[PlacedPod], devices: Way) -> None:
        """`devices`: how many each entry of a node has; `tries` is shared by all that is tried."""
        self._pod, self._others, self._devices = pod, others, devices
        self._best: dict[tuple[tuple[int, ...], int], int] = {}
        self.tries = TRIES

    def most(self, counts: tuple[int, ...], nodes: int) -> int:
        """How many of so many nodes these pods can close at most. Raises GaveUp.

        Nodes are alike, so what counts is how many are left and which pods: that is what is remembered.
        """
        if not nodes:
            return 0
        if (counts, nodes) not in self._best:
            best = 0
            for left in self._close(0, counts, (0,) * len(self._devices), ()):
                best = max(best, 1 + self.most(left, nodes - 1))
                if best >= nodes:
                    return best
            self._best[counts, nodes] = best
        return self._best[counts, nodes]

    def _close(
        self, first: int, counts: tuple[int, ...], load: Way, engines: tuple[tuple[str, ...], ...]
    ) -> Iterator[tuple[int, ...]]:
        """Load one node until the pod has no room there; what is left each time. Raises GaveUp."""
        if self._pod.engine in engines or not any(self._adds(load, way) for way in self._pod.ways):
            yield counts
            return
        for at in range(first, len(self._others)):
            other = self._others[at]
            for way in other.ways if counts[at] and other.engine not in engines else ():
                self.tries -= 1
                if self.tries < 0:
                    raise GaveUp
                more = self._adds(load, way)
                if more:
                    left = (*counts[:at], counts[at] - 1, *counts[at + 1 :])
                    apart = (*engines, other.engine) if other.engine else engines
                    yield from self._close(at, left, more, apart)

    def _adds(self, load: Way, way: Way) -> Way | None:
        """The load with a pod more; None where it has no room."""
        more = tuple(held + taken for held, taken in zip(load, way, strict=True))
        return more if all(have <= most for have, most in zip(more, self._devices, strict=True)) else None


def stranded(pool: Pool, replicas: Iterable[ModelReplica]) -> str:
    """Say which pods could be stranded by the worst packing; empty when none can be, as far as was tried."""
    devices = [device for device in pool.devices or () if device.claim == "DRA"]
    counts = tuple(device.count for device in devices)
    try:
        pods = pods_on(pool, devices, replicas)
        for pod in sorted(pods):
            others = pods - Counter([pod])
            # Large pods first: they close a node soonest.
            kinds = sorted(
                (other for other in others if other.ways), key=lambda other: -max(map(sum, other.ways))
            )
            packings = _Packings(pod, kinds, counts)
            if not pod.ways or packings.most(tuple(others[kind] for kind in kinds), pool.nodes) < pool.nodes:
                continue
            taken = zip(pod.ways[0], devices, strict=True)
            text = " and ".join(f"{number} {one.name or one.driver}" for number, one in taken if number)
            return f"a pod of {text} may find 0 of {pool.nodes} nodes open"
    except GaveUp:
        return ""
    return ""


def strandings(
    state: State, replicas: Sequence[ModelReplica], *, usable: bool = False
) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield pools accounted by devices in which the worst packing could strand a pod, with the numbers."""
    for (cluster, name), pool in pools(state, usable=usable).items():
        if pool.accounting == "Device":
            text = stranded(pool, [replica for replica in replicas if replica.cluster == cluster])
            if text:
                yield (cluster, name), text
