"""Read how far a replica is on KServe: the service says whether it is served, its workloads which copies run.

The status of an LLMInferenceService counts nothing. So what its controller makes of each engine is looked at
too, and a copy counts as updated only where the pods of that workload say what is wanted: both are seen at
different times, and an older one must not pass for what became of a newer spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.lenient import condition_of, mapping, mappings
from function.fail_static import base_of
from function.objects import ObservedObject, covers
from function.replica import names
from function.replica.kserve import MAIN
from function.replica.state import (
    EngineState,
    copies_available,
    count,
    is_seen_by_controller,
    is_updating,
    replicas_of,
    stalled,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.boundary import Plain
    from function.replica.kserve import KServeEngine, KServeReplica

_ROUTER = {
    "HTTPRoutesReady": "RouteRejected",
    "GatewaysReady": "RouteRejected",
    "InferencePoolReady": "PickerStarting",
    "SchedulerWorkloadReady": "PickerStarting",
}
"""Conditions of a service about its way in, and the reason that each is for ModelReady."""
_WORKLOADS = (
    *("PresetsCombined", "MainWorkloadReady", "WorkerWorkloadReady"),
    *("PrefillWorkloadReady", "PrefillWorkerWorkloadReady"),
)


_STATED = ("image", "command", "args", "resources", "startupProbe", "readinessProbe", "lifecycle")
"""Fields of a container that no preset adds to, but for its variables."""


def states_on_kserve(
    replica: KServeReplica, observed: Mapping[str, ObservedObject]
) -> dict[str, EngineState]:
    """Return the state of every engine by name."""
    service = observed.get(replica.key)
    ready = any(one.ready is True for one in services(observed))
    if service is None:
        return {
            name: EngineState(name, copies, *(False, ready, False), 0, 0, 0, rolled_out=False)
            for name, copies in ((engine.engine.name, engine.engine.copies) for engine in replica.engines)
        }
    applied = service.manifest == replica.manifest and service.is_applied and is_seen_by_controller(service)
    return {
        engine.engine.name: _state(
            engine, service, observed.get(engine.key, ObservedObject()), ready=ready, applied=applied
        )
        for engine in replica.engines
    }


def _state(
    engine: KServeEngine,
    service: ObservedObject,
    workload: ObservedObject,
    *,
    ready: bool,
    applied: bool,
) -> EngineState:
    copies = engine.engine.copies
    runs = applied and is_seen_by_controller(workload) and _runs(workload, engine)
    updated = min(count(workload, "updatedReplicas"), copies) if runs else 0
    total = count(workload, "replicas")
    refused = service.synced_message if service.synced is False else ""
    return EngineState(
        name=engine.engine.name,
        copies=copies,
        created=service.is_created,
        ready=ready,
        in_use=applied and service.ready is True,
        available=copies_available(workload, copies),
        updated=updated,
        total=total,
        rolled_out=runs and updated == copies == total and not is_updating(workload),
        stalled=refused or stalled(workload),
        fault=refused,
    )


def observed_states_on_kserve(observed: Mapping[str, ObservedObject]) -> tuple[EngineState, ...]:
    """Return the states of all engines that are observed, where nobody can say what is wanted: in doubt."""
    running = services(observed)
    if not running:
        return ()
    observed_engines = {
        read.of: observed[key]
        for key in sorted(observed)
        if (read := names.read_key(base_of(key))) is not None and read.what == names.SEEN
    }
    applied = all(service.is_applied and is_seen_by_controller(service) for service in running)
    ready, created = (
        any(service.ready is True for service in running),
        any(service.is_created for service in running),
    )
    return tuple(
        _as_seen(engine, workload, created=created, ready=ready, applied=applied)
        for engine, workload in (observed_engines or {"model": ObservedObject()}).items()
    )


def _as_seen(
    engine: str, workload: ObservedObject, *, created: bool, ready: bool, applied: bool
) -> EngineState:
    """Return the state of an engine whose wanted copies are those of its workload."""
    copies = replicas_of(workload.remote or {})
    updated = min(count(workload, "updatedReplicas"), copies)
    total = count(workload, "replicas")
    current = applied and is_seen_by_controller(workload) and not is_updating(workload)
    return EngineState(
        name=engine,
        copies=copies,
        created=created,
        ready=ready,
        in_use=ready,
        available=copies_available(workload, copies),
        updated=updated,
        total=total,
        rolled_out=current and updated == copies == total,
        stalled=stalled(workload),
    )


def services(observed: Mapping[str, ObservedObject]) -> list[ObservedObject]:
    """Return the observed services of the replica: one, or it and its successor."""
    return [observed[key] for key in observed if base_of(key) == names.SERVICE_KEY]


def waits_for(observed: Mapping[str, ObservedObject]) -> tuple[str, str]:
    """Return why a service is not ready: a reason of ModelReady, and KServe's own words ("" for none)."""
    for service in services(observed):
        for kind in _WORKLOADS:
            holds, message = condition_of(service.remote_status, kind)
            if holds is False:
                return "ModelStarting", message
        for kind, reason in _ROUTER.items():
            holds, message = condition_of(service.remote_status, kind)
            if holds is False:
                return reason, message or f"KServe reports {kind} False"
    return "ModelStarting", ""


def _runs(workload: ObservedObject, engine: KServeEngine) -> bool:
    """Whether a workload's pods say all that is wanted of them, beside what the presets add."""
    made = list(_pod_specs(mapping((workload.remote or {}).get("spec"))))
    return len(made) >= len(engine.pods) and all(
        _carries(pod, wanted) for pod, wanted in zip(made, engine.pods, strict=False)
    )


def _pod_specs(spec: Mapping[str, Plain]) -> Iterator[dict[str, Any]]:
    """Yield the PodSpecs of a Deployment or a LeaderWorkerSet, the serving one first."""
    group = mapping(spec.get("leaderWorkerTemplate"))
    templates = (spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate"))
    for template in templates:
        if isinstance(template, dict):
            yield mapping(template.get("spec"))


def _carries(pod: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a PodSpec has what is wanted; lists that a preset adds to are compared by name."""
    for key, value in wanted.items():
        held = pod.get(key)
        if key == "containers":
            if not _container_carries(_named(held).get(MAIN, {}), value[0]):
                return False
        elif key == "volumes":
            if not _names_cover(held, value):
                return False
        elif not covers(held, value):
            return False
    return True


def _container_carries(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return _names_cover(held.get("env"), wanted.get("env")) and all(
        covers(held.get(key), wanted[key]) for key in _STATED if key in wanted
    )


def _names_cover(held: Plain, wanted: Plain) -> bool:
    mine, theirs = _named(held), _named(wanted)
    return all(covers(mine.get(name), value) for name, value in theirs.items())


def _named(items: Plain) -> dict[str, dict[str, Any]]:
    """Return the entries of a list by name."""
    return {str(entry.get("name")): entry for entry in mappings(items)}
