"""P14: scale down removes exactly the excess, in the stated order, and moves no survivor; scale up keeps
everything.

(Where two objects that are merely listed have one identity, the rules leave open which is ours.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracle.verdict import plan
from tests.properties.worlds import each_batch, hold
from tests.support import generate
from tests.support.drive import Answer, run
from tests.support.promises.identity import pools
from tests.support.promises.settled import doubles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.world import World

BUSY = generate.Taste(doubt=0.0, oddity=0.1, own_replicas=1.0)


def scaled(world: World, to: int) -> World:
    """Return the world with another number of replicas wanted."""
    made = world.copy()
    made.deployment["spec"]["replicas"] = to
    return made


def down(world: World, _: Answer) -> Iterator[str]:
    if doubles(world):
        return
    everything = plan(scaled(world, 100))
    stay = len(everything.kept) + sum(reason == "replaced" for reason in everything.dropped.values())
    for to in range(stay):
        smaller = scaled(world, to)
        answer_down = run(smaller)
        if len(answer_down.replicas) != to:
            yield f"scaled to {to}, left with {len(answer_down.replicas)}"
        expected = plan(smaller)
        if answer_down.replicas.keys() != {
            *(kept.key for kept in expected.kept),
            *(new.key for new in expected.new),
        }:
            yield f"scaled to {to}: {sorted(answer_down.replicas)} stay"


def up(world: World, answer: Answer) -> Iterator[str]:
    wanted = world.deployment["spec"]["replicas"]
    if len(answer.replicas) < wanted or any(key not in world.observed for key in answer.replicas):
        return
    more = run(scaled(world, wanted + 2))
    for key, replica in answer.replicas.items():
        if key not in more.desired or pools(more.desired[key]) != pools(replica):
            yield f"{key} does not stay when more are wanted"


@each_batch
def test_scale_down_removes_exactly_the_excess_in_order(number: int) -> None:
    hold(number, down, quick=120, taste=BUSY)


@each_batch
def test_scale_up_keeps_everything(number: int) -> None:
    hold(number, up, quick=120, taste=BUSY)
