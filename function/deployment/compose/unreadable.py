"""Answer for a composite that cannot be read: nothing changes, and every condition says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.names import read_key
from function.api.text import one_line
from function.boundary import Condition, Response, Result, text_at
from function.deployment.compose import endpoints, replicas
from function.deployment.compose.conditions import (
    CAPACITY,
    READY,
    SCHEDULED,
    cache_resolved,
    optional,
    unresolved_capacity,
)
from function.deployment.compose.updated import UPDATED, unresolved_rollout
from function.deployment.requirements import referenced_cache
from function.deployment.snapshot.fleet import read_cache
from function.fail_static import everything_observed

if TYPE_CHECKING:
    from function.boundary import Document, Request, Requirement


def unreadable(request: Request, requirements: tuple[Requirement, ...], fault: str) -> Response:
    """Desire everything observed as it is.

    Fatal once the fleet was delivered; before that a fatal result would stop Crossplane from fetching it.
    """
    fatal = all(requirement.delivered(request) for requirement in requirements)
    cache, namespace = referenced_cache(request)
    state, _, cache_fault = read_cache(request, cache, namespace)
    text = one_line(f"The ModelDeployment cannot be read: {fault}")
    reason = "InvalidInput" if fatal else "InputsUnresolved"
    requested = optional(request)
    conditions = (
        cache_resolved(cache, state, cache_fault),
        Condition(SCHEDULED, status=False, reason=reason, message=text),
        Condition(READY, status=False, reason="ModelStarting", message=text),
        unresolved_rollout("the ModelDeployment cannot be read") if UPDATED in requested else None,
        unresolved_capacity("the ModelDeployment cannot be read") if CAPACITY in requested else None,
    )
    return Response(
        requirements=requirements,
        desired=everything_observed(request, _kind_of, namespace),
        unready=True,
        conditions=tuple(condition for condition in conditions if condition is not None),
        results=(Result("FATAL", "UnreadableComposite", text),) if fatal else (),
    )


def _kind_of(key: str, document: Document) -> str | None:
    """Return the kind under a key of ours; a replica or endpoint under an unreadable key is ours too."""
    identity = read_key(key)
    if identity is not None:
        return replicas.KIND if identity[0] == "replica" else endpoints.KIND
    kind = text_at(document, "kind")
    return kind if kind in (replicas.KIND, endpoints.KIND) else None
