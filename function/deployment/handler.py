"""Handle a ModelDeployment: one request in, one response out. This file is the table of contents.

requirements -> snapshot -> schedule (retain, scale down, fill, replace, roll) -> compose (with explain)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.api import Malformed, ModelDeployment, SchedulerConfig
from function.api.inputs import invalid_input
from function.boundary import Cost, NoReuse, Response
from function.deployment.answers import Given, LatestAnswer, answered_once
from function.deployment.compose import replicas
from function.deployment.compose.conditions import CACHE_RESOLVED, READY, SCHEDULED, optional
from function.deployment.compose.replicas import room_for
from function.deployment.compose.response import compose, unreadable
from function.deployment.requirements import coordinated, declared, published, referenced_cache
from function.deployment.snapshot import fleet as fleet_room
from function.deployment.snapshot import ownership as peers_room
from function.deployment.snapshot.fleet import read_fleet
from function.deployment.snapshot.ownership import ListedPeers, read_peers
from function.scheduler.matching.cache import parts_of
from function.scheduler.schedule import schedule
from function.scheduler.scheduling_input import scheduling_input

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.boundary import Costs, Document, Part, Request, Requirement, Reuse
    from function.scheduler.decision import Decision
    from function.scheduler.headroom import Shared
    from function.scheduler.scheduling_input import Fleet

NO_REUSE = NoReuse()
DEFAULTS = SchedulerConfig()
"""What a step without an input asks for."""

KIND = "ModelDeployment"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that is read of a request before anything is decided."""

    requirements: tuple[Requirement, ...]
    composite: dict[str, Any]
    deployment: ModelDeployment
    config: SchedulerConfig
    fault: str
    """What is wrong with the function's input."""
    fleet: Fleet
    peers: ListedPeers
    requested: tuple[str, ...]
    """The optional conditions that are returned."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response and the decision it was composed from; None where the composite could not be read."""

    response: Response
    decision: Decision | None = None


def read_deployment(document: Document) -> tuple[dict[str, Any], ModelDeployment]:
    """Read the composite, as it stands and parsed. Raises ValueError."""
    composite = document.plain()
    return composite, ModelDeployment.parse(composite)


def _held(read: tuple[dict[str, Any], ModelDeployment]) -> Iterable[Part]:
    yield from parts_of(read[1])
    yield read[1].cache_of(LatestAnswer).extent
    yield read[1].cache_of(replicas.ComposedReplicas).extent


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
    given = Given.of(
        reuse.digest(),
        request,
        snapshot.fleet,
        (snapshot.config, snapshot.fault, snapshot.requirements, snapshot.requested),
    )
    return answered_once(snapshot.deployment, given, lambda: _decided(snapshot))


def answer(request: Request, *, reuse: Reuse = NO_REUSE, shared: Shared | None = None) -> Answer:
    """Answer one request anew, and hand out the decision: see `forecast`."""
    snapshot = _read(request, reuse, shared)
    return Answer(snapshot) if isinstance(snapshot, Response) else Answer(*_decided(snapshot, shared))


def _read(request: Request, reuse: Reuse, shared: Shared | None = None) -> Snapshot | Response:
    """Read the request, or say that the composite cannot be read."""
    requirements = declared(request)
    try:
        composite, deployment = reuse.parsed(request.composite, read_deployment)
    except ValueError as error:
        return unreadable(request, requirements, str(error))
    config, fault = _config(request)
    is_coordinated = config.coordination == "GlobalOrder"
    fleet = read_fleet(
        request,
        deployment,
        reuse,
        thorough=config.coordinates,
        published=config.capacity == "Published",
        shared=shared,
    )
    peers = read_peers(request, deployment, reuse) if is_coordinated else ListedPeers()
    return Snapshot(requirements, composite, deployment, config, fault, fleet, peers, optional(request))


def _decided(snapshot: Snapshot, shared: Shared | None = None) -> tuple[Response, Decision]:
    """Decide, and compose the answer."""
    peers = snapshot.peers.on(snapshot.fleet)
    inputs = scheduling_input(snapshot.deployment, snapshot.fleet, snapshot.config, snapshot.fault, peers)
    if shared is not None:
        shared.join(inputs)
    decision = schedule(inputs, room=room_for(snapshot.deployment, snapshot.fleet))
    return compose(decision, snapshot.composite, snapshot.requirements, snapshot.requested), decision


def condition_types(request: Request) -> tuple[str, ...]:
    """Return the conditions that every answer to this request carries, in their order."""
    cache, _ = referenced_cache(request)
    return (*((CACHE_RESOLVED,) if cache else ()), SCHEDULED, READY, *optional(request))


def _config(request: Request) -> tuple[SchedulerConfig, str]:
    """Read the function's input. An invalid one is reported, and the defaults apply."""
    if not request.input:
        return DEFAULTS, ""
    try:
        return SchedulerConfig.parse(request.input), ""
    except Malformed as error:
        coordination: Any = "GlobalOrder" if coordinated(request) else "None"
        capacity: Any = "Published" if published(request) else "Replicas"
        return SchedulerConfig(coordination=coordination, capacity=capacity), invalid_input(request, error)
