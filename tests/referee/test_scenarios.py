"""The scenarios of the referee, as far as they are decided without a cluster."""

from __future__ import annotations

import pytest

from tests.referee.scenarios import SCENARIOS
from tests.referee.worlds import MODES, World


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_decided(name: str) -> None:
    scenario = SCENARIOS[name]
    new, report = scenario.world("s").decide(scenario.deployment("sx"))
    [said] = report["clusters"]
    reason = said.get("reason", "") if len(new) < scenario.wanted else ""
    assert (len(new), reason) == (scenario.placed, scenario.refused), scenario.reason


@pytest.mark.parametrize("mode", MODES)
def test_a_seed_gives_the_same_world_again(mode: str) -> None:
    one, other = (World.random(7, mode) for _ in range(2))
    assert one.fleet == other.fleet
