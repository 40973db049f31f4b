"""Everything composed is valid against the real schemas, unknown fields refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.chain.recorded import REPLICA_PAIRS as PAIRS
from tests.replica import generate, schemas
from tests.replica.build import Scene, config, engine, gang, replica, run
from tests.replica.provider import applied
from tests.support.scale import BATCHES, batch

OBJECT = "kubernetes.m.crossplane.io/v1alpha1 Object"


@pytest.mark.parametrize("number", range(BATCHES))
def test_every_object_and_manifest_of_a_random_replica_is_valid(number: int) -> None:
    for seed in batch(number, quick=120, gate=5_000):
        for key, resource in run(generate.scene(seed)).desired.items():
            assert not list(schemas.composed(resource)), (seed, key)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_answer_to_a_recorded_request_is_valid(pair: Any) -> None:
    if pair.name.startswith(("long-names", "digit-first")) and pair.observed:
        return  # What v0.3 desired there is not valid, and stays until it is replaced.
    for key, resource in pair.ours.desired.items():
        assert not list(schemas.composed(resource)), key


def test_pods_are_observed_by_a_valid_collection() -> None:
    scene = Scene(replica(engine("a"), gang("b")), input=config(diagnose="Pods"))
    answer = run(scene.but(observed=applied(run(scene), "started")))
    assert {"pods-a", "pods-b"} < answer.desired.keys()
    for resource in answer.desired.values():
        assert not list(schemas.composed(resource))


MUTANTS: list[tuple[str, str, tuple[Any, ...], Any]] = [
    ("a field nobody knows", "model-serving-main", ("spec", "forProvider", "manifset"), {}),
    ("an unknown field of a pod", "model-serving-main", ("*", "spec", "template", "spec", "image"), "x"),
    ("a number for a text", "model-serving-main", ("*", "spec", "template", "metadata", "labels", "a"), 1),
    ("an unknown policy", "epp", ("spec", "readiness", "policy"), "Whenever"),
    ("a port for a gang", "model-serving-b", ("*", "spec", "leaderWorkerTemplate", "ports"), []),
    ("no reference to a role", "epp-rolebinding", ("*", "roleRef"), None),
    ("an unknown mode", "inference-pool", ("*", "spec", "endpointPickerRef", "failureMode"), "FailSideways"),
    ("an unknown filter", "model-route", ("*", "spec", "rules", 0, "filters", 0, "type"), "Rewrite"),
    (
        "a claim of nothing",
        "resource-claim-b-leader",
        ("*", "spec", "spec", "devices", "requests", 0, "count"),
        1,
    ),
]


@pytest.mark.parametrize(("reason", "key", "path", "value"), MUTANTS)
def test_what_is_not_valid_is_found(reason: str, key: str, path: tuple[Any, ...], value: Any) -> None:
    resource = copy.deepcopy(run(Scene(replica(engine("main"), gang("b")))).desired[key])
    holder: Any = resource
    if path[0] == "*":
        path = ("spec", "forProvider", "manifest", *path[1:])
    for step in path[:-1]:
        holder = holder[step]
    if value is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    assert list(schemas.composed(resource)), reason


def test_a_variable_that_stands_twice_is_found() -> None:
    resource = copy.deepcopy(run(Scene(replica())).desired["model-serving-main"])
    container = resource["spec"]["forProvider"]["manifest"]["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "A"}, {"name": "A"}]
    assert list(schemas.composed(resource))


def test_the_sources_are_pinned() -> None:
    assert all("@v" in source for source in schemas.VENDORED["sources"])
    assert OBJECT in schemas.VENDORED["kinds"]
