"""Observe the pods of a workload that is not available, and pass on why the first is pending.

A collection is composed for the workload's pods, its members are required, and the first pod that could not
be scheduled gives its message. Nothing is changed on the cluster, so a collection leaves as soon as it has no
use.

provider-kubernetes looks at a collection, and at each member, when it changes, else every ten minutes. Pods
come after their collection, and what a scheduler says of them comes later still. So the collection changes
with every count that the workload reports, and its members ask to be looked at every 15 seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.lenient import condition_of
from function.fail_static import base_of
from function.objects import KIND, observing_collection, read_object
from function.replica import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from function.boundary import Request, Reuse
    from function.replica.snapshot import ReplicaSnapshot
    from function.replica.state import EngineState
    from function.replica.workloads import EnginePods

POLL_INTERVAL = {"crossplane.io/poll-interval": "15s"}
"""Asks crossplane-runtime (2.3 or later; earlier ones ignore it) to look at a member this often."""
COUNTS = "modelplane.ai/copies"
"""The annotation whose change makes a collection look for pods again."""


def collections(
    snapshot: ReplicaSnapshot, workloads: Sequence[EnginePods], states: Mapping[str, EngineState]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the collection of pods of every workload that does not have all of its copies available."""
    for workload in workloads:
        state = states[workload.engine.name]
        if not (state.ready and state.available >= state.copies):
            observed = {"apiVersion": "v1", "kind": "Pod", "namespace": snapshot.remote_namespace}
            counts = f"{state.total} made, {state.updated} updated, {state.available} available"
            yield (
                f"{names.PODS}-{workload.engine.name}",
                observing_collection(
                    observed,
                    workload.pod_labels,
                    snapshot.cluster.provider_config,
                    {**POLL_INTERVAL, COUNTS: counts},
                ),
            )


def unschedulable(request: Request, reuse: Reuse) -> str | None:
    """Return why the first pod, by name, could not be scheduled.

    "" when all could, None when no pod is seen.
    """
    pods = [
        reuse.parsed(document, read_object)
        for name in sorted(request.required)
        if (read := names.read_key(base_of(name))) is not None and read.what == names.PODS
        for document in request.required[name]
    ]
    created_pods = [pod for pod in pods if pod.kind == KIND and pod.is_created]
    for pod in sorted(created_pods, key=lambda created_pod: created_pod.identity.name):
        scheduled, message = condition_of(pod.remote_status, "PodScheduled")
        if scheduled is False:
            return message or f"Pod {pod.identity.name} is not scheduled"
    return "" if created_pods else None
