"""Read how far the workloads are from their Objects, engine by engine.

The last status that was seen counts, also while a cluster cannot be reached: nothing flaps because a network
does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import Any

from function.api.model import KSERVE, condition_of, conditions_of, mapping, mappings, string
from function.boundary import Plain
from function.fail_static import base_of
from function.objects import ObservedObject
from function.replica import names
from function.replica.snapshot import ReplicaSnapshot

# Say whether a workload's status is about the spec that stands beside it.
#
# A provider reports what the API server answered to its own write: the new spec beside the status of before.
# The controller of the workload may act a moment, an hour or never later. So a status counts only with
# evidence that whoever wrote it had seen this spec:
#
# 1. `observedGeneration`, where the controller reports one, is that of the object.
# 2. The object has only ever had one spec: its generation is 1.
# 3. The status was written after the template, by the API server's own clock (`metadata.managedFields`). The
#    controller of LeaderWorkerSets writes its status with the version of the object that it read, so a write
#    that was based on an earlier spec is refused. Times have seconds; within the same one nothing is known.
# 4. The pods were known to run this template before, and no other one was asked for since. A change of
#    `copies` or of a label restarts no pod, and the controller may have nothing to write for it.
# 5. The pods were known to run this template before, another one was asked for and taken back, and the status
#    is still the one of before: the controller never acted on the other.
#
# LeaderWorkerSet 0.8 reports no `observedGeneration`. What 4 and 5 need to know is noted on the Object that
# carries an edit, in the same write as the edit (`noted`): neither can be lost without the other. Where there
# is no evidence, nothing is known, and nothing that waits for it happens.
#
# An Object without a note was not edited by a release that leaves one. Of such a one it is believed, once,
# that its pods run what ModelUpdated says they do; from then on that is noted.


DIGEST_LENGTH = 16
"""Hex digits of a template, or of a status, in a note."""
UNKNOWN = "unknown"
"""The note of a workload of whose pods nothing was known when it was edited."""


class Edit(Enum):
    """The change that an answer makes to a workload."""

    NOTHING = 0
    NO_TEMPLATE = 1
    """Copies, labels of the workload: nothing that restarts a pod."""
    TEMPLATE = 2


def is_about_spec(workload: ObservedObject, template: str, *, was_updated: bool) -> bool:
    """Tell whether the status of a workload is about its spec.

    `template`: what `digest_of` says of it. `was_updated`: ModelUpdated was True.
    """
    generation = mapping((workload.remote or {}).get("metadata")).get("generation")
    if not isinstance(generation, int):
        return False
    reported = workload.remote_status.get("observedGeneration")
    if isinstance(reported, int) or workload.identity.kind != "LeaderWorkerSet":
        return isinstance(reported, int) and reported >= generation
    if generation == 1 or _written_after_template(workload):
        return True
    believed = was_updated and not workload.note
    return believed or workload.note in (template, f"{template} {digest_of(workload.remote_status)}")


def says_when(workload: ObservedObject) -> bool:
    """Tell whether a workload tells when its parts were written: a provider may be told to leave that out."""
    return bool(mappings(mapping((workload.remote or {}).get("metadata")).get("managedFields")))


def noted(workload: ObservedObject, template: str, edit: Edit, *, evident: bool) -> str:
    """Return the note for an Object that is edited now, "" for none.

    `template`: that of the workload as it is observed. `evident`: its status is about that.
    """
    note = workload.note
    match edit:
        case Edit.NOTHING:
            believed = evident and not note and not is_about_spec(workload, template, was_updated=False)
            return template if believed else note
        case Edit.NO_TEMPLATE:
            return template if evident else note or UNKNOWN
        case Edit.TEMPLATE:
            taken_back = note if " " in note else UNKNOWN
            return f"{template} {digest_of(workload.remote_status)}" if evident else taken_back


def template_of(spec: Plain) -> Plain:
    """Return a workload's spec without its copies: what restarts pods."""
    return {key: value for key, value in mapping(spec).items() if key != "replicas"}


def digest_of(value: Plain | Mapping[str, Any]) -> str:
    """Return the digest of a template or of a status."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def _written_after_template(workload: ObservedObject) -> bool:
    """Tell whether the status was written in a later second than the template."""
    writes = mappings(mapping((workload.remote or {}).get("metadata")).get("managedFields"))
    templates, statuses = [""], [""]
    for write in writes:
        if write.get("subresource") == "status":
            statuses.append(string(write.get("time")))
        elif "f:leaderWorkerTemplate" in mapping(mapping(write.get("fieldsV1")).get("f:spec")):
            templates.append(string(write.get("time")))
    return "" < max(templates) < max(statuses)


# Decide which observed objects stay although nothing wants them any more: Law C 1.
#
# - A workload whose engine the spec no longer has leaves. One that was superseded (another kind or another
#   name) stays until its successor takes requests.
# - A claim template stays until every copy of its engine runs what is wanted now: until then a pod may need
#   it. Of an engine that is gone it leaves with the workload; on KServe, where one service has all pods, it
#   stays until every engine runs what is wanted now.
# - Routing that was superseded stays until the new one is on the cluster and its picker works.
# - A mirrored Secret stays until no pod can refer to it: until every engine has one workload, and every copy
#   of that runs what is wanted now. Budgets, collections of pods and what the workloads of KServe are seen
#   through leave at once: they hold nothing that runs.
# - A service of KServe that was superseded stays until its successor takes requests.
# - Whatever has a successor under another key stays until that one is on the cluster.


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
    if read.what in (names.CLAIM, names.SECRET):
        # Any engine may refer to a Secret, a claim is that of one.
        users = states.values() if read.what == names.SECRET else _claimants(read.of, snapshot, states)
        return not all(state.rolled_out and _is_alone(state.name, snapshot) for state in users)
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
    """Tell whether everything that is wanted in the place of a key is on the cluster, if anything is."""
    successors = (snapshot.observed.get(key) for key in wanted if names.read_key(base_of(key)) == read)
    return all(successor is not None and _is_there(successor) for successor in successors)


def _is_there(observed: ObservedObject) -> bool:
    """Tell whether something is on the cluster, and stays: a successor that is being deleted is none."""
    return observed.is_created and not observed.leaving


def _is_alone(engine: str, snapshot: ReplicaSnapshot) -> bool:
    """Tell whether an engine has one workload: with two, pods of the superseded one may need their claims."""
    mine = _runs_in(engine)
    return sum(1 for key in snapshot.observed if names.read_key(base_of(key)) in mine) == 1


def _runs_in(engine: str) -> tuple[names.Key, names.Key]:
    """Return what an engine may run in: its own workload, or the service of the whole replica."""
    return names.Key(names.WORKLOAD, engine), names.Key(names.SERVICE)


def _routes(snapshot: ReplicaSnapshot, wanted: Collection[str]) -> bool:
    """Tell whether the wanted routing is on the cluster and its picker works."""
    routing = [key for key in wanted if base_of(key) in names.ROUTING]
    observed = [snapshot.observed.get(key) for key in routing]
    picker = [
        snapshot.observed[key] for key in routing if base_of(key) == names.PICKER and key in snapshot.observed
    ]
    return all(
        observed_object is not None and _is_there(observed_object) for observed_object in observed
    ) and any(observed_object.ready is True for observed_object in picker)


def _holds_others(key: str, snapshot: ReplicaSnapshot, others: Collection[str]) -> bool:
    """Tell whether a namespace that is not wanted any more still holds something."""
    if base_of(key) != names.NAMESPACE:
        return False
    name = snapshot.observed[key].identity.name
    held = (snapshot.observed[other] for other in others if other in snapshot.observed)
    # Law C: one whose name cannot be read may hold anything.
    return not name or any(kept.identity.namespace == name for kept in held)


STALLED = "ProgressDeadlineExceeded"


@dataclass(frozen=True, slots=True)
class EngineState:
    """The observed state of one engine."""

    name: str
    copies: int
    created: bool
    """Whether its workload was seen on the cluster."""
    ready: bool
    """Whether its workload takes requests, or one that it supersedes does."""
    in_use: bool
    """Whether its own workload takes requests as it is wanted now."""
    available: int
    """Copies that take requests."""
    updated: int
    """Copies that run what is wanted now."""
    total: int
    """Copies that there are, whatever they run."""
    up_to_date: bool = False
    """Whether there are copies, and all that there are are known to run what is wanted now."""
    stalled: str = ""
    """The message of a rollout that ran out of time."""
    fault: str = ""
    """Why its Object could not be applied, or why it is not evident what its pods run."""

    @property
    def rolled_out(self) -> bool:
        """Tell whether every copy is known to run what is wanted now, and nothing else runs."""
        return self.up_to_date and self.updated == self.copies == self.total


def engine_state(
    engine: str,
    copies: int,
    key: str,
    manifest: Mapping[str, Any],
    observed: Mapping[str, ObservedObject],
    *,
    was_updated: bool,
) -> EngineState:
    """Return the state of an engine whose workload is wanted under `key`.

    `was_updated`: ModelUpdated was True.
    """
    workload = observed.get(key)
    family = [
        workload_key
        for workload_key in observed
        if names.read_key(base_of(workload_key)) == names.Key(names.WORKLOAD, engine)
    ]
    ready = any(is_serving(observed[workload_key]) for workload_key in family)
    if workload is None:
        return EngineState(engine, copies, *(False, ready, False), 0, 0, 0)
    applied = workload.manifest == manifest and workload.is_applied(was_applied=was_updated)
    evident = applied and is_known(workload, was_updated=was_updated)
    updated, total = count(workload, "updatedReplicas") if evident else 0, count(workload, "replicas")
    return EngineState(
        name=engine,
        copies=copies,
        created=workload.is_created,
        ready=ready,
        in_use=evident and is_serving(workload),
        available=copies_available(workload, copies),
        updated=min(updated, copies),
        total=total,
        up_to_date=0 < updated == total and not is_updating(workload),
        stalled=stalled(workload) if evident else "",
        fault=fault_of(workload, is_unknown=applied and not evident),
    )


def is_known(workload: ObservedObject, *, was_updated: bool) -> bool:
    """Tell whether the status of a workload that we write is about its spec."""
    template = digest_of(template_of(workload.manifest.get("spec")))
    return is_about_spec(workload, template, was_updated=was_updated)


def fault_of(workload: ObservedObject, *, is_unknown: bool) -> str:
    """Return why a workload could not be applied, or why nothing is known of its pods; "" for neither."""
    if workload.synced is False:
        return workload.synced_message
    if is_unknown and _is_gang(workload) and not says_when(workload):
        return "what its pods run is not evident: provider-kubernetes leaves out metadata.managedFields"
    return "its controller has not reported on this spec yet" if is_unknown else ""


def observed_states(observed: Mapping[str, ObservedObject], *, was_updated: bool) -> tuple[EngineState, ...]:
    """Return the states of all engines that are observed, where nobody can say what is wanted: in doubt."""
    latest: dict[str, str] = {}
    for key in sorted(observed):
        read = names.read_key(base_of(key))
        if read is not None and read.what == names.WORKLOAD:
            latest[read.of] = key
    return tuple(
        engine_state(
            engine,
            replicas_of(observed[key].manifest),
            key,
            observed[key].manifest,
            observed,
            was_updated=was_updated,
        )
        for engine, key in latest.items()
    )


def is_serving(workload: ObservedObject) -> bool:
    """Tell whether a workload takes requests.

    A Deployment that may miss one copy is Available without any pod, and its Object then is Ready. Where its
    controller has reported, at least one copy must be available; where nothing is reported, Ready counts.
    """
    if workload.ready is not True:
        return False
    reported = "conditions" in workload.remote_status and not _is_gang(workload)
    return not reported or count(workload, "availableReplicas") > 0


def count(workload: ObservedObject, field: str) -> int:
    """Return a count of the remote status, 0 where there is none."""
    return _positive(workload.remote_status.get(field)) or 0


def copies_available(workload: ObservedObject, copies: int) -> int:
    """Return how many of the wanted copies take requests."""
    return min(count(workload, "readyReplicas" if _is_gang(workload) else "availableReplicas"), copies)


def all_of(values: Iterable[bool]) -> bool:
    """Tell whether something holds of every engine, and there is one."""
    listed = list(values)
    return bool(listed) and all(listed)


def _is_gang(workload: ObservedObject) -> bool:
    return workload.identity.kind == "LeaderWorkerSet"


def replicas_of(workload: Mapping[str, Any]) -> int:
    """Return the copies that a workload's spec asks for, 1 where it does not say."""
    return _positive(mapping(workload.get("spec")).get("replicas")) or 1


def _positive(value: object) -> int | None:
    """Return a count that is one, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def is_updating(workload: ObservedObject) -> bool:
    """Tell whether a LeaderWorkerSet says that groups are still being replaced, or is not all there."""
    if not _is_gang(workload):
        return False
    updating, _ = condition_of(workload.remote_status, "UpdateInProgress")
    available, _ = condition_of(workload.remote_status, "Available")
    return updating is True or available is not True


def stalled(workload: ObservedObject) -> str:
    """Return the message of a rollout that ran out of time, "" for none."""
    for condition in conditions_of(workload.remote_status):
        values = (condition.get("type"), condition.get("status"), condition.get("reason"))
        if values == ("Progressing", "False", STALLED):
            return str(condition.get("message") or STALLED)
    return ""
