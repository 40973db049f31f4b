"""Decide which observed objects stay although nothing wants them any more: Law C 1.

- A workload whose engine the spec no longer has leaves. One that was superseded (another kind or another
  name) stays until its successor takes requests.
- A claim template stays until every copy of its engine runs what is wanted now: until then a pod may need it.
  Of an engine that is gone it leaves with the workload; on KServe, where one service has all pods, it stays
  until every engine runs what is wanted now.
- Routing that was superseded stays until the new one is on the cluster and its picker works.
- A mirrored Secret stays until no pod can refer to it. Budgets, collections of pods and what the workloads of
  KServe are seen through leave at once: they hold nothing that runs.
- A service of KServe that was superseded stays until its successor takes requests.
- Whatever has a successor under another key stays until that one is on the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.stack import KSERVE
from function.fail_static import base_of
from function.replica import names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from function.objects import ObservedObject
    from function.replica.snapshot import ReplicaSnapshot
    from function.replica.state import EngineState


def remaining(
    snapshot: ReplicaSnapshot, wanted: Collection[str], states: Mapping[str, EngineState]
) -> list[str]:
    """Return the observed keys that stay as they are, beside those that are wanted."""
    surplus = [key for key in snapshot.observed if key not in wanted]
    stays = [key for key in surplus if _stays(key, snapshot, wanted, states)]
    return [key for key in surplus if key in stays or _holds_others(key, snapshot, {*wanted, *stays})]


def _stays(
    key: str, snapshot: ReplicaSnapshot, wanted: Collection[str], states: Mapping[str, EngineState]
) -> bool:
    read = names.read_key(base_of(key))
    if read is None or (
        read.what not in (names.PODS, names.SEEN) and not _is_succeeded(read, snapshot, wanted)
    ):
        return True  # Law C: what cannot be read is doubt, doubt keeps.
    if read.what in (names.WORKLOAD, names.SERVICE):
        return any(not state.in_use for name, state in states.items() if read in _runs_in(name))
    if read.what == names.CLAIM:
        return not all(
            state.rolled_out and _is_alone(state.name, snapshot)
            for state in _claimants(read.of, snapshot, states)
        )
    if read.what == names.SECRET:
        return not all(state.rolled_out for state in states.values())
    if read.what in names.ROUTING:
        return not _routes(snapshot, wanted)
    return False


def _claimants(
    engine: str, snapshot: ReplicaSnapshot, states: Mapping[str, EngineState]
) -> Iterable[EngineState]:
    """Return the engines whose pods may need a claim of an engine.

    An engine that is gone takes its workload with it. On KServe its pods are those of the one service, which
    are replaced with all others.
    """
    if engine in states:
        return (states[engine],)
    return states.values() if snapshot.cluster.stack == KSERVE else ()


def _is_succeeded(read: names.Key, snapshot: ReplicaSnapshot, wanted: Collection[str]) -> bool:
    """Whether everything that is wanted in the place of a key is on the cluster, if anything is."""
    successors = (snapshot.observed.get(key) for key in wanted if names.read_key(base_of(key)) == read)
    return all(successor is not None and _is_there(successor) for successor in successors)


def _is_there(observed: ObservedObject) -> bool:
    """Whether something is on the cluster, and stays: a successor that is being deleted is none."""
    return observed.is_created and not observed.leaving


def _is_alone(engine: str, snapshot: ReplicaSnapshot) -> bool:
    """Whether an engine has one workload: with two, pods of the superseded one may need their claims."""
    mine = _runs_in(engine)
    return sum(1 for key in snapshot.observed if names.read_key(base_of(key)) in mine) == 1


def _runs_in(engine: str) -> tuple[names.Key, names.Key]:
    """Return what an engine may run in: its own workload, or the service of the whole replica."""
    return names.Key(names.WORKLOAD, engine), names.Key(names.SERVICE)


def _routes(snapshot: ReplicaSnapshot, wanted: Collection[str]) -> bool:
    """Whether the wanted routing is on the cluster and its picker works."""
    routing = [key for key in wanted if base_of(key) in names.ROUTING]
    observed = [snapshot.observed.get(key) for key in routing]
    picker = [
        snapshot.observed[key] for key in routing if base_of(key) == names.PICKER and key in snapshot.observed
    ]
    return all(
        observed_object is not None and _is_there(observed_object) for observed_object in observed
    ) and any(observed_object.ready is True for observed_object in picker)


def _holds_others(key: str, snapshot: ReplicaSnapshot, others: Collection[str]) -> bool:
    """Whether a namespace that is not wanted any more still holds something."""
    if base_of(key) != names.NAMESPACE:
        return False
    name = snapshot.observed[key].identity.name
    held = (snapshot.observed[other] for other in others if other in snapshot.observed)
    # Law C: one whose name cannot be read may hold anything.
    return not name or any(kept.identity.namespace == name for kept in held)
