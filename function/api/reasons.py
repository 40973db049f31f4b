"""Why something does not fit, as data. Text is made at the edge (`explain`)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Reason(Enum):
    """Reason codes in evaluation order: a later one is nearer to fitting. The value is for people."""

    MalformedCluster = "unreadable cluster"
    ClusterDeleting = "cluster being deleted"
    ClusterSelectorMismatch = "cluster selector mismatch"
    ClusterSelectorError = "cluster selector error"
    OutsideCacheFootprint = "outside the cache's footprint"
    UntoleratedTaint = "untolerated taint"
    ClusterNotReady = "cluster not ready"
    NoGatewayAddress = "no gateway address"
    NoPoolsPublished = "no pools published"
    MaxReplicasPerCluster = "at the limit of replicas per cluster"
    TopologySpread = "topology spread"
    NodeSelectorMismatch = "node selector mismatch"
    NodeSelectorError = "node selector error"
    NoMatchingDevice = "no matching device"
    DeviceSelectorError = "device selector error"
    SelectorCostExceeded = "selector cost exceeded"
    DeviceCountShort = "too few devices per node"
    DeviceContention = "device contention"
    ConstraintUnsatisfied = "constraint unsatisfied"
    NothingClaimable = "nothing claimable"
    NoSinglePool = "no single pool"
    FabricMismatch = "fabric mismatch"
    PoolOvercommitted = "pool overcommitted"
    InsufficientNodes = "insufficient nodes"
    InsufficientDevices = "insufficient devices"
    JointCapacity = "insufficient joint capacity"
    SearchBudgetExceeded = "search budget exceeded"

    @property
    def depth(self) -> int:
        """Position in evaluation order: the deeper, the nearer to fitting."""
        return _DEPTH[self]


_DEPTH = {reason: depth for depth, reason in enumerate(Reason)}


class Rejection(NamedTuple):
    """One thing that does not fit, and the numbers behind it. Fields that do not apply stay empty.

    A tuple, because a large fleet that takes no more has tens of thousands.
    """

    reason: Reason
    detail: str = ""
    """The particular: the taint, the label, the error's text, the device's actual value."""
    wants: str = ""
    """What a selector asks for where the subject has `detail`: `at least 80Gi`."""
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
    parts: tuple[Rejection, ...] = ()
    """The rejections below this one: of the pools under an engine, of the engines under a cluster."""

    def at(self, *, alternative: str = "", pool: str = "", engine: str = "", member: str = "") -> Rejection:
        """The same rejection, and those below it, with the place where it happened filled in."""
        below = self.parts and tuple(
            [each.at(alternative=alternative, pool=pool, engine=engine, member=member) for each in self.parts]
        )
        return Rejection(  # What `_replace` does, in half the time.
            self.reason,
            self.detail,
            self.wants,
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
            below,
        )

    @property
    def particular(self) -> str:
        """The particular as a phrase: `has memory 40Gi, wants at least 80Gi`, or the detail as it is."""
        if not self.wants:
            return self.detail
        return f"has {self.detail}, wants {self.wants}" if self.detail else f"wants {self.wants}"

    @property
    def leaves(self) -> tuple[Rejection, ...]:
        """The rejections at the bottom, each with its own numbers; itself when nothing is below."""
        if not self.parts:
            return (self,)
        return tuple(leaf for part in self.parts for leaf in part.leaves)


def combined(found: Sequence[Rejection]) -> Rejection:
    """Several rejections of one thing: the first speaks for all, and all are on record."""
    first, *others = found
    return first._replace(parts=tuple(found)) if others else first
