"""Budgets of search steps. Steps, not seconds: the same request must get the same answer everywhere.

One call has one budget (`searchBudget` of the function's input), whatever it has to search:

1. Every search may take ALLOWANCE steps of its own, or its part of ALLOWANCES where a fleet has many
   clusters: a power of two, so that few changes of a fleet change it. An easy one needs fewer, so no search
   that is easy depends on what others took. What a search finds within them may be remembered from call to
   call.
2. What a hard search takes beyond them is drawn from the call's budget. The clusters take turns: each may
   draw an equal part of what is left for all whose turn is still to come, and leaves the rest to them.
3. No single search takes more than the call's budget. One that runs out says so (`SearchBudgetExceeded`).

So a call takes at most its budget and the steps of its own for each of its searches: one for each cluster
and shape of a replica, each replica placed, and each member on each distinct pool.

What pods can do to one another on shared nodes is found out in units, many of them to a step (`spend`). They
are counted at every look, whether or not the answer is remembered, so that no memory changes an answer.
"""

from __future__ import annotations

ALLOWANCE = 1_000
"""Steps of every search's own. Choosing pools for eight engines on eight pools takes some 250 of them."""
ALLOWANCES, LEAST = 256_000, 128
"""Steps that the searches of all clusters may have of their own together, and what each has at least."""

UNITS = 64
"""Units of packing in a step."""
PACKING = 10_000
"""Steps for the packing of one pool that no search looks at: if it is overcommitted, and who gives way."""


class OutOfSteps(Exception):
    """The search ended without an answer."""


class TooManyCases(OutOfSteps):
    """A look ended without an answer, however many steps are left: it has more cases than are told apart."""


class Budget:
    """So many steps of one search and no more."""

    __slots__ = ("_units", "cut", "left", "steps")

    def __init__(self, steps: int) -> None:
        """Open with a number of steps."""
        self.steps = self.left = steps
        self.cut = False
        """Whether some look ended without an answer, and the search went on as if it were no."""
        self._units = 0

    def step(self) -> None:
        """Take one step. Raises OutOfSteps when there is none left."""
        if self.left <= 0:
            raise OutOfSteps
        self.left -= 1

    def spend(self, units: int) -> None:
        """Take the steps of some units. Raises OutOfSteps when there are too few left."""
        self._units += units
        if self._units >= UNITS:
            self.left -= self._units // UNITS
            self._units %= UNITS
            if self.left < 0:
                self.left = 0
                raise OutOfSteps

    @property
    def units(self) -> int:
        """Units that can still be taken."""
        return self.left * UNITS + UNITS - 1 - self._units

    @property
    def taken(self) -> int:
        """Steps taken so far."""
        return self.steps - self.left


class CallBudget:
    """The steps of one call: every search opens its budget here, and settles what it took."""

    def __init__(self, limit: int, clusters: int, *, most: int | None = None) -> None:
        """Open with the steps to be drawn from, and the number of clusters that take turns.

        `most` bounds all steps together, also those of the searches' own.
        """
        self.limit = limit
        part = ALLOWANCES // max(1, clusters)
        self.allowance = ALLOWANCE if part >= ALLOWANCE else max(LEAST, 1 << (part.bit_length() - 1))
        """Steps of every search's own."""
        self.most = limit + self.allowance * max(1, clusters) if most is None else most
        """Steps of a call in which every cluster is searched once, at most."""
        self.taken = 0
        """Steps that all searches took together."""
        self.drawn = 0
        """Those among them that were not the searches' own."""
        self._bounded = most is not None
        self._left, self._waiting = limit, clusters
        self._part, self._turn = limit, ""
        self._had: set[str] = set()

    def portion(self) -> CallBudget:
        """The budget of one of several passes: half of what is left to draw from.

        So the first of many takes no more from the others than they leave to those after them, and a pass
        has the same budget in every call that begins with the same passes.
        """
        most = self.most - self.taken if self._bounded else None
        part = CallBudget(self.limit, self._waiting, most=most)
        part._left = self._left // 2
        return part

    def with_portion(self, part: CallBudget) -> CallBudget:
        """Account for a pass that had a portion of it. Returns itself."""
        if part is not self:
            self.taken += part.taken
            self._left -= part.drawn
        return self

    def turn(self, cluster: str) -> None:
        """Let the next searches be those of a cluster. Nothing that is remembered may skip a turn."""
        if cluster == self._turn:
            return
        self._turn = cluster
        waiting = self._waiting - len(self._had) - (cluster not in self._had)
        self._had.add(cluster)
        self._part = self._left // (max(0, waiting) + 1)

    def open(self) -> Budget:
        """Return the budget of one search of the cluster whose turn it is."""
        steps = min(self.limit, self.allowance + self._part)
        return Budget(max(0, min(steps, self.most - self.taken)) if self._bounded else steps)

    def settle(self, budget: Budget) -> bool:
        """Account for a search that ended. Says whether what it found depends on what others left to it."""
        self.taken += budget.taken
        drawn = max(0, budget.taken - self.allowance)
        self.drawn += drawn
        self._left -= drawn
        self._part -= drawn
        return drawn > 0 or (not budget.left and budget.steps < self.limit)
