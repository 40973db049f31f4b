"""Recorded answers of v0.3 about clusters as our observed state: a swap uninstalls nothing."""

from __future__ import annotations

import pytest

from function.cluster import names
from tests.chain.pair import Pair
from tests.chain.recorded import CLUSTER_PAIRS as PAIRS


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_swap_uninstalls_nothing(pair: Pair) -> None:
    """What v0.3 desired and is observed stays desired, under its name."""
    for key in pair.observed:
        assert key in pair.ours.desired, "a swap of the function must not uninstall a cluster"
        assert pair.ours.desired[key]["metadata"]["name"] == pair.observed[key]["metadata"]["name"]


def test_with_the_stack_asked_for_it_is_the_recorded_one() -> None:
    shown = 0
    for pair in PAIRS:
        if names.STACK not in pair.theirs.desired:
            continue
        asked = Pair(pair.name, type(pair.request).FromString(pair.request.SerializeToString()), pair.theirs)
        asked.request.input.update({"stack": "Modelplane"})
        assert asked.ours.desired[names.STACK] == pair.theirs.desired[names.STACK], pair.name
        assert asked.ours.conditions["BackendReady"][:2] == pair.theirs.conditions["BackendReady"][:2]
        shown += 1
    assert shown
