"""Recorded pairs: what differs from the recorded answer is a deviation on purpose, and documented as such.

MODELPLANE_PAIRS=folder python -m pytest tests/compat     # pairs of one's own recording besides
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.compat.deviations import Deviation, explanations
from tests.compat.difference import differences
from tests.compat.pair import load

HERE = Path(__file__).parent
PAIRS = sorted((HERE / "pairs").glob("*.json"))
RECORDED = (
    sorted(Path(os.environ["MODELPLANE_PAIRS"]).glob("*.json")) if "MODELPLANE_PAIRS" in os.environ else []
)


@pytest.mark.parametrize("path", [*PAIRS, *RECORDED], ids=lambda path: path.stem)
def test_every_difference_is_a_deviation_on_purpose(path: Path) -> None:
    pair = load(path)
    unexplained = [str(difference) for difference in differences(pair) if not explanations(pair, difference)]
    assert not unexplained


def test_every_deviation_is_shown_by_a_pair() -> None:
    pairs = [load(path) for path in PAIRS]
    shown = {
        found
        for pair in pairs
        for difference in differences(pair)
        for found in explanations(pair, difference)
    }
    assert shown == set(Deviation)


@pytest.mark.parametrize("deviation", Deviation)
def test_every_deviation_is_a_row_of_the_documentation(deviation: Deviation) -> None:
    text = (HERE.parents[1] / "docs" / "compatibility.md").read_text()
    assert f"| `{deviation.name}` |" in text
