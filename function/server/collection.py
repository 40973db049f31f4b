"""Collect cyclic garbage between calls, not within them.

Python's own collector runs whenever so many more objects have been made than freed. A first call about a
large fleet makes hundreds of thousands that stay, so it would be stopped several times to look through what
it has just made, and our values have no cycles to be found. What has (gRPC's state of a call that was
refused, say) can wait until an answer is on its way.
"""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

YOUNG = 100_000
"""Objects made and not freed since the last collection, from which on there is one."""
LIMIT = 1_000_000
"""As many within one call, and Python collects in the middle of it, so that garbage is bounded."""
GENERATIONS = (20, 50)
"""Collections of a generation until the next older one is collected too: thousands of parsed objects live on
from call to call, and the collector would walk all of them over and over."""
SECONDS = 0.02
"""Time for an answer to leave before a collection holds everything up."""
LOOKS = 50
"""How often a collection is put off, by these seconds, because another call is being worked on."""


def collect_seldom() -> None:
    """Take everything made so far as there to stay, and collect only beyond the limit from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(LIMIT, *GENERATIONS)


def collect() -> None:
    """Collect what is young, and the older generations when it is their turn."""
    _, young, old = gc.get_count()
    after_young, after_old = GENERATIONS
    gc.collect(2 if old > after_old else 1 if young > after_young else 0)


class Collector:
    """Collects after calls, on the loop that serves them."""

    def __init__(self, busy: Callable[[], bool]) -> None:
        """Take what says whether a call is being worked on. Nothing is due yet."""
        self._busy = busy
        self._due = False

    def call_ended(self) -> None:
        """Collect soon, if there is enough to look through."""
        if not self._due and gc.get_count()[0] >= YOUNG:
            self._due = True
            self._look_later(LOOKS)

    def _look_later(self, looks: int) -> None:
        asyncio.get_running_loop().call_later(SECONDS, self._look, looks)

    def _look(self, looks: int) -> None:
        """Collect where no call would wait for it, and at the last look in any case."""
        if looks and self._busy():
            self._look_later(looks - 1)
        else:
            self._due = False
            collect()
