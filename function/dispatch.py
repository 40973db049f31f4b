"""Find the handler of a composite by its kind: a table, and nothing else.

To add a kind, add its room and one row of `HANDLERS`. A handler is three functions of its room. `run` answers
a request and depends on nothing else (Law 1). The other two are for a call that has no answer: which
requirements and which conditions it would have had, so that an internal error neither stops Crossplane from
fetching nor takes a condition away (`runner`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from function.adapter import handler as adapter
from function.api.names import read_key
from function.api.text import one_line
from function.boundary import NO_REUSE, Costs, Request, Requirement, Response, Result, Reuse, frozen, text_at
from function.cluster import handler as cluster
from function.deployment import handler as deployment
from function.deployment.requirements import declared as deployment_requirements
from function.operations import handler as operations
from function.replica import handler as replica
from function.routing import endpoint, service


class HandlerRun(Protocol):
    """A function that answers one request, and depends on nothing else."""

    def __call__(self, request: Request, *, reuse: Reuse) -> Response:
        """Return the answer; the same request gets the same answer."""


@frozen
class Handler:
    """The handler of one kind of composite, as its room offers it."""

    run: HandlerRun
    declared: Callable[[Request], tuple[Requirement, ...]] = lambda _request: ()
    """What it needs of the control plane, found out without running it."""
    condition_types: Callable[[Request], tuple[str, ...]] = lambda _request: ()
    """The conditions that every answer carries, an internal error included."""


HANDLERS: Mapping[str, Handler] = {
    deployment.KIND: Handler(deployment.run, deployment_requirements, deployment.condition_types),
    replica.KIND: Handler(replica.run, replica.declared, replica.condition_types),
    cluster.KIND: Handler(cluster.run, cluster.declared, cluster.condition_types),
    cluster.CLASS_KIND: Handler(cluster.run_class),
    endpoint.KIND: Handler(endpoint.run, condition_types=lambda _request: endpoint.CONDITION_TYPES),
    service.KIND: Handler(service.run, service.declared, lambda _request: service.CONDITION_TYPES),
    adapter.KIND: Handler(adapter.run, adapter.declared, lambda _request: adapter.CONDITION_TYPES),
    # A placement is data, as a class is: nothing is composed of it, and it becomes Ready.
    adapter.PLACEMENT_KIND: Handler(cluster.run_class),
}

OPERATION = Handler(operations.run, operations.declared)
"""The step of an Operation, which has no composite."""

COSTS: Costs = {**deployment.COSTS, **replica.COSTS, **service.COSTS, **adapter.COSTS}
"""What it takes to remember what a handler reads."""


def handler_of(request: Request) -> Handler | None:
    """Return the handler of the composite's kind, or of an Operation; None for a kind without one.

    A composite without a readable kind goes to the handler of deployments, which says what is wrong with it,
    unless something is observed that no deployment composes: that handler would let it go (Law C).
    """
    if operations.is_operation(request):
        return OPERATION
    kind = text_at(request.composite, "kind")
    if kind:
        return HANDLERS.get(kind)
    ours = all(read_key(key) for key in request.observed if key not in request.desired)
    return HANDLERS[deployment.KIND] if ours else None


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request by the handler of its composite's kind."""
    handler = handler_of(request)
    if handler is None:
        kind = text_at(request.composite, "kind") or "a composite whose kind cannot be read"
        text = one_line(f"cannot compose {kind}")
        return Response(requirements=(), results=(Result("FATAL", "UnknownKind", text),))
    return handler.run(request, reuse=reuse)
