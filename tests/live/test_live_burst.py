"""A burst in a real control plane: no pool stays overcommitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.live import burst, fleet
from tests.live.shipped import NAMESPACE

if TYPE_CHECKING:
    from tests.live.day import Day
    from tests.live.plane import ControlPlane

pytestmark = pytest.mark.live

PLAN = burst.Plan(deployments=10, replicas=3, clusters=20, seed=1, within=4.0, start=0.0)
PATIENCE = 240.0


def test_a_burst_ends_with_no_pool_overcommitted(living: ControlPlane, day: Day) -> None:
    fleet.create_namespace(living, NAMESPACE)
    burst.publish_fleet(living, PLAN.clusters)
    with day.step("create 10 deployments of 3 replicas within 4 s", "settled, no pool overcommitted"):
        seen = burst.run(living, PLAN, PATIENCE)
    assert seen.fine, seen
    assert not seen.unsaid, seen
    burst.clear(living)
