"""Preemption in a closed loop: it converges, takes nobody against a promise, and leaves nobody in vain."""

from __future__ import annotations

import pytest

from tests.simulate.contest import CLASSES, ON, Contest, Teams
from tests.support.scale import count

EPISODES = range(count(10, 200, 1_000))


@pytest.mark.parametrize("coordination", ["None", "GlobalOrder"])
def test_replicas_of_lower_classes_give_way_and_it_settles(coordination: str) -> None:
    """Answers are late and budgets change."""
    given = ON | {"coordination": coordination}
    gave_way = sum(Contest(seed, given).live().events["ReplicaGaveWay"] for seed in EPISODES)
    assert gave_way, "nobody ever gave way: the test would prove nothing"


def test_without_a_class_that_preempts_nobody_gives_way() -> None:
    given = ON | {"priorityClasses": [{**row, "preempts": False} for row in CLASSES]}
    for seed in EPISODES[:5]:
        assert not Contest(seed, given).play().events["ReplicaGaveWay"], seed


@pytest.mark.parametrize("coordination", ["None", "GlobalOrder"])
def test_what_is_borrowed_is_given_back_and_it_settles(coordination: str) -> None:
    """At rest nobody below its guarantee waits for what others borrow, and every note is true.

    A quota stays passed where two passed it at once and were Ready before either list showed it: what was
    Ready never leaves for a quota.
    """
    returned = passed = 0
    for seed in EPISODES:
        contest = Teams(seed, ON | {"coordination": coordination})
        returned += contest.live().events["ReplicaReturned"]
        passed += contest.passes_quota()
    assert passed <= len(EPISODES) / 25
    assert returned, "nothing was ever given back: the test would prove nothing"
