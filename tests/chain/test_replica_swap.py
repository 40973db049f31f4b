"""The swap: what v0.3 desired is what we observe, and the functionRef is all that changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from function.fail_static import base_of
from function.replica import names
from tests.chain.difference import fields
from tests.chain.pair import Pair, answered
from tests.chain.recorded import REPLICA_PAIRS as PAIRS
from tests.chain.replica_deviations import SPEC
from tests.replica.provider import observed

Plain = dict[str, Any]

WITH_OBJECTS = [pair for pair in PAIRS if pair.theirs.desired]
REFUSED = ("digit-first", "long-names")
"""Recordings with names that Kubernetes refuses: nothing of them is on a cluster, so they are replaced."""


def swapped(pair: Pair) -> tuple[Plain, Any]:
    """Return what is observed after v0.3 desired it, and our answer to that."""
    applied = {key: observed(key, manifest) for key, manifest in pair.theirs.desired.items()}
    request = copy.deepcopy(pair.request)
    request.observed.resources.clear()
    for key, manifest in applied.items():
        request.observed.resources[key].resource.update(manifest)
    return applied, answered(request)


def template(resource: Plain) -> Plain:
    """Return the pod templates of a workload."""
    spec = resource["spec"]["forProvider"]["manifest"]["spec"]
    return dict(spec.get("leaderWorkerTemplate") or spec["template"])


@pytest.mark.parametrize("pair", WITH_OBJECTS, ids=lambda pair: pair.name)
def test_nothing_is_deleted(pair: Pair) -> None:
    before, answer = swapped(pair)
    assert answer.desired.keys() >= before.keys()


@pytest.mark.parametrize("pair", WITH_OBJECTS, ids=lambda pair: pair.name)
def test_nothing_is_renamed(pair: Pair) -> None:
    before, answer = swapped(pair)
    for key, value in before.items():
        ours, theirs = (one["spec"]["forProvider"]["manifest"] for one in (answer.desired[key], value))
        assert [ours[part] for part in ("apiVersion", "kind", "metadata")] == [
            theirs[part] for part in ("apiVersion", "kind", "metadata")
        ]
    added = answer.desired.keys() - before.keys()
    assert not added or pair.name.startswith(REFUSED)
    assert all(base_of(key) != key for key in added)


@pytest.mark.parametrize("pair", WITH_OBJECTS, ids=lambda pair: pair.name)
def test_no_pod_template_changes(pair: Pair) -> None:
    before, answer = swapped(pair)
    for key in before:
        if key.startswith(names.WORKLOAD) or key == names.PICKER:
            assert template(answer.desired[key]) == template(before[key])


@pytest.mark.parametrize("pair", WITH_OBJECTS, ids=lambda pair: pair.name)
def test_only_two_fields_of_any_manifest_change(pair: Pair) -> None:
    """`NoSurge` and `Deadline` are no part of a pod's template. A refused name changes who is referred to."""
    before, answer = swapped(pair)
    allowed = {f"{SPEC}.strategy", f"{SPEC}.progressDeadlineSeconds"}
    for key, manifest in before.items():
        changed = {path for path, _, _ in fields(answer.desired[key]["spec"], manifest["spec"], ".spec")}
        if pair.name.startswith(REFUSED):
            changed -= {path for path in changed if path.endswith(".name")}
        assert changed <= allowed, key


@pytest.mark.parametrize("pair", WITH_OBJECTS, ids=lambda pair: pair.name)
def test_a_replica_that_serves_goes_on_serving(pair: Pair) -> None:
    _, answer = swapped(pair)
    assert answer.conditions["ModelReady"][:2] == (True, "Serving")
    assert answer.ready >= set(pair.theirs.desired)
    if not pair.name.startswith(REFUSED):
        assert answer.ready == answer.desired.keys()
        assert not answer.unready
