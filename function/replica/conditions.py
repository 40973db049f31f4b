"""Say how a replica is: its status, its conditions, its events.

Conditions are how a user learns why a model does not answer, so all of them are in every answer: one that is
left out would keep its last value and lie. Their texts are the same while the problem is, and have no time,
because every other text is a write that wakes whoever watches the replica.

    ModelAccepted ▶ its objects are on the cluster        ModelReady ▶ it takes requests
    ModelUpdated ▶ all copies run this spec               PodsScheduled ▶ only with `diagnose: Pods`

ModelUpdated is no part of Ready: pods of before serve on while new ones come. Which problem is said where
there are several is the order of the branches. An event comes with a transition only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from function import gateway_api
from function.api.model import KSERVE, mapping, mappings
from function.api.text import counted, joined, listed, one_line
from function.api.workload import serving_digest
from function.boundary import Condition, Request, Result, Unreadable
from function.fail_static import Doubt
from function.objects import ObservedObject
from function.replica import names
from function.replica.adapters import MAX_PRESENT, configured, room_of, unlisted
from function.replica.compose import CompositionMemo, failing, unschedulable
from function.replica.kserve import waits_for
from function.replica.snapshot import NAME_TAKEN, UPDATED, NameTaken, ReplicaSnapshot, was_updated
from function.replica.state import FAILED_CREATE, EngineState, all_of, is_ready
from function.transitions import MISSING, Before, conditions_before, transitions, unmet

ACCEPTED, READY, SCHEDULED = "ModelAccepted", "ModelReady", "PodsScheduled"
SHOWN = 3
"""How many engines a message names."""
_FIELDS = ("engines", "servingDigest", "adapters")
"""Fields of the status that are ours: one that an answer leaves out is removed (Law C 3)."""
_APPLIED = {names.CLAIM, names.GROUP, names.ADAPTERS, names.SECRET, names.NAMESPACE, *names.ROUTING}
"""Objects that workloads need besides themselves."""
_BESIDE = {*_APPLIED, names.BUDGET}
"""Objects that are applied beside the workloads."""
APART = "One PodGroup cannot bind several copies, so a group of these may hold devices and wait"
"""Said of gangs of several copies where a cluster has PodGroups."""
WORDS = 320
"""Characters of a refusal that stands beside what else there is to say."""


def status(
    request: Request,
    snapshot: ReplicaSnapshot | Doubt,
    states: tuple[EngineState, ...],
    composite: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the fields of the status to write: only where our XRD declares them and the input asks for it.

    `servingDigest` is the digest of the latest spec that all pods were known to run, which a rollout waits
    for. That of this spec is written with evidence, and withdrawn when the evidence turns: engines without a
    digest say that it is not known what the pods run. While an edit is on its way the digest of before stays,
    which is that of another spec.
    """
    before = {key: value for key, value in mapping(composite.get("status")).items() if key in _FIELDS}
    if isinstance(snapshot, Doubt):
        # Law C 3. Crossplane applies the status with one owner, so a field that is left out is removed.
        of_before = before.get("servingDigest") != _digest(request)
        return _uncounted(before) if of_before else _vouched(before)
    adapters: dict[str, Any] = {}
    if room_of(snapshot.replica) is not None:
        listed_there = configured(snapshot.observed)
        if listed_there is not None:
            adapters = {"adapters": [{"name": name} for name in listed_there]}
        elif "adapters" in before:  # Law C 3.
            adapters = {"adapters": before["adapters"]}
    if snapshot.config.status != "Engines":
        return adapters
    fields: dict[str, Any] = {
        **adapters,
        "engines": [
            {
                "name": state.name,
                "copies": state.copies,
                "available": state.available,
                "updated": state.updated,
            }
            for state in states
        ],
    }
    memo, published = snapshot.replica.memo_of(CompositionMemo), before.get("servingDigest")
    if memo.digest is None:
        memo.digest = _digest(request)
    if all_of(state.up_to_date for state in states):
        fields["servingDigest"] = memo.digest
    elif published not in (None, memo.digest):
        fields["servingDigest"] = published
    return fields


def _digest(request: Request) -> str:
    """Return the digest of the spec as it stands; "" where the composite cannot be decoded."""
    try:
        return serving_digest(mapping(request.composite.project({"spec": None}).get("spec")))
    except Unreadable:
        return ""


def _uncounted(before: dict[str, Any]) -> dict[str, Any]:
    """Return the status of before without the counts of updated copies: they may be about another spec.

    Crossplane says of this answer's Ready that it is about the present spec, so a rollout would believe them.
    """
    engines = [
        entry | {"updated": 0} if "updated" in entry else entry for entry in mappings(before.get("engines"))
    ]
    return before | ({"engines": engines} if engines else {})


def _vouched(before: dict[str, Any]) -> dict[str, Any]:
    """Return the status of before, without a digest that its own counts do not bear out.

    The digest of a spec stays while an edit of it is on its way. Where that edit is taken back in doubt, the
    pods may run the edit although the digest is that of the spec again.
    """
    counted = all(entry.get("updated") == entry.get("copies") for entry in mappings(before.get("engines")))
    return before if counted else {key: value for key, value in before.items() if key != "servingDigest"}


def _was_running(request: Request, status: Mapping[str, Any], updated: Condition) -> bool:
    """Tell if the workloads in doubt are those of the present spec, by what the status of before says.

    Without a digest there is the condition of before alone, and an edit since then is not seen by it.
    """
    published = _vouched(dict(status)).get("servingDigest")
    return published == _digest(request) if published else not updated.status or was_updated(request)


def condition_types(request: Request) -> tuple[str, ...]:
    """Return the conditions that every answer to this request carries, in their order."""
    return (ACCEPTED, READY, UPDATED, *((SCHEDULED,) if request.asks("diagnose", "Pods") else ()))


def conditions(
    request: Request,
    snapshot: ReplicaSnapshot | Doubt,
    observed: Mapping[str, ObservedObject],
    states: tuple[EngineState, ...],
    pods: Sequence[ObservedObject],
    composite: Mapping[str, Any],
) -> tuple[Condition, ...]:
    """Return all conditions. `pods`: those that are seen, of workloads that are not available."""
    pending, fault = unschedulable(pods), failing(pods)
    ready, updated = _ready(observed, states, pending or "", fault), _updated(states, fault)
    status = mapping(composite.get("status"))
    before = conditions_before(status).get(READY, MISSING)
    theirs = snapshot if isinstance(snapshot, NameTaken) else _left_to_another(snapshot, observed, before)
    if theirs is not None and before.status != "True":
        # Requests would reach the pods of another team. Those that do already go on (Law 2).
        ready = Condition(READY, status=False, reason=theirs.reason, message=theirs.message)
        updated = unmet(UPDATED, "Updating", theirs.message)
    elif isinstance(snapshot, Doubt) and not _was_running(request, status, updated):
        # The workloads may be those of the spec before: what all of their copies run is not what is wanted.
        updated = unmet(UPDATED, "Updating", snapshot.message)
    composed = (_accepted(snapshot, observed, states), ready, updated)
    if not request.asks("diagnose", "Pods"):
        return composed
    # Pods are observed while a workload is not available: an available one has all of its.
    scheduled = Condition(SCHEDULED, status=True, reason="Scheduled")
    if pending:
        scheduled = unmet(SCHEDULED, "Unschedulable", pending)
    elif pending is None and ready.reason == FAILED_CREATE:
        scheduled = unmet(SCHEDULED, FAILED_CREATE, ready.message)
    elif pending is None and not all_of(state.ready for state in states):
        text = "The pods are not observed yet"
        scheduled = Condition(SCHEDULED, status=False, reason="WaitingForPods", message=text)
    return (*composed, scheduled)


def _left_to_another(
    snapshot: ReplicaSnapshot | Doubt, observed: Mapping[str, ObservedObject], before: Before
) -> Doubt | None:
    """Return why workloads that were left to a replica of the same name are not ours yet, None if they are.

    The doubt in which they were left may be followed by another one. Once the name is free they are managed
    again, and what was seen of them is still of the other's pods until the provider has written ours.
    """
    workloads = names.among(observed, names.WORKLOAD, names.SERVICE)
    if not any(workload.only_seen for workload in workloads) and (
        before.reason != NAME_TAKEN or all(workload.synced and not workload.pending for workload in workloads)
    ):
        return None
    if isinstance(snapshot, Doubt):
        return snapshot
    refused = next((workload.synced_message for workload in workloads if workload.synced is False), "")
    text = "What another ModelReplica of this name left on the cluster is not written by this one yet"
    return Doubt(NAME_TAKEN, one_line(joined(text, refused)))


def _accepted(
    snapshot: ReplicaSnapshot | Doubt, observed: Mapping[str, ObservedObject], states: tuple[EngineState, ...]
) -> Condition:
    """ModelAccepted: in no doubt, and every workload was seen on the cluster.

    A budget, a Secret or a part of the route that is refused takes no model out of service, so it is said
    while that goes on.
    """
    if isinstance(snapshot, Doubt):
        return Condition(ACCEPTED, status=False, reason=snapshot.reason, message=snapshot.message)
    if not all_of(state.created for state in states):
        waiting = [_blamed(state.name, state) for state in states if not state.created]
        text = f"Not on {snapshot.replica.spec.cluster_name} yet: {listed(waiting, SHOWN)}"
        return unmet(ACCEPTED, "Deploying", text)
    # OwnSelectors of docs/compatibility.md: labels that we select by reach no pod from a user, who is told.
    reserved = [
        f"{key} (engine {engine.name}, {member.role})"
        for engine in snapshot.replica.spec.engines
        for member in engine.members
        for key in member.template.metadata.reserved
    ]
    text = "Reserved keys are left out of pods; pods that run with them have them until their next edit"
    text = f"{text}: {listed(reserved, SHOWN)}" if reserved else ""
    apart = [engine.name for engine in snapshot.replica.spec.engines if engine.is_gang and engine.copies > 1]
    if apart and snapshot.cluster.spec.scheduling.gangs and snapshot.cluster.spec.stack != KSERVE:
        text = joined(text, f"{APART}: {listed(apart, SHOWN)}")
    placed = snapshot.replica, snapshot.placements, snapshot.observed, snapshot.remote_namespace
    if snapshot.placements and (waits := unlisted(*placed)):
        full = f"{counted(waits, 'adapter')} wait{'s' * (waits == 1)}: the list of adapters is full"
        text = joined(text, f"{full} ({MAX_PRESENT} bytes)")
    refused = [
        f"{composed.identity} ({one_line(composed.refusal, WORDS)})"
        for key, composed in observed.items()
        if composed.refusal and names.what_of(key) in _BESIDE
    ]
    text = joined(f"Not applied: {listed(refused, 1)}" if refused else "", text)
    return Condition(ACCEPTED, status=True, reason="Accepted", message=one_line(text))


def _ready(
    observed: Mapping[str, ObservedObject], states: tuple[EngineState, ...], pending: str, fault: str
) -> Condition:
    """ModelReady: every engine takes requests, and something leads them there.

    The first branch that holds names the reason: workloads, then the picker, then the route.
    """
    # The first Object beside the workloads that could not be applied; of workloads other conditions say it.
    refused = next(
        (
            f"{composed.identity}: {composed.synced_message}"
            for key, composed in observed.items()
            if composed.synced is False and names.what_of(key) in _APPLIED
        ),
        "",
    )
    if not all_of(state.ready for state in states):
        return _not_serving(observed, states, pending, joined(fault, refused))
    if names.among(observed, names.SERVICE):
        # KServe's own condition Ready is about pods, picker and route.
        return Condition(READY, status=True, reason="Serving")
    # PickerCounts of docs/compatibility.md: without a picker no request reaches a pod.
    if not is_ready(observed, names.PICKER):
        text = joined("The endpoint picker is not available yet", refused)
        return unmet(READY, "PickerStarting", text)
    # What a gateway does not say yet passes: some report on no route at all.
    rejections = (
        f"{route.identity}: {text}"
        for route in names.among(observed, names.ROUTE)
        for text in gateway_api.rejections(route.remote_status)
    )
    rejection = next(rejections, "")
    if rejection:
        return unmet(READY, "RouteRejected", rejection)
    return Condition(READY, status=True, reason="Serving")


def _not_serving(
    observed: Mapping[str, ObservedObject], states: tuple[EngineState, ...], pending: str, faults: str
) -> Condition:
    """Return why an engine takes no requests. Pods that the cluster cannot place, or refuses, come first."""
    if not all_of(state.created for state in states):
        text = joined("Waiting for the workloads to be created", faults)
        return unmet(READY, "WaitingForModel", text)
    unready = [state for state in states if not state.ready]
    if pending:
        return unmet(READY, "Unschedulable", pending)
    for state in unready:
        if state.refused:
            return unmet(READY, FAILED_CREATE, f"{state.name}: {state.refused}")
    waiting = f"Not serving yet: {listed([state.name for state in unready], SHOWN)}"
    reason, said = waits_for(observed)
    return unmet(READY, reason, joined(said or waiting, faults))


def _updated(states: tuple[EngineState, ...], fault: str) -> Condition:
    """ModelUpdated: every copy is known to run this spec.

    A stalled rollout is said before counts: it needs somebody to act.
    """
    if all_of(state.rolled_out for state in states):
        return Condition(UPDATED, status=True, reason="UpToDate")
    for state in states:
        if state.stalled:
            text = joined(f"{state.name}: {state.stalled}", state.refused, fault)
            return unmet(UPDATED, "RolloutStalled", text)
    counts = [
        _blamed(f"{state.name} {state.updated} of {state.copies} copies", state)
        for state in states
        if not state.rolled_out
    ]
    text = listed(counts, SHOWN) or "No workload is composed yet"
    return unmet(UPDATED, "Updating", joined(text, fault))


def _blamed(text: str, state: EngineState) -> str:
    """Return what is said of an engine, with why its workload could not be applied or gets no pods."""
    why = state.fault or state.refused
    return f"{text} ({why})" if why else text


def results(
    snapshot: ReplicaSnapshot | Doubt, conditions: tuple[Condition, ...], composite: Mapping[str, Any]
) -> tuple[Result, ...]:
    """Return the events of this call: the first composition, a milestone, a new problem."""
    status = mapping(composite.get("status"))
    events = tuple(transitions("ModelReplica", conditions, status))
    was = conditions_before(status).get(ACCEPTED, MISSING).reason
    is_deploying = any(item.type == ACCEPTED and item.reason == "Deploying" for item in conditions)
    if isinstance(snapshot, Doubt) or not is_deploying or was == "Deploying":
        return events
    engines = snapshot.replica.spec.engines
    images = list(dict.fromkeys(engine.serving.template.container.image for engine in engines))
    text = one_line(f"Composing {listed(images, SHOWN)} on {snapshot.replica.spec.cluster_name}")
    return (Result("NORMAL", "Composing", text), *events)
