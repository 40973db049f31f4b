"""Device accounting: pods share nodes, and still nothing can be stranded, however the cluster packs them.

Rules. What decides whether a pool admits pods must live here; the mathematics is in `worst_packing`.
1. A set of pods is admitted when each of them finds a node wherever all the others are: pods restart in any
   order. A pod whose gang must be on k nodes of its own needs k of them, against the pods outside its gang.
2. A pod may bind any device that its claim selects. Which entries of the pool those are is found out with
   the selectors and the constraints that are stamped on it, where its class has several entries there.
3. What cannot be told is counted against the set. A selector that gives no answer may select the entry, and
   may not; so may an entry with a taint be held, by a pod that began before it or tolerates it. A claim that
   no entry satisfies may hold any device of its class; a claim of a class that the pool does not publish
   fills a node. None counts for more than the node that it would hold otherwise. A pod that can be served in
   more ways than are told apart fills a node too, and where that makes a set short, nothing is known.

Theory of operation
A claim names so many devices of a class; its selectors say of which entries (`ClaimPart`). A constraint
leaves several ways to choose them, one for each value that the devices may share (`Binding`). Entries that
every pod of the pool can bind alike are one kind. So each pod becomes a `Footprint` on a few kinds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, product
from math import prod
from operator import attrgetter
from typing import NamedTuple, TypeAlias, TypeVar

from function.api.cluster import Pool
from function.api.devices import Device, values_of
from function.api.replica import StampedConstraint, StampedEngine, StampedRequest
from function.boundary import frozen
from function.cel.selector import compile_device
from function.cel.values import CompileError
from function.scheduler.budget import Budget, OutOfSteps, TooManyCases
from function.scheduler.worst_packing import Footprint, NodeLoad, can_block

K = TypeVar("K")
T = TypeVar("T")

MAX_WAYS = 24
"""Ways in which one pod may be served that are told apart. Beyond, it is taken to fill a node."""
MAX_CHOICES = 500
"""Choices of values that the devices of one pod may share. Beyond, it may hold any device of its classes."""
MAX_LENGTH, MAX_UNITS = 4_096, 128
"""Characters of a pod's selectors, and units of an evaluation: beyond, there is no answer."""
MAX_TEXT, SELECTOR = 65_536, 64
"""Characters of all different selectors on a pool, and those that one counts for besides its own: beyond,
nothing is told of what its pods do to one another. Compiling them is no step of any search."""
EVALUATION, SHARE = 30, 5
"""Units of packing that an evaluation takes, and a value that a device is asked for."""
COUNT, LOOK = 32, 128
"""Units of counting the pods of a pool, and of a look at what they can do to one another, besides its own."""
FREE_STEPS = 100
"""Steps of finding out how many nodes are free: a number that ranks and is shown, and admits nothing."""


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


def plus(many: Gangs, few: Gangs) -> Gangs:
    """Add some gangs to many, which are sorted already: each finds its place among them by halves."""
    added = list(many)
    for copies in few:
        at = bisect_left(added, copies.gang, key=attrgetter("gang"))
        held = added[at].number if at < len(added) and added[at].gang == copies.gang else None
        number = copies.number + (held or 0)
        added[at : at + (held is not None)] = [Copies(copies.gang, number)] if number else []
    return tuple(added)


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
        self._answers: dict[tuple[tuple[str, ...], int], bool | None] = {}
        """By selectors and entry: pods that differ in a number ask the same."""
        self._bindings: dict[PodClaims, tuple[Bindings | None, int]] = {}
        self._layouts: dict[frozenset[PodClaims], tuple[PodLayout | None, int]] = {}

    def __eq__(self, other: object) -> bool:
        """Tell whether pods lie on both alike."""
        return isinstance(other, PoolDevices) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def layout(self, pods: frozenset[PodClaims], budget: Budget) -> PodLayout:
        """Lay some pods on the node. Raises OutOfSteps where the budget has fewer units than that takes."""

        def lay() -> PodLayout:
            asked = {selector for pod in pods for claim in pod.claims for selector in claim.selectors}
            if sum(SELECTOR + len(selector) for selector in asked) > MAX_TEXT:
                raise TooManyCases("the pods of a pool have more selectors than are compiled")
            bindings = {pod: self.bindings(pod, budget) for pod in sorted(pods)}
            return PodLayout(self.entries, bindings, budget)

        return self._once(self._layouts, pods, lay, budget)

    def bindings(self, pod: PodClaims, budget: Budget) -> Bindings:
        """Find out which devices of the node a pod can bind. Raises OutOfSteps, as `layout` does."""
        return self._once(self._bindings, pod, lambda: self._bind(pod, budget), budget)

    @staticmethod
    def _once(memo: dict[K, tuple[T | None, int]], key: K, find: Callable[[], T], budget: Budget) -> T:
        """Find something out once, and take what it cost then at every look: also of a look that ended.

        Without the memory the same steps would be taken, so nothing depends on it.
        """
        value, units = memo.get(key, (None, 0))
        if value is not None:
            budget.spend(units)
            return value
        if units and budget.units <= units:
            budget.spend(units + 1)
        before = budget.units
        memo[key] = None, before
        try:
            value = find()
        except TooManyCases:
            del memo[key]  # It depends on no budget, so the next look ends with it, too.
            raise
        memo[key] = value, before - budget.units
        return value

    def _bind(self, pod: PodClaims, budget: Budget) -> Bindings:
        """Find the bindings of a pod: by class, then by its selectors, then by what its devices share.

        Each step is left out where it could tell nothing apart. What cannot be told is possible and not
        certain (rule 3), so a bound that is reached counts against the pods and never for them.
        """
        budget.spend(len(pod.claims) * len(self.entries))
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
        answers: list[dict[int, bool | None]] = []
        for entries, claim in zip(of_class, pod.claims, strict=True):
            if len(entries) > 1:
                budget.spend(EVALUATION * len(entries) * len(claim.selectors))
            answers.append({at: len(entries) == 1 or self._selects(claim.selectors, at) for at in entries})
        selected = [[at for at, answer in row.items() if answer is not False] for row in answers]
        possible = self._choices(pod, selected, budget)
        if not possible or len(possible) > MAX_WAYS:
            return Bindings((anything,), certain=False)
        return Bindings(possible, certain=not any(None in row.values() for row in answers))

    def _selects(self, selectors: tuple[str, ...], at: int) -> bool | None:
        """Tell if the selectors of a claim may bind an entry; None: it may be bound, and may not."""
        if (selectors, at) not in self._answers:
            self._answers[selectors, at] = _selected(selectors, self.entries[at])
        return self._answers[selectors, at]

    def _choices(
        self, pod: PodClaims, selected: Sequence[Sequence[int]], budget: Budget
    ) -> tuple[Binding, ...]:
        """Every binding: one for each choice of the values that devices share, one where they share none.

        None where there are more than `MAX_CHOICES`.
        """
        published: list[dict[int, set[str]]] = []
        """What each rule's entries publish under its attribute, by the position of the entry."""
        for rule in pod.shared:
            budget.spend(SHARE * sum(len(selected[claim]) for claim in rule.claims))
            named = {at for claim in rule.claims for at in selected[claim]}
            of_entry = {at: set(map(str, values_of(self.entries[at], rule.attribute))) for at in named}
            budget.spend(sum(map(len, of_entry.values())))
            published.append(of_entry)
        values = [sorted(set().union(*of_entry.values())) for of_entry in published]
        if prod(map(len, values)) > MAX_CHOICES:
            return ()
        bindings: dict[Binding, None] = {}
        for chosen in product(*values):
            parts = []
            for at, (claim, entries) in enumerate(zip(pod.claims, selected, strict=True)):
                rules = zip(pod.shared, published, chosen, strict=True)
                required = [(of_entry, value) for rule, of_entry, value in rules if at in rule.claims]
                budget.spend(1 + SHARE * len(entries) * len(required))
                sharing = [entry for entry in entries if all(value in has[entry] for has, value in required)]
                parts.append(ClaimPart(tuple(sharing), claim.number))
            if all(sum(self.entries[at].count for at in part.entries) >= part.number for part in parts):
                bindings[tuple(parts)] = None
                if len(bindings) > MAX_WAYS:
                    break
        return tuple(bindings)


def _selected(selectors: Iterable[str], device: Device) -> bool | None:
    """Ask the selectors of a claim in order, as Kubernetes does; None where they do not tell."""
    for selector in selectors:
        try:
            outcome = compile_device(selector).evaluate(device.subject, MAX_UNITS)
        except CompileError:
            return None
        if outcome.kind != "match":
            return False if outcome.kind == "nomatch" else None
    return None if device.taints else True


class PodLayout:
    """Some pods on a node: the kinds of devices that they tell apart, and what each pod takes of them."""

    def __init__(
        self, entries: Sequence[Device], bindings: Mapping[PodClaims, Bindings], budget: Budget
    ) -> None:
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
        parts = sorted(self._parts)
        for at in sorted({at for entries in self._parts for at in entries}):
            kind = at if at in doubtful else tuple(at in part for part in parts)
            kinds[kind].append(at)
        budget.spend(len(entries) * len(self._parts))
        self._kinds = list(kinds.values())
        self.devices: NodeLoad = tuple(sum(entries[at].count for at in kind) for kind in self._kinds)
        self._bindings = bindings
        self.cut = False
        """Whether some pod has more ways than are told apart, so that who is short of a node may not be."""
        self.footprints = {pod: self._footprint(row, budget) for pod, row in bindings.items()}

    def _footprint(self, bindings: Bindings, budget: Budget) -> Footprint:
        """Return what a pod takes of the kinds, whichever of its bindings it gets.

        What it may take are all ways; what surely serves it are these only where its bindings are certain.
        Else it needs everything that it could be bound to.
        """
        ways: set[NodeLoad] = set()
        cut = False
        for binding in bindings.possible:
            listed, is_cut = self._ways(binding, budget)
            ways |= listed
            cut = cut or is_cut
        cut = cut or len(ways) > MAX_WAYS
        self.cut = self.cut or cut
        some = tuple(sorted(ways)[:MAX_WAYS])
        surely = bindings.certain if some else not cut  # Without a way no node hosts it.
        return Footprint(() if cut else some, some if surely else (self._all_of(bindings.possible),))

    def _ways(self, binding: Binding, budget: Budget) -> tuple[set[NodeLoad], bool]:
        """List ways in which a pod with a binding may take each kind, and tell whether there may be more."""
        ways, cut = {(0,) * len(self._kinds)}, False
        for part in binding:
            kinds = [at for at, kind in enumerate(self._kinds) if kind[0] in part.entries]
            split = (more for load in sorted(ways) for more in self._split(part.number, kinds, load, budget))
            ways = set(islice(split, MAX_WAYS * MAX_WAYS))
            cut = cut or next(split, None) is not None
        return ways, cut

    def _split(self, number: int, kinds: Sequence[int], load: NodeLoad, budget: Budget) -> Iterator[NodeLoad]:
        """Take so many devices of some kinds beside a load, in every way: the most of the first kind first.

        A kind may have a million devices, so each way is made when it is asked for.
        """
        rest = [iter([(number, 0, load)])]
        while rest:
            state = next(rest[-1], None)
            if state is None:
                rest.pop()
                continue
            number, depth, load = state
            budget.spend(3)
            if not number:
                yield load
            elif depth < len(kinds):
                rest.append(self._taking(kinds[depth], *state))

    def _taking(
        self, at: int, number: int, depth: int, load: NodeLoad
    ) -> Iterator[tuple[int, int, NodeLoad]]:
        """Yield what is left to take after each number of devices of one kind, the most first."""
        for taken in range(min(number, self.devices[at] - load[at]), -1, -1):
            yield number - taken, depth + 1, (*load[:at], load[at] + taken, *load[at + 1 :])

    def _all_of(self, possible: Iterable[Binding]) -> NodeLoad:
        """Return what must be free to be sure: the claimed count of every entry that may be bound."""
        most: Counter[int] = Counter()
        for binding in possible:
            of_binding: Counter[int] = Counter()
            for part in binding:
                of_binding.update(dict.fromkeys(part.entries, part.number))
            most |= of_binding
        return tuple(sum(min(most[at], self._entries[at].count) for at in kind) for kind in self._kinds)

    def nodes_taken(self, pods: Mapping[PodClaims, int], budget: Budget) -> int:
        """Count the nodes that pods take at least: those that are filled, and the scarcest devices."""
        filled = sum(number for pod, number in pods.items() if not self._bindings[pod].possible)
        scarcest = 0
        for entries in {*self._parts, tuple(sorted(at for kind in self._kinds for at in kind))}:
            within = set(entries)
            ways = (len(way) for pod in pods for way in self._bindings[pod].possible)
            budget.spend(2 * sum(ways))
            taken = sum(self._taken_within(within, pod) * number for pod, number in pods.items())
            of_node = sum(self._entries[at].count for at in entries)
            scarcest = max(scarcest, -(-taken // of_node) if entries else 0)
        return filled + scarcest

    def _taken_within(self, entries: set[int], pod: PodClaims) -> int:
        """Devices of some entries that a pod takes, however it is served."""
        bindings = self._bindings[pod].possible
        return min(
            (sum(part.number for part in way if entries.issuperset(part.entries)) for way in bindings),
            default=0,
        )


@frozen(slots=False)
class DeviceCapacity:
    """The pods in one pool with Device accounting. Pools with equal capacities take the same pods."""

    nodes: int
    devices: PoolDevices
    gangs: Gangs = ()

    def charged(self, demand: Demand) -> DeviceCapacity:
        """Return the pool with a demand charged to it, admitted or not."""
        if not demand.gangs:
            return self
        return DeviceCapacity(self.nodes, self.devices, plus(self.gangs, demand.gangs))

    def take(self, demand: Demand, budget: Budget) -> DeviceCapacity | None:
        """Return what is left after a demand, or None when there is not enough. Raises OutOfSteps.

        None also where that is not told; the budget then says so.
        """
        after = self.charged(demand)
        try:
            return after if after is self or after.stranded(budget) is None else None
        except TooManyCases:
            budget.cut = True
            return None

    def fits(self, demand: Demand, budget: Budget) -> bool:
        """Tell whether there is room for a demand, as `take` does."""
        return self.take(demand, budget) is not None

    def shortage(self, demand: Demand, budget: Budget) -> Shortage | None:
        """Say what stands against a demand; None when there is room. Raises OutOfSteps."""
        return self.charged(demand).stranded(budget) if demand.gangs else None

    def grown(self, nodes: int) -> DeviceCapacity:
        """Return the pool with some nodes more, or less."""
        return DeviceCapacity(self.nodes + nodes, self.devices, self.gangs) if nodes else self

    @cached_property
    def _pods(self) -> Counter[PodClaims]:
        """How many pods there are of equal claims, whichever gang they are of."""
        counted: Counter[PodClaims] = Counter()
        for copies in self.gangs:
            for claims, pods in copies.gang:
                counted[claims] += pods * copies.number
        return counted

    def stranded(self, budget: Budget) -> Shortage | None:
        """The pod that is worst off: nodes its gang needs, nodes surely open to it. None: all have room.

        Raises OutOfSteps where the budget does not tell, and TooManyCases where a pod has too many ways, or
        the others can load a node in too many. Such a pod is taken to fill a node, and such loads to block
        what they may. So None is certain, and a shortage may be wrong, unless all pods together need more
        nodes than there are. A node for each pod is enough whatever they claim.
        """
        budget.spend(COUNT)
        if sum(number for number in self._pods.values() if number > 0) <= self.nodes:
            return None
        budget.spend(LOOK + len(self._pods))
        layout = self.devices.layout(frozenset(self._pods), budget)
        loads: Counter[Footprint] = Counter()
        for claims, number in self._pods.items():
            loads[layout.footprints[claims]] += number
        worst, is_sure = self._worst(layout, loads, budget)
        if worst is None or (is_sure and not layout.cut):
            return worst
        if layout.nodes_taken(self._pods, budget) <= self.nodes:
            raise TooManyCases("pods can be served, or can share nodes, in more ways than are told apart")
        return worst

    def _worst(
        self, layout: PodLayout, loads: Counter[Footprint], budget: Budget
    ) -> tuple[Shortage | None, bool]:
        """The worst shortage, and whether there surely is one."""
        worst, missing, is_sure = None, 0, False
        largest = max((sum(pods for _, pods in copies.gang) for copies in self.gangs), default=0)
        for gang in (copies.gang for copies in self.gangs if copies.number > 0):
            others = loads.copy()
            for claims, number in gang:
                others[layout.footprints[claims]] -= number
            others = +others  # Those that are there.
            size = sum(number for _, number in gang)
            for footprint in {layout.footprints[claims] for claims, _ in gang}:
                if not footprint.needs:
                    continue
                open_to = size
                while open_to:
                    blocked = self.nodes - open_to + 1
                    try:
                        if not can_block(blocked, footprint, others, layout.devices, budget):
                            break
                        is_sure = True
                    except TooManyCases:  # Counts against the set, but says nothing for sure.
                        pass
                    open_to -= 1
                if size - open_to > missing:
                    worst, missing = Shortage(size, open_to), size - open_to
            if worst is not None and missing == largest:  # No pod can be worse off than that.
                break
        return worst, is_sure

    @cached_property
    def free_nodes(self) -> int:
        """Nodes' worth of free devices, by the scarcest kind; what scores and reports call free.

        Where that takes too long, nodes without a pod: it is never less than those.
        """
        budget = Budget(FREE_STEPS)
        try:
            layout = self.devices.layout(frozenset(self._pods), budget)
            return self.nodes - layout.nodes_taken(self._pods, budget)
        except OutOfSteps:
            return self.nodes - self._pods.total()
