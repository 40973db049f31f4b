"""The table of contents of the whole program: one request in, one response out.

read the deployment -> read the fleet -> ask -> schedule -> compose (and explain)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api import Malformed, ModelDeployment, SchedulerConfig
from function.compose.conditions import cache_resolved
from function.compose.response import answer, requirements, unreadable
from function.compose.size import room_for
from function.compose.untouched import referenced, untouched
from function.exchange import NoReuse
from function.fleet import read_fleet, told_cache
from function.operations import handler as operation
from function.peers import read_peers
from function.scheduler.question import NOBODY, ask
from function.scheduler.schedule import schedule

if TYPE_CHECKING:
    from function.exchange import Document, Request, Response, Reuse

NO_REUSE = NoReuse()


def read_deployment(document: Document) -> tuple[dict[str, Any], ModelDeployment]:
    """Read the deployment that is asked about, as it stands and parsed. Raises ValueError."""
    composite = document.plain()
    return composite, ModelDeployment.parse(composite)


ROOM: dict[object, int] = {read_deployment: 1024 * 1024}
"""Bytes that what is read may grow by while it is remembered: see `scheduler.fit.Known`."""


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before."""
    if operation.is_operation(request):
        return operation.run(request, reuse=reuse)
    try:
        composite, deployment = reuse.parsed(request.composite, read_deployment)
    except ValueError as error:
        cache, namespace = referenced(request)
        needed = requirements(cache, namespace, coordinated=coordinated(request))
        delivered = all(each.delivered(request) for each in needed)
        cache_told, _, cache_fault = told_cache(request, cache, namespace)
        condition = cache_resolved(cache, cache_told, cache_fault)
        return unreadable(str(error), untouched(request), needed, condition, fatal=delivered)
    config, fault = _config(request)
    ordered = config.coordination == "GlobalOrder"
    fleet = read_fleet(request, deployment, reuse, thorough=ordered or config.overcommit == "Yield")
    peers = read_peers(request, deployment, fleet, reuse) if ordered else NOBODY
    question = ask(deployment, fleet, config, fault, peers)
    decision = schedule(question, room=room_for(deployment, question.fleet))
    return answer(decision, composite)


def _config(request: Request) -> tuple[SchedulerConfig, str]:
    """Read the function's input. An invalid one is reported, and the defaults apply."""
    try:
        return SchedulerConfig.parse(request.input or {}), ""
    except Malformed as error:
        coordination: Any = "GlobalOrder" if coordinated(request) else "None"
        return SchedulerConfig(coordination=coordination), str(error)


def coordinated(request: Request) -> bool:
    """Whether the input asks for coordination: what is required must not depend on the rest of it."""
    return (request.input or {}).get("coordination") == "GlobalOrder"
