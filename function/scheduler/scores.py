"""Scores: the order of the feasible clusters for a new replica, the weightiest first.

A score gives each candidate a value; smaller is better, and an earlier score outweighs every later one, so
the order of the list is the policy. Adding a score is adding a file and a line in the list.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol

from function.api import InferenceCluster, ModelCache
from function.api.cache import Readiness, readiness
from function.api.deployment import Preference
from function.boundary.memo import Memo
from function.cel import bind_cluster
from function.scheduler.engine_options import Candidate
from function.scheduler.filters import Spread
from function.scheduler.ledger import ReplicaCounts
from function.scheduler.scheduling_input import SchedulingInput
from function.scheduler.selectors import Evaluations

# firstAvailable: lower ranks first.


class Ranks:
    """Prefers clusters where the preferred devices of a prioritized list are available."""

    description = "preferred devices of firstAvailable"
    elsewhere = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> Ranks | None:
        """Build it where some request has a prioritized list."""
        members = (
            m for shape in inputs.deployment.shapes for engine in shape.engines for m in engine.members
        )
        return cls() if any(request.first_available for m in members for request in m.requests) else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> tuple[int, ...]:
        """The ranks chosen for prioritized lists, in the order of the requests.

        Zeros at the end are left out: they say nothing, and shapes of different length must compare.
        """
        listed = (
            resolved.rank
            for engine, option in candidate.engines
            for member, match in zip(engine.members, option.matches, strict=True)
            for request, resolved in zip(member.requests, match.resolved, strict=True)
            if request.first_available
        )
        ranks = list(listed)
        while ranks and not ranks[-1]:
            ranks.pop()
        return tuple(ranks)


# placement.preferences: soft wishes. More matched weight wins.


class PreferencesScore:
    """Prefers clusters that match more preference weight."""

    description = "matched preference weight"
    elsewhere = False

    def __init__(self, preferences: tuple[Preference, ...], evaluations: Evaluations) -> None:
        """Take the preferences, and what selectors say in this pass."""
        self._preferences, self._evaluations = preferences, evaluations
        self._weights = Memo(self._weight)

    @classmethod
    def of(cls, inputs: SchedulingInput) -> PreferencesScore | None:
        """Build it where something is preferred."""
        stated = inputs.policy.preferences
        return cls(stated, inputs.evaluations) if stated else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> int:
        """The matched weight, negative so that more is better."""
        return -self._weights.of(candidate.cluster.name, candidate.cluster)

    def _weight(self, cluster: InferenceCluster) -> int:
        return sum(
            preference.weight
            for at, preference in enumerate(self._preferences)
            if self._matches(at, preference, cluster)
        )

    def _matches(self, at: int, preference: Preference, cluster: InferenceCluster) -> bool:
        if any(cluster.labels.get(key) != value for key, value in preference.match_labels.items()):
            return False
        if not preference.cel:
            return True
        subject = bind_cluster(name=cluster.name, labels=cluster.labels, attributes=cluster.attributes)
        outcome = self._evaluations.outcome(self._evaluations.program(preference.expression), subject)
        if outcome.kind == "cost":
            self._evaluations.unjudged.setdefault(at, set()).add(cluster.name)
        return outcome.kind == "match"


# topologySpread with ScheduleAnyway: the least skew beyond maxSkew first.


class SoftSpread:
    """Prefers clusters where one more replica would not exceed maxSkew, or exceed it least."""

    description = "least topology skew beyond maxSkew"
    elsewhere = True

    def __init__(self, spread: Spread) -> None:
        """Take the constraints that do not bind."""
        self._spread = spread

    @classmethod
    def of(cls, inputs: SchedulingInput) -> SoftSpread | None:
        """Build it where a constraint says ScheduleAnyway."""
        spread = Spread(inputs, "ScheduleAnyway")
        return cls(spread) if spread.constraints else None

    def value(self, candidate: Candidate, counts: ReplicaCounts) -> tuple[int, ...]:
        """How far each constraint's skew would exceed its maxSkew."""
        return self._spread.excess(candidate.cluster, counts)


# placement.cache Prefer: clusters on which the weights are nearest to being staged come first.


class CacheReadiness:
    """Prefers clusters where the referenced cache is Ready, then Hydrating, Pending, unknown, Failed."""

    description = "readiness of the cache"
    elsewhere = False

    def __init__(self, cache: ModelCache) -> None:
        """Take the cache."""
        self._phases = cache.phases

    @classmethod
    def of(cls, inputs: SchedulingInput) -> CacheReadiness | None:
        """Build it where it is preferred, and a cache is referenced and found."""
        cache = inputs.fleet.cache
        return cls(cache) if cache and inputs.policy.cache == "Prefer" else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> Readiness:
        """How far the cluster's phase is from serving."""
        return readiness(self._phases.get(candidate.cluster.name, ""))


# Nodes that are there before nodes that are added once they are needed.


class FitsNow:
    """Prefers clusters where the replica fits on nodes that are there."""

    description = "waits for nodes to be added"
    elsewhere = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> FitsNow | None:
        """Build it where some cluster says that nodes are still to come."""
        return cls() if any(cluster.nodes_to_come for cluster in inputs.fleet.clusters.values()) else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> str:
        """The word that says if it waits for a node; `no` sorts before `yes`."""
        return "yes" if candidate.grows else "no"


# placement.strategy: spread before packing, or pack before spreading.


class FewestReplicas:
    """Spread: prefers the cluster that hosts the fewest replicas of this deployment."""

    description = "fewest replicas of this deployment"
    elsewhere = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> FewestReplicas | None:
        """Build it unless the strategy is BinPack."""
        return None if inputs.policy.strategy == "BinPack" else cls()

    def value(self, candidate: Candidate, counts: ReplicaCounts) -> int:
        """Replicas of this deployment on the cluster."""
        return counts[candidate.cluster.name]


class LeastFreeLeft:
    """BinPack: prefers the cluster with the least free nodes left in the pools it would use."""

    description = "least free nodes left in its pools"
    elsewhere = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> LeastFreeLeft | None:
        """Build it for the strategy BinPack."""
        return cls() if inputs.policy.strategy == "BinPack" else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> int:
        """Free nodes left after the placement."""
        return candidate.free_left


class MostReplicas:
    """BinPack: then the cluster that has the most replicas of this deployment already."""

    description = "most replicas of this deployment"
    elsewhere = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> MostReplicas | None:
        """Build it for the strategy BinPack."""
        return cls() if inputs.policy.strategy == "BinPack" else None

    def value(self, candidate: Candidate, counts: ReplicaCounts) -> int:
        """Replicas of this deployment on the cluster, negative so that more is better."""
        return -counts[candidate.cluster.name]


# placement.tieBreak: between equals. Name is the default and stands last in any case.


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


# The last score: the name of the cluster. With it no two candidates are equal.


class FirstByName:
    """Prefers the name that sorts first."""

    description = "first by name"
    elsewhere = False

    @classmethod
    def of(cls, _inputs: SchedulingInput) -> FirstByName:
        """Build it, always."""
        return cls()

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> str:
        """The cluster's name."""
        return candidate.cluster.name


class Score(Protocol):
    """One reason to prefer a cluster."""

    description: str
    elsewhere: bool
    """Whether a placement on another cluster can change the value."""

    def value(self, candidate: Candidate, counts: ReplicaCounts) -> object:
        """A value to compare; smaller is better."""


SCORES = (
    Ranks,
    PreferencesScore,
    SoftSpread,
    CacheReadiness,
    FitsNow,
    LeastFreeLeft,
    MostReplicas,
    FewestReplicas,
    MostFree,
    HashOrder,
    FirstByName,
)


def scores(inputs: SchedulingInput) -> tuple[Score, ...]:
    """Build the scores that apply, the weightiest first."""
    built = (score_class.of(inputs) for score_class in SCORES)
    return tuple(score for score in built if score is not None)
