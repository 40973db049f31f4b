"""Read how far the workloads are from their Objects, engine by engine.

The last status that was seen counts, also while a cluster cannot be reached: nothing flaps because a network
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.lenient import condition_of, conditions_of, mapping
from function.fail_static import base_of
from function.replica import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from function.objects import ObservedObject

STALLED = "ProgressDeadlineExceeded"


@dataclass(frozen=True, slots=True)
class EngineState:
    """What is observed of one engine."""

    name: str
    copies: int
    created: bool
    """Whether its workload was seen on the cluster."""
    ready: bool
    """Whether its workload takes requests, or one that it supersedes does."""
    in_use: bool
    """Whether its own workload takes requests as it is wanted now."""
    available: int
    """Copies that take requests."""
    updated: int
    """Copies that run what is wanted now."""
    total: int
    """Copies that there are, whatever they run."""
    rolled_out: bool
    """Whether every copy runs what is wanted now, and nothing else runs."""
    stalled: str = ""
    """The message of a rollout that ran out of time."""
    fault: str = ""
    """Why its Object could not be applied."""


def engine_state(
    engine: str, copies: int, key: str, manifest: Mapping[str, Any], observed: Mapping[str, ObservedObject]
) -> EngineState:
    """Return the state of an engine whose workload is wanted under `key`."""
    workload = observed.get(key)
    family = [
        workload_key
        for workload_key in observed
        if names.read_key(base_of(workload_key)) == names.Key(names.WORKLOAD, engine)
    ]
    ready = any(is_serving(observed[workload_key]) for workload_key in family)
    if workload is None:
        return EngineState(engine, copies, *(False, ready, False), 0, 0, 0, rolled_out=False)
    applied = workload.manifest == manifest and workload.is_applied and is_seen_by_controller(workload)
    updated = min(count(workload, "updatedReplicas"), copies) if applied else 0
    rolled_out = applied and updated == copies == count(workload, "replicas") and not is_updating(workload)
    return EngineState(
        name=engine,
        copies=copies,
        created=workload.is_created,
        ready=ready,
        in_use=applied and is_serving(workload),
        available=copies_available(workload, copies),
        updated=updated,
        total=count(workload, "replicas"),
        rolled_out=rolled_out,
        stalled=stalled(workload),
        fault=workload.synced_message if workload.synced is False else "",
    )


def observed_states(observed: Mapping[str, ObservedObject]) -> tuple[EngineState, ...]:
    """Return the states of all engines that are observed, where nobody can say what is wanted: in doubt."""
    latest: dict[str, str] = {}
    for key in sorted(observed):
        read = names.read_key(base_of(key))
        if read is not None and read.what == names.WORKLOAD:
            latest[read.of] = key
    return tuple(
        engine_state(engine, replicas_of(observed[key].manifest), key, observed[key].manifest, observed)
        for engine, key in latest.items()
    )


def is_serving(workload: ObservedObject) -> bool:
    """Whether a workload takes requests.

    A Deployment that may miss one copy is Available without any pod, and its Object then is Ready. Where its
    controller has reported, at least one copy must be available; where nothing is reported, Ready counts.
    """
    if workload.ready is not True:
        return False
    reported = "conditions" in workload.remote_status and not _is_gang(workload)
    return not reported or count(workload, "availableReplicas") > 0


def count(workload: ObservedObject, field: str) -> int:
    """Return a count of the remote status, 0 where there is none."""
    return _positive(workload.remote_status.get(field)) or 0


def copies_available(workload: ObservedObject, copies: int) -> int:
    """Return how many of the wanted copies take requests."""
    return min(count(workload, "readyReplicas" if _is_gang(workload) else "availableReplicas"), copies)


def all_of(values: Iterable[bool]) -> bool:
    """Whether something holds of every engine, and there is one."""
    listed = list(values)
    return bool(listed) and all(listed)


def _is_gang(workload: ObservedObject) -> bool:
    return workload.identity.kind == "LeaderWorkerSet"


def replicas_of(workload: Mapping[str, Any]) -> int:
    """Return the copies that a workload's spec asks for, 1 where it does not say."""
    return _positive(mapping(workload.get("spec")).get("replicas")) or 1


def _positive(value: object) -> int | None:
    """Return a count that is one, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def is_seen_by_controller(workload: ObservedObject) -> bool:
    """Whether the status is about the spec as it is. A LeaderWorkerSet does not say which one it is about."""
    if _is_gang(workload):
        return True
    generation = mapping((workload.remote or {}).get("metadata")).get("generation")
    reported = workload.remote_status.get("observedGeneration")
    return isinstance(generation, int) and isinstance(reported, int) and reported >= generation


def is_updating(workload: ObservedObject) -> bool:
    """Whether a LeaderWorkerSet says that groups are still being replaced, or is not all there."""
    if not _is_gang(workload):
        return False
    updating, _ = condition_of(workload.remote_status, "UpdateInProgress")
    available, _ = condition_of(workload.remote_status, "Available")
    return updating is True or available is not True


def stalled(workload: ObservedObject) -> str:
    """Return the message of a rollout that ran out of time, "" for none."""
    for condition in conditions_of(workload.remote_status):
        values = (condition.get("type"), condition.get("status"), condition.get("reason"))
        if values == ("Progressing", "False", STALLED):
            return str(condition.get("message") or STALLED)
    return ""
