"""The table of contents of the whole program: one request in, one response out.

read the deployment -> read the fleet -> ask -> schedule -> compose (and explain)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api import Malformed, ModelDeployment, SchedulerConfig
from function.compose.response import answer, requirements, unreadable
from function.compose.size import room_for
from function.compose.untouched import referenced, untouched
from function.exchange import NoReuse
from function.fleet import CLUSTERS, REPLICAS, read_fleet
from function.peers import read_peers
from function.scheduler.question import NOBODY, ask
from function.scheduler.schedule import schedule

if TYPE_CHECKING:
    from function.exchange import Request, Response, Reuse

NO_REUSE = NoReuse()


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before."""
    try:
        composite = request.composite.plain()
        deployment = ModelDeployment.parse(composite)
    except ValueError as error:
        told = CLUSTERS in request.required and REPLICAS in request.required
        needed = requirements(*referenced(request))
        return unreadable(str(error), untouched(request), needed, told=told)
    config, fault = _config(request)
    coordinated = config.coordination == "GlobalOrder"
    fleet = read_fleet(request, deployment, reuse, thorough=coordinated or config.overcommit == "Yield")
    peers = read_peers(request, deployment, fleet, reuse) if coordinated else NOBODY
    question = ask(deployment, fleet, config, fault, peers)
    decision = schedule(question, room=room_for(deployment, question.fleet))
    return answer(decision, composite)


def _config(request: Request) -> tuple[SchedulerConfig, str]:
    """Read the function's input. An invalid one is reported, and the defaults apply."""
    try:
        return SchedulerConfig.parse(request.input or {}), ""
    except Malformed as error:
        return SchedulerConfig(), str(error)
