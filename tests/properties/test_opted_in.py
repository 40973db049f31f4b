"""The promises, on worlds whose deployments, clusters and inputs use opt-in fields.

The oracle of `tests/oracle` knows few of them, so here the promises are read without it: `law` for what may
leave, `function.verify`, which shares no code with the scheduler, for capacity, gates, pools and names.
P10, P11 and P15 are about what these fields change on purpose; `tests/placement` and `tests/accounting` hold
the rules one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from function.api import SchedulerConfig
from function.api.deployment import PlacementPolicy
from tests.properties.worlds import each_batch, hold
from tests.support import generate
from tests.support.drive import Answer, run
from tests.support.promises.doubt import unrecorded
from tests.support.promises.gates import dead_ends
from tests.support.promises.identity import moved, reused
from tests.support.promises.ledger import too_many
from tests.support.promises.order import ordered, other_bytes
from tests.support.promises.settled import noisy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import BaseModel

    from tests.support.world import World

from tests.support.promises.opted_in import (
    BUSY,
    CROWDED,
    DOUBTFUL,
    OPTED,
    blind,
    disturbed,
    down,
    ours,
    ready_yields,
    split,
    uncertified,
    unexplained,
    unsettled,
    up,
)


@dataclass(frozen=True)
class Held:
    """A promise, what breaks it, and on how many worlds of which kind it is looked at."""

    promise: str
    broken: Callable[[World, Answer], Iterator[str]]
    quick: int = 48
    taste: generate.Taste = OPTED

    def __str__(self) -> str:
        """The name of the test."""
        return self.promise


PROMISES = (
    Held("P1-doubt-removes-nothing", unexplained, 96, DOUBTFUL),
    Held("P1-what-leaves-has-its-reason-on-record", unrecorded),
    Held("P1-nothing-leaves-while-something-is-undelivered", blind, 24, DOUBTFUL),
    Held("P2-P8-P9-the-independent-checker-has-no-finding", uncertified, 96),
    Held("P3-never-more-than-wanted-and-surge", too_many),
    Held("P4-asking-again-gives-the-same", unsettled, 24),
    Held("P4-where-nothing-changes-nothing-is-said", noisy, 24),
    Held("P5-another-order-gives-the-same-answer", ordered, 24),
    Held("P5-another-order-gives-the-same-bytes", other_bytes, 24),
    Held("P6-a-retained-replica-keeps-its-place", moved),
    Held("P7-identities-and-names-are-unique-and-never-reused", reused),
    Held("P8-an-engine-is-split-only-where-that-is-allowed", split),
    Held("P9-no-endpoint-without-a-ready-replica", dead_ends),
    Held("P12-a-cluster-that-takes-nothing-changes-nothing", disturbed, 24),
    Held("P13-another-namespace-is-never-ours", ours, 24),
    Held("P14-scale-down-takes-the-excess-and-moves-nobody", down, 24, BUSY),
    Held("P14-scale-up-keeps-everything", up, 24, BUSY),
    Held("law-6-only-one-that-never-was-ready-yields", ready_yields, 96, CROWDED),
)


@each_batch
@pytest.mark.parametrize("held", PROMISES, ids=str)
def test_with_opt_in_fields(held: Held, number: int) -> None:
    hold(number, held.broken, quick=held.quick, taste=held.taste)


def test_the_worlds_are_worth_looking_at() -> None:
    """Every field is in use on worlds that place, keep, hold, replace and yield."""
    seen: Counter[str] = Counter()
    for seed in range(720):
        world = generate.world(seed, OPTED)
        seen.update(_fields([world.deployment["spec"], world.input or {}]))
        decision = run(world).decision
        if decision is not None:
            seen.update(
                placed=len(decision.placed),
                replaced=sum(placement.replaces is not None for placement in decision.placed),
            )
            seen.update(drop.cause.name for drop in decision.dropped)
    few = {name: seen[name] for name in FIELDS if seen[name] < 4}
    assert not few


def _aliases(*models: type[BaseModel]) -> set[str]:
    return {info.alias or name for model in models for name, info in model.model_fields.items()}


NOT_DRAWN = {
    "apiVersion": "one value",
    "kind": "one value",
    "metadata": "read by nothing",
    "capacity": "worlds of its own: `tests/simulate/test_bursts.py`",
    "celVersion": "the dialect: `tests/cel`",
    "scaleSelector": "a field of the status, no decision",
    "ttl": "when the next call comes, no decision",
}
"""Settings that `tests/support/optins.py` never sets, and why."""

FIELDS = (
    *sorted(_aliases(PlacementPolicy, SchedulerConfig) - NOT_DRAWN.keys()),
    *("minReplicas", "maxSurge", "alternatives", "matchExpressions", "cel", "poolPolicy", "constraints"),
    *("firstAvailable", "placed", "replaced", "Yielded"),
)
"""Every field of the policy and of the input, so a new one is drawn or named above; and what they do."""


def _fields(value: Any) -> set[str]:
    """Return the names of all fields in a tree."""
    if isinstance(value, dict):
        return set(value).union(*map(_fields, value.values()))
    return set().union(*map(_fields, value)) if isinstance(value, list) else set()
