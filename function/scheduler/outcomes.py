"""The outcome of one replica in a pass, as data: it is kept, placed or dropped, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from function.api.deployment import ReplicaShape
from function.api.names import Identity
from function.api.ownership import OwnReplica
from function.api.replica import GuaranteeShare, ModelReplica
from function.boundary import frozen
from function.scheduler.device_accounting import Demand
from function.scheduler.engine_options import Candidate

# The words of Law 2: what makes a replica mismatched, and for which causes one leaves.


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
        """Tell whether it matches as ever, and only how long something is wrong is against it."""
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
    OverQuota = "gave way where deployments passed a quota at once"
    Evacuated = "evacuated"
    GaveWay = "gave way to a higher priority class"
    Returned = "gave back what was borrowed beyond a guarantee"


class Update(Enum):
    """The next step of an outdated replica in a staged rollout."""

    Now = "updated to the current template"
    Waits = "waits for its turn in the rollout"
    Superseded = "leaves when one with the current template is in service in its place"


@frozen
class Kept:
    """A replica that stays."""

    own_replica: OwnReplica
    shape: ReplicaShape | None = None
    """The shape to update it to, in place; None: re-emit it exactly as observed."""
    mismatch: Mismatch | None = None
    """Set when it no longer matches; it is then held until its replacement has a place."""
    doubt: str = ""
    """Set when something about it is unknown; doubt keeps it."""
    withheld_until: tuple[str, ...] = ()
    """Set when an edit is not applied to it because of the doubt: what must hold for it to be applied."""
    growth: Mapping[str, Demand] = field(default_factory=dict)
    """What is charged on top of what is stamped on it, by pool."""
    grows: bool = False
    """Set when it would cost more than is stamped on it, and what is free is not known."""
    detail: str = ""
    waits: str = ""
    """What it would leave for now, were it not for the disruption budget: a drain, a replacement."""
    update: Update | None = None
    """Set when its template is outdated and there is a staged rollout; one that waits keeps its template."""
    covered: bool = False
    """Set when its replacement stands beside it, or is placed (maxSurge): it is the next to leave."""
    blocked: bool = False
    """Set when it waits for a replacement beside it (maxSurge), and there is no place for one."""

    @property
    def needs_replacement(self) -> bool:
        """Tell whether it leaves when there is another in its place: mismatched, or superseded."""
        return self.mismatch is not None or self.update is Update.Superseded

    @property
    def outgoing(self) -> bool:
        """Tell whether it stays only until others can do without it: it needs replacement, or is drained."""
        return self.needs_replacement or bool(self.waits)


@frozen
class Placed:
    """A new replica and its place."""

    identity: Identity
    name: str
    candidate: Candidate
    because: tuple[tuple[str, object], ...] = ()
    """The scores that decided: description and value, weightiest first."""
    runner_up: str = ""
    """The cluster that would have been next."""
    replaces: OwnReplica | None = None
    preempts: tuple[ModelReplica, ...] | None = None
    """The replicas that are to give way to it; None where it has room."""
    share: GuaranteeShare | None = None
    """How it stands to what is guaranteed to its namespace; None where nothing is."""


@frozen
class Dropped:
    """A replica that leaves, and the reason on record."""

    own_replica: OwnReplica
    cause: Cause
    detail: str = ""
