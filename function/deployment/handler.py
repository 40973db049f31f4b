"""Handle a ModelDeployment: one request in, one response out. This file is the table of contents.

snapshot -> schedule (retain, scale down, fill, replace, roll) -> requirements -> compose (with explain)

The pass is run on what the deployment's own replicas stand on. Only where that leaves something to be placed,
replaced or explained it is run on the whole fleet, or the fleet is asked for. Where fewer replicas live than
are wanted that is known before, and the first of the two passes is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from function.api import Malformed, ModelDeployment, SchedulerConfig
from function.api.inputs import UNKNOWN_BUDGETS, Defaults, invalid_input
from function.boundary import NO_REUSE, Cost, Costs, Document, Extent, Part, Request, Response, Reuse, frozen
from function.deployment import requirements
from function.deployment.answers import Given, LatestAnswer, answered_once
from function.deployment.compose import replicas
from function.deployment.compose.conditions import CACHE_RESOLVED, READY, SCHEDULED, optional
from function.deployment.compose.replicas import room_for
from function.deployment.compose.response import compose, unreadable
from function.deployment.snapshot import fleet as fleet_room, ownership as peers_room
from function.deployment.snapshot.fleet import Snapshots, as_if_delivered, read_snapshots
from function.deployment.snapshot.ownership import ListedPeers, read_peers
from function.scheduler.decision import Decision
from function.scheduler.memo import Shared, parts_of
from function.scheduler.schedule import schedule
from function.scheduler.scheduling_input import NO_PEERS, Fleet, scheduling_input

DEFAULTS = SchedulerConfig.model_construct()
"""What a step without an input asks for."""

KIND = "ModelDeployment"


@frozen
class Snapshot:
    """Everything that is read of a request before anything is decided."""

    request: Request
    composite: dict[str, Any]
    deployment: ModelDeployment
    config: SchedulerConfig
    fault: str
    """What is wrong with the function's input."""
    fleets: Snapshots
    peers: ListedPeers
    requested: tuple[str, ...]
    """The optional conditions that are returned."""


@frozen
class Answer:
    """A response, and the decision behind it; None where the composite could not be read.

    The decision is that of the whole fleet where it was delivered: an answer at rest is composed without it.
    """

    response: Response
    decision: Decision | None = None


def read_deployment(document: Document) -> tuple[dict[str, Any], ModelDeployment]:
    """Read the composite, as it stands and parsed. Raises ValueError."""
    composite = document.plain()
    return composite, ModelDeployment.parse(composite)


def _held(read: tuple[dict[str, Any], ModelDeployment]) -> Iterable[Part]:
    """Yield what a remembered deployment owns: its memory leaves with it, so it is charged for all of it."""
    _, deployment = read
    yield from parts_of(deployment)
    latest = deployment.memo_of(LatestAnswer)
    yield Extent(latest, sum(size for _, _, size in latest.held.values()))
    yield deployment.memo_of(replicas.ComposedReplicas).extent


COSTS: Costs = {
    **fleet_room.COSTS,
    **peers_room.COSTS,
    read_deployment: Cost(factor=10, fixed=replicas.BOUND, parts=_held, grows=True),
}
"""What it takes to remember what is read here."""


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before."""
    snapshot = _read(request, reuse)
    if isinstance(snapshot, Response):
        return snapshot
    settings = (snapshot.config, snapshot.fault, snapshot.requested)
    given = Given.of(
        reuse.digest(), snapshot.request, snapshot.fleets.whole or snapshot.fleets.standing, settings
    )
    return answered_once(snapshot.deployment, given, lambda: _decided(snapshot))


def answer(request: Request, *, reuse: Reuse = NO_REUSE, shared: Shared | None = None) -> Answer:
    """Answer one request anew, and hand out the decision: see `forecast`."""
    snapshot = _read(request, reuse, shared)
    if isinstance(snapshot, Response):
        return Answer(snapshot)
    response, decision = _decided(snapshot, shared)
    whole = snapshot.fleets.whole
    if whole is not None and not decision.inputs.fleet.whole:
        decision = _pass(snapshot, whole, shared)
    return Answer(response, decision)


def _read(request: Request, reuse: Reuse, shared: Shared | None = None) -> Snapshot | Response:
    """Read the request, or say that the composite cannot be read."""
    request = requirements.without_empty_block(request)
    try:
        composite, deployment = reuse.parsed(request.composite, read_deployment)
    except ValueError as error:
        return unreadable(request, requirements.declared(request), str(error))
    config, fault = _config(request)
    # Others' replicas are read whole where it matters to this one what they hold or will hold.
    coordinates = config.overcommit == "Yield" or config.coordination == "GlobalOrder" or bool(config.quotas)
    fleets = read_snapshots(request, deployment, reuse, thorough=coordinates, shared=shared)
    is_coordinated = config.coordination == "GlobalOrder" and fleets.whole is not None
    peers = read_peers(request, deployment, reuse, config) if is_coordinated else ListedPeers()
    return Snapshot(request, composite, deployment, config, fault, fleets, peers, optional(request))


def _decided(snapshot: Snapshot, shared: Shared | None = None) -> tuple[Response, Decision]:
    """Decide on what the deployment stands on, and on the fleet where that is needed; compose the answer."""
    request, fleets = snapshot.request, snapshot.fleets
    standing, whole = fleets.standing, fleets.whole
    needs = requirements.falls_short(snapshot.deployment, standing)
    if whole is None or not needs:
        decision = _pass(snapshot, standing, shared)
        delivered = standing.inputs_delivered
        # Undelivered, the composite and what is observed tell if the fleet is needed: one call fewer.
        needs = needs or requirements.needs_fleet(
            decision if delivered else _pass(snapshot, as_if_delivered(standing), shared)
        )
    if whole is not None and needs:
        decision = _pass(snapshot, whole, shared)
    if needs:
        decision = _awaiting(decision, requirements.undelivered(request, requirements.fleet(request)))
    required = requirements.stated(request, fleets.requirements, decision, needs=needs)
    return compose(decision, snapshot.composite, required, snapshot.requested), decision


def _pass(snapshot: Snapshot, seen: Fleet, shared: Shared | None) -> Decision:
    """Decide on a fleet, or on the part of it that the deployment stands on."""
    peers = snapshot.peers.on(seen, room_for) if seen.whole else NO_PEERS
    inputs = scheduling_input(snapshot.deployment, seen, snapshot.config, snapshot.fault, peers)
    if shared is not None:
        shared.join(inputs)
    return schedule(inputs, room=room_for(snapshot.deployment, seen))


def _awaiting(decision: Decision, names: tuple[str, ...]) -> Decision:
    """Return a decision that says what it needs and was not delivered."""
    seen = decision.inputs.fleet
    seen = replace(seen, undelivered=tuple(dict.fromkeys((*seen.undelivered, *names))))
    return replace(decision, inputs=replace(decision.inputs, fleet=seen))


def condition_types(request: Request) -> tuple[str, ...]:
    """Return the conditions that every answer to this request carries, in their order."""
    cache, _ = requirements.referenced_cache(request)
    return (*((CACHE_RESOLVED,) if cache else ()), SCHEDULED, READY, *optional(request))


def _config(request: Request) -> tuple[SchedulerConfig, str]:
    """Read the function's input. Of an invalid one count what it requires, and that it may have budgets."""
    if not request.input:
        return DEFAULTS, ""
    try:
        return SchedulerConfig.parse(request.input), ""
    except Malformed as error:
        coordination: Any = "GlobalOrder" if requirements.coordinated(request) else "None"
        capacity: Any = "Published" if requirements.published(request) else "Replicas"
        defaults = UNKNOWN_BUDGETS if request.input.get("defaults") else Defaults()
        config = SchedulerConfig(coordination=coordination, capacity=capacity, defaults=defaults)
        return config, invalid_input(request, error)
