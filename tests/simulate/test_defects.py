"""The simulations find what was wrong once: each defect is put back, and lives are lived until it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulate.defects import DEFECTS

if TYPE_CHECKING:
    from tests.simulate.defects import Defect


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)
def test_a_defect_that_is_put_back_is_found(defect: Defect, monkeypatch: pytest.MonkeyPatch) -> None:
    """In most lives where evidence is switched off; each ends where it is found."""
    defect.put_back(monkeypatch)
    shown = 0
    for seed in defect.seeds:
        shown += defect.shows(seed)
        if shown == defect.enough:
            return
    pytest.fail(f"{shown} of {defect.lives} lives show it")
