"""Read what the pods of a replica are known to run, and what may leave because they do.

A provider reports what the API server answered to its own write: the new spec beside the status of before.
The controller of the workload may act a moment, an hour or never later. So a status is evidence only where
whoever
wrote it had seen this spec; the rest is an echo. A status counts when one of these holds:

1. `observedGeneration`, where the controller reports one, is that of the object.
2. The object has only ever had one spec: its generation is 1.
3. The status was written after the template, by the API server's own clock (`metadata.managedFields`). The
   controller of LeaderWorkerSets writes its status with the version of the object that it read, so a write
   that was based on an earlier spec is refused. Times have seconds; within the same one nothing is known.
4. The pods were known to run this template before, and no other one was asked for since. A change of
   `copies` or of a label restarts no pod, and the controller may have nothing to write for it.
5. The pods were known to run this template before, another one was asked for and taken back, and the status
   is still the one of before: the controller never acted on the other. Also where that became known only
   after the other was asked for: the status was written after this template and before the other (`_proven`).

LeaderWorkerSet 0.8 reports no `observedGeneration`. What 4 and 5 need to know is noted on the Object that
carries an edit, in the same write as the edit (`noted`): neither can be lost without the other. Where there
is no evidence, nothing is known, and nothing that waits for it happens.

Limit: of two edits the provider's report on the first or on the second was lost, and the second was taken
back before the controller acted on it. Then the controller has nothing to write, and the cluster looks the
same whether it has yet to act on the second edit or never will. That lasts until the next edit of the
template, or until somebody lets the controller write its status anew (docs/rollouts.md). An edit restarts
pods, so nothing here makes one.

An Object without a note was not edited by a release that leaves one. Of such a one it is believed, once, that
its pods run what ModelUpdated says they do; from then on that is noted.

The last status that was seen counts, also while a cluster cannot be reached: nothing flaps because a network
does. What follows from it stands here too: the state of each engine, and what stays although nothing wants it
any more (`remaining`). Row `Evidence` of docs/compatibility.md says what users see of all this.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any

from function.api.model import KSERVE, condition_of, mapping, mappings, number, string
from function.api.text import joined
from function.api.workload import digest_of
from function.boundary import Plain, frozen
from function.objects import ObservedObject
from function.replica import names
from function.replica.snapshot import ReplicaSnapshot

GANG_KIND = "LeaderWorkerSet"
FAILED_CREATE = "FailedCreate"
"""What Kubernetes calls it when a controller's pods are refused."""
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
    generation = _generation(workload)
    if not generation:
        return False
    reported = workload.remote_status.get("observedGeneration")
    if isinstance(reported, int) or workload.identity.kind != GANG_KIND:
        return isinstance(reported, int) and reported >= generation  # 1
    if generation == 1:
        return True  # 2
    template_time, status_time = _times(workload)
    if "" < template_time < status_time:
        return True  # 3
    believed = was_updated and not workload.note
    # 4, or 5 where the note goes on with a digest of the status.
    proven = workload.note.partition(ASKED)[0]
    return believed or proven in (template, f"{template} {digest_of(workload.remote_status)}")


ASKED = ";"
"""Parts what a note knows of the pods from the template that was asked for since, which no status showed."""


def _proven(workload: ObservedObject) -> str:
    """Return what is known of the pods before another edit: that of the note, or what showed since.

    A status that was written after the template that was asked for, and before the next one was written, is
    about it: the generations say that nothing else was written between the two.
    """
    proven, _, asked = workload.note.partition(ASKED)
    template, _, written = asked.partition(" ")
    number, _, time = written.partition(" ")
    template_time, status_time = _times(workload)
    is_there, was_there = (number == str(_generation(workload) - since) for since in (0, 1))
    if "" < time < status_time and (is_there or (was_there and status_time < template_time)):
        return f"{template} {digest_of(workload.remote_status)}"
    return proven if " " in proven else UNKNOWN


def _generation(workload: ObservedObject) -> int:
    """Return the generation of a remote object, 0 where there is none."""
    generation = mapping(workload.remote, "metadata").get("generation")
    return generation if isinstance(generation, int) else 0


def _writes(workload: ObservedObject) -> list[dict[str, Any]]:
    """Return when the parts of a workload were written; empty where a provider leaves that out."""
    return mappings(mapping(workload.remote, "metadata").get("managedFields"))


def _times(workload: ObservedObject) -> tuple[str, str]:
    """Return when the template and the status of a workload were written last, "" where that is not said.

    With an empty selector somebody else wrote the status, for the controller to write it anew.
    """
    templates, statuses = [""], [""]
    for write in _writes(workload):
        if write.get("subresource") == "status":
            statuses.append(string(write.get("time")))
        elif "f:leaderWorkerTemplate" in mapping(write, "fieldsV1", "f:spec"):
            templates.append(string(write.get("time")))
    by_hand = workload.remote_status.get("hpaPodSelector") == ""
    return max(templates), "" if by_hand else max(statuses)


def noted(workload: ObservedObject, template: str, edit: Edit, *, applied: bool, evident: bool) -> str:
    """Return the note for an Object that is edited now, "" for none.

    `template`: that of the workload as it is observed. `applied`: its cluster has that. `evident`: its status
    is about that.
    """
    note = workload.note
    match edit:
        case Edit.NOTHING:
            # What ModelUpdated said before there were notes is believed once, and noted here.
            believed = evident and not note and not is_about_spec(workload, template, was_updated=False)
            return template if believed else note
        case Edit.NO_TEMPLATE:
            return template if evident else note or UNKNOWN
        case Edit.TEMPLATE:
            # The digest of the status lets 5 hold where this edit is taken back. A second edit before the
            # controller acted keeps what the first knew, and says what pods may run by now.
            if evident:
                return f"{template} {digest_of(workload.remote_status)}"
            template_time, _ = _times(workload)
            is_there = applied and template_time
            asked = f"{template} {_generation(workload)} {template_time}" if is_there else ""
            return f"{_proven(workload)}{ASKED}{asked}"


def template_of(spec: Plain) -> Plain:
    """Return a workload's spec without its copies: what restarts pods."""
    return {key: value for key, value in mapping(spec).items() if key != "replicas"}


GROUP_FIELD = "schedulingGroup"
"""The field by which a pod names its PodGroup."""


def is_grouped(workload: Mapping[str, Any]) -> bool:
    """Tell whether the pods of a LeaderWorkerSet name a PodGroup."""
    return GROUP_FIELD in mapping(workload, "spec", "leaderWorkerTemplate", "leaderTemplate", "spec")


# Decide which observed objects stay although nothing wants them any more: Law C 1.
#
# - A workload whose engine the spec no longer has leaves. One that was superseded (another kind or another
#   name) stays until its successor takes requests.
# - A claim template, or the PodGroup of a gang, stays until every copy of its engine runs what is wanted now:
#   until then a pod may need it. Of an engine that is gone it leaves with the workload; on KServe, where one
#   service has all pods, a claim template stays until every engine runs what is wanted now.
# - Routing that was superseded stays until the new one is on the cluster and its picker works.
# - A mirrored Secret, and the list of adapters, stays until no pod can refer to it: until every engine has
#   one workload, and every copy of that runs what is wanted now. Budgets, collections of pods and what the
#   workloads of KServe are seen through leave at once: they hold nothing that runs.
# - A service of KServe that was superseded stays until its successor takes requests.
# - Whatever has a successor under another key stays until that one is on the cluster.


def remaining(
    snapshot: ReplicaSnapshot, wanted: Collection[str], states: Mapping[str, EngineState]
) -> list[str]:
    """Return the observed keys that stay as they are, beside those that are wanted."""
    surplus = [key for key in snapshot.observed if key not in wanted]
    successors: dict[names.Key | None, list[ObservedObject | None]] = defaultdict(list)
    for key in wanted:
        successors[names.read_key(key)].append(snapshot.observed.get(key))
    # With two workloads of an engine, pods of the superseded one may need what theirs refer to.
    running = Counter(map(names.read_key, snapshot.observed))
    at_rest = {
        name: state.rolled_out
        and running[names.Key(names.WORKLOAD, name)] + running[names.Key(names.SERVICE)] == 1
        for name, state in states.items()
    }
    stays = {key for key in surplus if _stays(key, snapshot, successors, states, at_rest)}
    held = [snapshot.observed[key] for key in (*wanted, *stays) if key in snapshot.observed]
    for key in surplus:
        name = snapshot.observed[key].identity.name
        # A namespace stays while it holds something that does; one without a readable name may hold anything.
        holds = not name or any(composed.identity.namespace == name for composed in held)
        if names.what_of(key) == names.NAMESPACE and holds and key not in stays:
            stays.add(key)
    return [key for key in surplus if key in stays]


def _stays(
    key: str,
    snapshot: ReplicaSnapshot,
    successors: Mapping[names.Key | None, list[ObservedObject | None]],
    states: Mapping[str, EngineState],
    at_rest: Mapping[str, bool],
) -> bool:
    """Tell whether an observed object stays that is not wanted.

    `successors`: what is observed under the wanted keys. `at_rest`: whether all pods of an engine are known
    to run what is wanted, in one workload.
    """
    read = names.read_key(key)
    if read is None:
        return True  # Law C 2: what cannot be read is doubt, doubt keeps.
    if read.what not in (names.PODS, names.SEEN) and not all(map(_is_there, successors.get(read, ()))):
        return True
    if read.what in (names.WORKLOAD, names.SERVICE):  # An engine's own, or of all.
        return any(not state.in_use for name, state in states.items() if read.of in ("", name))
    if read.what in (names.CLAIM, names.GROUP, names.SECRET, names.ADAPTERS):
        users, is_of_engine = tuple(states), read.what in (names.CLAIM, names.GROUP)
        if is_of_engine and read.of in states:
            users = (read.of,)
        elif is_of_engine and snapshot.cluster.spec.stack != KSERVE:
            users = ()  # The engine is gone, and takes its workload with it.
        return not all(at_rest[name] for name in users)
    if read.what in names.ROUTING:
        pickers = successors.get(names.Key(names.PICKER), ())
        is_there = all(
            _is_there(one) for what in names.ROUTING for one in successors.get(names.Key(what), ())
        )
        return not (is_there and any(picker is not None and picker.ready is True for picker in pickers))
    return False


def _is_there(observed: ObservedObject | None) -> bool:
    """Tell whether something is on the cluster, and stays: a successor that is being deleted is none."""
    return observed is not None and observed.remote is not None and not observed.leaving


def is_ready(observed: Mapping[str, ObservedObject], what: str) -> bool:
    """Tell whether something of this kind is Ready, be it one that is superseded."""
    return any(composed.ready is True for composed in names.among(observed, what))


STALLED = "ProgressDeadlineExceeded"
TIMED_OUT = ("Progressing", "False", STALLED)
"""Says why a rollout ran out of time."""
PODS_REFUSED = ("ReplicaFailure", "True", FAILED_CREATE)
"""Says why no pod can be created for a Deployment: a quota, a webhook.

Nothing else tells of it: a pod that was refused is nowhere to be seen. A LeaderWorkerSet has no such
condition; there only the events of its StatefulSets do. The same condition tells of pods that cannot go,
with another reason.
"""


@frozen
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
    refused: str = ""
    """Why the cluster refuses to create its pods."""

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
    mine = names.Key(names.WORKLOAD, engine)
    # A workload that is superseded serves on until its successor does.
    ready = any(is_serving(composed) for key, composed in observed.items() if names.read_key(key) == mine)
    if workload is None:
        return EngineState(engine, copies, *(False, ready, False), 0, 0, 0)
    applied = workload.manifest == manifest and workload.is_applied(was_applied=was_updated)
    evident = applied and is_known(workload, was_updated=was_updated)
    updated, total = count(workload, "updatedReplicas") if evident else 0, count(workload, "replicas")
    fault = fault_of(workload, is_unknown=applied and not evident)
    return EngineState(
        name=engine,
        copies=copies,
        created=workload.remote is not None,
        ready=ready,
        in_use=evident and is_serving(workload),
        available=copies_available(workload, copies),
        updated=min(updated, copies),
        total=total,
        up_to_date=0 < updated == total and not is_updating(workload),
        # Without evidence, a rollout that ran out of time may be the one of before.
        stalled=said(workload, *TIMED_OUT) if evident else "",
        fault=joined(fault, COPIES_LATER if replicas_of(manifest) < copies else ""),
        refused=said(workload, *PODS_REFUSED),
    )


def is_known(workload: ObservedObject, *, was_updated: bool) -> bool:
    """Tell whether the status of a workload that we write is about its spec."""
    template = digest_of(template_of(workload.manifest.get("spec")))
    return is_about_spec(workload, template, was_updated=was_updated)


COPIES_LATER = "more copies follow when every group has fewer pods"
"""Said while an engine of the replica gives nodes back (`workloads.engine_workloads`)."""
NO_GROUPS = f"the LeaderWorkerSets of its cluster drop {GROUP_FIELD}: those of 0.9 have it"
"""Said where `scheduling.gangs` asks for what a cluster has not."""
WAY_OUT = "if this lasts, edit the template again: its pods may run it already"
"""Ends the doubt after an edit that was taken back: it gives the controller something to report."""


def fault_of(workload: ObservedObject, *, is_unknown: bool) -> str:
    """Return why a workload could not be applied, or why nothing is known of its pods; "" for neither."""
    if workload.synced is False:
        return workload.synced_message
    remote = workload.remote
    if remote is not None and is_grouped(workload.manifest) and not (workload.pending or is_grouped(remote)):
        return NO_GROUPS
    if is_unknown and workload.identity.kind == GANG_KIND and not _writes(workload):
        return "what its pods run is not evident: provider-kubernetes leaves out metadata.managedFields"
    text = "its controller has not reported on this spec yet" if is_unknown else ""
    if text and (workload.note == UNKNOWN or ASKED in workload.note):
        # It was edited while nothing was known, so the pods may run this template already.
        text += f"; {WAY_OUT}"
    return text


def observed_states(observed: Mapping[str, ObservedObject], *, was_updated: bool) -> tuple[EngineState, ...]:
    """Return the states of all engines that are observed, where nobody can say what is wanted: in doubt."""
    latest: dict[str, str] = {}
    for key in sorted(observed):
        read = names.read_key(key)
        if read is not None and read.what == names.WORKLOAD:
            latest[read.of] = key
    states = []
    for engine, key in latest.items():
        manifest = observed[key].manifest
        copies = replicas_of(manifest)
        states.append(engine_state(engine, copies, key, manifest, observed, was_updated=was_updated))
    return tuple(states)


def is_serving(workload: ObservedObject) -> bool:
    """Tell whether a workload takes requests.

    A Deployment that may miss one copy is Available without any pod, and its Object then is Ready. Where its
    controller has reported, at least one copy must be available; where nothing is reported, Ready counts.
    """
    if workload.ready is not True:
        return False
    reported = "conditions" in workload.remote_status and workload.identity.kind != GANG_KIND
    return not reported or count(workload, "availableReplicas") > 0


def count(workload: ObservedObject, field: str) -> int:
    """Return a count of the remote status, 0 where there is none."""
    return max(0, number(workload.remote_status.get(field), 0))


def copies_available(workload: ObservedObject, copies: int) -> int:
    """Return how many of the wanted copies take requests."""
    return min(
        count(workload, "readyReplicas" if workload.identity.kind == GANG_KIND else "availableReplicas"),
        copies,
    )


def all_of(values: Iterable[bool]) -> bool:
    """Tell whether something holds of every engine, and there is one."""
    listed = list(values)
    return bool(listed) and all(listed)


def replicas_of(workload: Mapping[str, Any]) -> int:
    """Return the copies that a workload's spec asks for, 1 where it does not say."""
    return max(1, number(mapping(workload, "spec").get("replicas"), 1))


def is_updating(workload: ObservedObject) -> bool:
    """Tell whether a LeaderWorkerSet says that groups are still being replaced, or is not all there."""
    if workload.identity.kind != GANG_KIND:
        return False
    updating, _ = condition_of(workload.remote_status, "UpdateInProgress")
    available, _ = condition_of(workload.remote_status, "Available")
    return updating is True or available is not True


def said(workload: ObservedObject, kind: str, status: str, reason: str) -> str:
    """Return the message of a condition that says just this, its reason where it has none; "" for none."""
    for condition in mappings(workload.remote_status.get("conditions")):
        values = (condition.get("type"), condition.get("status"), condition.get("reason"))
        if values == (kind, status, reason):
            return str(condition.get("message") or reason)
    return ""
