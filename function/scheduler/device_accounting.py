"""Device accounting: pods share nodes, and still nothing can be stranded, however the cluster packs them.

Rules. What decides whether a pool admits pods must live here; the mathematics is in `worst_packing`.
1. A set of pods is admitted when each of them finds a node wherever all the others are: pods restart in any
   order. A pod whose gang must be on k nodes of its own needs k of them, against the pods outside its gang.
2. A pod may bind any device that its claim selects. Which entries of the pool those are is found out with
   the selectors and the constraints that are stamped on it, where its class has several entries there.
3. What cannot be told is counted against the set. A selector that gives no answer may select the entry, and
   may not; so may an entry with a taint be held, by a pod that began before it or tolerates it. A claim that
   no entry satisfies may hold any device of its class; a claim of a class that the pool does not publish
   fills a node. None counts for more than the node that it would hold otherwise.

Theory of operation
A claim names so many devices of a class; its selectors say of which entries (`ClaimPart`). A constraint
leaves several ways to choose them, one for each value that the devices may share (`Binding`). Entries that
every pod of the pool can bind alike are one kind. So each pod becomes a `Footprint` on a few kinds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import NamedTuple, TypeAlias

from function.api.cluster import Pool
from function.api.devices import Device, values_of
from function.api.replica import StampedConstraint, StampedEngine, StampedRequest
from function.cel.selector import compile_device
from function.cel.values import CompileError
from function.scheduler.worst_packing import Footprint, NodeLoad, can_block

MAX_WAYS = 24
"""Ways in which one pod may be served that are told apart. Beyond, it is taken to fill a node."""
MAX_LENGTH, MAX_UNITS = 4_096, 128
"""Characters of a pod's selectors, and units of an evaluation: beyond, there is no answer."""


class Claim(NamedTuple):
    """One claimed request of a pod."""

    device_class: str
    number: int
    selectors: tuple[str, ...] = ()


class SharedValue(NamedTuple):
    """One attribute that the devices of some claims of a pod must have in common."""

    attribute: str
    claims: tuple[int, ...]
    """Their positions."""


class PodClaims(NamedTuple):
    """The claims of one pod. Equal claims can bind the same devices."""

    claims: tuple[Claim, ...]
    """Sorted."""
    shared: tuple[SharedValue, ...] = ()

    @classmethod
    def of(cls, requests: Iterable[StampedRequest], constraints: Iterable[StampedConstraint]) -> PodClaims:
        """Return what is claimed by requests as they are stamped on a replica."""
        claims = sorted((Claim(r.device_class, r.count, r.selectors), r.name) for r in requests)
        shared = set()
        for attribute, names in ((constraint.attribute, constraint.requests) for constraint in constraints):
            named = tuple(at for at, (_, name) in enumerate(claims) if not names or name in names)
            if named:
                shared.add(SharedValue(attribute, named))
        return cls(tuple(claim for claim, _ in claims), tuple(sorted(shared)))


class Pods(NamedTuple):
    """Equal pods of one gang."""

    claims: PodClaims
    number: int


Gang: TypeAlias = tuple[Pods, ...]
"""Pods with devices in one pool that must be on different nodes, sorted. Most pods are alone in theirs."""


class Copies(NamedTuple):
    """Equal gangs. A difference of two holds negative numbers."""

    gang: Gang
    number: int


Gangs: TypeAlias = tuple[Copies, ...]
"""Different gangs and how many there are of each, sorted."""


class Demand(NamedTuple):
    """The demand on one pool: nodes, and the pods themselves where devices are charged."""

    nodes: int
    gangs: Gangs = ()


class Shortage(NamedTuple):
    """Nodes that are needed, and those that are free."""

    needs: int
    free: int

    @property
    def missing(self) -> int:
        """How many more nodes it would take."""
        return self.needs - self.free


def gangs_of(pods: Iterable[Pods], copies: int, *, apart: bool) -> Gangs:
    """Return the pods of an engine in one pool: one gang of all copies where they must be `apart`."""
    claiming = [item for item in pods if item.claims.claims]
    if not apart:
        return total([(Copies((Pods(item.claims, 1),), item.number * copies),) for item in claiming])
    counted: dict[PodClaims, int] = defaultdict(int)
    for item in claiming:
        counted[item.claims] += item.number * copies
    gang = tuple(Pods(*entry) for entry in sorted(counted.items()))
    return (Copies(gang, 1),) if gang else ()


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


def stamped_gangs(engines: Iterable[StampedEngine], *, apart: Collection[str] = ()) -> dict[str, Gangs]:
    """The gangs of an existing replica, by pool. `apart`: the pools on which pods do not share nodes."""
    parts: dict[str, list[Gangs]] = {}
    for engine in engines:
        for pool in dict.fromkeys(member.pool for member in engine.members):
            pods = [
                Pods(PodClaims.of(member.requests, member.constraints), member.pods)
                for member in engine.members
                if member.pool == pool
            ]
            parts.setdefault(pool, []).append(gangs_of(pods, engine.copies, apart=pool in apart))
    return {pool: added for pool, gangs in parts.items() if (added := total(gangs))}


class ClaimPart(NamedTuple):
    """So many devices of some entries, by their positions."""

    entries: tuple[int, ...]
    number: int


Binding: TypeAlias = tuple[ClaimPart, ...]
"""One way to bind what a pod claims: a part for each claim."""


class Bindings(NamedTuple):
    """Every way to bind what a pod claims."""

    possible: tuple[Binding, ...]
    """None: it claims a class that the node does not have."""
    certain: bool
    """Whether each of them is known to be one, and not only possible."""


class PoolDevices:
    """The devices of a pool's nodes, and how pods lie on them: found out once while a ledger is open."""

    def __init__(self, pool: Pool) -> None:
        """Take a pool; only what a claim can bind is looked at."""
        self._key = pool.device_key
        self.entries = tuple(device for device in pool.devices or () if device.claimable and device.count)
        self._bindings: dict[PodClaims, Bindings] = {}
        self._layouts: dict[frozenset[PodClaims], PodLayout] = {}

    def __eq__(self, other: object) -> bool:
        """Tell whether pods lie on both alike."""
        return isinstance(other, PoolDevices) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def layout(self, pods: frozenset[PodClaims]) -> PodLayout:
        """Lay some pods on the node."""
        layout = self._layouts.get(pods)
        if layout is None:
            layout = self._layouts[pods] = PodLayout(self.entries, {pod: self.bindings(pod) for pod in pods})
        return layout

    def bindings(self, pod: PodClaims) -> Bindings:
        """Find out which devices of the node a pod can bind."""
        bindings = self._bindings.get(pod)
        if bindings is None:
            bindings = self._bindings[pod] = self._bind(pod)
        return bindings

    def _bind(self, pod: PodClaims) -> Bindings:
        of_class = [
            tuple(
                at for at, entry in enumerate(self.entries) if entry.device_class_name == claim.device_class
            )
            for claim in pod.claims
        ]
        if not all(of_class):
            return Bindings((), certain=False)
        anything = tuple(
            ClaimPart(entries, claim.number) for entries, claim in zip(of_class, pod.claims, strict=True)
        )
        if all(len(entries) == 1 for entries in of_class):
            return Bindings((anything,), certain=True)
        if sum(len(selector) for claim in pod.claims for selector in claim.selectors) > MAX_LENGTH:
            return Bindings((anything,), certain=False)
        answers = [
            {at: len(entries) == 1 or self._selects(claim, self.entries[at]) for at in entries}
            for entries, claim in zip(of_class, pod.claims, strict=True)
        ]
        selected = [[at for at, answer in row.items() if answer is not False] for row in answers]
        possible = tuple(islice(self._choices(pod, selected), MAX_WAYS + 1))
        if not possible or len(possible) > MAX_WAYS:
            return Bindings((anything,), certain=False)
        return Bindings(possible, certain=not any(None in row.values() for row in answers))

    @staticmethod
    def _selects(claim: Claim, device: Device) -> bool | None:
        """Ask the selectors of a claim in order, as Kubernetes does; None: it may be bound, and may not."""
        for selector in claim.selectors:
            try:
                outcome = compile_device(selector).evaluate(device.subject, MAX_UNITS)
            except CompileError:
                return None
            if outcome.kind != "match":
                return False if outcome.kind == "nomatch" else None
        return None if device.taints else True

    def _choices(self, pod: PodClaims, selected: Sequence[Sequence[int]]) -> Iterator[Binding]:
        """Every binding: one for each choice of the values that devices share, one where they share none."""
        values = [
            sorted(
                {value for claim in rule.claims for at in selected[claim] for value in self._values(at, rule)}
            )
            for rule in pod.shared
        ]
        bindings = set()
        for chosen in product(*values):
            parts = []
            for at, (claim, entries) in enumerate(zip(pod.claims, selected, strict=True)):
                rules = zip(pod.shared, chosen, strict=True)
                required = [(rule, value) for rule, value in rules if at in rule.claims]
                sharing = [
                    entry
                    for entry in entries
                    if all(value in self._values(entry, rule) for rule, value in required)
                ]
                parts.append(ClaimPart(tuple(sharing), claim.number))
            binding = tuple(parts)
            enough = all(sum(self.entries[at].count for at in part.entries) >= part.number for part in parts)
            if enough and binding not in bindings:
                bindings.add(binding)
                yield binding

    def _values(self, entry: int, rule: SharedValue) -> set[str]:
        return set(map(str, values_of(self.entries[entry], rule.attribute)))


class PodLayout:
    """Some pods on a node: the kinds of devices that they tell apart, and what each pod takes of them."""

    def __init__(self, entries: Sequence[Device], bindings: Mapping[PodClaims, Bindings]) -> None:
        """Take the devices of a node, and the pods with their bindings."""
        self._entries = entries
        self._parts = {part.entries for row in bindings.values() for way in row.possible for part in way}
        # Which of them a pod in doubt needs is not known, so no two of its entries are one kind.
        doubtful = {
            at
            for row in bindings.values()
            for way in (() if row.certain else row.possible)
            for part in way
            for at in part.entries
        }
        kinds: dict[tuple[bool, ...] | int, list[int]] = defaultdict(list)
        for at in sorted({at for entries in self._parts for at in entries}):
            kind = at if at in doubtful else tuple(at in part for part in sorted(self._parts))
            kinds[kind].append(at)
        self._kinds = list(kinds.values())
        self.devices: NodeLoad = tuple(self._count(kind) for kind in self._kinds)
        self._bindings = bindings
        self.footprints = {pod: self._footprint(row) for pod, row in bindings.items()}

    def _count(self, entries: Iterable[int]) -> int:
        return sum(self._entries[at].count for at in entries)

    def _footprint(self, bindings: Bindings) -> Footprint:
        ways: set[NodeLoad] = set()
        for binding in bindings.possible:
            ways |= self._ways(binding)
        some = tuple(sorted(ways)[:MAX_WAYS])
        needs = some if bindings.certain or not some else (self._all_of(bindings.possible),)
        return Footprint(some if len(ways) <= MAX_WAYS else (), needs)

    def _ways(self, binding: Binding) -> set[NodeLoad]:
        """List the ways in which a pod with a binding may take each kind; all of it beyond `MAX_WAYS`."""
        ways = {(0,) * len(self._kinds)}
        for part in binding:
            kinds = [at for at, kind in enumerate(self._kinds) if kind[0] in part.entries]
            split = (more for load in sorted(ways) for more in self._split(part.number, kinds, load))
            ways = set(islice(split, MAX_WAYS * MAX_WAYS))
        return ways

    def _split(self, number: int, kinds: Sequence[int], load: NodeLoad) -> Iterator[NodeLoad]:
        """Take so many devices of some kinds beside a load, in every way."""
        if not kinds:
            if not number:
                yield load
            return
        at, *others = kinds
        for taken in range(min(number, self.devices[at] - load[at]), -1, -1):
            yield from self._split(number - taken, others, (*load[:at], load[at] + taken, *load[at + 1 :]))

    def _all_of(self, possible: Iterable[Binding]) -> NodeLoad:
        """Return what must be free to be sure: the claimed count of every entry that may be bound."""
        most: Counter[int] = Counter()
        for binding in possible:
            of_binding: Counter[int] = Counter()
            for part in binding:
                of_binding.update(dict.fromkeys(part.entries, part.number))
            most |= of_binding
        return tuple(sum(min(most[at], self._entries[at].count) for at in kind) for kind in self._kinds)

    def nodes_taken(self, pods: Mapping[PodClaims, int]) -> int:
        """Count the nodes that pods take at least: those nobody else can use, and the scarcest devices."""
        filled = sum(number for pod, number in pods.items() if not self._bindings[pod].possible)
        scarcest = 0
        for entries in {*self._parts, tuple(sorted(at for kind in self._kinds for at in kind))}:
            within = set(entries)
            taken = sum(self._taken_within(within, pod) * number for pod, number in pods.items())
            scarcest = max(scarcest, -(-taken // self._count(entries)) if entries else 0)
        return filled + scarcest

    def _taken_within(self, entries: set[int], pod: PodClaims) -> int:
        """Devices of some entries that a pod takes, however it is served."""
        bindings = self._bindings[pod].possible
        return min(
            (sum(part.number for part in way if entries.issuperset(part.entries)) for way in bindings),
            default=0,
        )


@dataclass(frozen=True)
class DeviceCapacity:
    """The pods in one pool with Device accounting. Pools with equal capacities take the same pods."""

    nodes: int
    devices: PoolDevices
    gangs: Gangs = ()

    def charged(self, demand: Demand) -> DeviceCapacity:
        """Return the pool with a demand charged to it, admitted or not."""
        if not demand.gangs:
            return self
        return DeviceCapacity(self.nodes, self.devices, total((self.gangs, demand.gangs)))

    def take(self, demand: Demand) -> DeviceCapacity | None:
        """Return what is left after a demand, or None when there is not enough."""
        after = self.charged(demand)
        return after if after is self or after.stranded is None else None

    def shortage(self, demand: Demand) -> Shortage | None:
        """Say what stands against a demand; None when there is room."""
        return self.charged(demand).stranded if demand.gangs else None

    def touched_by(self, demand: Demand) -> bool:
        """Tell whether a demand takes anything of it."""
        return bool(demand.gangs)

    def grown(self, nodes: int) -> DeviceCapacity:
        """Return the pool with some nodes more, or less."""
        return DeviceCapacity(self.nodes + nodes, self.devices, self.gangs) if nodes else self

    @cached_property
    def _pods(self) -> Counter[PodClaims]:
        counted: Counter[PodClaims] = Counter()
        for copies in self.gangs:
            for claims, pods in copies.gang:
                counted[claims] += pods * copies.number
        return counted

    @cached_property
    def stranded(self) -> Shortage | None:
        """The pod that is worst off: nodes its gang needs, nodes surely open to it. None: all is well."""
        layout = self.devices.layout(frozenset(self._pods))
        loads: Counter[Footprint] = Counter()
        for claims, number in self._pods.items():
            loads[layout.footprints[claims]] += number
        worst: Shortage | None = None
        largest = max((sum(pods for _, pods in copies.gang) for copies in self.gangs), default=0)
        for copies in self.gangs:
            for shortage in self._of_gang(copies.gang, layout, loads) if copies.number > 0 else ():
                if worst is None or shortage.missing > worst.missing:
                    worst = shortage
                if worst.missing == largest:
                    return worst
        return worst

    def _of_gang(self, gang: Gang, layout: PodLayout, loads: Counter[Footprint]) -> Iterator[Shortage]:
        """The shortages of the pods of one gang, against all pods outside it."""
        others = loads.copy()
        for claims, number in gang:
            others[layout.footprints[claims]] -= number
        size = sum(number for _, number in gang)
        for footprint in {layout.footprints[claims] for claims, _ in gang}:
            if not footprint.needs:
                continue
            open_to = size
            while open_to and can_block(self.nodes - open_to + 1, footprint, others, layout.devices):
                open_to -= 1
            if open_to < size:
                yield Shortage(size, open_to)

    @cached_property
    def free_nodes(self) -> int:
        """Nodes' worth of free devices, by the scarcest kind; what scores and reports call free."""
        return self.nodes - self.devices.layout(frozenset(self._pods)).nodes_taken(self._pods)
