"""The function against brute force: alternatives, prioritized lists, constraints, engines on one fabric."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.oracle import brute, shapes
from tests.support.drive import run
from tests.support.scale import BATCHES, batch

Plain = dict[str, Any]


def decided(replica: Plain) -> Plain:
    """Cut a desired replica down to what the brute force decides."""
    members = [
        (
            member["nodePoolName"],
            [(r["name"], r["deviceClassName"], r["count"]) for r in member.get("deviceRequests", ())],
            member.get("deviceConstraints", []),
        )
        for engine in replica["spec"]["engines"]
        for member in engine["members"]
    ]
    labels = replica["metadata"]["labels"]
    return {"alternative": labels.get("modelplane.ai/alternative", ""), "members": members}


@pytest.mark.parametrize("number", range(BATCHES))
def test_the_function_places_as_brute_force_does(number: int) -> None:
    for seed in batch(number, 400):
        made = shapes.world(seed)
        decided_by_us = {
            key: decided(replica) for key, replica in run(shapes.without_wants(made)).replicas.items()
        }
        expected = brute.place(made)
        for pair in expected.values():
            del pair[brute.HOW]
        assert decided_by_us == expected, f"seed {seed}"


def test_the_worlds_are_worth_comparing() -> None:
    """Alternatives, later ranks, several pools and constraints all decide something somewhere."""
    seen: Counter[str] = Counter()
    for seed in range(400):
        made = shapes.world(seed)
        for engine in brute.place(made).values():
            seen["placed"] += 1
            seen["alternative"] += bool(engine["alternative"])
            seen["split"] += engine[brute.HOW]["split"]
            seen["later"] += engine[brute.HOW]["later"]
            seen["constrained"] += any(constraints for _, _, constraints in engine["members"])
        seen["short"] += len(brute.place(made)) < made.deployment["spec"]["replicas"]
    assert all(number >= 8 for number in seen.values()), seen
    assert len(seen) == 6, seen
