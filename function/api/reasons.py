"""The reasons for which something does not fit, as rows of data; texts are made in `explain`.

Two tables. `Reason` has every reason why a cluster or a pool takes no replica, in the order in which the
filters ask, with its level and its nature; the deepest reason is the one nearest to fitting, and the one
that is reported. `CONDITION_REASONS` has the reasons of conditions, by kind, with what becomes an event.

A `Rejection` is one reason with its numbers and the place where it happened. Names of reasons are an
interface: docs/reasons.md and docs/troubleshooting.md have a section for each, and a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Self


class Level(Enum):
    """The subject of a reason. A reason of one level stands in the way of everything below it."""

    CLUSTER = "the cluster as a whole"
    POOL = "one engine on one pool"
    ENGINE = "one engine on all pools"
    REPLICA = "all engines together"


class Nature(Enum):
    """The nature of a reason: capacity, doubt or transient. It says what may be done about the reason."""

    DEFINITE = "it does not fit, and only an edit changes that"
    CAPACITY = "it would fit, were it not for what is taken"
    TRANSIENT = "it may pass while nobody edits anything"
    DOUBT = "nothing is known: no answer was reached. Doubt removes nothing (Law 2)"


class Reason(Enum):
    """Reason codes in evaluation order: a later one is nearer to fitting. The value is for people.

    A row is a reason with all that is known of it; nobody keeps lists of reasons elsewhere. One more reason
    is one more row at its place in the order, and its sections in `docs/reasons.md` and
    `docs/troubleshooting.md`.
    """

    MalformedCluster = "unreadable cluster", Level.CLUSTER, Nature.DOUBT
    ClusterDeleting = "cluster being deleted", Level.CLUSTER, Nature.DEFINITE
    ClusterSelectorMismatch = "cluster selector mismatch", Level.CLUSTER, Nature.DEFINITE
    ClusterSelectorError = "cluster selector error", Level.CLUSTER, Nature.DOUBT
    OutsideCacheFootprint = "outside the cache's footprint", Level.CLUSTER, Nature.DEFINITE
    CacheNotReady = "cache not ready", Level.CLUSTER, Nature.TRANSIENT
    UntoleratedTaint = "untolerated taint", Level.CLUSTER, Nature.DEFINITE
    StackCannotExpress = "not expressible on the cluster's stack", Level.CLUSTER, Nature.DEFINITE
    ClusterNotReady = "cluster not ready", Level.CLUSTER, Nature.TRANSIENT
    ClusterLost = "cluster lost", Level.CLUSTER, Nature.TRANSIENT
    NoGatewayAddress = "no gateway address", Level.CLUSTER, Nature.TRANSIENT
    NoPoolsPublished = "no pools published", Level.CLUSTER, Nature.DEFINITE
    ChargeNotPublished = "charge not published", Level.CLUSTER, Nature.TRANSIENT
    MaxReplicasPerCluster = "at the limit of replicas per cluster", Level.CLUSTER, Nature.CAPACITY
    TopologySpread = "topology spread", Level.CLUSTER, Nature.TRANSIENT
    NodeSelectorMismatch = "node selector mismatch", Level.POOL, Nature.DEFINITE
    NodeSelectorError = "node selector error", Level.POOL, Nature.DOUBT
    NoMatchingDevice = "no matching device", Level.POOL, Nature.DEFINITE
    DeviceSelectorError = "device selector error", Level.POOL, Nature.DOUBT
    SelectorCostExceeded = "selector cost exceeded", Level.POOL, Nature.DOUBT
    DeviceCountShort = "too few devices per node", Level.POOL, Nature.DEFINITE
    UntoleratedDeviceTaint = "untolerated device taint", Level.POOL, Nature.DEFINITE
    DeviceContention = "device contention", Level.POOL, Nature.DEFINITE
    ClaimTooLarge = "claim too large", Level.POOL, Nature.DEFINITE
    ConstraintUnsatisfied = "constraint unsatisfied", Level.POOL, Nature.DEFINITE
    NothingClaimable = "nothing claimable", Level.POOL, Nature.DEFINITE
    NoSinglePool = "no single pool", Level.ENGINE, Nature.DEFINITE
    FabricMismatch = "fabric mismatch", Level.ENGINE, Nature.DEFINITE
    PoolOvercommitted = "pool overcommitted", Level.POOL, Nature.CAPACITY
    InsufficientNodes = "insufficient nodes", Level.POOL, Nature.CAPACITY
    InsufficientDevices = "insufficient devices", Level.POOL, Nature.CAPACITY
    JointCapacity = "insufficient joint capacity", Level.REPLICA, Nature.CAPACITY
    SearchBudgetExceeded = "search budget exceeded", Level.REPLICA, Nature.DOUBT
    QuotaExceeded = "quota exceeded", Level.REPLICA, Nature.CAPACITY

    level: Level
    nature: Nature
    depth: int
    """Position in evaluation order: the deeper, the nearer to fitting."""
    passes: bool
    """Whether it may pass while nobody edits anything: a cluster recovers, replicas leave."""
    short_pool: bool
    """Whether one pool is short of something that more nodes would give it."""

    def __new__(cls, text: str, level: Level, nature: Nature) -> Self:
        """Make a row."""
        row = object.__new__(cls)
        row._value_, row.level, row.nature, row.depth = text, level, nature, len(cls.__members__)
        row.passes = nature in (Nature.CAPACITY, Nature.TRANSIENT)
        row.short_pool = nature is Nature.CAPACITY and level is Level.POOL
        return row

    @property
    def is_standing(self) -> bool:
        """Tell whether a cluster gives it whatever is placed where: it comes before the gates that count."""
        return self.depth < Reason.MaxReplicasPerCluster.depth


class Gap(NamedTuple):
    """The difference between a subject and a selector that does not match it."""

    has: str = ""
    """`memory 40Gi`, `no memory`; empty where the failing term reads no name of its own."""
    wants: str = ""
    """`at least 80Gi`, or the failing term as it stands."""


class DeferredGap:
    """A gap that is found when somebody reads it: most rejections are never shown to anybody."""

    __slots__ = ("_find", "_gap")

    def __init__(self, find: Callable[[], Gap]) -> None:
        """`find` makes the gap. It is called once, by the first reader."""
        self._find = find
        self._gap: Gap | None = None

    @property
    def gap(self) -> Gap:
        """The gap that `find` returns."""
        if self._gap is None:
            self._gap = self._find()
        return self._gap

    def __eq__(self, other: object) -> bool:
        """Tell whether both are the same gap, once it is found."""
        return isinstance(other, DeferredGap) and self.gap == other.gap

    def __hash__(self) -> int:
        """Equal gaps have equal hashes."""
        return hash(self.gap)


class Rejection(NamedTuple):
    """One thing that does not fit, and the numbers behind it. Fields that do not apply stay empty.

    A tuple, because a large fleet that takes no more has tens of thousands.
    """

    reason: Reason
    detail: str = ""
    """The particular: the taint, the label, the error's text."""
    gap: DeferredGap | None = None
    """Instead, what the selector that failed read and what it asks for."""
    alternative: str = ""
    """The alternative shape it is about; empty for the primary engines."""
    pool: str = ""
    engine: str = ""
    member: str = ""
    """The member's role."""
    request: str = ""
    rank: int = 0
    """Which way of a prioritized list came closest; 0 where there is only one."""
    selector: int | None = None
    """Index of the selector that failed."""
    device: str = ""
    """The closest device entry."""
    needs: int | None = None
    free: int | None = None
    total: int | None = None
    unusable: int = 0
    """Of the total, what is declared and cannot be used."""
    parts: tuple[Rejection, ...] = ()
    """The rejections below this one: of the pools under an engine, of the engines under a cluster."""

    def at(self, *, alternative: str = "", pool: str = "", engine: str = "", member: str = "") -> Rejection:
        """The same rejection, and those below it, with the place where it happened filled in."""
        below = self.parts and tuple(
            [part.at(alternative=alternative, pool=pool, engine=engine, member=member) for part in self.parts]
        )
        return Rejection(  # What `_replace` does, in half the time.
            self.reason,
            self.detail,
            self.gap,
            self.alternative or alternative,
            self.pool or pool,
            self.engine or engine,
            self.member or member,
            self.request,
            self.rank,
            self.selector,
            self.device,
            self.needs,
            self.free,
            self.total,
            self.unusable,
            below,
        )

    @property
    def has(self) -> str:
        """The value that the failed selector read, `memory 40Gi`; otherwise the detail."""
        return self.gap.gap.has if self.gap else self.detail

    @property
    def wants(self) -> str:
        """The value that the failed selector asks for: `at least 80Gi`."""
        return self.gap.gap.wants if self.gap else ""

    @property
    def particular(self) -> str:
        """The particular as a phrase: `has memory 40Gi, wants at least 80Gi`, or the detail as it is."""
        if not self.wants:
            return self.has
        return f"has {self.has}, wants {self.wants}" if self.has else f"wants {self.wants}"

    @property
    def missing(self) -> int:
        """How many nodes, or devices, are missing; 0 where numbers do not apply."""
        return (self.needs or 0) - (self.free or 0)

    @property
    def leaves(self) -> tuple[Rejection, ...]:
        """The rejections at the bottom, each with its own numbers; itself when nothing is below."""
        if not self.parts:
            return (self,)
        return tuple(leaf for part in self.parts for leaf in part.leaves)


def combined(rejections: Sequence[Rejection]) -> Rejection:
    """Several rejections of one thing: the first speaks for all, and all are on record."""
    first, *others = rejections
    return first._replace(parts=tuple(rejections)) if others else first


# The reasons that conditions carry, as rows: whose they are, and which event is made of one that arrives.
#
# A reason of a condition is API: it keeps its name and its meaning. Nobody keeps lists of them elsewhere.
# Why a cluster or a pool does not fit is another thing, see `reasons`.


class ConditionReason(NamedTuple):
    """One reason of the conditions of a kind."""

    name: str
    is_problem: bool = False
    """Whether somebody may have to act on it: one that arrives is a warning event."""
    milestone: str = ""
    """The text of the event where it is something reached; empty for no event."""


def _progress(*names: str) -> tuple[ConditionReason, ...]:
    """Return reasons that make no event: something is on its way, or is as it should be."""
    return tuple(ConditionReason(name) for name in names)


def _problems(*names: str) -> tuple[ConditionReason, ...]:
    """Return reasons whose arrival is a warning event."""
    return tuple(ConditionReason(name, is_problem=True) for name in names)


def _milestones(**texts: str) -> tuple[ConditionReason, ...]:
    """Return reasons whose arrival is an event with a text of its own."""
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
        *_progress("PriorityResolved"),
        *_problems("PriorityClassUnknown", "PriorityClassForbidden"),
    ),
    "ModelReplica": (
        *_milestones(Accepted="The model is accepted"),
        *_progress("Deploying", "WaitingForAdapters"),
        *_problems("WaitingForCluster", "Malformed", "ClusterChanged"),
        *_problems("StackChanged", "StackCannotExpress", "NameTaken"),
        *_milestones(Serving="The model is serving"),
        *_progress("WaitingForModel", "ModelStarting", "PickerStarting"),
        *_problems("RouteRejected", "Unschedulable", "FailedCreate"),
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
        *_progress("Verified", "Usable"),
        *_problems("Drift", "NodesUnusable", "DevicesTainted"),
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
    "ModelAdapter": (
        *_milestones(FullyScheduled="The adapter is placed on all replicas that are wanted"),
        *_progress("Replacing"),
        *_problems("PartiallyScheduled", "NotScheduled", "NoBaseReplicas", "ReplacementBlocked"),
        *_problems("InputsUnresolved", "Malformed"),
        *_milestones(Configured="The adapter is configured on all of its replicas"),
        *_progress("Configuring", "NoEndpoint", "NoReplicas"),
    ),
}

CONDITION_REASONS = {
    kind: {row.name: row for row in (*rows, ConditionReason(INTERNAL_ERROR))} for kind, rows in _ROWS.items()
}
"""Every reason of every kind of composite, by kind and name."""
