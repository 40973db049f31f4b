"""P15: every cluster that is not eligible has one headline reason; applying its remedy opens that gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.properties.worlds import each_batch, hold
from tests.support import generate
from tests.support.drive import Answer, run
from tests.support.remedies import unopened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.world import World


@each_batch
def test_the_remedy_of_a_headline_opens_its_gate(number: int) -> None:
    def unlocked(world: World, _: Answer) -> Iterator[str]:
        yield from unopened(world, run(world, level="plain"))

    hold(number, unlocked, quick=240, taste=generate.Taste(doubt=0.0, oddity=0.3, own_replicas=0.4))


@each_batch
def test_a_cluster_is_rejected_if_and_only_if_it_has_a_reason(number: int) -> None:
    """While something is missing for want of a place, no cluster is without a reason."""

    def silent(world: World, _: Answer) -> Iterator[str]:
        decision = run(world, level="plain").decision
        if decision is None or decision.total >= decision.wanted or decision.stopped or not world.clusters:
            return
        for cluster in world.clusters:
            if cluster["metadata"]["name"] not in decision.rejections:
                yield f"{cluster['metadata']['name']} takes nothing and no reason is given"

    hold(number, silent, taste=generate.Taste(doubt=0.0, oddity=0.2, own_replicas=0.5))
