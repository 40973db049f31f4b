"""Recorded pairs: what differs from the recorded answer is a documented deviation, for every handler.

MODELPLANE_CHAIN=folder python -m pytest tests/chain     # recordings of one's own besides: model-replica.json
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.chain.recorded import RECORDED

if TYPE_CHECKING:
    from tests.chain.pair import Pair
    from tests.chain.recorded import ChainDeviation

CASES = [
    pytest.param(kind, pair, id=f"{kind}-{pair.name}") for kind in RECORDED for pair in RECORDED[kind].pairs
]
DEVIATIONS = [deviation for recorded in RECORDED.values() for deviation in recorded.deviations]


@pytest.mark.parametrize(("kind", "pair"), CASES)
def test_every_difference_is_a_deviation_on_purpose(kind: str, pair: Pair) -> None:
    explained = RECORDED[kind].explained(pair)
    assert not [str(difference) for difference, deviations in explained if not deviations]


@pytest.mark.parametrize("kind", RECORDED)
def test_every_deviation_is_shown_by_a_pair(kind: str) -> None:
    recorded = RECORDED[kind]
    shown = {
        deviation
        for pair in recorded.pairs
        for _, deviations in recorded.explained(pair)
        for deviation in deviations
    }
    assert shown == set(recorded.deviations)


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.name)
def test_every_deviation_is_a_row_of_the_documentation(deviation: ChainDeviation) -> None:
    assert deviation.documented
