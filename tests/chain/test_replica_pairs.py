"""Recorded pairs of ModelReplica: what differs from the recorded answer is a documented deviation.

MODELPLANE_CHAIN=folder python -m pytest tests/chain     # recordings of one's own besides: model-replica.json
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.chain.deviations import Deviation, explanations
from tests.chain.difference import differences
from tests.chain.recorded import HERE, PAIRS

if TYPE_CHECKING:
    from tests.chain.pair import Pair


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_difference_is_a_deviation_on_purpose(pair: Pair) -> None:
    found = differences(pair.ours, pair.theirs)
    assert not [str(each) for each in found if not explanations(pair, each)]


def test_every_deviation_is_shown_by_a_pair() -> None:
    shown = {
        deviation
        for pair in PAIRS
        for each in differences(pair.ours, pair.theirs)
        for deviation in explanations(pair, each)
    }
    assert shown == set(Deviation)


@pytest.mark.parametrize("deviation", Deviation)
def test_every_deviation_is_a_row_of_the_documentation(deviation: Deviation) -> None:
    text = (HERE.parents[1] / "docs" / "compatibility.md").read_text()
    assert f"| `{deviation.name}` |" in text
