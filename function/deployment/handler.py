"""Handle a ModelDeployment: one request in, one response out. This file is the table of contents.

requirements -> snapshot -> schedule (retain, scale down, fill, replace) -> explain -> compose
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.api import Malformed, ModelDeployment, SchedulerConfig
from function.boundary import NoReuse
from function.deployment.compose.conditions import CACHE_RESOLVED, CAPACITY, READY, SCHEDULED, tells_capacity
from function.deployment.compose.response import compose
from function.deployment.compose.size import room_for
from function.deployment.compose.unreadable import unreadable
from function.deployment.requirements import coordinated, declared, referenced_cache
from function.deployment.snapshot.fleet import read_fleet
from function.deployment.snapshot.peers import read_peers
from function.scheduler.fleet import Peers
from function.scheduler.schedule import schedule
from function.scheduler.scheduling_input import scheduling_input

if TYPE_CHECKING:
    from function.boundary import Document, Request, Response, Reuse
    from function.scheduler.decision import Decision

NO_REUSE = NoReuse()

KIND = "ModelDeployment"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response and the decision it was composed from; None where the composite could not be read."""

    response: Response
    decision: Decision | None = None


def read_deployment(document: Document) -> tuple[dict[str, Any], ModelDeployment]:
    """Read the composite, as it stands and parsed. Raises ValueError."""
    composite = document.plain()
    return composite, ModelDeployment.parse(composite)


GROWTH: dict[object, int] = {read_deployment: 1024 * 1024}
"""Bytes that what is read may grow by while it is remembered: see `scheduler.matching`."""


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before."""
    return answer(request, reuse=reuse).response


def answer(request: Request, *, reuse: Reuse = NO_REUSE) -> Answer:
    """Answer one request, and hand out the decision: see `forecast`."""
    requirements = declared(request)
    try:
        composite, deployment = reuse.parsed(request.composite, read_deployment)
    except ValueError as error:
        return Answer(unreadable(request, requirements, str(error)))
    config, fault = _config(request)
    is_coordinated = config.coordination == "GlobalOrder"
    fleet = read_fleet(request, deployment, reuse, thorough=config.coordinates)
    peers = read_peers(request, deployment, fleet, reuse) if is_coordinated else Peers()
    inputs = scheduling_input(deployment, fleet, config, fault, peers)
    decision = schedule(inputs, room=room_for(deployment, fleet))
    tells = tells_capacity(request)
    return Answer(compose(decision, composite, requirements, tells_capacity=tells), decision)


def condition_types(request: Request) -> tuple[str, ...]:
    """Return the conditions that every answer to this request carries, in their order."""
    cache, _ = referenced_cache(request)
    capacity = (CAPACITY,) if tells_capacity(request) else ()
    return (*((CACHE_RESOLVED,) if cache else ()), SCHEDULED, READY, *capacity)


def _config(request: Request) -> tuple[SchedulerConfig, str]:
    """Read the function's input. An invalid one is reported, and the defaults apply."""
    try:
        return SchedulerConfig.parse(request.input or {}), ""
    except Malformed as error:
        coordination: Any = "GlobalOrder" if coordinated(request) else "None"
        return SchedulerConfig(coordination=coordination), str(error)
