"""Resolve: a member's device requests on the devices of one pool's nodes.

Requests, their ranks and the device entries are tried in declaration order with backtracking, so the first
complete assignment is taken and a member is rejected only if there is none. One entry covers a request, or
several of one driver and device class that all satisfy it: 8 GPUs published as 4 + 4 cover a count of 8.
Requests of one pod share an entry's devices.

Claimability is a constraint inside the search: where some assignment claims a device through DRA, the first
of those is taken, so a Synthetic entry listed first never hides a DRA entry that would do.

The cluster's allocator has rules of its own, which gate new placements only. A selector that errs on a device
of the claim's class stops the pod on every node, so no entry of that class is an option. A device with a
taint is none for a request that does not tolerate it. A claim is bounded. It is written narrowest first,
because the allocator takes the requests in order and gives up after a while.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import perm
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from function.api.deployment import DeviceRequest, Member, SubRequest
from function.api.devices import Device, Values, values_of
from function.api.reasons import DeferredGap, Reason, Rejection, combined
from function.api.replica import StampedRequest
from function.api.taints import untolerated
from function.boundary import frozen
from function.scheduler.budget import Budget, OutOfSteps
from function.scheduler.selectors import Evaluations, Probe, gap

# Refusals: what does not fit. Why it does not is found out when it is first read.
#
# Most pools that do not fit are never explained, because the replica has a place on another. So matching
# only notes what the explanation takes. The `Evaluations` of the pass are not in it: a refusal lives as
# long as the deployment, and they hold the devices of a whole fleet. A pass that reads a refusal brings its
# own.


class Refusal:
    """A member on devices, or an engine on pools, that does not fit."""

    __slots__ = ("_explain", "_rejection")

    def __init__(self, explain: Callable[[Evaluations], Rejection]) -> None:
        """Take what finds out why: a function of what selectors say, and of values."""
        self._explain = explain
        self._rejection: Rejection | None = None

    @classmethod
    def of(cls, rejection: Rejection) -> Refusal:
        """Return the refusal of something of which it is known why."""
        return cls(lambda _: rejection)

    def explained(self, evaluations: Evaluations) -> Rejection:
        """Return why. Evaluations of the release that read the selectors say the same in every pass."""
        if self._rejection is not None:
            return self._rejection
        dear = evaluations.dear
        rejection = self._explain(evaluations)
        if evaluations.dear == dear:  # What took shared units holds for this pass only.
            self._rejection = rejection
        return rejection


# DRA matchAttribute: one value common to the devices of all named requests.
#
# Lists have it when they share at least one value; a device that lacks the attribute fails. Necessary, not
# sufficient: an entry stands for several devices, and DRA admission on the workload cluster decides.

PossibleValues = tuple[Values | None, ...]
"""The values that each constraint's requests may still share; None where none of them has a device yet."""
SharedAttribute = tuple[str, frozenset[int]]
"""A qualified attribute name and the positions of the requests that must share it."""


class Constraints:
    """The constraints of one member, followed while requests are assigned one after the other."""

    def __init__(self, rules: Sequence[SharedAttribute]) -> None:
        """Take the rules: attribute and request positions."""
        self.rules = tuple(rules)
        self.start: PossibleValues = (None,) * len(self.rules)
        """Nothing assigned: any value is still possible."""

    @classmethod
    def of(cls, member: Member) -> Constraints:
        """Read the constraints of a member. No request named means all of them.

        One that names a request the member does not have can never hold: no claim could carry it.
        """
        names = [request.name for request in member.requests]
        return cls(
            [
                (
                    constraint.match_attribute if set(constraint.requests) <= set(names) else "",
                    frozenset(
                        at
                        for at, name in enumerate(names)
                        if not constraint.requests or name in constraint.requests
                    )
                    or frozenset(range(len(names))),
                )
                for constraint in member.constraints
            ]
        )

    def shared(
        self, at: int, entries: Sequence[int], devices: Sequence[Device], budget: Budget
    ) -> tuple[tuple[int, ...], ...]:
        """The largest sets of entries that request `at` may take its devices from. Raises OutOfSteps."""
        sets = {tuple(entries): None}
        for name, requests in self.rules:
            if at in requests:
                narrower: dict[tuple[int, ...], None] = {}
                for held in sets:
                    shared = [values_of(devices[entry], name) for entry in held]
                    values = sorted(frozenset().union(*shared), key=str)
                    budget.spend((1 + len(values)) * len(held))
                    for value in values:
                        pairs = zip(held, shared, strict=True)
                        narrower[tuple(entry for entry, values in pairs if value in values)] = None
                sets = narrower
        return tuple(sets)

    def narrow(self, values: PossibleValues, at: int, devices: Sequence[Device]) -> PossibleValues | None:
        """Narrow the possible values by the devices chosen for request `at`; None when none is left."""
        if not self.rules:
            return ()
        narrowed: list[Values | None] = []
        for (name, requests), possible in zip(self.rules, values, strict=True):
            if at not in requests:
                narrowed.append(possible)
                continue
            mine = frozenset.intersection(*(values_of(device, name) for device in devices))
            both = mine if possible is None else mine & possible
            if not both:
                return None
            narrowed.append(both)
        return tuple(narrowed)


if TYPE_CHECKING:
    DeviceFilter = Callable[[DeviceRequest, SubRequest, Device], bool]


MAX_CLAIMED, MAX_LISTED = 32, 32
"""Devices that a claim may hold, and selectors of a request or constraints that it may list (Kubernetes)."""
MAX_VARIANTS = 16
"""Different claims on one pool that are tried: where devices are charged, another may find room."""
UNION = 4
"""Units that it takes to unite some entries with others."""


@frozen
class Resolved:
    """One request with the device entries that cover it."""

    request: str
    rank: int
    count: int
    selectors: tuple[str, ...]
    devices: tuple[Device, ...]
    """One, or several of one driver and device class."""
    bindable: int
    """Devices of a node that its claim may bind."""

    @property
    def device(self) -> Device:
        """The entry that covers it, the first of several."""
        return self.devices[0]


@frozen
class Match:
    """A member that fits a pool's devices."""

    resolved: tuple[Resolved, ...] = ()

    @property
    def claims(self) -> bool:
        """Tell whether the member's pods bind a device."""
        return any(choice.device.claimable for choice in self.resolved)

    @property
    def claimed(self) -> tuple[Resolved, ...]:
        """The requests of the pods' DRA claim, that with the fewest ways to allocate it first."""
        claimed = (choice for choice in self.resolved if choice.device.claimable)
        return tuple(sorted(claimed, key=lambda r: perm(max(r.bindable, r.count), r.count)))

    @property
    def stamped(self) -> tuple[StampedRequest, ...]:
        """The claimed requests as they are stamped on a replica: what one pod is charged."""
        return tuple(
            StampedRequest(choice.request, choice.device.device_class_name, choice.count, choice.selectors)
            for choice in self.claimed
        )

    @property
    def essence(self) -> tuple[object, ...]:
        """The match as a value: two that are equal give the same replicas and the same texts."""
        return (
            tuple(choice.request for choice in self.claimed),
            *(
                (
                    choice.request,
                    choice.rank,
                    choice.count,
                    choice.selectors,
                    choice.device.name,
                    choice.device.claim,
                    choice.device.device_class_name,
                )
                for choice in self.resolved
            ),
        )


ChargedClaim: TypeAlias = tuple[str, int, tuple[str, ...]]
"""The charged part of a claim: device class, number, and selectors where they make a difference."""


class Option(NamedTuple):
    """One way to satisfy one request: a rank and the device entries that cover it."""

    rank: int
    number: int
    entries: tuple[int, ...]
    selectors: tuple[str, ...]
    """What the claim selects with."""
    bindable: int


class _Rules(NamedTuple):
    """The rules that narrow the entries a request may use."""

    constraints: Constraints
    allowed: DeviceFilter | None = None
    """For a running replica: the entries that give the requests it is stamped with."""
    bounded: bool = True
    """True where the bounds of a claim are held."""
    several: bool = False
    """Whether a request takes its devices from all entries of a class that it may, or from one of them."""
    tainted: bool = False
    """True where taints of devices are passed over."""

    def tolerates(self, sub: SubRequest, device: Device) -> bool:
        """Tell whether taints let a request have a device. What a claim was stamped with, it has."""
        free = self.tainted or self.allowed is not None or not device.taints
        return free or not untolerated(device.taints, sub.tolerations)


def _options(
    evaluations: Evaluations,
    member: Member,
    at: int,
    devices: Sequence[Device],
    rules: _Rules,
    budget: Budget,
) -> list[Option]:
    """Every way to satisfy one request: rank by rank, then entry by entry, or class by class.

    Raises OutOfSteps.
    """
    options, request = [], member.requests[at]
    for rank, sub in enumerate(request.ranked):
        entries = [
            entry
            for entry, device in enumerate(devices)
            if (rules.allowed is None or rules.allowed(request, sub, device))
            and evaluations.probe(sub, device).kind == "match"
            and rules.tolerates(sub, device)
            # A claim that is too large is refused; where a selector errs the allocator gives up on the node.
            and not (device.claimable and rules.bounded and _too_large(member, sub))
            and (rules.allowed is not None or _erring(evaluations, sub, device, devices) is None)
        ]
        groups = _by_class(devices, entries)
        ways: list[tuple[int, ...]] = [
            (entry,) for entry in entries if not (rules.several and devices[entry].claimable)
        ]
        if rules.several:
            for group in groups.values():
                ways += rules.constraints.shared(at, group, devices, budget)
        for way in ways:
            if sum(devices[entry].count for entry in way) >= sub.count:
                bindable = sum(devices[entry].count for entry in groups.get(_class_of(devices[way[0]]), ()))
                options.append(Option(rank, sub.count, way, sub.claimed_by, bindable))
    return options


def _class_of(device: Device) -> tuple[str, str]:
    """Return what entries must have in common to cover one request together."""
    return device.driver, device.device_class_name


def _by_class(devices: Sequence[Device], entries: Sequence[int]) -> dict[tuple[str, str], list[int]]:
    """The entries that claims can bind, by driver and device class."""
    groups: dict[tuple[str, str], list[int]] = {}
    for entry in entries:
        if devices[entry].claimable and devices[entry].count:
            groups.setdefault(_class_of(devices[entry]), []).append(entry)
    return groups


def _erring(
    evaluations: Evaluations, sub: SubRequest, device: Device, devices: Sequence[Device]
) -> Device | None:
    """The first device of a claim's class that a selector errs on: the allocator gives up there."""
    if not device.claimable:
        return None
    return next(
        (
            other
            for other in devices
            if other.claimable
            and other.count
            and other.device_class_name == device.device_class_name
            and evaluations.probe(sub, other).kind in ("error", "cost")
        ),
        None,
    )


def _too_large(member: Member, sub: SubRequest) -> str:
    """Say what of a request no claim may hold; empty where one may."""
    held = (
        (sub.count, MAX_CLAIMED, "devices"),
        (len(sub.claimed_by), MAX_LISTED, "selectors of a request"),
        (len(member.constraints), MAX_LISTED, "constraints"),
    )
    return next((f"{n} {what}, a claim holds {most}" for n, most, what in held if n > most), "")


class _Taken(NamedTuple):
    """The device entries that requests take."""

    free: tuple[int, ...]
    """What those with one entry leave of each."""
    spread: tuple[tuple[tuple[int, ...], int], ...] = ()
    """What those with several take, by the entries that they share."""
    claimed: int = 0

    def take(self, option: Option, budget: Budget, *, claims: bool) -> _Taken | None:
        """Take one more, or None where the entries have too few. Raises OutOfSteps."""
        free, spread = self.free, self.spread
        if len(option.entries) == 1:
            entry = option.entries[0]
            free = (*free[:entry], free[entry] - option.number, *free[entry + 1 :])
            if free[entry] < 0:
                return None
        else:
            numbers = dict(spread)
            numbers[option.entries] = numbers.get(option.entries, 0) + option.number
            spread = tuple(sorted(numbers.items()))
        taken = _Taken(free, spread, self.claimed + option.number * claims)
        return taken if not spread or taken._covered(budget) else None

    def _covered(self, budget: Budget) -> bool:
        """Tell if every union of what is shared has enough: then there is a way to deal it out (Hall)."""
        unions: set[frozenset[int]] = {frozenset()}
        for entries, _ in self.spread:
            budget.spend(UNION * len(unions))
            unions |= {union.union(entries) for union in unions}
        for union in unions:
            budget.step()
            wanted = sum(number for entries, number in self.spread if union.issuperset(entries))
            if wanted > sum(self.free[entry] for entry in union):
                return False
        return True


class _Assignment:
    """The search for the first complete assignment of requests to device entries."""

    def __init__(
        self,
        evaluations: Evaluations,
        member: Member,
        devices: Sequence[Device],
        rules: _Rules,
        budget: Budget,
        *,
        options: list[list[Option]] | None = None,
    ) -> None:
        self._devices, self._rules, self._budget = devices, rules, budget
        self.options = options or [
            _options(evaluations, member, at, devices, rules, budget) for at, _ in enumerate(member.requests)
        ]
        shared = [name for name, _ in rules.constraints.rules]
        values = (max((len(values_of(device, name)) for device in devices), default=0) for name in shared)
        self._width = len(devices) + sum(values)
        """Units of one step, at most: it copies what is left of the devices, and compares values."""
        self._dead: set[tuple[object, ...]] = set()
        self._of_class = Counter(device.device_class_name for device in devices)
        self._hope = [any(self._claims(option) for option in candidates) for candidates in self.options]
        self._start = _Taken(tuple(device.count for device in devices)), rules.constraints.start

    @property
    def combines(self) -> bool:
        """Tell whether some request may take its devices from several entries."""
        return any(len(option.entries) > 1 for candidates in self.options for option in candidates)

    def _claims(self, option: Option) -> bool:
        """Tell whether an option becomes part of the claim; all entries of one option are alike in that."""
        return self._devices[option.entries[0]].claimable

    def first(self, *, claiming: bool) -> list[Option] | None:
        """Find the first assignment, or the first that claims a device. Raises OutOfSteps."""
        self._dead.clear()
        chosen: list[Option] = []
        return chosen if self._extend(chosen, *self._start, need=claiming) else None

    def _step(
        self, at: int, option: Option, taken: _Taken, values: PossibleValues
    ) -> tuple[_Taken, PossibleValues] | None:
        """Return the entries left after an option; None where it contradicts earlier ones."""
        self._budget.step()
        self._budget.spend(self._width)
        after = taken.take(option, self._budget, claims=self._claims(option))
        if after is None or (self._rules.bounded and after.claimed > MAX_CLAIMED):
            return None
        narrowed = self._rules.constraints.narrow(values, at, [self._devices[e] for e in option.entries])
        return None if narrowed is None else (after, narrowed)

    def _extend(self, chosen: list[Option], taken: _Taken, values: PossibleValues, *, need: bool) -> bool:
        """Complete `chosen`, in place; False where that cannot be. `need`: some option must still claim.

        A state that could not be completed is not tried again: what follows depends on nothing else of how it
        was reached. It raises OutOfSteps.
        """
        at = len(chosen)
        if at == len(self.options):
            return not need
        state = (at, taken, values, need)
        if state in self._dead or (need and not any(self._hope[at:])):
            return False
        for option in self.options[at]:
            rest = self._step(at, option, taken, values)
            if rest is None:
                continue
            chosen.append(option)
            if self._extend(chosen, *rest, need=need and not self._claims(option)):
                return True
            chosen.pop()
        self._dead.add(state)
        return False

    def every(self) -> Iterator[list[Option]]:
        """Find the assignments in order, leaving out those that only repeat claims. Raises OutOfSteps."""
        return self._walk([], (), *self._start, set())

    def _walk(
        self,
        chosen: list[Option],
        claims: tuple[ChargedClaim | None, ...],
        taken: _Taken,
        values: PossibleValues,
        visited: set[object],
    ) -> Iterator[list[Option]]:
        """Yield every completion of `chosen`. A state is gone on from once for what was claimed so far."""
        at = len(chosen)
        state = (taken, values, claims)
        if state in visited:
            return
        visited.add(state)
        if at == len(self.options):
            yield list(chosen)
            return
        for option in self.options[at]:
            rest = self._step(at, option, taken, values)
            if rest is not None:
                yield from self._walk([*chosen, option], (*claims, self.claim(option)), *rest, visited)

    def claim(self, option: Option) -> ChargedClaim | None:
        """The charged claim. Selectors make no difference where a class has one entry."""
        device = self._devices[option.entries[0]]
        if not device.claimable:
            return None
        several = self._of_class[device.device_class_name] > 1
        return (device.device_class_name, option.number, option.selectors if several else ())


def resolve(
    evaluations: Evaluations,
    member: Member,
    devices: Sequence[Device],
    *,
    budget: Budget,
    allowed: DeviceFilter | None = None,
) -> Match | Refusal:
    """Resolve a member's requests on a pool's devices, or refuse it.

    `allowed` narrows the entries a request may use (to those a claim was stamped with). What Kubernetes
    refuses is no question then: the claim is there.
    """
    rules = _Rules(Constraints.of(member), allowed, bounded=allowed is None)
    try:
        search = _Assignment(evaluations, member, devices, rules, budget)
        wider = search  # A request is covered by one entry before it is by several of a class.
        if _combinable(devices):
            wider = _Assignment(evaluations, member, devices, rules._replace(several=True), budget)
        candidates = zip(member.requests, search.options, wider.options, strict=True)
        barred = [request for request, *ways in candidates if not any(ways)]
        if barred:
            return Refusal(
                lambda evaluations: combined(
                    [_why_none(evaluations, member, request, devices) for request in barred]
                )
            )
        # An assignment that claims a device comes before any that does not, whatever the order of entries.
        chosen = search.first(claiming=True) or (wider.first(claiming=True) if wider.combines else None)
        chosen = chosen or search.first(claiming=False)
        if chosen is None:
            options = search.options if wider is search else None
            return Refusal.of(_why_not_together(evaluations, member, devices, rules, budget, options))
    except OutOfSteps:
        return Refusal.of(Rejection(Reason.SearchBudgetExceeded, detail=f"{budget.steps} steps"))
    return _match(member.requests, chosen, devices)


def _match(requests: Sequence[DeviceRequest], chosen: Sequence[Option], devices: Sequence[Device]) -> Match:
    """Write an assignment down by names and devices: positions mean nothing to who reads it later."""
    return Match(
        tuple(
            Resolved(
                request.name,
                option.rank,
                option.number,
                option.selectors,
                tuple(devices[entry] for entry in option.entries),
                option.bindable,
            )
            for request, option in zip(requests, chosen, strict=True)
        )
    )


def resolve_every(
    evaluations: Evaluations, member: Member, devices: Sequence[Device], *, budget: Budget
) -> tuple[tuple[Match, ...], bool]:
    """Resolve in every way that claims a device and claims differently, in order of preference.

    The flag says that some may be missing: there are more than `MAX_VARIANTS`, or the budget ran out.
    """
    rules = _Rules(Constraints.of(member))
    matches: dict[tuple[object, ...], Match] = {}
    try:
        search = _Assignment(evaluations, member, devices, rules, budget)
        wider = _Assignment(evaluations, member, devices, rules._replace(several=True), budget)
        for chosen in chain(search.every(), wider.every() if wider.combines else ()):
            match = _match(member.requests, chosen, devices)
            if match.claims:
                claims = sorted(claim for claim in map(search.claim, chosen) if claim is not None)
                if matches.setdefault(tuple(claims), match) is match and len(matches) > MAX_VARIANTS:
                    return tuple(matches.values())[:MAX_VARIANTS], True
    except OutOfSteps:
        return tuple(matches.values()), True
    return tuple(matches.values()), False


def _combinable(devices: Sequence[Device]) -> bool:
    """Tell if a request could take its devices from several entries; if not, its options never change."""
    classes = [_class_of(device) for device in devices if device.claimable]
    return len(set(classes)) < len(classes)


def _why_not_together(
    evaluations: Evaluations,
    member: Member,
    devices: Sequence[Device],
    rules: _Rules,
    budget: Budget,
    options: list[list[Option]] | None,
) -> Rejection:
    """Each request fits alone, not together: for want of devices, a constraint, a bound, or for taints.

    `options` are those of every request, where constraints cannot change them.
    """

    def fits(constraints: Constraints, *, bounded: bool, tainted: bool = False) -> bool:
        """Tell whether the requests fit together by looser rules: then what was loosened stood in the way."""
        looser = rules._replace(constraints=constraints, bounded=bounded, several=True, tainted=tainted)
        same = options if bounded == rules.bounded and not tainted else None
        search = _Assignment(evaluations, member, devices, looser, budget, options=same)
        return search.first(claiming=False) is not None

    together = "+".join(request.name for request in member.requests)
    counts = ", ".join(f"{request.name} takes {request.ranked[0].count}" for request in member.requests)
    if fits(Constraints(()), bounded=rules.bounded):
        return Rejection(Reason.ConstraintUnsatisfied, request=together, detail=_no_common(member))
    large = sum(max(sub.count for sub in request.ranked) for request in member.requests) > MAX_CLAIMED
    if rules.bounded and large and fits(Constraints(()), bounded=False):
        return Rejection(
            Reason.ClaimTooLarge, request=together, detail=f"{counts}, a claim holds {MAX_CLAIMED}"
        )
    taints = sorted({str(taint) for device in devices for taint in device.taints})
    if taints and fits(rules.constraints, bounded=rules.bounded, tainted=True):
        detail = f"{counts}; the others have {{{', '.join(taints)}}}"
        return Rejection(Reason.UntoleratedDeviceTaint, request=together, detail=detail)
    return Rejection(Reason.DeviceContention, request=together, detail=counts)


_DEEPEST_LAST = ("nomatch", "error", "cost", "match")
_REASONS = {
    "nomatch": Reason.NoMatchingDevice,
    "error": Reason.DeviceSelectorError,
    "cost": Reason.SelectorCostExceeded,
    "match": Reason.DeviceCountShort,
}


def relevant_entries(
    evaluations: Evaluations, sub: SubRequest, devices: Sequence[Device]
) -> Sequence[Device]:
    """The entries a request is about: those that publish in a domain its selectors read.

    A selector on a GPU errs on a network card, which means nothing. Where no entry publishes in any of
    the domains (a misspelt one, say), all of them are meant.
    """
    domains = evaluations.domains(sub)
    about = [device for device in devices if not domains.isdisjoint(device.domains)]
    return about or devices


def errs(evaluations: Evaluations, member: Member, devices: Sequence[Device]) -> bool:
    """Tell whether some selector of the member gave no answer about some device it is about."""
    subs = (sub for request in member.requests for sub in request.ranked)
    return any(
        evaluations.probe(sub, device).kind in ("error", "cost")
        for sub in subs
        for device in relevant_entries(evaluations, sub, devices)
    )


def _why_none(
    evaluations: Evaluations, member: Member, request: DeviceRequest, devices: Sequence[Device]
) -> Rejection:
    """Say why no device entry covers a request, by the entry that came closest."""
    closest: tuple[int, SubRequest, Device, Probe] | None = None
    deepest: tuple[int, int, bool, bool] | None = None
    for rank, sub in enumerate(request.ranked):
        for device in relevant_entries(evaluations, sub, devices):
            probe = evaluations.probe(sub, device)
            enough = probe.kind == "match" and sub.count <= sum(
                other.count for other in _group(evaluations, sub, device, devices)
            )
            depth = (_DEEPEST_LAST.index(probe.kind), probe.selector, enough, device.name == request.name)
            if deepest is None or depth > deepest:
                deepest, closest = depth, (rank, sub, device, probe)
    if closest is None:
        return Rejection(Reason.NoMatchingDevice, request=request.name)
    rank, sub, device, probe = closest
    said = Rejection(
        _REASONS[probe.kind],
        detail=probe.message,
        request=request.name,
        rank=rank,
        selector=probe.selector,
        device=device.name or device.driver,
    )
    if probe.kind == "match":
        return _not_covered(evaluations, member, sub, device, devices, said._replace(selector=None))
    if probe.message:
        return said
    program = evaluations.program(sub.selectors[probe.selector])
    return said._replace(gap=DeferredGap(partial(gap, program, device.subject)))


def _not_covered(
    evaluations: Evaluations,
    member: Member,
    sub: SubRequest,
    device: Device,
    devices: Sequence[Device],
    said: Rejection,
) -> Rejection:
    """Say why a device that matches does not cover a request, with those of its class that match too."""
    group = _group(evaluations, sub, device, devices)
    most = sum(other.count for other in group)
    if most < sub.count:
        named = "+".join(other.name or other.driver for other in group)
        return said._replace(device=named, needs=sub.count, free=most)
    erring = _erring(evaluations, sub, device, devices)
    if erring is not None:
        probe = evaluations.probe(sub, erring)
        return said._replace(
            reason=_REASONS[probe.kind],
            detail=probe.message,
            selector=probe.selector,
            device=erring.name or erring.driver,
        )
    too_large = _too_large(member, sub)
    if too_large:
        return said._replace(reason=Reason.ClaimTooLarge, detail=too_large)
    left = [taint for other in group for taint in untolerated(other.taints, sub.tolerations)]
    free = sum(other.count for other in group if not untolerated(other.taints, sub.tolerations))
    if left and free < sub.count:
        detail = f"{{{', '.join(sorted({str(taint) for taint in left}))}}}"
        return said._replace(reason=Reason.UntoleratedDeviceTaint, detail=detail, needs=sub.count, free=free)
    return said._replace(reason=Reason.ConstraintUnsatisfied, detail=_no_common(member), device="")


def _group(
    evaluations: Evaluations, sub: SubRequest, device: Device, devices: Sequence[Device]
) -> list[Device]:
    """The entries that cover a request with one that matches: those of its class that match too."""
    matching = [at for at, other in enumerate(devices) if evaluations.probe(sub, other).kind == "match"]
    group = _by_class(devices, matching).get(_class_of(device), ()) if device.claimable else ()
    return [devices[at] for at in group] or [device]


def _no_common(member: Member) -> str:
    """`no common gpu.nvidia.com/pcieRoot`: the attributes of the constraints, one of which is not met."""
    return f"no common {', '.join(constraint.match_attribute for constraint in member.constraints)}"
