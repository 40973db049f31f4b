"""Whole days keep every promise and come to rest, each the same for its seed; what breaks is made short."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest

from tests.history.judge import judge
from tests.history.lives import ordered
from tests.simulate import swarm
from tests.simulate.swarm import EVENTS, WINDOW, Day
from tests.simulate.whole import WholeDay
from tests.support import scale
from tests.support.hash_seeds import printed_under


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_days_keep_the_promises_and_come_to_rest(number: int) -> None:
    for seed in scale.batch(number, quick=8, gate=200, soak=5_000):
        if complaint := swarm.broken(Day(seed)):
            pytest.fail(complaint, pytrace=False)


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_whole_days_keep_them_down_to_the_pods(number: int) -> None:
    for seed in scale.batch(number, quick=2, gate=40, soak=1_000):
        if complaint := swarm.broken(WholeDay(seed)):
            pytest.fail(complaint, pytrace=False)


@pytest.mark.parametrize("seed", range(2))
def test_a_copy_that_started_after_a_restore_answers_as_every_other_one(seed: int) -> None:
    """What shows a memory that outlives a restore (`defects.py`) has nothing to say where none does."""
    assert not swarm.broken(swarm.RelapsingDay(seed))


DIGEST = """
import hashlib, json
from tests.simulate.whole import WholeDay
rows = json.dumps(WholeDay(2).live().rows, sort_keys=True)
print(hashlib.sha256(rows.encode()).hexdigest())
"""


def test_a_day_is_the_same_for_the_same_seed_in_any_process() -> None:
    digests = printed_under(("1", "3"), DIGEST)
    assert len(digests) == 1


def test_the_days_are_worth_looking_at() -> None:
    """Replicas leave in them for most of the reasons of Law 2, and roll within budgets."""
    counts: Counter[str] = Counter()
    for seed in range(1, 5):
        counts += judge(ordered(Day(seed).live().rows), WINDOW).counts
    few = [
        what
        for what in ("its cluster is gone", "a taint", "scaled down", "by another hand", "a mismatch")
        if not counts[f"ModelReplica: {what}"]
    ]
    assert not few, counts


def test_what_breaks_a_day_is_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = frozenset({2, 5})

    def broken(day: Day) -> str:
        return str(sorted(set(range(EVENTS)) - day.left_out)) if not needed & day.left_out else ""

    monkeypatch.setattr(swarm, "broken", broken)
    assert swarm.shrunk(1) == "[2, 5]"


def test_a_copy_that_answers_otherwise_than_before_is_complained_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "AGAIN", 1.0)
    day, numbers = Day(1), count()
    day.copies = [lambda _: str(next(numbers)).encode()]
    assert day.ask(b"a request") == b"0"
    assert (day.ask(b"another"), day.complaints) == (b"1", [])
    day.ask(b"a request")
    assert day.complaints == ["at 0 s: one request has two answers"]
