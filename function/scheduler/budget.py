"""A budget of search steps. Steps, not seconds: the same request must get the same answer everywhere."""

from __future__ import annotations


class OutOfSteps(Exception):
    """The search ended without an answer."""


class Budget:
    """So many steps and no more."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        """Open with a number of steps."""
        self.left = steps

    def step(self) -> None:
        """Take one step. Raises OutOfSteps when there is none left."""
        if self.left <= 0:
            raise OutOfSteps
        self.left -= 1
