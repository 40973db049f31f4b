"""placement.evacuate: who may be given up for having been lost or degraded too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.times import seconds_of

if TYPE_CHECKING:
    from function.api import InferenceCluster, ModelDeployment, ModelReplica
    from function.verify.state import State


def deadline(state: State, deployment: ModelDeployment) -> int | None:
    """What was last well before this time has been ill for too long; None: nothing may be given up for it."""
    policy = deployment.spec.placement
    if policy is None or policy.evacuate is None:
        return None
    alive = [cluster for cluster in state.clusters.values() if not cluster.deleting]
    beats = [beat for item in alive if (beat := _beat(item)) is not None]
    after = policy.evacuate.after_seconds
    cut_off = 2 * sum(beat >= max(beats) - after for beat in beats) < len(beats)
    if len(beats) <= 1 or cut_off:
        return None
    reached = [beat for beat in beats if 2 * sum(other >= beat for other in beats) > len(beats)]
    return max(reached) - after


def _beat(cluster: InferenceCluster) -> int | None:
    return seconds_of(cluster.status.heartbeat) if cluster.status else None


def lost(cluster: InferenceCluster, before: int) -> bool:
    """Whether nothing was heard of a cluster since, and nobody says that it is reached."""
    readings = (
        [condition.status for condition in cluster.status.conditions if condition.type == "ClusterReachable"]
        if (cluster.status)
        else []
    )
    beat = _beat(cluster)
    return beat is not None and beat < before and set(readings) != {"True"}


def evacuable(cluster: InferenceCluster, replica: ModelReplica, before: int) -> bool:
    """Whether a replica could be given up. Since when it is not Ready itself, the checker does not read."""
    if lost(cluster, before):
        return True
    conditions = cluster.status.conditions if cluster.status else ()
    since = [
        seconds_of(condition.last_transition_time) for condition in conditions if condition.type == "Ready"
    ]
    if cluster.ready is False and all(item is not None and item < before for item in since):
        return True
    created = seconds_of(replica.created)
    return replica.ready is False and (not replica.created or (created is not None and created < before))
