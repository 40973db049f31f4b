"""Explanations are true: a remedy opens exactly its gate, a hint unlocks what it says, counts add up."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from function.api.reasons import Reason
from function.deployment.explain.clusters import ClusterVerdict, Survey
from function.deployment.explain.hints import hints
from function.deployment.explain.message import histogram
from function.deployment.explain.remedies import source_of
from tests.support import scale, scarce
from tests.support.remedies import REMEDIES

if TYPE_CHECKING:
    from function.api.reasons import Rejection


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_the_remedy_of_a_gate_opens_exactly_that_gate(number: int) -> None:
    opened: Counter[Reason] = Counter()
    for seed in scale.batch(number, quick=240, gate=4_000):
        decision = scarce.decide(scarce.world(seed))
        before = decision.survey()
        for name, rejection in before.items():
            if not rejection.reason.is_standing:
                continue
            made = scarce.world(seed)
            cluster = scarce.cluster_of(made, name)
            cluster.setdefault("status", {})
            REMEDIES[rejection.reason.name](made, cluster)
            after = scarce.decide(made).survey()
            left = after.get(name)
            assert left is None or left.reason.depth > rejection.reason.depth, f"seed {seed}, {name}: {left}"
            opened[rejection.reason] += 1
            _others_unchanged(seed, name, rejection.reason, before, after)
    assert opened


def _others_unchanged(
    seed: int, mended: str, reason: Reason, before: dict[str, Rejection], after: dict[str, Rejection]
) -> None:
    """What stood at the gates of other clusters stands there still, unless it was the same thing."""
    for name, rejection in before.items():
        gated = rejection.reason.is_standing
        if name != mended and gated and rejection.reason is not reason:
            assert after[name].reason is rejection.reason, f"seed {seed}, {name}"


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_the_missing_nodes_are_what_is_missing(number: int) -> None:
    """For a replica of one engine: with the stated nodes one more fits, with one node less it does not."""
    tried = 0
    for seed in scale.batch(number, quick=240, gate=4_000):
        decision = scarce.decide(scarce.world(seed))
        if len(decision.inputs.deployment.shapes[0].engines) > 1 or decision.placer is None:
            continue
        for name, rejection in decision.rejections.items():
            if rejection.reason is not Reason.InsufficientNodes:
                continue
            missing = (rejection.needs or 0) - (rejection.free or 0)
            made = scarce.world(seed)
            scarce.add_nodes(made, name, rejection.pool, missing)
            assert scarce.reach(scarce.decide(made)) > scarce.reach(decision), (
                f"seed {seed}, {name}: {rejection}"
            )
            if missing > 1:
                fewer = scarce.world(seed)
                scarce.add_nodes(fewer, name, rejection.pool, missing - 1)
                assert scarce.reach(scarce.decide(fewer)) == scarce.reach(decision), f"seed {seed}, {name}"
            tried += 1
    assert tried


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_the_selector_that_is_blamed_is_the_one_in_the_way(number: int) -> None:
    """Where the blamed selector matches everything, it is no longer blamed on that pool."""
    tried = 0
    for seed in scale.batch(number, quick=160, gate=4_000):
        decision = scarce.decide(scarce.world(seed))
        for name, rejection in decision.survey().items():
            for leaf in rejection.leaves:
                source = source_of(decision.inputs, leaf)
                if leaf.reason is not Reason.NoMatchingDevice or source in ("", "true"):
                    continue
                made = scarce.world(seed)
                scarce.relax(made, source, "true")
                now = scarce.decide(made).survey().get(name)
                assert now is None or not _blames(now, leaf), f"seed {seed}, {name}: {leaf}"
                tried += 1
    assert tried


def _blames(now: Rejection, leaf: Rejection) -> bool:
    where = (leaf.pool, leaf.engine, leaf.member, leaf.request, leaf.selector)
    return any(
        (rejection.pool, rejection.engine, rejection.member, rejection.request, rejection.selector) == where
        and rejection.reason is Reason.NoMatchingDevice
        for rejection in now.leaves
    )


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_every_hint_unlocks_at_least_what_it_says(number: int) -> None:
    followed: Counter[str] = Counter()
    for seed in scale.batch(number, quick=160, gate=4_000):
        decision = scarce.decide(scarce.world(seed))
        for hint in hints(decision, decision.survey()):
            made, promised = scarce.world(seed), hint.plain
            scarce.APPLY[promised["change"]](made, promised)
            after = scarce.decide(made)
            gained = max(scarce.reach(after) - scarce.reach(decision), after.total - decision.total)
            assert gained >= promised["unlocks"] > 0, f"seed {seed}: {promised}"
            followed[promised["change"]] += 1
    assert {"AddNodes"} < set(followed), followed


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_counts_add_up_to_the_fleet(number: int) -> None:
    """Every cluster that takes no other replica has one headline and one verdict that agrees with it."""
    for seed in scale.batch(number, quick=400, gate=20_000):
        decision = scarce.decide(scarce.world(seed))
        if decision.placer is None:
            continue
        survey, fleet = Survey.of(decision), decision.inputs.fleet
        listed = {*fleet.clusters, *fleet.unreadable}
        assert set(survey.rejections) <= listed
        able = [name for name in listed if name not in survey.rejections]
        assert sum(histogram(survey.rejections).values()) + len(able) == len(listed)
        for name in listed:
            verdict = survey.verdict(name)
            assert (verdict is ClusterVerdict.Eligible) == (name in able and name not in survey.hosting)
            headroom = survey.entry(name).get("headroom")
            assert headroom is None or (headroom > 0) == (name in able), f"seed {seed}, {name}"
