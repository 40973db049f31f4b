"""Identities: a new replica takes the lowest index whose key and object name nothing else has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.drive import run
from tests.support.world import World

Plain = dict[str, Any]
PARENT = ask(2)
STRANGER = build.deployment("stranger", 1)


def running(index: int, *, parent: Plain = PARENT, **more: Any) -> Plain:
    """Return a replica on the only cluster."""
    return build.replica(
        parent, "a", index, PARENT["spec"]["template"]["spec"]["engines"], pools="p0", **more
    )


CASES = [
    ([], ["replica-a-0", "replica-a-1"], "the lowest first"),
    ([running(0)], ["replica-a-0", "replica-a-1"], "the next one"),
    ([running(1)], ["replica-a-0", "replica-a-1"], "a gap is filled"),
    (
        [running(0, name="handmade")],
        ["replica-a-0", "replica-a-1"],
        "an index is taken whatever its object's name",
    ),
    (
        [running(0, name="handmade", terminating=True)],
        ["replica-a-1", "replica-a-2"],
        "an index is not reused while its object is terminating, whatever the name",
    ),
    (
        [running(0, parent=STRANGER, name=build.composed_name(PARENT["metadata"]["name"], "a", 0))],
        ["replica-a-1", "replica-a-2"],
        "an index is passed over whose object name another deployment's replica has",
    ),
]


@pytest.mark.parametrize(("replicas", "keys", "reason"), CASES, ids=[case[2] for case in CASES])
def test_an_identity_is_never_taken_twice(replicas: list[Plain], keys: list[str], reason: str) -> None:
    answer = run(World(PARENT, clusters(a=5), replicas))
    assert sorted(answer.replicas) == keys, reason
    placed = {key: replica["metadata"]["name"] for key, replica in answer.replicas.items()}
    assert len(set(placed.values())) == len(placed), reason
