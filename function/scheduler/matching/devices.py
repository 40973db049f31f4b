"""Resolve: a member's device requests on the devices of one pool's nodes.

Requests, their ranks and the device entries are tried in declaration order with backtracking, so the first
complete assignment is taken and a member is rejected only if there is none. One entry covers a request: 8
GPUs published as 4 + 4 do not cover a count of 8. Requests of one pod share an entry's devices.

Claimability is a constraint inside the search: where some assignment claims a device through DRA, the first
of those is taken, so a Synthetic entry listed first never hides a DRA entry that would do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from function.api.reasons import DeferredGap, Reason, Rejection, combined
from function.scheduler.budget import OutOfSteps
from function.scheduler.device_accounting import Claim
from function.scheduler.selectors import gap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from function.api import Device, DeviceRequest, Member
    from function.api.engine import SubRequest
    from function.scheduler.budget import Budget
    from function.scheduler.device_accounting import Claims
    from function.scheduler.selectors import Evaluations, Probe


# Refusals: what does not fit, and why once somebody reads it.
#
# Most pools that do not fit are never explained, because the replica has a place on another. So matching
# only notes what the explanation takes. The `Evaluations` of the pass are not in it: a refusal lives as
# long as the deployment, and they hold the devices of a whole fleet. Whoever reads a refusal brings those
# of its own pass.


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
        return cls(partial(_noted, rejection))

    def explained(self, evaluations: Evaluations) -> Rejection:
        """Return why. Evaluations of the release that read the selectors say the same in every pass."""
        if self._rejection is None:
            self._rejection = self._explain(evaluations)
        return self._rejection


def _noted(rejection: Rejection, _: Evaluations) -> Rejection:
    return rejection


# DRA matchAttribute: one value common to the devices of all named requests.
#
# Lists have it when they share at least one value; a device that lacks the attribute fails. Necessary, not
# sufficient: an entry stands for several devices, and DRA admission on the workload cluster decides.

Values = frozenset[tuple[str, object]]
PossibleValues = tuple[Values | None, ...]
"""What each constraint's requests may still share; None where none of them has a device yet."""
SharedAttribute = tuple[str, frozenset[int]]
"""A qualified attribute name and the positions of the requests that must share it."""


def values_of(device: Device, name: str) -> Values:
    """The values a device publishes under a qualified name; empty when it lacks the attribute.

    A name without a domain is in the domain of the driver, on either side.
    """
    if not name:
        return frozenset()
    qualified = name if "/" in name else f"{device.driver}/{name}"
    for published, holder in device.attributes.items():
        if (published if "/" in published else f"{device.driver}/{published}") == qualified:
            kind, value = next(iter(holder.items()))
            if kind == "list":
                kind, value = next(iter(value.items()))
                return frozenset((kind, item) for item in value)
            return frozenset({(kind, value)})
    return frozenset()


class Constraints:
    """The constraints of one member, followed while requests are assigned one after the other."""

    def __init__(self, rules: Sequence[SharedAttribute]) -> None:
        """Take the rules: attribute and request positions."""
        self._rules = tuple(rules)

    @classmethod
    def of(cls, member: Member) -> Constraints:
        """Read the constraints of a member. No request named means all of them.

        One that names a request the member does not have can never hold: no claim could carry it.
        """
        stated = member.node_selector.constraints if member.node_selector else ()
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
                for constraint in stated
            ]
        )

    def start(self) -> PossibleValues:
        """Nothing assigned: any value is still possible."""
        return (None,) * len(self._rules)

    def narrow(self, values: PossibleValues, at: int, device: Device) -> PossibleValues | None:
        """Narrow the possible values by the device chosen for request `at`; None when none is left."""
        if not self._rules:
            return ()
        narrowed: list[Values | None] = []
        for (name, requests), possible in zip(self._rules, values, strict=True):
            if at not in requests:
                narrowed.append(possible)
                continue
            mine = values_of(device, name)
            both = mine if possible is None else mine & possible
            if not both:
                return None
            narrowed.append(both)
        return tuple(narrowed)


if TYPE_CHECKING:
    DeviceFilter = Callable[[DeviceRequest, SubRequest, Device], bool]


@dataclass(frozen=True, slots=True)
class Resolved:
    """One request with the device entry that covers it."""

    request: str
    rank: int
    count: int
    selectors: tuple[str, ...]
    device: Device

    @property
    def claimed(self) -> bool:
        """Whether it becomes part of the pod's DRA claim."""
        return self.device.claimable


@dataclass(frozen=True, slots=True)
class Match:
    """A member that fits a pool's devices."""

    resolved: tuple[Resolved, ...] = ()

    @property
    def claims(self) -> bool:
        """Whether the member's pods bind a device."""
        return any(choice.claimed for choice in self.resolved)

    @property
    def claimed(self) -> tuple[Resolved, ...]:
        """What becomes the pods' DRA claim, in the order of the requests."""
        return tuple(choice for choice in self.resolved if choice.claimed)

    @property
    def claims_of_pod(self) -> Claims:
        """Device class and count of each claimed request, sorted: what one pod is charged."""
        return tuple(sorted(Claim(choice.device.device_class_name, choice.count) for choice in self.claimed))

    @property
    def essence(self) -> tuple[object, ...]:
        """What anybody reads of it: two that are equal in this give the same replicas and the same texts."""
        return tuple(
            [
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
            ]
        )

    @property
    def ranks(self) -> tuple[int, ...]:
        """The rank chosen for each request: all zero without firstAvailable."""
        return tuple(choice.rank for choice in self.resolved)


class Option(NamedTuple):
    """One way to satisfy one request: a rank and a device entry."""

    rank: int
    number: int
    entry: int
    selectors: tuple[str, ...]
    """What the claim selects with."""


def _options(
    evaluations: Evaluations, request: DeviceRequest, devices: Sequence[Device], allowed: DeviceFilter | None
) -> list[Option]:
    return [
        Option(rank, sub.count, entry, sub.claimed_by)
        for rank, sub in enumerate(request.ranked)
        for entry, device in enumerate(devices)
        if sub.count <= device.count
        and (allowed is None or allowed(request, sub, device))
        and evaluations.probe(sub, device).kind == "match"
    ]


class _Assignment:
    """The search for the first complete assignment of requests to device entries."""

    def __init__(
        self, devices: Sequence[Device], options: list[list[Option]], constraints: Constraints, budget: Budget
    ) -> None:
        self._devices, self._options, self._constraints, self._budget = devices, options, constraints, budget
        self._dead: set[tuple[object, ...]] = set()
        self._hope = [any(devices[option.entry].claimable for option in candidates) for candidates in options]

    def first(self, *, claiming: bool) -> list[Option] | None:
        """Find the first assignment, or the first that claims a device. Raises OutOfSteps."""
        self._dead.clear()
        chosen: list[Option] = []
        free = tuple(device.count for device in self._devices)
        return chosen if self._extend(chosen, free, self._constraints.start(), need=claiming) else None

    def _extend(
        self, chosen: list[Option], free: tuple[int, ...], values: PossibleValues, *, need: bool
    ) -> bool:
        at = len(chosen)
        if at == len(self._options):
            return not need
        state = (at, free, values, need)
        if state in self._dead or (need and not any(self._hope[at:])):
            return False
        for option in self._options[at]:
            self._budget.step()
            left = free[option.entry] - option.number
            narrowed = self._constraints.narrow(values, at, self._devices[option.entry])
            if left < 0 or narrowed is None:
                continue
            chosen.append(option)
            rest = (*free[: option.entry], left, *free[option.entry + 1 :])
            if self._extend(chosen, rest, narrowed, need=need and not self._devices[option.entry].claimable):
                return True
            chosen.pop()
        self._dead.add(state)
        return False

    def every(self) -> Iterator[list[Option]]:
        """Find the assignments in order, leaving out those that only repeat claims. Raises OutOfSteps."""
        free = tuple(device.count for device in self._devices)
        return self._walk([], free, self._constraints.start(), set())

    def _walk(
        self, chosen: list[Option], free: tuple[int, ...], values: PossibleValues, visited: set[object]
    ) -> Iterator[list[Option]]:
        at = len(chosen)
        state = (at, free, values, tuple(self._claim(choice) for choice in chosen))
        if state in visited:
            return
        visited.add(state)
        if at == len(self._options):
            yield list(chosen)
            return
        for option in self._options[at]:
            self._budget.step()
            left = free[option.entry] - option.number
            narrowed = self._constraints.narrow(values, at, self._devices[option.entry])
            if left >= 0 and narrowed is not None:
                rest = (*free[: option.entry], left, *free[option.entry + 1 :])
                yield from self._walk([*chosen, option], rest, narrowed, visited)

    def _claim(self, option: Option) -> tuple[str, int] | None:
        device = self._devices[option.entry]
        return (device.device_class_name, option.number) if device.claimable else None


def resolve(
    evaluations: Evaluations,
    member: Member,
    devices: Sequence[Device],
    *,
    budget: Budget,
    allowed: DeviceFilter | None = None,
) -> Match | Refusal:
    """Resolve a member's requests on a pool's devices, or refuse it.

    `allowed` narrows the entries a request may use (to those a claim was stamped with).
    """
    requests = member.requests
    options = [_options(evaluations, request, devices, allowed) for request in requests]
    if not all(options):
        barred = [request for request, candidates in zip(requests, options, strict=True) if not candidates]
        return Refusal(partial(_barred, barred, devices))
    search = _Assignment(devices, options, Constraints.of(member), budget)
    try:
        chosen = search.first(claiming=True) or search.first(claiming=False)
        if chosen is None:
            return Refusal.of(_why_not_together(devices, options, member, budget))
    except OutOfSteps:
        return Refusal.of(Rejection(Reason.SearchBudgetExceeded, detail=f"{budget.steps} steps"))
    return _match(requests, chosen, devices)


def _match(requests: Sequence[DeviceRequest], chosen: Sequence[Option], devices: Sequence[Device]) -> Match:
    return Match(
        tuple(
            Resolved(request.name, option.rank, option.number, option.selectors, devices[option.entry])
            for request, option in zip(requests, chosen, strict=True)
        )
    )


def resolve_every(
    evaluations: Evaluations, member: Member, devices: Sequence[Device], *, budget: Budget
) -> tuple[tuple[Match, ...], bool]:
    """Resolve in every way that claims a device and claims differently, in order of preference.

    The flag says that the budget ran out, so that some may be missing.
    """
    options = [_options(evaluations, request, devices, None) for request in member.requests]
    search = _Assignment(devices, options, Constraints.of(member), budget)
    matches: dict[Claims, Match] = {}
    try:
        for chosen in search.every():
            match = _match(member.requests, chosen, devices)
            if match.claims:
                matches.setdefault(match.claims_of_pod, match)
    except OutOfSteps:
        return tuple(matches.values()), True
    return tuple(matches.values()), False


def _why_not_together(
    devices: Sequence[Device], options: list[list[Option]], member: Member, budget: Budget
) -> Rejection:
    """Each request fits alone, not together: for want of devices, or because of a constraint."""
    together = "+".join(request.name for request in member.requests)
    unconstrained = _Assignment(devices, options, Constraints(()), budget).first(claiming=False)
    if unconstrained is None:
        counts = ", ".join(f"{request.name} takes {request.ranked[0].count}" for request in member.requests)
        return Rejection(Reason.DeviceContention, request=together, detail=counts)
    stated = member.node_selector.constraints if member.node_selector else ()
    detail = f"no common {', '.join(constraint.match_attribute for constraint in stated)}"
    return Rejection(Reason.ConstraintUnsatisfied, request=together, detail=detail)


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
    """Whether some selector of the member gave no answer about some device it is about."""
    subs = (sub for request in member.requests for sub in request.ranked)
    return any(
        evaluations.probe(sub, device).kind in ("error", "cost")
        for sub in subs
        for device in relevant_entries(evaluations, sub, devices)
    )


def _barred(
    requests: Sequence[DeviceRequest], devices: Sequence[Device], evaluations: Evaluations
) -> Rejection:
    """Say why no device entry covers any of some requests."""
    return combined([_why_none(evaluations, request, devices) for request in requests])


def _why_none(evaluations: Evaluations, request: DeviceRequest, devices: Sequence[Device]) -> Rejection:
    """Say why no device entry covers a request, by the entry that came closest."""
    closest: tuple[int, SubRequest, Device, Probe] | None = None
    deepest: tuple[int, int, bool] | None = None
    for rank, sub in enumerate(request.ranked):
        for device in relevant_entries(evaluations, sub, devices):
            probe = evaluations.probe(sub, device)
            depth = (_DEEPEST_LAST.index(probe.kind), probe.selector, device.name == request.name)
            if deepest is None or depth > deepest:
                deepest, closest = depth, (rank, sub, device, probe)
    if closest is None:
        return Rejection(Reason.NoMatchingDevice, request=request.name)
    return _one_entry(evaluations, request, *closest)


def _one_entry(
    evaluations: Evaluations,
    request: DeviceRequest,
    rank: int,
    sub: SubRequest,
    device: Device,
    probe: Probe,
) -> Rejection:
    short = probe.kind == "match"
    deferred = None
    if not short and not probe.message:
        program = evaluations.program(sub.selectors[probe.selector])
        deferred = DeferredGap(partial(gap, program, device.subject))
    return Rejection(
        _REASONS[probe.kind],
        detail=probe.message,
        gap=deferred,
        request=request.name,
        rank=rank,
        selector=None if short else probe.selector,
        device=device.name or device.driver,
        needs=sub.count if short else None,
        free=device.count if short else None,
    )
