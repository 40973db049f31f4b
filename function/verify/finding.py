"""A finding: one rule that a decision or a fleet breaks, and where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """One broken rule."""

    rule: str
    """Name of the rule, in one word."""
    where: str
    """The replica, the pool or the deployment it concerns."""
    message: str

    def __str__(self) -> str:
        """`Overcommitted use1/frontier: 5 of 4 nodes held by ...`."""
        return f"{self.rule} {self.where}: {self.message}"
