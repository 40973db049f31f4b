"""The evaluations of one request: each (selector, what it reads of the subject) is evaluated once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from function.cel.selector import Outcome, Program
    from function.cel.subject import Subject


class Evaluations:
    """A memory of outcomes and two counters. For one request and one thread."""

    def __init__(self) -> None:
        self.evaluated = 0
        self.reused = 0
        self._known: dict[tuple[Program, Hashable], Outcome] = {}

    def outcome(self, selector: Program, subject: Subject) -> Outcome:
        """Return what the selector says about the subject, evaluating it only if nobody has asked yet."""
        key = (selector, selector.projection(subject))
        known = self._known.get(key)
        if known is not None:
            self.reused += 1
            return known
        self.evaluated += 1
        outcome = self._known[key] = selector.evaluate(subject)
        return outcome
