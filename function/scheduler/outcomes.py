"""The outcome of one replica in a pass, as data: it is kept, placed or dropped, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from function.api import InferenceCluster
from function.api.deployment import ReplicaShape
from function.api.model import conditions_of, mapping
from function.api.names import Identity
from function.api.ownership import OwnReplica
from function.api.text import latest, listed
from function.boundary import Shape, Unreadable
from function.scheduler.device_accounting import Demand
from function.scheduler.engine_options import Candidate
from function.scheduler.scheduling_input import Fleet, SchedulingInput

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
    Evacuated = "evacuated"


class Update(Enum):
    """The next step of an outdated replica in a staged rollout."""

    Now = "updated to the current template"
    Waits = "waits for its turn in the rollout"
    Superseded = "leaves when one with the current template is in service in its place"


@dataclass(frozen=True, slots=True)
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
    """Set when it would cost more than is stamped on it, and nobody knows what is free."""
    detail: str = ""
    waits: str = ""
    """What it would leave for now, were it not for the disruption budget: a drain, a replacement."""
    update: Update | None = None
    """Set when its template is outdated and there is a staged rollout; one that waits keeps its template."""
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Dropped:
    """A replica that leaves, and the reason on record."""

    own_replica: OwnReplica
    cause: Cause
    detail: str = ""


# placement.evacuate: give up what has been lost or degraded for longer than asked, where there is a place.
#
# A pure function has no clock, so time is observed: every cluster publishes a heartbeat, the time on a
# lease that something on it renews. Three rules keep a wrong clock from moving anything that is well:
#
# 1. *Now* is the newest instant that more than half of the heartbeats have reached. Somebody honest is among
#    those, so as long as most clocks are right it is never later than it really is, whatever the others say:
#    one a year ahead changes nothing. Two heartbeats at least: a clock that nobody confirms is none.
# 2. Fewer than half of the heartbeats within `afterSeconds` of the newest: nothing is evacuated. It may be
#    the
#    control plane that is cut off, or the newest that lies; nobody can tell.
# 3. A cluster that the control plane says it reaches (ClusterReachable) is not lost: its clock is behind.
#
# A time that cannot be read is doubt, and doubt keeps. What evacuates is treated as a mismatch: it goes
# only when a place was found in the same pass, within the disruption budget (Law 2, reason 7).

QUORUM = 2
"""Heartbeats that make a clock."""
SHOWN = 3
"""How many clusters a message names."""

UNREADY: Shape = {
    "metadata": {"creationTimestamp": None},
    "status": {"conditions": {"type": None, "status": None, "lastTransitionTime": None}},
}
"""What is read of an own replica to know how long it has not been Ready."""


@dataclass(frozen=True, slots=True)
class Evacuation:
    """The faults that have lasted too long. Switched off, nothing lasts too long."""

    after: int = 0
    """The seconds asked for."""
    before: int | None = None
    """What has been wrong since before this instant has been so for too long; None: nothing has."""
    paused: str = ""
    """Why nothing is evacuated although it is asked for."""

    def lost(self, cluster: InferenceCluster) -> bool:
        """Tell whether a cluster was not heard of for too long."""
        if self.before is None or cluster.reached:
            return False
        return cluster.heartbeat is not None and cluster.heartbeat < self.before

    def mismatch(self, own_replica: OwnReplica, cluster: InferenceCluster | None) -> Mismatch | None:
        """Why a replica is to be evacuated, the widest reason first; None where it is not."""
        if self.before is None or cluster is None:
            return None
        if self.lost(cluster):
            return Mismatch.ClusterLost
        if _is_before(cluster.unready_since, self.before):
            return Mismatch.ClusterDegraded
        return Mismatch.ReplicaDegraded if _is_before(_unready_since(own_replica), self.before) else None


def _is_before(since: int | None, instant: int) -> bool:
    return since is not None and since < instant


def _unready_since(own_replica: OwnReplica) -> int | None:
    """Since when a replica is not Ready, and at most as long as it exists; None where that is not known."""
    if own_replica.replica.ready is not False:
        return None
    try:
        plain = own_replica.document.project(UNREADY)
    except Unreadable:
        return None
    readings = [
        condition.get("lastTransitionTime")
        for condition in conditions_of(mapping(plain.get("status")))
        if condition.get("type") == "Ready"
    ]
    created = mapping(plain.get("metadata")).get("creationTimestamp")
    return latest([*readings, *([] if created is None else [created])])


def evacuation(inputs: SchedulingInput) -> Evacuation:
    """Read the clock of a fleet, and how far back too long is."""
    stated = inputs.policy.evacuate
    if stated is None:
        return Evacuation()
    after, beats = stated.after_seconds, _heartbeats(inputs.fleet)
    if len(beats) < QUORUM:
        publishers = "no cluster publishes" if not beats else "only one cluster publishes"
        return Evacuation(after, paused=f"NoClock: {publishers} a heartbeat, so nothing is evacuated")
    newest = max(beats.values())
    fresh = sorted(name for name, beat in beats.items() if beat >= newest - after)
    if 2 * len(fresh) < len(beats):
        few = f"{len(fresh)} of {len(beats)} heartbeats {'is' if len(fresh) == 1 else 'are'}"
        text = f"EvacuationPaused: only {few} within {after} s of the newest ({listed(fresh, SHOWN)})"
        return Evacuation(after, paused=f"{text}, so nothing is evacuated")
    now = sorted(beats.values(), reverse=True)[len(beats) // 2]
    return Evacuation(after, before=now - after)


def suspects(inputs: SchedulingInput) -> bool:
    """Tell whether something of ours may have been wrong for too long: what time it is would decide."""
    if inputs.policy.evacuate is None:
        return False
    clusters = inputs.fleet.clusters
    return any(
        _unready_since(own_replica) is not None or _is_suspect(clusters.get(own_replica.cluster))
        for own_replica in inputs.fleet.own_replicas
        if not own_replica.terminating
    )


def _is_suspect(cluster: InferenceCluster | None) -> bool:
    if cluster is None:
        return False
    return cluster.unready_since is not None or (cluster.heartbeat is not None and not cluster.reached)


def _heartbeats(fleet: Fleet) -> dict[str, int]:
    """The heartbeats of the clusters that publish one, by name; one that is going away has no say."""
    return {
        name: cluster.heartbeat
        for name, cluster in fleet.clusters.items()
        if cluster.heartbeat is not None and not cluster.deleting
    }
