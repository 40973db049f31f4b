"""A new replica gets the lowest index whose identity nobody has, and whose name is free where it counts."""

from __future__ import annotations

from typing import Any

import pytest

from function.api.names import Identity, object_name
from function.scheduler import stamp
from tests.support import build
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]


def stranger(namespace: str, on: str) -> Plain:
    """Somebody else's replica, called as our replica 0 on a would be."""
    parent = build.deployment("other", 1, namespace=namespace)
    return build.replica(parent, on, 0, pools="nowhere", name=build.composed_name("my-model", "a", 0))


@pytest.mark.parametrize(
    ("replicas", "index", "reason"),
    [
        ([], 0, "nobody has it"),
        ([stranger("ml-team", "b")], 1, "an object of our namespace has the name"),
        ([stranger("ads", "a")], 1, "on one cluster the names of all namespaces meet"),
        ([stranger("ads", "b")], 0, "another namespace and another cluster: never in the way"),
    ],
)
def test_the_lowest_index_that_is_free(replicas: list[Plain], index: int, reason: str) -> None:
    made = World(build.deployment(), [build.cluster("a", [build.pool("h100", 4)])], replicas)
    [placed] = decide(made).placed
    assert (placed.identity.cluster, placed.identity.index) == ("a", index), reason


def test_two_of_one_pass_never_share_an_index() -> None:
    made = World(build.deployment(replicas=3), [build.cluster("a", [build.pool("h100", 4)])], ())
    assert [placement.identity.index for placement in decide(made).placed] == [0, 1, 2]


def test_a_name_is_worked_out_once_however_many_come_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty replicas on one cluster need fifty names, not one for every index below."""
    named = []

    def counting(deployment: str, identity: Identity) -> str:
        named.append(identity)
        return object_name(deployment, identity)

    monkeypatch.setattr(stamp, "object_name", counting)
    made = World(build.deployment(replicas=50), [build.cluster("a", [build.pool("h100", 50)])], ())
    assert len(decide(made).placed) == len(named) == 50
