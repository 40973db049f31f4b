"""Law C 4 and 5: the last gate before an answer, and what is desired again exactly as it was applied."""

from __future__ import annotations

from copy import deepcopy
from hashlib import sha256
from typing import Any, NamedTuple

import pytest

from function.boundary import Condition, Desired, PlainDocument, Request, Requirement
from function.fail_static import (
    INTERNAL_ERROR_TEXT,
    as_observed,
    base_of,
    everything_observed,
    foreign,
    internal_error,
    key_of,
    steadfast,
    until_edited,
)
from function.objects import NOTE, composed_object, identity_of, observing_collection, read_object
from function.wire import write
from function.wire.fast.read import MAX_DEPTH
from function.wire.request import WireDocument

MANIFEST = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m", "namespace": "ns"}}
OBJECT = composed_object(MANIFEST, "here")
COLLECTION = observing_collection({"apiVersion": "v1", "kind": "Node"}, {"a": "b"}, "here", {})
KEPT = Desired({"kind": "kept"})


def _with(manifest: dict[str, Any], *path: str, value: object) -> dict[str, Any]:
    changed = deepcopy(manifest)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed


REMOTE = ("spec", "forProvider", "manifest")
PROVIDER = ("spec", "providerConfigRef", "name")


def _request(observed: dict[str, Any], desired: dict[str, Any] | None = None, **required: Any) -> Request:
    documents = {key: PlainDocument(content) for key, content in observed.items()}
    return Request(PlainDocument({}), documents, required, desired=frozenset(desired or {}))


class Gate(NamedTuple):
    reason: str
    observed: dict[str, Any]
    wanted: dict[str, Any]
    is_kept: bool


GATES = (
    Gate("the same again", OBJECT, OBJECT, is_kept=False),
    Gate(
        "a spec that changes is the same remote object",
        OBJECT,
        _with(OBJECT, *REMOTE, "spec", value={"replicas": 2}),
        is_kept=False,
    ),
    Gate(
        "another version of the same group too",
        OBJECT,
        _with(OBJECT, *REMOTE, "apiVersion", value="apps/v2"),
        is_kept=False,
    ),
    Gate("another name", OBJECT, _with(OBJECT, *REMOTE, "metadata", "name", value="n"), is_kept=True),
    Gate(
        "another namespace", OBJECT, _with(OBJECT, *REMOTE, "metadata", "namespace", value="n"), is_kept=True
    ),
    Gate("another kind", OBJECT, _with(OBJECT, *REMOTE, "kind", value="StatefulSet"), is_kept=True),
    Gate("another cluster", OBJECT, _with(OBJECT, *PROVIDER, value="there"), is_kept=True),
    Gate("a collection in the place of an Object", OBJECT, COLLECTION, is_kept=True),
    Gate("a collection that stays where it is", COLLECTION, COLLECTION, is_kept=False),
    Gate(
        "a collection of another cluster",
        COLLECTION,
        _with(COLLECTION, *PROVIDER, value="there"),
        is_kept=True,
    ),
)


@pytest.mark.parametrize("case", GATES, ids=[case.reason for case in GATES])
def test_no_key_ever_becomes_another_remote_object_or_another_cluster(case: Gate) -> None:
    observed = {"key": read_object(PlainDocument(case.observed))}
    wanted = Desired(case.wanted)
    answered = steadfast({"key": wanted, "new": wanted}, observed, lambda _: KEPT)
    assert answered == {"key": KEPT if case.is_kept else wanted, "new": wanted}, case.reason
    asked_for: list[str] = []
    steadfast({"key": wanted}, observed, lambda key: asked_for.append(key) or KEPT)
    assert asked_for == ["key"] * case.is_kept, "kept under its key"


@pytest.mark.parametrize(
    ("reason", "key", "base"),
    [
        ("a key of ours", "model-serving-main", "model-serving-main"),
        ("that of a successor", "model-serving-main.0badcafe", "model-serving-main"),
        ("names may have dots", "secret-a.b", "secret-a.b"),
        ("and such a one may have a successor", "secret-a.b.0badcafe", "secret-a.b"),
        ("seven digits are no digest", "secret-a.0badcaf", "secret-a.0badcaf"),
        ("nor are letters", "secret-a.notahexa", "secret-a.notahexa"),
    ],
)
def test_the_key_of_a_successor_says_whose_it_is(reason: str, key: str, base: str) -> None:
    assert base_of(key) == base, reason


@pytest.mark.parametrize("running", ["earlier", "wanted", "another", None])
def test_what_an_earlier_rule_made_stays_until_it_is_edited(running: str | None) -> None:
    assert until_edited("wanted", "earlier", running) == ("earlier" if running == "earlier" else "wanted")


def test_the_key_of_a_successor_follows_from_its_identity_alone() -> None:
    """A key that another release computed is found again: the digest never changes."""
    other = _with(MANIFEST, "metadata", "name", value="n")
    observed = {"pods": read_object(PlainDocument(OBJECT))}
    digest = sha256(b"apps/Deployment/ns/n").hexdigest()[:8]
    assert identity_of(other) == ("apps", "Deployment", "ns", "n")
    assert key_of("pods", other, observed) == f"pods.{digest}"
    assert key_of("pods", MANIFEST, observed) == "pods"
    assert key_of("pods", other, {}) == "pods"


@pytest.mark.parametrize(
    ("observed", "namespace", "metadata", "reason"),
    [
        (
            {"name": "m", "namespace": "of-its-own"},
            "ns",
            {"name": "m", "namespace": "of-its-own"},
            "as applied",
        ),
        ({"name": "m"}, "ns", {"name": "m", "namespace": "ns"}, "the composite's, where it says none"),
        ({"name": "m"}, "", {"name": "m"}, "none for what has no namespace: an empty one is refused"),
        (
            {"name": "m", "labels": {"a": "b", "crossplane.io/composite": "x"}, "generateName": "m-"},
            "",
            {"name": "m", "labels": {"a": "b"}},
            "without what Crossplane manages",
        ),
        (
            {"name": "m", "annotations": {NOTE: "unknown", "other": "x"}},
            "",
            {"name": "m", "annotations": {NOTE: "unknown"}},
            "with what was known of its pods when they were edited",
        ),
    ],
)
def test_an_object_is_desired_again_as_it_was_applied(
    observed: dict[str, Any], namespace: str, metadata: dict[str, Any], reason: str
) -> None:
    manifest = {**OBJECT, "metadata": observed, "status": {"conditions": []}}
    again = as_observed(
        PlainDocument(manifest), kind="Object", namespace=namespace, api_version=OBJECT["apiVersion"]
    )
    assert again == {**OBJECT, "metadata": metadata}, reason


def test_an_object_of_another_kind_stays_what_it_is_without_its_status() -> None:
    strange = {
        "apiVersion": "v1",
        "kind": "Strange",
        "metadata": {"name": "m"},
        "data": {},
        "status": {"a": 1},
    }
    again = as_observed(PlainDocument(strange), kind="Object", namespace="")
    assert again == {"apiVersion": "v1", "kind": "Strange", "metadata": {"name": "m"}, "data": {}}


def test_everything_observed_is_desired_in_the_namespace_of_the_composite() -> None:
    """An observed object that says no namespace belongs to the composite's."""
    asked = _request({"ours": {**OBJECT, "metadata": {"name": "m"}}, "theirs": OBJECT})
    made = everything_observed(asked, lambda key, _: "Object" if key == "ours" else None, "ns")
    assert {key: desired.resource["metadata"] for key, desired in made.items()} == {
        "ours": {"name": "m", "namespace": "ns"}
    }


@pytest.mark.parametrize(
    ("observed", "desired", "is_foreign", "reason"),
    [
        ({}, {}, False, "nothing stands there"),
        ({"key": OBJECT}, {}, False, "what we compose"),
        ({"key": {**OBJECT, "kind": "Strange"}}, {}, True, "something else stands there"),
        ({"key": {**OBJECT, "kind": "Strange"}}, {"key": {}}, False, "an earlier step answers for it"),
        ({}, {"key": {}}, False, "an earlier step is about to make it"),
    ],
)
def test_what_stands_under_our_key_and_is_not_ours_is_named(
    observed: dict[str, Any], desired: dict[str, Any], *, is_foreign: bool, reason: str
) -> None:
    fault = foreign(_request(observed, desired), {"key": "Object"})
    assert bool(fault) is is_foreign, reason
    assert not fault or "under the key key: expected a composed Object" in fault


@pytest.mark.parametrize("delivered", [True, False])
def test_an_error_of_our_own_is_said_by_every_condition(*, delivered: bool) -> None:
    """Where something asked for is missing it says so: a fatal answer would stop Crossplane fetching it."""
    asked = _request({}, **({"clusters": ()} if delivered else {}))
    clusters = Requirement("clusters", "v1", "InferenceCluster")
    error = internal_error(asked, (clusters,), ("A", "B"))
    assert error.requirements == (clusters,), "Crossplane goes on fetching"
    assert error.conditions == tuple(
        Condition(kind, status=False, reason="InternalError", message=INTERNAL_ERROR_TEXT)
        for kind in ("A", "B")
    )
    assert error.undelivered is (not delivered)


def test_what_stays_is_read_without_its_status() -> None:
    """A call in doubt reads every Object, and most of one is the copy in its status."""
    deep: dict[str, Any] = {}
    for _ in range(MAX_DEPTH):
        deep = {"manifest": deep}
    metadata = {"name": "m", "namespace": "ns", "labels": {"a": "b"}, "annotations": {NOTE: "noted"}}
    content = write.struct({**OBJECT, "metadata": metadata, "status": deep})
    kept = as_observed(WireDocument(content), kind="Object", namespace="ns")
    assert (kept["spec"], kept["metadata"]) == (OBJECT["spec"], metadata)
    other = as_observed(WireDocument(content), kind="Another", namespace="ns")
    assert (other["spec"], "status" in other) == (OBJECT["spec"], False)
