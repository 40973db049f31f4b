"""P24: an upgrade changes nothing that runs. What an earlier release composed is observed; this one answers.

A rollout's budget sees edits of ModelReplicas. What a handler decides by itself reaches every replica of the
fleet within a minute, so a new rule waits for the replica's own next edit (Law C 6).
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from function.objects import identity_of
from tests.upgrade import recorded
from tests.upgrade.recorded import Case, is_applied

if TYPE_CHECKING:
    from tests.support.drive import Answer

Plain = dict[str, Any]

RELEASES = recorded.releases()
PUBLISHED = ("InferenceCluster", "ModelEndpoint", "ModelService")
"""Kinds whose status other kinds rely on."""


@cache
def answers(release: str) -> list[tuple[Case, Answer]]:
    """Return every case of a release, and what it is answered now."""
    return [(case, case.answer()) for case in recorded.load(release)]


def kept(case: Case) -> set[str]:
    """Return what is observed and was kept by the release."""
    return case.desired.keys() & case.observed.keys()


def manifest(resource: Plain) -> Plain:
    """Return the manifest of an Object; a composed resource of another kind is its own."""
    return dict(resource["spec"]["forProvider"]["manifest"]) if resource["kind"] == "Object" else resource


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_dropped(release: str) -> None:
    for case, answer in answers(release):
        assert not kept(case) - answer.desired.keys(), case.name


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_becomes_another_object(release: str) -> None:
    for case, answer in answers(release):
        for key in kept(case):
            before, now = (manifest(where[key]) for where in (case.observed, answer.desired))
            assert before["kind"] == now["kind"], (case.name, key)
            if before is not case.observed[key]:
                assert identity_of(before) == identity_of(now), (case.name, key)


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_that_stands_still_changes(release: str) -> None:
    """Pod templates, claims, Secrets, namespaces, routes: every field of everything that the release kept."""
    for case, answer in answers(release):
        if case.is_at_rest:
            for key in kept(case):
                assert is_applied(answer.desired[key], case.observed[key]), (case.name, key)


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_added(release: str) -> None:
    """Nor does a template get a new generation, or a remote object a successor."""
    for case, answer in answers(release):
        if case.is_at_rest and case.kind != "ModelDeployment":
            assert answer.desired.keys() == case.desired.keys(), case.name


@pytest.mark.parametrize("release", RELEASES)
def test_another_namespace_for_new_replicas_moves_none_that_runs(release: str) -> None:
    """As where a default changes, or a platform separates its teams."""
    for case, _ in answers(release):
        runs = any(key.startswith("model-serving") for key in case.observed)
        stands = case.is_at_rest and case.kind == "ModelReplica" and runs
        if stands and case.composite["metadata"]["namespace"] != "default":
            other = {"Same": "Default"}.get((case.input or {}).get("remoteNamespace", ""), "Same")
            answer = case.answer(input={**(case.input or {}), "remoteNamespace": other})
            assert answer.desired.keys() == case.desired.keys(), case.name
            for key in kept(case):
                assert is_applied(answer.desired[key], case.observed[key]), (case.name, key)


@pytest.mark.parametrize("release", RELEASES)
def test_what_others_rely_on_is_published_as_it_was(release: str) -> None:
    for case, answer in answers(release):
        if case.kind in PUBLISHED:
            assert answer.status == case.status, case.name


@pytest.mark.parametrize("release", RELEASES)
def test_a_deployment_keeps_its_replicas_and_no_pool_is_overcommitted(release: str) -> None:
    for case, answer in answers(release):
        if case.kind != "ModelDeployment":
            continue
        reason, before = answer.reason(), case.conditions["ReplicasScheduled"]
        assert reason != "InputsUnresolved" or before[1] == reason, case.name
        assert reason == before[1] or reason != "ReplacementBlocked", (case.name, answer.conditions)
        note = answer.conditions["ReplicasScheduled"][2]
        assert "PoolOvercommitted" not in note or "PoolOvercommitted" in before[2], (case.name, note)


@pytest.mark.parametrize("release", RELEASES)
def test_the_corpus_is_of_every_kind(release: str) -> None:
    cases = recorded.load(release)
    kinds = Counter(case.kind for case in cases if case.is_at_rest)
    assert min(kinds[kind] for kind in (*PUBLISHED, "ModelDeployment", "ModelReplica")) >= 15, kinds
    manifests = Counter(
        manifest(made)["kind"] for case in cases if case.is_at_rest for made in case.observed.values()
    )
    expected = ("Deployment", "LeaderWorkerSet", "LLMInferenceService", "Secret", "Namespace", "HTTPRoute")
    assert min(manifests[kind] for kind in expected) >= 20, manifests
    assert (recorded.FOLDER / f"{release}{recorded.SUFFIX}").stat().st_size < 1_000_000
