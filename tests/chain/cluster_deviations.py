"""Every way in which the cluster handler answers otherwise than v0.3: rows of docs/compatibility.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cluster import names
from function.cluster.snapshot import REPLICAS
from tests.chain.difference import MISSING
from tests.support.deviation import Deviation

if TYPE_CHECKING:
    from tests.chain.difference import Difference
    from tests.chain.pair import Pair


def _observed(_: Pair, difference: Difference) -> bool:
    return difference.what in ("desired", "ready") and difference.key.startswith(names.OBSERVATIONS)


def _conditions(_: Pair, difference: Difference) -> bool:
    added = difference.key in ("ClusterReachable", "PoolsPublished")
    return difference.what == "condition" and added and difference.theirs is None


def _kept(pair: Pair, difference: Difference) -> bool:
    """v0.3 answers with nothing while a class is missing, and forgets a guard it cannot justify."""
    waits = pair.theirs.conditions["ClusterReady"][1] == "WaitingForClasses"
    guard = difference.key == names.GUARD and names.GUARD in pair.observed
    kept = difference.key in pair.observed or difference.what in ("status", "condition")
    return (waits and kept and not difference.theirs) or (
        (waits or guard) and difference.theirs in ("(missing)", None, False) and kept
    )


def _unready(pair: Pair, difference: Difference) -> bool:
    status = pair.ours.status
    return difference.what == "readiness" and not (status.get("gateway") and status.get("gpuPools"))


def _stack(pair: Pair, difference: Difference) -> bool:
    if names.STACK in pair.observed:
        return difference.key == names.STACK and difference.path.startswith(".metadata.name")
    waiting = (difference.ours, difference.theirs) == ((False, "WaitingForCluster"), (False, "Installing"))
    return difference.key == names.STACK or (difference.key == "BackendReady" and waiting)


def _unwatched(_: Pair, difference: Difference) -> bool:
    """The last answer of a reconcile leaves out what is read and not watched."""
    return (
        difference.what == "requirement" and difference.path == f".{REPLICAS}" and difference.ours == MISSING
    )


DEVIATIONS: tuple[Deviation[Pair, Difference], ...] = (
    Deviation("ClusterObserved", "what a cluster must have is looked at", _observed),
    Deviation("ClusterConditions", "conditions say whether it is reached and published", _conditions),
    Deviation("ReplicasUnwatched", "the replicas on a cluster are read and not watched", _unwatched),
    Deviation("KeptCluster", "a class that is gone takes nothing away", _kept),
    Deviation("NotReadyUntilReachable", "a cluster without pools or an address is not Ready", _unready),
    Deviation("StackOnRequest", "a serving stack is composed only where the input asks for one", _stack),
)
