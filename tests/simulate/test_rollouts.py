"""Closed loop: rollouts, surge, drains and losses, with slow starts and images that never start."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulate import rollouts
from tests.simulate.episode import BrokenPromise
from tests.support import scale


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_changes_keep_within_their_budgets_and_come_to_rest(number: int) -> None:
    for seed in scale.batch(number, quick=160):
        try:
            rollouts.live(seed)
        except BrokenPromise as broken:
            pytest.fail(str(broken), pytrace=False)


def test_the_episodes_are_worth_looking_at() -> None:
    """Serving replicas are updated, drained and replaced in them, and most of them end with every replica."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        seen += rollouts.live(seed).seen
    few = {name: seen[name] for name in ("updated", "Drained", "Replaced", "ClusterGone") if seen[name] < 10}
    assert not few, seen
    assert seen["ReplicasCreated"] > 30, seen
