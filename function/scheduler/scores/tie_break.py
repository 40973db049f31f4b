"""placement.tieBreak: between equals. Name is the default and stands last in any case."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.scheduler.candidate import Candidate
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput


class MostFree:
    """Prefers the cluster with the most free nodes left in the pools it would use."""

    description = "most free nodes left in its pools"
    elsewhere = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> MostFree | None:
        """Build it for the tie-break MostFree."""
        return cls() if inputs.policy.tie_break == "MostFree" else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> int:
        """Free nodes left, negative so that more is better."""
        return -candidate.free_left


class HashOrder:
    """Prefers by a hash of deployment and cluster, so that many deployments do not pile on one name."""

    description = "hash of deployment and cluster"
    elsewhere = False

    def __init__(self, uid: str) -> None:
        """Take what identifies the deployment."""
        self._uid = uid

    @classmethod
    def of(cls, inputs: SchedulingInput) -> HashOrder | None:
        """Build it for the tie-break Hash. Dry runs have no uid; the names stand in."""
        metadata = inputs.deployment.metadata
        uid = metadata.uid or f"{metadata.namespace}/{metadata.name}"
        return cls(uid) if inputs.policy.tie_break == "Hash" else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> bytes:
        """The digest of deployment and cluster."""
        return sha256(f"{self._uid},{candidate.cluster.name}".encode()).digest()
