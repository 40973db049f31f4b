"""Closed loop: rollouts, surge, drains and losses, with slow starts and images that never start.

A life is a day of a deployment: some sixteen things happen to it, and it takes hours until each is known.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulate import rollouts
from tests.simulate.episode import BrokenPromise
from tests.simulate.rollouts import ALONE, FOG, HAZE, NIGHT, QUOTA, STORM, USUAL
from tests.support import scale


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_changes_keep_within_their_budgets_and_come_to_rest(number: int) -> None:
    for seed in scale.batch(number, quick=32, gate=1_000, soak=5_000):
        try:
            rollouts.live(seed, weather=(USUAL, USUAL, STORM, FOG)[seed // scale.BATCHES % 4])
        except BrokenPromise as broken:
            pytest.fail(str(broken), pytrace=False)


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_every_kind_alone_keeps_within_its_budgets_too(number: int) -> None:
    for seed in scale.batch(number, quick=8, gate=200, soak=2_000):
        try:
            rollouts.live(seed, weather=ALONE[seed % len(ALONE)])
        except BrokenPromise as broken:
            pytest.fail(str(broken), pytrace=False)


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_clusters_that_refuse_pods_break_no_budget(number: int) -> None:
    for seed in scale.batch(number, quick=8, gate=200, soak=2_000):
        try:
            rollouts.live(seed, weather=QUOTA)
        except BrokenPromise as broken:
            pytest.fail(str(broken), pytrace=False)


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_reads_of_a_step_before_break_no_budget_and_blind_ones_a_second_at_most(number: int) -> None:
    for seed in scale.batch(number, quick=24, gate=1_000, soak=5_000):
        try:
            rollouts.live(seed, weather=(HAZE, HAZE, NIGHT)[seed // scale.BATCHES % 3])
        except BrokenPromise as broken:
            pytest.fail(str(broken), pytrace=False)


def test_the_episodes_are_worth_looking_at() -> None:
    """Serving replicas are updated, drained and replaced in them, and most of them end with every replica."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        life = rollouts.live(seed)
        seen += life.seen + Counter([life.kind])
    few = {name: seen[name] for name in ("updated", "Drained", "Replaced", "ClusterGone") if seen[name] < 5}
    assert not few, seen
    assert seen["ReplicasCreated"] > 20, seen
    assert all(seen[kind] for kind in rollouts.OURS), seen
