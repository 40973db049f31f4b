"""Matching, by trying everything: which assignments of a member's requests to a pool's devices there are.

Slow and obvious on purpose. Where there is too much to try, that is said (`TooMany`), never guessed.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import islice, product
from math import perm
from typing import TYPE_CHECKING, Any, NamedTuple

from function.cel import DIALECTS, CompileError, compile_device, compile_node
from function.verify.state import pools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from function.api import Device, Member, ModelReplica, Pool
    from function.api.engine import MatchConstraint, NodeSelector, SubRequest
    from function.verify.state import State


# Check pools accounted by devices: whether the worst packing could strand a pod, by trying packings.
#
# The scheduler bounds the worst packing with a formula. Here the promise itself is tried: however the other
# pods stand on the nodes, a gang of k pods must find k nodes with enough devices left.

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


LIMIT = 200_000
"""Assignments that are tried."""


class TooMany(Exception):
    """There is more to try than is reasonable."""


MOST = 32
"""Devices, and selectors of a request or constraints, that Kubernetes takes in one claim."""


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
"""What becomes the pods' claim: request, device class, count."""


def _matches(sub: SubRequest, device: Device) -> bool:
    """Whether the device matches as some Kubernetes release reads it; which one runs is not known here."""
    return any(_matches_in(release, sub, device) for release in DIALECTS)


def _matches_in(release: str, sub: SubRequest, device: Device) -> bool:
    try:
        selectors = [compile_device(selector.cel, release) for selector in sub.selectors]
    except CompileError:
        return False
    return all(selector.evaluate(device.subject).kind == "match" for selector in selectors)


def _aborts(sub: SubRequest, device: Device, devices: tuple[Device, ...]) -> bool:
    """Whether a claim of the device's class makes the allocator ask a device that a selector errs on."""
    return device.claim == "DRA" and any(
        other.claim == "DRA"
        and other.count
        and other.device_class_name == device.device_class_name
        and all(_errs_in(release, sub, other) for release in DIALECTS)
        for other in devices
    )


def _errs_in(release: str, sub: SubRequest, device: Device) -> bool:
    """Whether the first selector that does not match errs."""
    try:
        selectors = [compile_device(selector.cel, release) for selector in sub.selectors]
    except CompileError:
        return True
    kinds = (selector.evaluate(device.subject).kind for selector in selectors)
    return next((kind for kind in kinds if kind != "match"), "match") not in ("match", "nomatch")


def _values(device: Device, attribute: str) -> set[tuple[str, str]]:
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
    for constraint in constraints:
        among = [
            devices[entry]
            for choice in chosen
            for entry, _ in choice.taken
            if not constraint.requests or choice.request in constraint.requests
        ]
        common: set[Any] | None = None
        for device in among:
            values = _values(device, constraint.match_attribute)
            common = values if common is None else common & values
        if common is not None and not common:
            return False
    return True


def _choices(name: str, sub: SubRequest, devices: tuple[Device, ...], *, new: bool) -> Iterator[Chosen]:
    """Every choice of devices for one way of a request: of one entry, or of several that one claim binds."""
    matching = [at for at, device in enumerate(devices) if _matches(sub, device)]
    for at in matching:
        device = devices[at]
        same = (device.driver, device.device_class_name)
        group = [
            other
            for other in matching
            if devices[other].claim == device.claim == "DRA"
            and (devices[other].driver, devices[other].device_class_name) == same
        ]
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
    constraints = member.node_selector.constraints if member.node_selector else ()
    for chosen in product(*options):
        taken, claimed = [0] * len(devices), 0
        for choice in chosen:
            claimed += choice.sub.count * (choice.device.claim == "DRA")
            for entry, number in choice.taken:
                taken[entry] += number
        fits = all(count <= device.count for count, device in zip(taken, devices, strict=True))
        large = new and (claimed > MOST or (claimed and len(constraints) > MOST))
        if fits and not large and _agree(constraints, chosen, devices):
            yield chosen


def node_matches(member: Member, pool: Pool) -> bool:
    """Whether the pool itself is what the member asks for."""
    selectors = member.node_selector.selectors if member.node_selector else ()
    try:
        return all(compile_node(selector.cel).evaluate(pool.node).kind == "match" for selector in selectors)
    except CompileError:
        return False


def claim_of(chosen: tuple[Chosen, ...]) -> MemberClaim:
    """What an assignment claims through DRA, the request with the fewest ways first."""
    claimed = [choice for choice in chosen if choice.device.claim == "DRA"]
    return tuple(
        (choice.request, choice.device.device_class_name, choice.sub.count)
        for choice in sorted(claimed, key=lambda choice: choice.ways)
    )


class Matching:
    """Remembers what was tried, for one check: the roles of most gangs ask for the same."""

    def __init__(self) -> None:
        self._claims: dict[tuple[NodeSelector | None, Pool, bool], frozenset[MemberClaim]] = {}

    def claims(self, member: Member, pool: Pool, *, new: bool = True) -> frozenset[MemberClaim]:
        """Every claim the member could be stamped with on the pool; empty: no match. Raises TooMany."""
        key = (member.node_selector, pool, new)
        if key not in self._claims:
            every = assignments(member, pool, new=new) if node_matches(member, pool) else ()
            self._claims[key] = frozenset(map(claim_of, every))
        return self._claims[key]

    def claimable(self, member: Member, pool: Pool) -> bool:
        """Whether the member could bind a device there. Raises TooMany."""
        return any(self.claims(member, pool))
