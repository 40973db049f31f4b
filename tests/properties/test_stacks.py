"""The promises, where clusters have KServe: what it cannot express goes elsewhere, and nothing is lost."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from function.api.expressible import obstacle, pods_of
from function.api.workload import Workload
from tests.support import generate
from tests.support.drive import run
from tests.support.promises.identity import new
from tests.support.promises.ledger import too_many
from tests.support.promises.opted_in import OPTED, uncertified, unexplained, unsettled
from tests.support.scale import BATCHES, batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.drive import Answer
    from tests.support.world import World

HUGGING_FACE = {"model": {"uri": "hf://org/model"}}
SERVINGS = (None, HUGGING_FACE, HUGGING_FACE, {"model": {"uri": "s3://bucket/model"}})


def stacked(seed: int) -> World:
    """Return a random world in which some clusters have KServe, and some deployments bring their model."""
    draw, made = random.Random(seed), generate.world(seed, OPTED).copy()
    for cluster in made.clusters or ():
        if draw.random() < 0.5:
            cluster["spec"]["stack"] = "KServe"
    serving = draw.choice(SERVINGS)
    if serving is not None:
        spread = {"parallelism": {"pipeline": draw.choice((2, 3, 4))}}
        made.deployment["spec"]["template"]["spec"]["serving"] = serving | spread
    return made


def placed(world: World, answer: Answer) -> Iterator[tuple[str, str]]:
    """Yield the stack that each new replica goes to, and what is in its way there: nothing."""
    stacks = {
        cluster["metadata"]["name"]: cluster["spec"].get("stack", "Standard")
        for cluster in world.clusters or ()
    }
    for replica in new(world, answer).values():
        stack = stacks[replica["spec"]["clusterName"]]
        yield stack, obstacle(stack, pods_of(Workload.parse(replica)))


@pytest.mark.parametrize("number", range(BATCHES))
def test_what_a_stack_cannot_express_goes_elsewhere_and_nothing_is_lost(number: int) -> None:
    for seed in batch(number, quick=120, gate=4_000):
        world = stacked(seed)
        answer = run(world)
        assert not [barred for _, barred in placed(world, answer) if barred], seed
        for promise in (unexplained, too_many, uncertified, unsettled):
            assert not list(promise(world, answer)), (seed, promise.__name__)


def test_the_worlds_place_on_both_stacks() -> None:
    worlds = map(stacked, range(200))
    seen = Counter(stack for world in worlds for stack, _ in placed(world, run(world)))
    assert min(seen["KServe"], seen["Standard"]) > 5, seen
