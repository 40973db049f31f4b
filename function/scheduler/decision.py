"""The decision of one pass as data: which replicas are kept, placed and dropped, and why.

`schedule` makes it. Explaining and composing need nothing of how it was made, so it stands apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from function.api.names import NamespacedName
from function.api.reasons import Rejection
from function.api.replica import GuaranteeShare
from function.boundary import frozen
from function.scheduler.budget import CallBudget
from function.scheduler.ledger import Ledger, Overcommitted
from function.scheduler.outcomes import Dropped, Kept, Placed
from function.scheduler.placer import Placer
from function.scheduler.scheduling_input import SchedulingInput


@frozen
class Decision:
    """The outcome of one pass."""

    inputs: SchedulingInput
    ledger: Ledger
    kept: tuple[Kept, ...] = ()
    placed: tuple[Placed, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    full: Mapping[str, Rejection] = field(default_factory=dict)
    """The rejections as they were before replicas that had a place were withheld."""
    stopped: str = ""
    """Why filling stopped early, when it was not for want of a place."""
    withheld: int = 0
    """Replicas that had a place and were not placed, because minReplicas was out of reach."""
    overcommitted: tuple[Overcommitted, ...] = ()
    """Pools of its replicas that hold more than they have, as observed."""
    shares: Mapping[NamespacedName, GuaranteeShare] | None = None
    """How replicas stand to what is guaranteed; None where that is not known in this pass."""
    left_out: tuple[str, ...] = ()
    """Deployments before ours in the common order whose selectors cost too much to place for them."""
    matched: int = 0
    """Work: (member, pool shape) pairs matched."""
    budget: CallBudget | None = field(default=None, repr=False, compare=False)
    """Work: the steps that searches took, and what is left of them."""
    placer: Placer | None = field(default=None, repr=False, compare=False)
    """The clusters as this pass left them; None when it could not look for places."""

    def survey(self) -> Mapping[str, Rejection]:
        """Why each cluster hosts no other replica, also when none is missing."""
        return self.full or (self.placer.rejections() if self.placer else {})

    @property
    def rejections(self) -> Mapping[str, Rejection]:
        """Why each cluster hosts no other replica, by name; empty when none is missing.

        Clusters that would host another are not in it. They are looked up when they are read.
        """
        missing = self.total < self.wanted or bool(self.held)
        return self.survey() if missing else {}

    @property
    def wanted(self) -> int:
        """Replicas wanted."""
        return self.inputs.deployment.wanted

    @property
    def total(self) -> int:
        """Replicas placed: kept and new."""
        return len(self.kept) + len(self.placed)

    @property
    def held(self) -> tuple[Kept, ...]:
        """Mismatched replicas for whose replacement there is no place, and others that are blocked."""
        return tuple(kept for kept in self.kept if kept.mismatch or kept.blocked)
