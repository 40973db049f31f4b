"""How many more would fit, asked without leaving a trace."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cases import ask, one
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
SPREAD = {"topologySpread": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}


@pytest.mark.parametrize(
    ("nodes", "accounting", "limit", "placement", "found", "reason"),
    [
        (4, "Node", 9, None, 3, "one is placed, three nodes are left"),
        (4, "Device", 9, None, 3, "whatever is charged"),
        (4, "Node", 2, None, 2, "no more are counted than are asked for"),
        (1, "Node", 9, None, 0, "none is left"),
        (9, "Node", 9, {"maxReplicasPerCluster": 3}, 2, "as many as the deployment allows there"),
    ],
)
def test_headroom(
    nodes: int, accounting: str, limit: int, placement: Plain | None, found: int, reason: str
) -> None:
    fleet = [one("a", nodes, accounting=accounting)]
    decision = decide(World(ask(placement=placement), fleet))
    placer = decision.placer
    assert placer is not None
    before = placer.rejections()
    for _ in range(2):
        cluster = decision.inputs.fleet.clusters["a"]
        assert placer.headroom(cluster, limit) == found, reason
        assert (decision.ledger.free("a", "p0"), decision.ledger.counts["a"]) == (nodes - 1, 1)
        assert placer.rejections() == before
