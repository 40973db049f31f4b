"""Hints: the smallest single change that lets one more replica fit. Every one was tried out first.

Why tried. A rule of thumb ("add a node") is wrong as soon as two things are missing at once. Trying is
running the scheduler on the changed input, so a hint cannot be wrong about what it unlocks.

Theory of operation
1. `remedies` reads changes off the recorded rejections, the cheapest for their author first (`Effort`).
2. Each is applied to a copy of the input and decided on (`_Trial.gain`). One that unlocks nothing is dropped.
3. A change with a number is tried with smaller numbers by bisection, so that a hint asks for no more than it
   takes (`_Trial.least`).
4. Of changes that belong together (`group`) only the first that helps is given.

Limits. One change at a time: what takes two edits at once gets no hint. Tries are bounded in number, and
together they take no more search steps than the decision might have. No hint ever changes a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from function.api import Malformed
from function.api.reasons import Rejection
from function.boundary import frozen
from function.deployment.explain.change import InputChange
from function.deployment.explain.remedies import proposals
from function.scheduler.decision import Decision
from function.scheduler.schedule import schedule

SHOWN = 5
"""The most hints given."""
TRIES = 12
"""How many changes are tried out at most."""
WORK = 3_000
"""Clusters that may be looked at in all tries together; a large fleet gets fewer tries."""
LEAST = 2
"""Tries that even the largest fleet gets."""


@frozen
class Hint:
    """One change and how many more replicas it lets fit."""

    change: InputChange
    unlocks: int

    @property
    def plain(self) -> dict[str, Any]:
        """The hint as plain data."""
        return {
            "change": self.change.kind,
            "message": self.change.message,
            "unlocks": self.unlocks,
            **self.change.facts,
        }


class _Trial:
    """Tries changes out, so many times and no more."""

    def __init__(self, decision: Decision) -> None:
        self._decision = decision
        clusters = max(1, len(decision.inputs.fleet.clusters))
        self.left = max(LEAST, min(TRIES, WORK // clusters))
        self._steps = decision.budget.most if decision.budget else 0
        """Steps that all tries may take together: as many as the decision, whatever each of them changes."""

    def gain(self, change: InputChange) -> int:
        """How many more replicas have a place with the change; 0 when it does not help or was not tried."""
        if self.left <= 0 or self._steps <= 0:
            return 0
        self.left -= 1
        try:
            outcome = schedule(change.apply(self._decision.inputs), most=self._steps)
        except Malformed:
            return 0
        self._steps -= outcome.budget.taken if outcome.budget else 0
        # What counts is a place, also one of its own choice for a replica that is held elsewhere.
        before, after = (one.total + one.withheld - len(one.held) for one in (self._decision, outcome))
        return max(after - before, outcome.total - self._decision.total)

    def least(self, change: InputChange, unlocks: int) -> Hint:
        """The same change with the least number that still helps."""
        low, high = change.bounds
        best = Hint(change, unlocks)
        while change.smaller is not None and low < high and self.left > 0:
            middle = (low + high) // 2
            smaller = change.smaller(middle)
            gained = self.gain(smaller)
            low, high = (low, middle) if gained else (middle + 1, high)
            best = Hint(smaller, gained) if gained else best
        return best


def hints(decision: Decision, rejections: Mapping[str, Rejection]) -> list[Hint]:
    """The hints on a decision that leaves something to be wished for; none when nothing is missing.

    Those that cost the user least come first (`Cost`).
    """
    missing = decision.total < decision.wanted or decision.held
    if decision.stopped or not missing or not (decision.placer or decision.inputs.selectors.invalid):
        return []
    trial, helpful, groups = _Trial(decision), list[Hint](), set[str]()
    for change in proposals(decision, rejections):
        if len(helpful) >= SHOWN:
            break
        if change.group and change.group in groups:
            continue
        unlocks = trial.gain(change)
        if unlocks > 0:
            helpful.append(trial.least(change, unlocks))
            groups.add(change.group)
    return sorted(helpful, key=lambda hint: hint.change.cost)
