"""Defects of tests/REGRESSIONS.md, put back as patches: a simulation is harsh enough if it finds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from function.adapter import schedule
from function.api import InferenceCluster
from function.api.cache import ModelCache
from function.api.cluster import completed
from function.api.replica import MANY, PriorityNotes
from function.api.workload import digest_of
from function.cluster import arbiter
from function.deployment.compose import replicas
from function.deployment.snapshot import ownership
from function.fail_static import base_of
from function.replica import adapters, compose, conditions, handler, kserve, names, state
from function.scheduler import disruption, ledger, schedule as passes
from function.scheduler.preemption import Arbitration, Preemptor
from function.scheduler.scheduling_input import Serving
from tests.simulate import burst, rollouts, swarm
from tests.simulate.contest import ON, Contest, Teams
from tests.simulate.episode import BrokenPromise
from tests.simulate.rollouts import FOG, ROUNDS, STORM
from tests.simulate.swarm import CROWDED, USUAL
from tests.simulate.whole import PressingDay, WholeDay

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from function.api import Pool
    from function.api.cluster import NamedVictim
    from function.objects import ObservedObject
    from function.scheduler.decision import Decision
    from function.scheduler.outcomes import Kept
    from function.scheduler.preemption import StandingReplica
    from tests.simulate.rollouts import Weather
    from tests.support.crossplane import Step


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


def _believe_what_was_asked(patch: pytest.MonkeyPatch) -> None:
    """A second edit of a gang takes the status beside it for that of the first, whenever it was written."""

    def proven(workload: ObservedObject) -> str:
        asked = workload.note.partition(state.ASKED)[2].split(" ")
        return f"{asked[0]} {digest_of(workload.remote_status)}"

    patch.setattr(state, "_proven", proven)


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

    def leaves(key: str, *given: Any) -> bool:
        read = names.read_key(base_of(key))
        return (read is None or read.what != what) and stays(key, *given)

    return lambda patch: patch.setattr(state, "_stays", leaves)


def _mend_nothing(patch: pytest.MonkeyPatch) -> None:
    """Deployments that are created together meet on a node: nothing orders them, and nobody gives way."""
    shipped = swarm.shipped

    def alone(*given: Any) -> dict[str, list[Step]]:
        return {kind: [replace(step, input={}) for step in steps] for kind, steps in shipped(*given).items()}

    patch.setattr(swarm, "shipped", alone)


def _fill_undeclared(patch: pytest.MonkeyPatch) -> None:
    """A pool that is published takes replicas, though the declaration no longer has it."""

    def pools(cluster: InferenceCluster) -> tuple[Pool, ...]:
        declared = {pool.name: pool for pool in cluster.spec.node_pools or ()}
        return tuple(completed(pool, declared.get(pool.name), "") for pool in cluster.published)

    patch.setattr(InferenceCluster, "pools", property(pools))


def _share_names(patch: pytest.MonkeyPatch) -> None:
    """Two replicas of one name on a cluster both manage what they have there."""
    patch.setattr(handler, "let_go", compose.keep_everything)


def _believe_the_list(patch: pytest.MonkeyPatch) -> None:
    """A replica that is only listed counts as in service, though it may have been given up a moment ago."""
    patch.setattr(Serving, "__call__", Serving.seems_to)


def _believe_the_observed(patch: pytest.MonkeyPatch) -> None:
    """What is observed of a replica counts, though the list has it as it was written later."""
    patch.setattr(ownership, "_revision", lambda _: -1)


def _crowd_slots(patch: pytest.MonkeyPatch) -> None:
    """Every adapter that is placed on a replica is loaded there, however few slots there are."""
    for module in (adapters, schedule):
        patch.setattr(module, "holders", lambda placements, _: tuple(placements))


def _let_anybody_preempt(patch: pytest.MonkeyPatch) -> None:
    """A replica that preempts makes others give way, whatever their class."""
    patch.setattr(Preemptor, "covers", lambda self, other: other.holder != self.holder)
    patch.setattr(passes, "_outranked", lambda *_: "to anybody")


def _spare_everybody(patch: pytest.MonkeyPatch) -> None:
    """A replica gives way to a higher class whatever its deployment can spare."""
    patch.setattr(PriorityNotes, "spared", property(lambda _: MANY))
    patch.setattr(disruption, "spare", lambda *_: MANY)


def _wait_for_the_paused(patch: pytest.MonkeyPatch) -> None:
    """In the common order nodes are held back for a deployment that is paused, and takes none of them."""
    patch.setattr(ownership, "PAUSED_ANNOTATION", "nobody/pauses")


def _place_anywhere(patch: pytest.MonkeyPatch) -> None:
    """A cluster that its cache does not select takes replicas."""
    patch.setattr(ModelCache, "footprint", property(lambda _: {}))


def _remember_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Etcd is restored, and no copy of the function starts anew: versions repeat with other contents."""
    patch.setattr(swarm.Day, "forget", lambda _: None)


def _let_the_ready_yield(patch: pytest.MonkeyPatch) -> None:
    """In an overcommitted pool a replica gives way though it was Ready."""
    patch.setattr(ledger, "may_yield", lambda replica: replica.whole)


def _let_quotas_be_passed(patch: pytest.MonkeyPatch) -> None:
    """A quota that several deployments passed at once stays passed."""
    patch.setattr(passes, "over_quota", lambda *_: {})


def _let_nobody_preempt(patch: pytest.MonkeyPatch) -> None:
    """Nobody gives way to a replica, whatever its class and its guarantee."""
    patch.setattr(Preemptor, "covers", lambda *_: False)


def _name_nobody(patch: pytest.MonkeyPatch) -> None:
    """No cluster says who gives way."""
    patch.setattr(arbiter, "arbitrate", lambda *_: Arbitration())


def _protect_nobody(patch: pytest.MonkeyPatch) -> None:
    """A replica within its guarantee gives way to a higher class of another team."""
    covers, outranked = Preemptor.covers, passes._outranked

    def outranks(self: Preemptor, other: StandingReplica) -> bool:
        lower = None not in (self.value, other.rank) and other.rank < self.value
        return covers(self, other) or (lower and other.holder != self.holder)

    def to(inputs: Any, victim: Any, named: NamedVictim, shares: Any) -> str:
        return outranked(inputs, victim, named, shares) or (
            "" if named.quota else outranked(inputs, victim, named, None)
        )

    patch.setattr(Preemptor, "covers", outranks)
    patch.setattr(passes, "_outranked", to)


def _note_once(patch: pytest.MonkeyPatch) -> None:
    """A replica keeps the note on its standing to guarantees that it got first."""

    def first(_: Decision, kept: Kept) -> str:
        notes = kept.own_replica.replica.notes
        return notes.guarantee if notes else ""

    patch.setattr(replicas, "standing_of", first)


@dataclass(frozen=True)
class Defect:
    """A defect, and the lives that show it."""

    put_back: Callable[[pytest.MonkeyPatch], None]
    live: Callable[[int], object]
    words: str = ""
    """What the complaint says."""
    lives: int = 8
    enough: int = 1
    """Of so many lives, those that must show it."""
    first: int = 0
    """The seed of the first of them: a day that uses what the defect is in."""

    @property
    def seeds(self) -> range:
        """The seeds of the lives."""
        return range(self.first, self.first + self.lives)

    def shows(self, seed: int) -> bool:
        """Whether a life shows it, once it is put back."""
        try:
            self.live(seed)
        except BrokenPromise as broken:
            return self.words in str(broken)
        return False


def _rollouts(weather: Weather, *kinds: str) -> Callable[[int], object]:
    return partial(rollouts.live, weather=replace(weather, kinds=kinds) if kinds else weather)


def _day(seed: int) -> object:
    return swarm.Day(seed, sizes=(USUAL,)).live()


def _relapsing_day(seed: int) -> object:
    return swarm.RelapsingDay(seed, sizes=(USUAL,)).live()


def _pausing_day(seed: int) -> object:
    return swarm.PausingDay(seed, sizes=(CROWDED,)).live()


def _whole_day(seed: int) -> object:
    return WholeDay(seed, sizes=(USUAL,)).live()


def _pressing_day(seed: int) -> object:
    return PressingDay(seed, sizes=(CROWDED,)).live()


def _burst(seed: int) -> object:
    return burst.Burst(seed, {"overcommit": "Yield"}, burst.CHURN).live()


def _quota(seed: int) -> object:
    return burst.Burst(seed, burst.limited(3), replace(burst.CHURN, start=None)).live()


def _contest(seed: int) -> object:
    return Contest(seed, ON).live()


def _teams(seed: int) -> object:
    return Teams(seed, ON).live()


MOST = 5
DEFECTS: dict[str, Defect] = {
    "gangs are believed": Defect(_believe_gangs, _rollouts(STORM, "a gang", "gangs"), enough=MOST),
    "Deployments are believed": Defect(
        _believe_deployments, _rollouts(STORM, "a pod", "copies"), enough=MOST
    ),
    "what was asked for is believed": Defect(
        _believe_what_was_asked, _rollouts(STORM, "a gang", "gangs"), lives=32
    ),
    "KServe is believed": Defect(_believe_kserve, _rollouts(STORM, "KServe", "KServe gang"), enough=MOST),
    "a digest stays when the evidence turns": Defect(_keep_the_digest, _rollouts(FOG), "serve", enough=3),
    "a claim template leaves early": Defect(
        _let_leave(names.CLAIM), _rollouts(STORM), "ResourceClaimTemplate", enough=3
    ),
    "a mirrored Secret leaves early": Defect(_let_leave(names.SECRET), _rollouts(STORM), "Secret", enough=3),
    "the list is believed": Defect(_believe_the_list, _rollouts(ROUNDS), "serve", lives=32),
    "what is observed is believed": Defect(_believe_the_observed, _rollouts(ROUNDS), "serve", lives=32),
    "nothing mends a burst": Defect(_mend_nothing, _day, "waits for a node"),
    "an undeclared pool is filled": Defect(_fill_undeclared, _day, first=1),
    "two replicas manage one Deployment": Defect(_share_names, _whole_day, "manage one", first=10),
    "two adapters take one slot": Defect(_crowd_slots, _whole_day, "lists", first=2),
    "anybody gives way": Defect(_let_anybody_preempt, _whole_day, "no higher class", first=10),
    "a cache is not waited for": Defect(_place_anywhere, _whole_day, "where its cache is not"),
    "nobody has to be spared": Defect(_spare_everybody, _pressing_day, "serve of", first=3),
    "nodes are held for the paused": Defect(_wait_for_the_paused, _pausing_day, "have free nodes"),
    "a memory outlives a restore": Defect(_remember_for_ever, _relapsing_day, "answer", first=11),
    "who was Ready yields": Defect(_let_the_ready_yield, _burst, "was Ready"),
    "a quota stays passed": Defect(_let_quotas_be_passed, _quota, "nodes are held"),
    "no cluster arbitrates": Defect(_name_nobody, _contest, "holds"),
    "nobody preempts": Defect(_let_nobody_preempt, _contest, "waits for"),
    "everybody preempts": Defect(_let_anybody_preempt, _contest, "no higher class"),
    "a budget spares everybody": Defect(_spare_everybody, _contest, "left, and"),
    "a guarantee is not reclaimed": Defect(_let_nobody_preempt, _teams, "waits for"),
    "a guarantee protects nobody": Defect(_protect_nobody, _teams, "of its team", first=20),
    "a standing is noted once": Defect(_note_once, _teams, "notes"),
}
