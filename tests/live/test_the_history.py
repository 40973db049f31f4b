"""All that happened in this control plane is judged, in the last file by its name: `HISTORY=1 make live`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.history.judge import judge
from tests.history.lives import read

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.live


def test_everything_that_left_had_its_reason(recording: Path) -> None:
    history = read(recording)
    assert history.events, "nothing was recorded"
    verdict = judge(history)
    assert verdict.violations == [], verdict.report()
