"""The reasons that conditions carry, as rows: whose they are, and which event is made of one that arrives.

A reason of a condition is API: it keeps its name and its meaning. Nobody keeps lists of them elsewhere. Why a
cluster or a pool does not fit is another thing, see `reasons`.
"""

from __future__ import annotations

from typing import NamedTuple


class ConditionReason(NamedTuple):
    """One reason of the conditions of a kind."""

    name: str
    is_problem: bool = False
    """Whether somebody may have to act on it: one that arrives is a warning event."""
    milestone: str = ""
    """The text of the event where it is something reached; empty for no event."""


def _progress(*names: str) -> tuple[ConditionReason, ...]:
    return tuple(ConditionReason(name) for name in names)


def _problems(*names: str) -> tuple[ConditionReason, ...]:
    return tuple(ConditionReason(name, is_problem=True) for name in names)


def _milestones(**texts: str) -> tuple[ConditionReason, ...]:
    return tuple(ConditionReason(name, milestone=text) for name, text in texts.items())


INTERNAL_ERROR = "InternalError"
"""The reason of every condition in the answer to a call that failed in an unexpected way."""

_ROWS = {
    "ModelDeployment": (
        *_progress("ModelCacheResolved", "ModelCacheUnresolved"),
        *_problems("ModelCacheNotFound"),
        *_progress("ReplicasCreated", "Scheduling"),
        *_problems("InputsUnresolved", "InvalidInput", "InvalidClusterSelector", "InvalidNodeSelector"),
        *_problems("NoClusters", "ReplacementBlocked", "MinReplicasNotMet"),
        *_problems("InsufficientCapacity", "PartiallyScheduled"),
        *_progress("NoReplicasScheduled", "AllReplicasReady", "ModelStarting"),
        *_problems("ClusterDegraded"),
        *_progress("AllReplicasUpdated", "RollingOut", "RolloutPaused", "UpdateHeld"),
        *_progress("CapacityRespected"),
        *_problems("PoolOvercommitted"),
    ),
    "ModelReplica": (
        *_milestones(Accepted="The model is accepted"),
        *_progress("Deploying"),
        *_problems("WaitingForCluster", "Malformed", "ClusterChanged"),
        *_problems("StackChanged", "StackCannotExpress", "NameTaken"),
        *_milestones(Serving="The model is serving"),
        *_progress("WaitingForModel", "ModelStarting", "PickerStarting"),
        *_problems("RouteRejected", "Unschedulable"),
        *_progress("UpToDate", "Updating"),
        *_problems("RolloutStalled"),
        *_progress("Scheduled", "WaitingForPods"),
    ),
    "InferenceCluster": (
        *_milestones(ClusterRunning="The cluster is published"),
        *_problems("Malformed", "InvalidNodePool", "SecretInvalid", "UnsupportedSource", "WaitingForClasses"),
        *_progress("BackendHealthy", "Installing", "WaitingForCluster"),
        *_progress("Reachable", "NotObserved"),
        *_problems("Unreachable"),
        *_progress("Published", "ClusterUnreadable"),
        *_problems("ClassMissing", "ClassUnreadable"),
        *_progress("Verified"),
        *_problems("Drift"),
    ),
    "ModelService": (
        *_milestones(Resolved="Endpoints of the preferred priority are selected"),
        *_problems("FailedOver", "NoEndpoints", "WaitingForEndpoints", "EndpointUnreadable", "Malformed"),
        *_milestones(RouteAccepted="The gateway serves the model's address"),
        *_progress("Configuring"),
        *_problems("NoReadyEndpoint", "RouteRejected"),
    ),
    "ModelEndpoint": (
        *_milestones(BackendConfigured="Routes can refer to the endpoint"),
        *_progress("WaitingForBackend"),
        *_problems("InvalidURL", "Malformed"),
    ),
}

CONDITION_REASONS = {
    kind: {row.name: row for row in (*rows, ConditionReason(INTERNAL_ERROR))} for kind, rows in _ROWS.items()
}
"""Every reason of every kind of composite, by kind and name."""
