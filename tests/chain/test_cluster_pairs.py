"""Recorded pairs of InferenceCluster: what differs from the recorded answer is a documented deviation.

MODELPLANE_CHAIN=folder python -m pytest tests/chain   # besides: recordings of one's own
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from function.cluster import names
from tests.chain.cluster_deviations import Deviation, explanations
from tests.chain.difference import differences
from tests.chain.pair import Pair, load

HERE = Path(__file__).parent
FILES = [HERE / "pairs" / "inference-cluster.jsonl"]
if "MODELPLANE_CHAIN" in os.environ:
    FILES += sorted(Path(os.environ["MODELPLANE_CHAIN"]).glob("inference-cluster.json*"))
PAIRS = [pair for path in FILES for pair in load(path)]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_difference_is_a_deviation_on_purpose(pair: Pair) -> None:
    found = differences(pair.ours, pair.theirs)
    assert not [str(difference) for difference in found if not explanations(pair, difference)]


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


def test_every_deviation_is_shown_by_a_pair() -> None:
    shown = {
        deviation
        for pair in PAIRS
        for difference in differences(pair.ours, pair.theirs)
        for deviation in explanations(pair, difference)
    }
    assert shown == set(Deviation)


@pytest.mark.parametrize("deviation", Deviation)
def test_every_deviation_is_a_row_of_the_documentation(deviation: Deviation) -> None:
    text = (HERE.parents[1] / "docs" / "compatibility.md").read_text()
    assert f"| `{deviation.name}` |" in text
