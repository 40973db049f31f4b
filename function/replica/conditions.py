"""The replica's conditions: all of them on every path, the same text for the same problem, no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.text import joined, listed, one_line
from function.boundary import Condition
from function.fail_static import Doubt, base_of
from function.gateway_api import rejections
from function.replica import names
from function.replica.compose import picker_works
from function.replica.kserve_state import services, waits_for
from function.replica.requirements import diagnoses_pods
from function.replica.state import all_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.boundary import Request
    from function.objects import ObservedObject
    from function.replica.snapshot import ReplicaSnapshot
    from function.replica.state import EngineState

ACCEPTED, READY, UPDATED, SCHEDULED = "ModelAccepted", "ModelReady", "ModelUpdated", "PodsScheduled"

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
