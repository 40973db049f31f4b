"""What a uid that is not known means: it gives no running replica up, and it adopts nobody's object."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import build
from tests.support.drive import run
from tests.support.world import World

Plain = dict[str, Any]
PARENT = build.deployment("chat", 1)
CLUSTER = build.cluster("a", [build.pool("h100", 2)])
OURS: str = PARENT["metadata"]["uid"]
CONTROLLER = build.owner(PARENT)


@pytest.mark.parametrize(
    ("parent_uid", "owners", "is_own", "reason"),
    [
        (OURS, [CONTROLLER], True, "the controller is this deployment"),
        (OURS, [], True, "nobody controls it, as after a restore"),
        (OURS, [{**CONTROLLER, "controller": False, "uid": "else"}], True, "an owner is no controller"),
        (OURS, [{**CONTROLLER, "uid": "else"}], False, "a controller that is somebody else"),
        (
            OURS,
            [{**CONTROLLER, "uid": ""}],
            False,
            "a controller that nobody can tell is not this deployment",
        ),
        (None, [CONTROLLER], True, "a dry run of a manifest: never stored, so it has no uid to compare"),
        (None, [], True, "the same, where nobody controls it"),
    ],
)
def test_whose_a_listed_replica_is(
    *, parent_uid: str | None, owners: list[Plain], is_own: bool, reason: str
) -> None:
    listed = build.replica(PARENT, "a", 0, ready=True)
    listed["metadata"]["ownerReferences"] = owners
    metadata = {key: value for key, value in PARENT["metadata"].items() if key != "uid"}
    parent = {**PARENT, "metadata": metadata | ({"uid": parent_uid} if parent_uid else {})}
    answer = run(World(parent, [CLUSTER], [listed]))
    names = [manifest["metadata"]["name"] for manifest in answer.replicas.values()]
    assert (names == [listed["metadata"]["name"]]) is is_own, reason
    assert len(names) == 1, "what is not its own is charged, and another one is placed beside it"


@pytest.mark.parametrize(
    ("observed_uid", "listed_uid", "leaves", "reason"),
    [
        ("1", "1", True, "the list knows first that it is being deleted"),
        ("2", "1", False, "one of its name went before it"),
        ("", "1", False, "nobody can tell, and doubt deletes nothing"),
        ("1", "", False, "likewise"),
        ("", "", False, "likewise"),
    ],
)
def test_a_listed_deletion_counts_for_the_same_object_only(
    *, observed_uid: str, listed_uid: str, leaves: bool, reason: str
) -> None:
    observed = build.replica(PARENT, "a", 0, ready=True)
    listed = build.replica(PARENT, "a", 0, ready=True, terminating=True)
    for manifest, uid in ((observed, observed_uid), (listed, listed_uid)):
        manifest["metadata"]["uid"] = uid
    answer = run(World(PARENT, [CLUSTER], [listed], {"replica-a-0": observed}))
    assert ("replica-a-0" not in answer.replicas) is leaves, reason
