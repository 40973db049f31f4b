"""Scores: the order of the feasible clusters for a new replica, the weightiest first.

A score gives each candidate a value; smaller is better, and an earlier score outweighs every later one. So
the order of `SCORES` is the policy, and adding a score is adding a row there.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple, TypeAlias

from function.api import InferenceCluster
from function.api.cache import readiness
from function.api.deployment import Preference
from function.api.replica import ModelReplica
from function.boundary.memory import Memo
from function.cel import bind_cluster
from function.scheduler.engine_options import Candidate
from function.scheduler.filters import Spread
from function.scheduler.ledger import ReplicaCounts
from function.scheduler.price import devices_of, price_of
from function.scheduler.scheduling_input import SchedulingInput
from function.scheduler.selectors import Evaluations

ScoreValue: TypeAlias = Callable[[Candidate, ReplicaCounts], object]
"""Gives a candidate a value to compare; smaller is better."""
Prepare: TypeAlias = Callable[[SchedulingInput], ScoreValue | None]
"""Makes what gives the values in a pass; None where the score takes no part in it."""


class ScoreRow(NamedTuple):
    """One reason to prefer a cluster."""

    description: str
    """Text that `why` prints before the value; docs/how-it-schedules.md has a row of it."""
    prepare: Prepare
    elsewhere: bool = False
    """Whether a placement on another cluster can change the value."""


class Score(NamedTuple):
    """A score that takes part in a pass, with the text and the mark of its row."""

    description: str
    value: ScoreValue
    elsewhere: bool


def _where(applies: Callable[[SchedulingInput], bool], value: ScoreValue) -> Prepare:
    """Take part where the policy or the fleet says so, with a value that needs nothing prepared."""
    return lambda inputs: value if applies(inputs) else None


def _has_ranks(inputs: SchedulingInput) -> bool:
    """Tell whether some request has a prioritized list."""
    engines = (engine for shape in inputs.deployment.shapes for engine in shape.engines)
    requests = (request for engine in engines for member in engine.members for request in member.requests)
    return any(request.first_available for request in requests)


def _ranks(candidate: Candidate, _counts: ReplicaCounts) -> tuple[int, ...]:
    """The ranks chosen for prioritized lists, in the order of the requests.

    Zeros at the end are left out: they say nothing, and shapes of different length must compare.
    """
    ranks = [
        resolved.rank
        for engine, option in zip(candidate.shape.engines, candidate.options, strict=True)
        for member, match in zip(engine.members, option.matches, strict=True)
        for request, resolved in zip(member.requests, match.resolved, strict=True)
        if request.first_available
    ]
    while ranks and not ranks[-1]:
        ranks.pop()
    return tuple(ranks)


class PreferencesScore:
    """placement.preferences: more matched weight is better; a wish that is not met keeps no cluster out."""

    def __init__(self, preferences: tuple[Preference, ...], evaluations: Evaluations) -> None:
        """Take the preferences, and what selectors say in this pass."""
        self._preferences, self._evaluations = preferences, evaluations
        self._on_cluster = Memo(self._matching)
        self._priced = any(preference.max_cents_per_hour is not None for preference in preferences)

    @classmethod
    def of(cls, inputs: SchedulingInput) -> PreferencesScore | None:
        """Build it where something is preferred."""
        stated = inputs.policy.preferences
        return cls(stated, inputs.evaluations) if stated else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> int:
        """The matched weight, negative so that more is better."""
        price = candidate.cents if self._priced else None
        return -self._matched(candidate.cluster, price)

    def of_replica(self, replica: ModelReplica, cluster: InferenceCluster | None) -> int:
        """The weight that the place of an existing replica matches.

        Doubt gives no place up before another: all of it for a cluster of which nothing is known.
        """
        if cluster is None:
            return sum(preference.weight for preference in self._preferences)
        price = price_of(cluster, replica.nodes, devices_of(replica)) if self._priced else None
        return self._matched(cluster, price)

    def _matched(self, cluster: InferenceCluster, price: int | None) -> int:
        """Sum up the weights that match. A replica without a known price meets no limit of a price."""
        weight = 0
        for preference in self._on_cluster.of(cluster.name, cluster):
            most = preference.max_cents_per_hour
            if most is None or (price is not None and price <= most):
                weight += preference.weight
        return weight

    def _matching(self, cluster: InferenceCluster) -> list[Preference]:
        """The preferences that a cluster matches, whatever a replica there costs."""
        matching = []
        for at, preference in enumerate(self._preferences):
            if any(cluster.labels.get(key) != value for key, value in preference.match_labels.items()):
                continue
            if preference.cel:
                subject = bind_cluster(
                    name=cluster.name, labels=cluster.labels, attributes=cluster.attributes
                )
                outcome = self._evaluations.outcome(self._evaluations.program(preference.expression), subject)
                if outcome.kind == "cost":  # Reported: it would cost more than the pass may spend on it.
                    self._evaluations.unjudged.setdefault(at, set()).add(cluster.name)
                if outcome.kind != "match":
                    continue
            matching.append(preference)
        return matching


def _soft_spread(inputs: SchedulingInput) -> ScoreValue | None:
    """placement.topologySpread with ScheduleAnyway: how far each skew would exceed its maxSkew."""
    spread = Spread(inputs, "ScheduleAnyway")
    if not spread.constraints:
        return None
    return lambda candidate, counts: spread.excess(candidate.cluster, counts)


def _cache_readiness(inputs: SchedulingInput) -> ScoreValue | None:
    """placement.cache Prefer: Ready is best, then Hydrating, Pending, unknown, Failed."""
    cache = inputs.fleet.cache
    if cache is None or inputs.policy.cache != "Prefer":
        return None
    return lambda candidate, _counts: readiness(cache.phases.get(candidate.cluster.name, ""))


def _hash_order(inputs: SchedulingInput) -> ScoreValue | None:
    """placement.tieBreak Hash: a hash of deployment and cluster, so that not all pile on one name.

    Dry runs have no uid; the names stand in.
    """
    if inputs.policy.tie_break != "Hash":
        return None
    metadata = inputs.deployment.metadata
    uid = metadata.uid or f"{metadata.namespace}/{metadata.name}"
    return lambda candidate, _counts: sha256(f"{uid},{candidate.cluster.name}".encode()).digest()


def _packs(inputs: SchedulingInput) -> bool:
    """Tell whether replicas are packed; any other strategy spreads them."""
    return inputs.policy.strategy == "BinPack"


SCORES = (
    # firstAvailable: where the devices that come first in a prioritized list are available.
    ScoreRow("preferred devices of firstAvailable", _where(_has_ranks, _ranks)),
    ScoreRow(
        "matched preference weight",
        lambda inputs: preferences.value if (preferences := PreferencesScore.of(inputs)) else None,
    ),
    ScoreRow("least topology skew beyond maxSkew", _soft_spread, elsewhere=True),
    ScoreRow("readiness of the cache", _cache_readiness),
    # Nodes that are there before nodes that are added once they are needed: `no` sorts before `yes`.
    ScoreRow(
        "waits for nodes to be added",
        _where(
            lambda inputs: any(cluster.nodes_to_come for cluster in inputs.fleet.clusters.values()),
            lambda candidate, _: "yes" if candidate.grows else "no",
        ),
    ),
    # placement.strategy BinPack: the least free nodes left in the pools used, then company.
    ScoreRow("least free nodes left in its pools", _where(_packs, lambda candidate, _: candidate.free_left)),
    ScoreRow(
        "most replicas of this deployment",
        _where(_packs, lambda candidate, counts: -counts[candidate.cluster.name]),
    ),
    # placement.strategy Spread, the default.
    ScoreRow(
        "fewest replicas of this deployment",
        _where(lambda inputs: not _packs(inputs), lambda candidate, counts: counts[candidate.cluster.name]),
    ),
    # placement.tieBreak, between equals. Name is the default and stands last in any case.
    ScoreRow(
        "most free nodes left in its pools",
        _where(
            lambda inputs: inputs.policy.tie_break == "MostFree", lambda candidate, _: -candidate.free_left
        ),
    ),
    ScoreRow("hash of deployment and cluster", _hash_order),
    # The name: with it no two candidates are equal, so the choice depends on no order of the input.
    ScoreRow("first by name", _where(lambda _: True, lambda candidate, _: candidate.cluster.name)),
)


def scores(inputs: SchedulingInput) -> tuple[Score, ...]:
    """Build the scores that apply, the weightiest first."""
    built = ((row, row.prepare(inputs)) for row in SCORES)
    return tuple(Score(row.description, value, row.elsewhere) for row, value in built if value is not None)
