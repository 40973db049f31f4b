"""The words of Law 2: what makes a replica mismatched, and for which causes one leaves."""

from __future__ import annotations

from enum import Enum


class Mismatch(Enum):
    """Why a replica no longer matches what is wanted. Nothing else makes one mismatched."""

    PoolGone = "its node pool is no longer declared"
    DevicesChanged = "its pool's devices no longer satisfy the nodeSelector"
    ShapeChanged = "the engines changed shape"
    RequestsChanged = "the resolved device requests changed"
    CostGrew = "it needs more nodes than its pool has free"
    CacheMoved = "the referenced ModelCache is not staged on its cluster"
    SizeFixed = "the stack of its cluster cannot change the size of a gang"
    ClusterLost = "its cluster has not been heard of for too long"
    ClusterDegraded = "its cluster has not been Ready for too long"
    ReplicaDegraded = "it has not been Ready for too long"

    @property
    def evacuates(self) -> bool:
        """Whether it matches as ever, and only how long something is wrong is against it."""
        return self in (Mismatch.ClusterLost, Mismatch.ClusterDegraded, Mismatch.ReplicaDegraded)


OUTDATED = "its template is outdated"
"""Why one is replaced by a staged rollout that goes by surge, although it matches."""


class Cause(Enum):
    """Why a replica leaves the desired state: the list of Law 2 and nothing else."""

    ClusterGone = "its cluster no longer exists"
    Drained = "its cluster has an untolerated NoExecute taint"
    Replaced = "replaced"
    ScaledDown = "scaled down"
    Terminating = "already being deleted"
    Yielded = "yielded its place in an overcommitted pool"
    Evacuated = "evacuated"
