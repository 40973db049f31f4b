"""Closed loop: rollouts, surge, drains and losses, with slow starts and images that never start.

A life is a day of a deployment: some sixteen things happen to it, and it takes hours until each is known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from function.fail_static import base_of
from function.replica import conditions, handler, kserve, names, state
from tests.simulate import rollouts
from tests.simulate.episode import BrokenPromise
from tests.simulate.rollouts import FOG, STORM, USUAL
from tests.support import scale

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.objects import ObservedObject
    from tests.simulate.rollouts import Weather


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_changes_keep_within_their_budgets_and_come_to_rest(number: int) -> None:
    for seed in scale.batch(number, quick=48, gate=1_000, soak=5_000):
        try:
            rollouts.live(seed, weather=(USUAL, USUAL, STORM, FOG)[seed // scale.BATCHES % 4])
        except BrokenPromise as broken:
            pytest.fail(str(broken), pytrace=False)


def test_the_episodes_are_worth_looking_at() -> None:
    """Serving replicas are updated, drained and replaced in them, and most of them end with every replica."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        life = rollouts.live(seed)
        seen += life.seen + Counter([life.kind])
    few = {name: seen[name] for name in ("updated", "Drained", "Replaced", "ClusterGone") if seen[name] < 5}
    assert not few, seen
    assert seen["ReplicasCreated"] > 20, seen
    assert all(seen[kind] for kind in rollouts.OURS), seen


# The simulation finds what was wrong once: each defect is put back, and lives are lived until one shows it.


def _believe_gangs(patch: pytest.MonkeyPatch) -> None:
    """The status of a LeaderWorkerSet counts as about the spec beside it, which may be an echo."""
    _believe(patch, lambda kind: kind == "LeaderWorkerSet")


def _believe_deployments(patch: pytest.MonkeyPatch) -> None:
    """So does that of a Deployment, whatever generation it is about."""
    _believe(patch, lambda kind: kind != "LeaderWorkerSet")


def _believe(patch: pytest.MonkeyPatch, believed: Callable[[str], bool]) -> None:
    is_about_spec = state.is_about_spec

    def about(workload: ObservedObject, template: str, *, was_updated: bool) -> bool:
        return believed(workload.identity.kind) or is_about_spec(workload, template, was_updated=was_updated)

    patch.setattr(state, "is_about_spec", about)


def _believe_kserve(patch: pytest.MonkeyPatch) -> None:
    """A service of KServe and its workloads count as about what is wanted, whatever their pods are."""
    for evidence in ("_is_acted_on", "_runs", "is_known_remotely"):
        patch.setattr(kserve, evidence, lambda *_, **__: True)


def _keep_the_digest(patch: pytest.MonkeyPatch) -> None:
    """A digest that was published once stays when the evidence turns."""
    status = conditions.status

    def kept(request: Any, snapshot: Any, states: Any, composite: Any) -> dict[str, Any]:
        before = composite.get("status") or {}
        digest = {key: before[key] for key in ("servingDigest",) if before.get(key)}
        return digest | status(request, snapshot, states, composite)

    patch.setattr(handler, "status", kept)


def _let_leave(what: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what lets objects of a kind leave once nothing wants them, whatever pods refer to."""
    stays = state._stays

    def leaves(key: str, snapshot: Any, wanted: Any, states: Any) -> bool:
        read = names.read_key(base_of(key))
        return (read is None or read.what != what) and stays(key, snapshot, wanted, states)

    return lambda patch: patch.setattr(state, "_stays", leaves)


LIVES, MOST = 8, 5


def _of(*kinds: str) -> Weather:
    return replace(STORM, kinds=kinds)


DEFECTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Weather, str, int]] = {
    "gangs are believed": (_believe_gangs, _of("a gang", "gangs"), "", MOST),
    "Deployments are believed": (_believe_deployments, _of("a pod", "copies"), "", MOST),
    "KServe is believed": (_believe_kserve, _of("KServe", "KServe gang"), "", MOST),
    "a digest stays when the evidence turns": (_keep_the_digest, FOG, "serve", 3),
    "a claim template leaves early": (_let_leave(names.CLAIM), STORM, "ResourceClaimTemplate", 3),
    "a mirrored Secret leaves early": (_let_leave(names.SECRET), STORM, "Secret", 3),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_simulation_finds_a_defect_that_is_put_back(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In most lives where evidence is switched off, else in three of eight; each ends where it is found."""
    put_back, weather, words, enough = DEFECTS[defect]
    put_back(monkeypatch)
    shown = 0
    for seed in range(LIVES):
        try:
            rollouts.live(seed, weather=weather)
        except BrokenPromise as broken:
            shown += words in str(broken)
        if shown == enough:
            return
    pytest.fail(f"{shown} of {LIVES} lives show it")
