"""Evacuation in a closed loop: who is well stays, who is cut off is replaced, and it comes to rest."""

from __future__ import annotations

import pytest

from tests.simulate.outages import AFTER, STEP, WRONG, Outages
from tests.support import scale
from tests.support.parts import Source

LONG = 2 * AFTER // STEP
"""Steps after which a cluster that is cut off is lost, whatever heartbeats lag."""
NAMES = "abcdefg"


def placed(draw: Source, size: int) -> Outages:
    """Return a fleet whose replicas are all Ready, one cluster for each."""
    day = Outages(draw, NAMES[:size], draw.randrange(1, size + 1))
    for _ in range(4):
        day.step()
    return day


def unready(day: Outages) -> int:
    reached = [replica for key, replica in day.running.items() if key.split("-")[1] not in day.cut]
    conditions = [replica.get("status", {}).get("conditions", [{}])[0] for replica in reached]
    return sum(condition.get("status") != "True" for condition in conditions)


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_outages_of_any_kind_move_nothing_that_is_well(number: int) -> None:
    for seed in scale.batch(number, quick=40, gate=1_000, soak=5_000):
        draw = Source(f"outages {seed}")
        day = placed(draw, draw.randrange(1, 8))
        liars = draw.sample(day.names, (len(day.names) - 1) // 2 if draw.odds(0.5) else 0)
        day.wrong = {name: draw.choice(WRONG) for name in liars}
        for _ in range(30):
            name = draw.choice(day.names)
            if draw.odds(0.1):
                day.cut.setdefault(name, day.now)
            elif draw.odds(0.2):
                day.cut.pop(name, None)
            day.step()


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_a_cluster_that_is_cut_off_for_long_is_left_once_and_for_all(number: int) -> None:
    """One replica after the other, each when the one before serves; then nothing changes any more."""
    for seed in scale.batch(number, quick=24, gate=1_000, soak=5_000):
        draw = Source(f"cut off {seed}")
        day = placed(draw, draw.randrange(3, 8))
        lost = {key for key in day.running if key.startswith("replica-a-")}
        day.cut["a"] = day.now
        for _ in range(LONG + 4 * len(lost)):
            day.step()
            assert unready(day) <= 1, f"seed {seed}: more than one at a time"
        assert day.given_up == len(lost), f"seed {seed}"
        assert not lost & day.running.keys(), f"seed {seed}"
        assert len(day.running) == day.wanted, f"seed {seed}"
        day.cut.clear()
        for _ in range(LONG):
            day.step()
        assert day.given_up == len(lost), f"seed {seed}: it goes on moving"


def test_a_control_plane_that_is_cut_off_gives_nobody_up() -> None:
    day = placed(Source("all"), 5)
    before = set(day.running)
    day.cut = dict.fromkeys("abcd", day.now)
    for _ in range(4 * LONG):
        day.step()
    assert set(day.running) == before
