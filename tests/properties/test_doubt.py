"""P1: doubt never removes a running replica or its endpoint: everything own and observed is desired, or the
result is fatal, unless one of the reasons the law lists is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.properties.worlds import each_batch, hold
from tests.support import law

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.drive import Answer
    from tests.support.world import World

from tests.support.promises.doubt import DOUBTFUL, unexplained, unrecorded


@each_batch
def test_everything_own_and_observed_is_desired_unless_the_law_lists_a_reason(number: int) -> None:
    hold(number, unexplained, taste=DOUBTFUL)


@each_batch
def test_the_reason_is_recorded(number: int) -> None:
    hold(number, unrecorded)


@each_batch
def test_while_the_fleet_is_not_delivered_nothing_leaves(number: int) -> None:
    def left(world: World, answer: Answer) -> Iterator[str]:
        from tests.support.drive import run

        for blind in (
            world.but(clusters=None),
            world.but(replicas=None),
            world.but(clusters=(), replicas=None),
        ):
            yield from law.unexplained(blind, run(blind))

    hold(number, left, quick=120, taste=DOUBTFUL)
