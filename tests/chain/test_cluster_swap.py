"""The swap of the cluster step: what v0.3 desired is what we observe, and only the functionRef changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from function.cluster.names import kind_of
from tests.chain.pair import Pair, answered
from tests.chain.recorded import CLUSTER_PAIRS

Plain = dict[str, Any]
EXISTING = [
    pair
    for pair in CLUSTER_PAIRS
    if {"cluster-provider-config-kubernetes", "serving-stack"} <= pair.theirs.desired.keys()
    and all(kind_of(key) for key in pair.theirs.desired)
]
"""Recordings that set up a cluster that was there already."""


def swapped(pair: Pair, *, names: bool) -> Any:
    """Return our answer where everything that v0.3 desired is observed. `names`: Crossplane named them."""
    request = copy.deepcopy(pair.request)
    request.observed.resources.clear()
    for key, manifest in pair.theirs.desired.items():
        resource = copy.deepcopy(manifest)
        if names:
            resource.setdefault("metadata", {}).setdefault("name", f"made-{key}")
        request.observed.resources[key].resource.update(resource)
    return answered(request)


def test_there_are_such_recordings() -> None:
    assert len(EXISTING) >= 5


@pytest.mark.parametrize("pair", EXISTING, ids=lambda pair: pair.name)
def test_nothing_is_uninstalled_and_nothing_renamed(pair: Pair) -> None:
    answer = swapped(pair, names=True)
    for key, theirs in pair.theirs.desired.items():
        assert key in answer.desired, key
        ours = answer.desired[key]
        assert ours["apiVersion"] == theirs["apiVersion"]
        assert ours["kind"] == theirs["kind"]
        if "name" in theirs.get("metadata", {}):
            assert ours["metadata"]["name"] == theirs["metadata"]["name"], key
        if key == "serving-stack":
            assert ours["spec"] == theirs["spec"], "the stack stays as it was applied"


@pytest.mark.parametrize("pair", EXISTING, ids=lambda pair: pair.name)
def test_what_is_reached_with_which_credentials_stays(pair: Pair) -> None:
    key = "cluster-provider-config-kubernetes"
    assert swapped(pair, names=False).desired[key]["spec"] == pair.theirs.desired[key]["spec"]
