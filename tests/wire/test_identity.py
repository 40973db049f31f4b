"""Equal identities mean equal content, however the content was serialised."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from function.wire import WireDocument, write
from tests.support.shuffle import shuffled_bytes

OBJECT: dict[str, Any] = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "InferenceCluster",
    "metadata": {"name": "use1", "uid": "u-1", "resourceVersion": "41", "labels": {"a": "1", "b": "2"}},
    "spec": {"nodePools": [{"name": "frontier", "nodeCount": 8}]},
}


def test_the_order_of_map_entries_does_not_matter() -> None:
    contents = {shuffled_bytes(OBJECT, random.Random(seed)) for seed in range(50)}
    assert len(contents) > 10
    assert len({WireDocument(content).opened().identity for content in contents}) == 1


def changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    content = copy.deepcopy(OBJECT)
    below = content
    for key in path[:-1]:
        below = below[key]
    below[path[-1]] = value
    return content


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("metadata", "resourceVersion"), "42", "every change has its resource version"),
        (("metadata", "uid"), "u-2", "an object made anew has its uid"),
        (("kind",), "InferenceClass", "two kinds"),
        (("apiVersion",), "modelplane.ai/v1alpha2", "two versions"),
        (("metadata", "name"), "use2", "a file copied, its uid with it"),
        (("spec", "nodePools"), [], "another length"),
    ],
)
def test_another_content_has_another_identity(path: tuple[str, ...], value: Any, reason: str) -> None:
    other = WireDocument(write.struct(changed(path, value))).opened()
    assert other.identity is not None
    assert other.identity != WireDocument(write.struct(OBJECT)).opened().identity, reason


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("metadata", "resourceVersion"), "", "no version"),
        (("metadata", "uid"), None, "no uid"),
        (("metadata", "uid"), 7, "a uid that is a number"),
        (("metadata", "resourceVersion"), 7, "a version that is a number"),
        (("metadata",), {}, "nothing known: a dry run"),
        (("metadata",), "text", "metadata that is no object"),
    ],
)
def test_without_uid_and_version_there_is_no_identity(path: tuple[str, ...], value: Any, reason: str) -> None:
    assert WireDocument(write.struct(changed(path, value))).opened().identity is None, reason


@pytest.mark.parametrize("path", [("kind",), ("apiVersion",), ("metadata", "name")])
def test_without_a_type_or_a_name_there_is_no_identity(path: tuple[str, ...]) -> None:
    content = copy.deepcopy(OBJECT)
    holder = content["metadata"] if len(path) > 1 else content
    del holder[path[-1]]
    assert WireDocument(write.struct(content)).opened().identity is None


def test_what_cannot_be_read_has_no_identity() -> None:
    assert WireDocument(b"\xff\xff").opened().identity is None
    assert WireDocument(b"").opened().identity is None
    truncated = write.entry("metadata", b"\x2a\x7f\x0a")
    assert WireDocument(truncated).opened().identity is None, "metadata that ends too early is no metadata"


def test_two_contents_of_one_version_and_length_are_taken_for_one() -> None:
    """What is relied on: only files and restored stores have them, and for those reuse is turned off."""
    edited = changed(("spec", "nodePools"), [{"name": "frontier", "nodeCount": 4}])
    assert (
        WireDocument(write.struct(edited)).opened().identity
        == WireDocument(write.struct(OBJECT)).opened().identity
    )
