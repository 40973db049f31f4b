"""P16: closed loop: after the last event (an object gone and a replica becoming Ready are events) a simulated
control plane converges within 3 reconciles and never oscillates.

On the way, after every step, the promises P1 (doubt removes nothing), P2 (nothing is overcommitted), P3
(never more than wanted), P6 (nothing moves), P7 (no identity is reused), P8 and P9 (the gates) are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.simulate import episode
from tests.simulate.driven import DEPLOYMENT
from tests.support import scale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.driven import Driven


def composed(lived: Driven) -> Iterator[dict[str, Any]]:
    """Yield all that the deployments of an episode compose in the end."""
    for of in lived.living(DEPLOYMENT):
        yield from lived.composed(of).values()


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_episodes_keep_the_promises_and_come_to_rest(number: int) -> None:
    for seed in scale.batch(number, quick=120):
        try:
            episode.live(seed)
        except episode.BrokenPromise as broken:
            pytest.fail(str(broken), pytrace=False)


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_with_opt_in_fields(number: int) -> None:
    for seed in scale.batch(number, quick=80):
        try:
            episode.live_opted(seed)
        except episode.BrokenPromise as broken:
            pytest.fail(str(broken), pytrace=False)


def test_the_simulation_is_the_same_for_the_same_seed() -> None:
    assert episode.live(11).objects == episode.live(11).objects


def test_episodes_place_replicas() -> None:
    lived = [episode.live(seed) for seed in range(12)]
    assert len([manifest for one in lived for manifest in composed(one)]) > 12


def test_episodes_use_the_fields_of_part_2() -> None:
    lived = [episode.live_opted(seed) for seed in range(40)]
    manifests = [manifest for one in lived for manifest in composed(one)]
    on_alternatives = [
        manifest
        for manifest in manifests
        if "modelplane.ai/alternative" in manifest["metadata"].get("labels", {})
    ]
    asked = {key for one in lived for key in one.given or {}}
    policies = {
        key
        for one in lived
        for of in one.living(DEPLOYMENT).values()
        for key in of["spec"].get("placement", {})
    }
    assert len(manifests) > 40
    assert on_alternatives
    assert {"coordination", "overcommit", "defaults", "searchBudget"} <= asked
    assert {"topologySpread", "maxReplicasPerCluster", "disruption", "strategy"} <= policies
