"""Evaluate each selector once for all subjects of which it reads the same, within one request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from function.cel.selector import Outcome, Program
    from function.cel.subject import Subject


class OutcomeCache:
    """A memory of outcomes and two counters. For one request and one thread."""

    def __init__(self) -> None:
        self.evaluated = 0
        self.reused = 0
        self._outcomes: dict[tuple[Program, Hashable], Outcome] = {}

    def outcome(self, selector: Program, subject: Subject) -> Outcome:
        """Return what the selector says about the subject, evaluating it only if nobody has asked yet."""
        key = (selector, selector.projection(subject))
        outcome = self._outcomes.get(key)
        if outcome is not None:
            self.reused += 1
            return outcome
        self.evaluated += 1
        outcome = self._outcomes[key] = selector.evaluate(subject)
        return outcome
