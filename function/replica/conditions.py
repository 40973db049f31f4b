"""The replica's conditions: all of them on every path, the same text for the same problem, no time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from function.api.model import mapping
from function.api.text import joined, listed, one_line
from function.api.workload import serving_digest
from function.boundary import Condition, Request, Result
from function.fail_static import Doubt, base_of
from function.gateway_api import rejections
from function.objects import ObservedObject
from function.replica import names
from function.replica.compose import CompositionMemo, picker_works
from function.replica.kserve import services, waits_for
from function.replica.snapshot import UPDATED, ReplicaSnapshot, diagnoses_pods
from function.replica.state import EngineState, all_of
from function.transitions import MISSING, Before, conditions_before, transitions

# The status of the replica, only where our XRD declares it and the input asks for it.
#
# Crossplane applies the status with one owner, so a field that is left out is removed: in doubt it is
# written again as it was (Law C 3).
#
# `servingDigest` is the digest of the latest spec that all pods were known to run. That of this spec is
# written with evidence, and withdrawn when the evidence turns: engines without a digest say that it is not
# known what the pods run. While an edit is on its way the digest of before stays, which is that of another
# spec.

_FIELDS = ("engines", "servingDigest")


def status(
    request: Request,
    snapshot: ReplicaSnapshot | Doubt,
    states: tuple[EngineState, ...],
    composite: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the fields of the status to write."""
    before = {key: value for key, value in mapping(composite.get("status")).items() if key in _FIELDS}
    if isinstance(snapshot, Doubt):
        return before
    if snapshot.config.status != "Engines":
        return {}
    engines = [
        {"name": state.name, "copies": state.copies, "available": state.available, "updated": state.updated}
        for state in states
    ]
    digest, published = _digest(request, snapshot), before.get("servingDigest")
    if all_of(state.up_to_date for state in states):
        return {"engines": engines, "servingDigest": digest}
    if published in (None, digest):
        return {"engines": engines}
    return {"engines": engines, "servingDigest": published}


def _digest(request: Request, snapshot: ReplicaSnapshot) -> str:
    """Return the digest of what the pods run. It stays with the replica, which is read once."""
    cache = snapshot.replica.memo_of(CompositionMemo)
    if cache.digest is None:
        cache.digest = serving_digest(mapping(request.composite.project({"spec": None}).get("spec")))
    return cache.digest


ACCEPTED, READY, SCHEDULED = "ModelAccepted", "ModelReady", "PodsScheduled"

_APPLIED = {names.CLAIM, names.SECRET, names.NAMESPACE, *names.ROUTING}
"""What workloads need besides themselves."""

SHOWN = 3
"""How many engines a message names."""


def condition_types(request: Request) -> tuple[str, ...]:
    """Return the conditions that every answer to this request carries, in their order."""
    return (ACCEPTED, READY, UPDATED, *((SCHEDULED,) if diagnoses_pods(request) else ()))


def conditions(
    request: Request,
    snapshot: ReplicaSnapshot | Doubt,
    observed: Mapping[str, ObservedObject],
    states: tuple[EngineState, ...],
    pending: str | None,
) -> tuple[Condition, ...]:
    """Return all conditions.

    `pending` is why a pod is not scheduled: "" when all are, None when none is seen.
    """
    composed = (
        _accepted(snapshot, states),
        _ready(observed, states, pending or ""),
        _updated(states),
    )
    if not diagnoses_pods(request):
        return composed
    return (*composed, _scheduled(states, pending))


def _accepted(snapshot: ReplicaSnapshot | Doubt, states: tuple[EngineState, ...]) -> Condition:
    if isinstance(snapshot, Doubt):
        return Condition(ACCEPTED, status=False, reason=snapshot.reason, message=snapshot.message)
    if all_of(state.created for state in states):
        return Condition(ACCEPTED, status=True, reason="Accepted", message=one_line(_left_out(snapshot)))
    waiting = [_blamed(state.name, state) for state in states if not state.created]
    text = f"Not on {snapshot.replica.spec.cluster_name} yet: {listed(waiting, SHOWN)}"
    return Condition(ACCEPTED, status=False, reason="Deploying", message=one_line(text))


def _left_out(snapshot: ReplicaSnapshot) -> str:
    """Return which labels and annotations of the user reach no pod, "" for none."""
    reserved = [
        f"{key} (engine {engine.name}, {member.role})"
        for engine in snapshot.replica.engines
        for member in engine.members
        for key in member.template.metadata.reserved
    ]
    text = "Reserved keys are left out of pods; pods that run with them have them until their next edit"
    return f"{text}: {listed(reserved, SHOWN)}" if reserved else ""


def _ready(
    observed: Mapping[str, ObservedObject], states: tuple[EngineState, ...], pending: str
) -> Condition:
    if not all_of(state.ready for state in states):
        if not all_of(state.created for state in states):
            text = joined("Waiting for the workloads to be created", _refused(observed))
            return Condition(READY, status=False, reason="WaitingForModel", message=one_line(text))
        unready = listed([state.name for state in states if not state.ready], SHOWN)
        waiting = joined(f"Not serving yet: {unready}", _refused(observed))
        reason, said = waits_for(observed)
        reason, text = ("Unschedulable", pending) if pending else (reason, said or waiting)
        return Condition(READY, status=False, reason=reason, message=one_line(text))
    if services(observed):  # Its condition Ready is about pods, picker and route.
        return Condition(READY, status=True, reason="Serving")
    if not picker_works(observed):
        text = joined("The endpoint picker is not available yet", _refused(observed))
        return Condition(READY, status=False, reason="PickerStarting", message=one_line(text))
    rejection = next(_rejections(observed), "")
    if rejection:
        return Condition(READY, status=False, reason="RouteRejected", message=one_line(rejection))
    return Condition(READY, status=True, reason="Serving")


def _refused(observed: Mapping[str, ObservedObject]) -> str:
    """Return which Object could not be applied, and why; of workloads other conditions say it."""
    for key, composed in observed.items():
        read = names.read_key(base_of(key))
        if composed.synced is False and read is not None and read.what in _APPLIED:
            return f"{key}: {composed.synced_message}"
    return ""


def _blamed(text: str, state: EngineState) -> str:
    """Return what is said of an engine, with why its workload could not be applied."""
    return f"{text} ({state.fault})" if state.fault else text


def _rejections(observed: Mapping[str, ObservedObject]) -> Iterator[str]:
    """Yield why a gateway refuses the route. What is not said yet passes."""
    for key, route in observed.items():
        if base_of(key) == names.ROUTE:
            yield from rejections(route.remote_status)


def _updated(states: tuple[EngineState, ...]) -> Condition:
    """ModelUpdated is no part of Ready: pods of before serve on while new ones come."""
    if all_of(state.rolled_out for state in states):
        return Condition(UPDATED, status=True, reason="UpToDate")
    stalled = next((state for state in states if state.stalled), None)
    if stalled is not None:
        text = one_line(f"{stalled.name}: {stalled.stalled}")
        return Condition(UPDATED, status=False, reason="RolloutStalled", message=text)
    counts = [
        _blamed(f"{state.name} {state.updated} of {state.copies} copies", state)
        for state in states
        if not state.rolled_out
    ]
    text = listed(counts, SHOWN) or "No workload is composed yet"
    return Condition(UPDATED, status=False, reason="Updating", message=one_line(text))


def _scheduled(states: tuple[EngineState, ...], pending: str | None) -> Condition:
    """PodsScheduled. Pods are observed while a workload is not available: an available one has all of its."""
    if pending:
        return Condition(SCHEDULED, status=False, reason="Unschedulable", message=one_line(pending))
    if pending is None and not all_of(state.ready for state in states):
        text = "The pods are not observed yet"
        return Condition(SCHEDULED, status=False, reason="WaitingForPods", message=text)
    return Condition(SCHEDULED, status=True, reason="Scheduled")


# Events of a replica: its first composition, and what `transitions` has for every handler.


def results(
    snapshot: ReplicaSnapshot | Doubt, conditions: tuple[Condition, ...], composite: Mapping[str, Any]
) -> tuple[Result, ...]:
    """Return the events of this call: the first composition, a milestone, a new problem."""
    status = mapping(composite.get("status"))
    events = transitions("ModelReplica", conditions, status)
    return (*_composing(snapshot, conditions, conditions_before(status)), *events)


def _composing(
    snapshot: ReplicaSnapshot | Doubt,
    conditions: tuple[Condition, ...],
    before: Mapping[str, Before],
) -> Iterator[Result]:
    deploying = any(
        condition.type == ACCEPTED and condition.reason == "Deploying" for condition in conditions
    )
    if isinstance(snapshot, Doubt) or not deploying or before.get(ACCEPTED, MISSING).reason == "Deploying":
        return
    replica = snapshot.replica
    images = list(dict.fromkeys(engine.serving.template.container.image for engine in replica.engines))
    text = f"Composing {listed(images, SHOWN)} on {replica.spec.cluster_name}"
    yield Result("NORMAL", "Composing", one_line(text))
