"""The gates that a cluster's own state opens or closes, whatever is asked of it: one row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.api import InferenceCluster
    from function.scheduler.scheduling_input import SchedulingInput


def _nothing(_cluster: InferenceCluster) -> str:
    return ""


def _readiness(cluster: InferenceCluster) -> str:
    """What is said of a cluster that is not Ready, besides that."""
    if cluster.status is None:
        return "no status"
    return "" if cluster.ready is False else "Ready is unknown"


@dataclass(frozen=True, slots=True)
class StateGate:
    """One condition that a cluster must meet to take new replicas."""

    reason: Reason
    """Why a cluster is rejected that does not meet it."""
    meets: Callable[[InferenceCluster], object]
    detail: Callable[[InferenceCluster], str] = _nothing

    def of(self, _inputs: SchedulingInput) -> StateGate:
        """Build it, always."""
        return self

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster that does not meet it."""
        return None if self.meets(cluster) else Rejection(self.reason, detail=self.detail(cluster))


NOT_DELETING = StateGate(Reason.ClusterDeleting, lambda cluster: not cluster.deleting)
READY = StateGate(Reason.ClusterNotReady, lambda cluster: cluster.ready, _readiness)
HAS_GATEWAY = StateGate(Reason.NoGatewayAddress, lambda cluster: cluster.gateway)
PUBLISHES_POOLS = StateGate(Reason.NoPoolsPublished, lambda cluster: cluster.pools)
