"""Scores: the order of the feasible clusters for a new replica, the weightiest first.

A score gives each candidate a value; smaller is better, and an earlier score outweighs every later one, so
the order of the list is the policy. Adding a score is adding a file and a line in the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from function.scheduler.scores.cache_readiness import CacheReadiness
from function.scheduler.scores.name import FirstByName
from function.scheduler.scores.preferences import PreferencesScore
from function.scheduler.scores.ranks import Ranks
from function.scheduler.scores.soft_spread import SoftSpread
from function.scheduler.scores.strategy import FewestReplicas, LeastFreeLeft, MostReplicas
from function.scheduler.scores.tie_break import HashOrder, MostFree

if TYPE_CHECKING:
    from function.scheduler.candidate import Candidate
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput


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
