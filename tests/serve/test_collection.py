"""The garbage collector runs between calls: within one, only where it makes garbage without bound."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from function.server.intake import GENERATIONS, LIMIT, LOOKS, PAUSE, YOUNG, Collector, collect, collect_seldom

if TYPE_CHECKING:
    from collections.abc import Iterator


class Collections(list[int]):
    """The generations that were collected, one after the other."""

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        """Note one."""
        if phase == "start":
            self.append(info["generation"])


@pytest.fixture
def collections() -> Iterator[Collections]:
    """The collections of a process that serves, from now on."""
    thresholds, noted = gc.get_threshold(), Collections()
    collect_seldom()
    gc.callbacks.append(noted)
    try:
        yield noted
    finally:
        gc.callbacks.remove(noted)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


class Cycle:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


def objects_of_a_call(number: int) -> list[object]:
    """Make so many that stay, and some garbage."""
    made: list[object] = [[] for _ in range(number)]
    for _ in range(100):
        Cycle()
    return made


def cycles() -> int:
    return sum(type(one) is Cycle for one in gc.get_objects())


async def served(calls: int, objects: int) -> list[list[object]]:
    """Serve calls, one after the other at once, and wait until what follows them is over."""
    collector, made = Collector(busy=lambda: False), []
    for _ in range(calls):
        made.append(objects_of_a_call(objects))
        collector.call_ended()
    await asyncio.sleep(2 * PAUSE)  # The loop's timers run in the order of their times.
    return made


def test_a_call_on_a_large_fleet_is_not_interrupted_and_its_garbage_goes_afterwards(
    collections: Collections,
) -> None:
    held = objects_of_a_call(4 * YOUNG)
    assert (collections, cycles()) == ([], 100), "while it is answered"
    held.extend(asyncio.run(served(1, 0)))
    assert (collections, cycles()) == ([0], 0), "and afterwards"


def test_small_calls_are_collected_together(collections: Collections) -> None:
    held = asyncio.run(served(9, YOUNG // 10))
    assert (collections, cycles(), len(held)) == ([], 900, 9)
    held += asyncio.run(served(3, YOUNG // 10))
    assert (collections, cycles(), len(held)) == ([0], 0, 12)


class Busy:
    """Says for so many looks that a call is being worked on."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def __call__(self) -> bool:
        self.looks -= 1
        return self.looks > 0


@pytest.mark.parametrize(
    ("looks", "left", "reason"),
    [
        (3, 0, "the third look finds no call"),
        (10 * LOOKS, 9 * LOOKS, "calls are always worked on: the last look"),
    ],
)
def test_a_collection_is_put_off_while_calls_are_worked_on(
    collections: Collections, monkeypatch: pytest.MonkeyPatch, looks: int, left: int, reason: str
) -> None:
    monkeypatch.setattr("function.server.intake.PAUSE", 0.0)
    busy = Busy(looks)

    async def put_off() -> list[object]:
        held, collector = objects_of_a_call(YOUNG), Collector(busy)
        collector.call_ended()
        for _ in range(20 * LOOKS):
            await asyncio.sleep(0)
        return held

    held = asyncio.run(put_off())
    assert (collections, busy.looks, len(held)) == ([0], left, YOUNG), reason


def test_one_call_that_makes_garbage_without_bound_is_collected_within(collections: Collections) -> None:
    held = objects_of_a_call(LIMIT + YOUNG)
    assert (collections, len(held)) == ([0], LIMIT + YOUNG)


def test_older_generations_have_their_turn(collections: Collections) -> None:
    after_young, after_old = GENERATIONS
    for _ in range((after_young + 2) * (after_old + 2)):
        collect()
    assert {generation: collections.count(generation) > 0 for generation in range(3)} == dict.fromkeys(
        range(3), True
    )
    assert collections.index(1) == after_young + 1
    assert collections.count(2) == 1
