"""placement.preferences: soft wishes. More matched weight wins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel import bind_cluster
from function.scheduler.pass_values import PassValues

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.api.placement import Preference
    from function.scheduler.candidate import Candidate
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput
    from function.scheduler.selectors.evaluations import Evaluations


class PreferencesScore:
    """Prefers clusters that match more preference weight."""

    description = "matched preference weight"
    elsewhere = False

    def __init__(self, preferences: tuple[Preference, ...], evaluations: Evaluations) -> None:
        """Take the preferences, and what selectors say in this pass."""
        self._preferences, self._evaluations = preferences, evaluations
        self._weights = PassValues(self._weight)

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
            preference.weight for preference in self._preferences if self._matches(preference, cluster)
        )

    def _matches(self, preference: Preference, cluster: InferenceCluster) -> bool:
        if any(cluster.labels.get(key) != value for key, value in preference.match_labels.items()):
            return False
        if not preference.cel:
            return True
        subject = bind_cluster(name=cluster.name, labels=cluster.labels, attributes=cluster.attributes)
        return self._evaluations.matches(self._evaluations.program(preference.expression), subject)
