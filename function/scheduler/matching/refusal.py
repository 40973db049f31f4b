"""Refusals: what does not fit, and why once somebody reads it.

Most pools that do not fit are never explained, because the replica has a place on another. So matching only
notes what the explanation takes. The `Evaluations` of the pass are not in it: a refusal lives as long as the
deployment, and they hold the devices of a whole fleet. Whoever reads a refusal brings those of its own pass.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.api.reasons import Rejection
    from function.scheduler.selectors.evaluations import Evaluations


class Refusal:
    """A member on devices, or an engine on pools, that does not fit."""

    __slots__ = ("_explain", "_rejection")

    def __init__(self, explain: Callable[[Evaluations], Rejection]) -> None:
        """Take what finds out why: a function of what selectors say, and of values."""
        self._explain = explain
        self._rejection: Rejection | None = None

    @classmethod
    def of(cls, rejection: Rejection) -> Refusal:
        """Return the refusal of something of which it is known why."""
        return cls(partial(_noted, rejection))

    def explained(self, evaluations: Evaluations) -> Rejection:
        """Return why. Evaluations of the release that read the selectors say the same in every pass."""
        if self._rejection is None:
            self._rejection = self._explain(evaluations)
        return self._rejection


def _noted(rejection: Rejection, _: Evaluations) -> Rejection:
    return rejection
