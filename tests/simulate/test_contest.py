"""Preemption in a closed loop: it converges, takes nobody against a promise, and leaves nobody in vain."""

from __future__ import annotations

import pytest

from tests.simulate.contest import CLASSES, QUIET, SETTLE, Contest, Teams
from tests.support.scale import count

EPISODES = range(count(10, 200, 1_000))
ON = {"overcommit": "Yield", "priorityClasses": CLASSES}


def keeps_promises_and_settles(contest: Contest) -> None:
    assert not contest.faults, (contest.seed, contest.faults)
    late = [move for number, move in contest.moves if number >= SETTLE]
    assert not late, f"seed {contest.seed}: within {QUIET} rounds at rest {late}"
    assert not contest.crowded(), contest.seed


@pytest.mark.parametrize("coordination", ["None", "GlobalOrder"])
def test_replicas_of_lower_classes_give_way_and_it_settles(coordination: str) -> None:
    """Lists are old and budgets change. After the last event ten reconciles of each are enough."""
    gave_way = 0
    for seed in EPISODES:
        contest = Contest(seed, ON | {"coordination": coordination}, churn=True).play()
        gave_way += contest.gave_way
        keeps_promises_and_settles(contest)
        assert not contest.in_vain(), (seed, contest.in_vain())
    assert gave_way, "nobody ever gave way: the test would prove nothing"


def test_without_a_class_that_preempts_nobody_gives_way() -> None:
    plain = [{**row, "preempts": False} for row in CLASSES]
    for seed in EPISODES[:5]:
        contest = Contest(seed, ON | {"priorityClasses": plain}, churn=True).play()
        assert not contest.gave_way, seed


@pytest.mark.parametrize("coordination", ["None", "GlobalOrder"])
def test_what_is_borrowed_is_given_back_and_it_settles(coordination: str) -> None:
    """At rest nobody below its guarantee waits for what others borrow, and every note is true.

    A quota stays passed where two passed it at once and were Ready before either list showed it: what was
    Ready never leaves for a quota. Here that is one episode in fifty.
    """
    returned = passed = 0
    for seed in EPISODES:
        contest = Teams(seed, ON | {"coordination": coordination}, churn=True).play()
        returned += contest.returned
        keeps_promises_and_settles(contest)
        assert not contest.unjust(), (seed, contest.unjust())
        passed += contest.passes_quota()
    assert passed <= len(EPISODES) / 25
    assert returned, "nothing was ever given back: the test would prove nothing"
