"""Recorded pairs: what differs from the recorded answer is a deviation on purpose, and documented as such.

MODELPLANE_PAIRS=folder python -m pytest tests/compat     # pairs of one's own recording besides
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.compat.deviations import DEVIATIONS
from tests.compat.difference import differences
from tests.compat.pair import load
from tests.support.deviation import explaining

if TYPE_CHECKING:
    from tests.compat.difference import Difference
    from tests.compat.pair import Pair
    from tests.support.deviation import Deviation

HERE = Path(__file__).parent
PAIRS = sorted((HERE / "pairs").glob("*.json"))
RECORDED = (
    sorted(Path(os.environ["MODELPLANE_PAIRS"]).glob("*.json")) if "MODELPLANE_PAIRS" in os.environ else []
)


@pytest.mark.parametrize("path", [*PAIRS, *RECORDED], ids=lambda path: path.stem)
def test_every_difference_is_a_deviation_on_purpose(path: Path) -> None:
    pair = load(path)
    assert not [
        str(difference) for difference in differences(pair) if not explaining(DEVIATIONS, pair, difference)
    ]


def test_every_deviation_is_shown_by_a_pair() -> None:
    pairs = [load(path) for path in PAIRS]
    shown = {
        deviation
        for pair in pairs
        for difference in differences(pair)
        for deviation in explaining(DEVIATIONS, pair, difference)
    }
    assert shown == set(DEVIATIONS)


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.name)
def test_every_deviation_is_a_row_of_the_documentation(deviation: Deviation[Pair, Difference]) -> None:
    assert deviation.documented
