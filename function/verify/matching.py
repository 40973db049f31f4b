"""Matching, by trying everything: which assignments of a member's requests to a pool's devices there are.

Slow and obvious on purpose. Where there is too much to try, that is said (`TooMany`), never guessed.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from function.cel import DIALECTS, CompileError, compile_device, compile_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import Device, Member, Pool
    from function.api.engine import MatchConstraint, NodeSelector, SubRequest

LIMIT = 200_000
"""Assignments that are tried."""


class TooMany(Exception):
    """There is more to try than is reasonable."""


class Chosen(NamedTuple):
    """One request with the devices that cover it."""

    request: str
    sub: SubRequest
    entry: int
    device: Device


MemberClaim = tuple[tuple[str, str, int, tuple[str, ...]], ...]
"""What becomes the pods' claim: request, device class, count, selectors."""


def _matches(sub: SubRequest, device: Device) -> bool:
    """Whether the device matches as some Kubernetes release reads it; which one runs is not known here."""
    return any(_matches_in(release, sub, device) for release in DIALECTS)


def _matches_in(release: str, sub: SubRequest, device: Device) -> bool:
    try:
        selectors = [compile_device(selector.cel, release) for selector in sub.selectors]
    except CompileError:
        return False
    return all(selector.evaluate(device.subject).kind == "match" for selector in selectors)


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


def _agree(constraints: tuple[MatchConstraint, ...], chosen: tuple[Chosen, ...]) -> bool:
    for constraint in constraints:
        among = [
            choice for choice in chosen if not constraint.requests or choice.request in constraint.requests
        ]
        common: set[Any] | None = None
        for candidate in among:
            values = _values(candidate.device, constraint.match_attribute)
            common = values if common is None else common & values
        if common is not None and not common:
            return False
    return True


def assignments(member: Member, pool: Pool) -> Iterator[tuple[Chosen, ...]]:
    """Every assignment of the member's requests to the pool's devices. Raises TooMany."""
    devices = pool.devices or ()
    options = [
        [
            Chosen(request.name, sub, at, device)
            for sub in request.ranked
            for at, device in enumerate(devices)
            if sub.count <= device.count and _matches(sub, device)
        ]
        for request in member.requests
    ]
    if prod(map(len, options)) > LIMIT:
        raise TooMany
    constraints = member.node_selector.constraints if member.node_selector else ()
    for chosen in product(*options):
        taken = [0] * len(devices)
        for choice in chosen:
            taken[choice.entry] += choice.sub.count
        fits = all(count <= device.count for count, device in zip(taken, devices, strict=True))
        if fits and _agree(constraints, chosen):
            yield chosen


def node_matches(member: Member, pool: Pool) -> bool:
    """Whether the pool itself is what the member asks for."""
    selectors = member.node_selector.selectors if member.node_selector else ()
    try:
        return all(compile_node(selector.cel).evaluate(pool.node).kind == "match" for selector in selectors)
    except CompileError:
        return False


def claim_of(chosen: tuple[Chosen, ...]) -> MemberClaim:
    """What an assignment claims through DRA, in the order of the requests."""
    return tuple(
        (
            choice.request,
            choice.device.device_class_name,
            choice.sub.count,
            tuple(s.cel for s in choice.sub.selectors),
        )
        for choice in chosen
        if choice.device.claim == "DRA"
    )


class Matching:
    """Remembers what was tried, for one check: the roles of most gangs ask for the same."""

    def __init__(self) -> None:
        self._claims: dict[tuple[NodeSelector | None, Pool], frozenset[MemberClaim]] = {}

    def claims(self, member: Member, pool: Pool) -> frozenset[MemberClaim]:
        """Every claim the member could be stamped with on the pool; empty: no match. Raises TooMany."""
        key = (member.node_selector, pool)
        if key not in self._claims:
            possible = map(claim_of, assignments(member, pool)) if node_matches(member, pool) else ()
            self._claims[key] = frozenset(possible)
        return self._claims[key]

    def claimable(self, member: Member, pool: Pool) -> bool:
        """Whether the member could bind a device there. Raises TooMany."""
        return any(self.claims(member, pool))
