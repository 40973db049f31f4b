"""Where the quick reader of a replica gives an answer, it is the lenient reader's."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from function.api.replica import CHARGE_SHAPE, DEPLOYMENT_LABEL, ModelReplica, charge, parse_charge
from function.boundary import Unreadable
from function.wire import WireDocument, write
from tests.support.odd_values import damaged, paths_of, put

LABELS = {"modelplane.ai/deployment": "llama", "team": "a"}
CLAIM = {"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 8}


def charged(document: WireDocument) -> ModelReplica | None:
    """Return what the reader of bytes makes of a document."""
    return document.opened().charge(ModelReplica, DEPLOYMENT_LABEL)


def member(**fields: Any) -> dict[str, Any]:
    return {"role": "Leader", "nodePoolName": "frontier", "deviceRequests": [CLAIM], **fields}


def replica(*members: dict[str, Any], copies: Any = 2, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {"name": "llama-0", "namespace": "ml", "labels": LABELS, **metadata},
        "spec": {
            "clusterName": "use1",
            "engines": [{"name": "main", "copies": copies, "members": list(members) or [member()]}],
        },
    }


def without(content: dict[str, Any], *path: str) -> dict[str, Any]:
    below = content
    for key in path[:-1]:
        below = below[key]
    del below[path[-1]]
    return content


USUAL = [
    (replica(), "one member of two copies"),
    (replica(member(), member(role="Worker", worker={"nodes": 3})), "a gang of four nodes"),
    (replica(member(), member(role="Worker")), "a worker without a number is one"),
    (replica(member(role="Leader", worker={"nodes": 3})), "only a worker has several pods"),
    (replica(member(), member(nodePoolName="flex")), "two pools"),
    (replica(member(deviceRequests=[])), "claims nothing, holds nothing"),
    (replica(deletionTimestamp="2026-01-01T00:00:00Z"), "on its way out"),
    (replica(deletionTimestamp=""), "an empty time is none"),
    (without(replica(), "metadata", "labels"), "nobody's"),
    (without(replica(), "metadata", "namespace"), "no namespace"),
    (without(replica(), "spec", "engines"), "no engines"),
    (without(replica(), "spec"), "no spec"),
    ({**replica(), "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "what is not asked for"),
]

UNUSUAL = [
    (replica(copies=0), "fewer than one copy"),
    (replica(copies=1.5), "half a copy"),
    (replica(copies="2"), "a number as a text"),
    (replica(copies=None), "null is unset"),
    (replica(copies=float("nan")), "not a number"),
    (replica(member(role="Worker", worker=[3])), "a list for a map"),
    (replica(member(deviceRequests=["gpu"])), "a claim that is a text"),
    (replica(member(nodePoolName=7)), "a pool that is a number"),
    (replica(name=["llama"]), "a name that is a list"),
    (replica(name="x" * 200), "a long name takes two bytes of length"),
    ({**replica(), "spec": "text"}, "a spec that is a text"),
    ({**replica(), "metadata": None}, "metadata that is null"),
]


@pytest.mark.parametrize(("content", "reason"), USUAL)
def test_what_is_written_as_usual_is_read_quickly(content: dict[str, Any], reason: str) -> None:
    document = WireDocument(write.struct(content))
    assert charged(document) is not None, reason
    assert parse_charge(document) == charge(document.project(CHARGE_SHAPE)), reason


@pytest.mark.parametrize(("content", "reason"), UNUSUAL)
def test_what_is_not_is_left_to_the_lenient_reader(content: dict[str, Any], reason: str) -> None:
    document = WireDocument(write.struct(content))
    assert charged(document) is None, reason
    assert parse_charge(document) == charge(content), reason


def leniently(document: WireDocument) -> Any:
    try:
        return charge(document.project(CHARGE_SHAPE))
    except Unreadable:
        return None


ODD = st.sampled_from([None, "", "x", "Worker", "x" * 130, 0, 1, 3, -1, 1.5, 2.0**53, 2.0**60, True, [], {}])
ODD_DEEP = (
    ODD | st.lists(ODD, max_size=2) | st.dictionaries(st.sampled_from(["nodes", "name"]), ODD, max_size=2)
)


@given(st.sampled_from([content for content, _ in USUAL + UNUSUAL]), st.data())
def test_both_readers_agree_whatever_stands_there(content: dict[str, Any], data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(paths_of(content)))
    document = WireDocument(write.struct(put(content, place, data.draw(ODD_DEEP))))
    assert charged(document) is None or parse_charge(document) == leniently(document)


@given(st.sampled_from([content for content, _ in USUAL]), st.integers(0, 2**32), st.integers(1, 3))
def test_both_readers_agree_on_damaged_bytes(content: dict[str, Any], seed: int, times: int) -> None:
    document = WireDocument(damaged(write.struct(content), random.Random(seed), times))
    assert charged(document) is None or parse_charge(document) == leniently(document)
