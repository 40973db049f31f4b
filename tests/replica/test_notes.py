"""What is noted on the Object that carries an edit, so that the next answer knows what the pods run."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from function.api.workload import digest_of
from function.objects import ObjectIdentity, ObservedObject
from function.replica import state
from function.replica.state import UNKNOWN, Edit, noted

GANG = ObjectIdentity("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "ns", "m")
STATUS = {"readyReplicas": 1}
TEMPLATE = "7d8a1c0000000000"
AND_STATUS = f"{TEMPLATE} {digest_of(STATUS)}"


def test_a_digest_is_that_of_every_release() -> None:
    """A note that another release left is compared with the digest of this one: it never changes."""
    assert digest_of({"b": [1, "é"], "a": {"c": None}}) == "a57a81b3fa603895"
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})


def wrote(time: str, *, status: bool = False) -> dict[str, Any]:
    return {"time": time, "subresource": "status"} if status else {"time": time, "fieldsV1": TEMPLATE_WRITTEN}


TEMPLATE_WRITTEN = {"f:spec": {"f:leaderWorkerTemplate": {}}}
COPIES_WRITTEN = {"time": "2026-03-01T09:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
BEFORE, AFTER, LATER = (f"2026-03-01T08:00:0{second}Z" for second in (1, 2, 3))


class Note(NamedTuple):
    reason: str
    edit: Edit
    before: str
    after: str
    evident: bool = True
    generation: int = 2
    writes: tuple[dict[str, Any], ...] = ()
    applied: bool = True


NOTES = (
    Note("nothing is edited: the note stays", Edit.NOTHING, TEMPLATE, TEMPLATE),
    Note("nothing is edited and nothing is evident: no note", Edit.NOTHING, "", "", evident=False),
    Note("what is believed once is noted from then on", Edit.NOTHING, "", TEMPLATE),
    Note("what a generation shows needs no note", Edit.NOTHING, "", "", generation=1),
    Note("the copies change: the pods run what they ran", Edit.NO_TEMPLATE, "", TEMPLATE),
    Note(
        "the copies change and nothing is evident: the note stays",
        Edit.NO_TEMPLATE,
        "x y",
        "x y",
        evident=False,
    ),
    Note(
        "the same, and there is none: nothing is known",
        Edit.NO_TEMPLATE,
        "",
        UNKNOWN,
        evident=False,
    ),
    Note("the template changes: what ran, and the status of then", Edit.TEMPLATE, "", AND_STATUS),
    Note(
        "a second edit before the first was acted on: what the first knew stays",
        Edit.TEMPLATE,
        "x y",
        "x y;",
        evident=False,
    ),
    Note(
        "the same after an edit of copies: what would run is not known",
        Edit.TEMPLATE,
        "x",
        f"{UNKNOWN};",
        evident=False,
    ),
    Note(
        "a second edit: what pods may run by now, and since when",
        Edit.TEMPLATE,
        "x y",
        f"x y;{TEMPLATE} 2 {BEFORE}",
        evident=False,
        writes=(wrote(BEFORE),),
    ),
    Note(
        "a second edit, and the first is not on the cluster",
        Edit.TEMPLATE,
        "x y",
        "x y;",
        evident=False,
        writes=(wrote(BEFORE),),
        applied=False,
    ),
    Note(
        "a third edit: a status between the first two is about the first",
        Edit.TEMPLATE,
        f"x y;first 4 {BEFORE}",
        f"first {digest_of(STATUS)};{TEMPLATE} 5 {LATER}",
        evident=False,
        generation=5,
        writes=(wrote(LATER), wrote(AFTER, status=True)),
    ),
    Note(
        "a third edit before the second is there: a status after the first is about it",
        Edit.TEMPLATE,
        f"x y;first 4 {BEFORE}",
        f"first {digest_of(STATUS)};",
        evident=False,
        generation=4,
        writes=(wrote(BEFORE), wrote(AFTER, status=True)),
        applied=False,
    ),
    *(
        Note(
            f"a third edit, and {reason}: nothing more is known",
            Edit.TEMPLATE,
            f"x y;first 4 {since}",
            f"x y;{TEMPLATE} {generation} {at}",
            evident=False,
            generation=generation,
            writes=(wrote(at), wrote(AFTER, status=True)),
        )
        for reason, since, at, generation in (
            ("another was between the two", BEFORE, LATER, 6),
            ("when the first was written is not said", "", LATER, 5),
            ("the status is of the second of the first", AFTER, LATER, 5),
            ("the status is of the second of the second", BEFORE, AFTER, 5),
        )
    ),
)


@pytest.mark.parametrize("case", NOTES, ids=[case.reason for case in NOTES])
def test_a_note_says_what_the_pods_ran_when_they_were_edited(case: Note) -> None:
    metadata = {"generation": case.generation, "managedFields": [*case.writes]}
    remote: dict[str, Any] = {"metadata": metadata, "status": STATUS}
    workload = ObservedObject(identity=GANG, remote=remote, note=case.before)
    after = noted(workload, TEMPLATE, case.edit, applied=case.applied, evident=case.evident)
    assert after == case.after, case.reason


class Evidence(NamedTuple):
    reason: str
    evident: bool
    generation: Any = 2
    writes: tuple[dict[str, Any], ...] = ()
    status: dict[str, Any] = STATUS
    kind: str = "LeaderWorkerSet"
    note: str = ""
    was_updated: bool = False


EVIDENCE = (
    Evidence("without a generation", evident=False, generation=None, note=TEMPLATE),
    Evidence("a generation that was seen", evident=True, status={"observedGeneration": 2}),
    Evidence("a later one", evident=True, status={"observedGeneration": 3}, kind="Deployment"),
    Evidence("one of before", evident=False, status={"observedGeneration": 1}, note=TEMPLATE),
    Evidence("a Deployment that says none", evident=False, generation=1, kind="Deployment"),
    Evidence("a gang of one spec ever", evident=True, generation=1),
    Evidence("a status after the template", evident=True, writes=(wrote(BEFORE), wrote(AFTER, status=True))),
    Evidence("a status of before", evident=False, writes=(wrote(AFTER), wrote(BEFORE, status=True))),
    Evidence("a status of its second", evident=False, writes=(wrote(AFTER), wrote(AFTER, status=True))),
    Evidence("the time of a status alone", evident=False, writes=(wrote(AFTER, status=True),)),
    Evidence("the time of a template alone", evident=False, writes=(wrote(AFTER),)),
    Evidence(
        "a status after the template, before the copies",
        evident=True,
        writes=(wrote(BEFORE), wrote(AFTER, status=True), COPIES_WRITTEN),
    ),
    Evidence("what was believed before there were notes", evident=True, was_updated=True),
    Evidence("no more once there is one", evident=False, was_updated=True, note=UNKNOWN),
    Evidence("a note of this template", evident=True, note=TEMPLATE),
    Evidence("a note of another", evident=False, note="x"),
    Evidence("a note of this template and this status", evident=True, note=AND_STATUS),
    Evidence("a note of this template and another status", evident=False, note=f"{TEMPLATE} x"),
    Evidence("the same, and another was asked for", evident=True, note=f"{AND_STATUS};other 2 {AFTER}"),
    Evidence("a note that it was only asked for", evident=False, note=f"{UNKNOWN};{TEMPLATE} 2 {AFTER}"),
    Evidence(
        "a status that somebody emptied for the controller to write it anew",
        evident=False,
        writes=(wrote(BEFORE), wrote(AFTER, status=True)),
        status={**STATUS, "hpaPodSelector": ""},
    ),
    Evidence(
        "the status that it wrote anew",
        evident=True,
        writes=(wrote(BEFORE), wrote(AFTER, status=True)),
        status={**STATUS, "hpaPodSelector": "a=b"},
    ),
)


@pytest.mark.parametrize("case", EVIDENCE, ids=[case.reason for case in EVIDENCE])
def test_a_status_is_about_the_spec_by_evidence_alone(case: Evidence) -> None:
    metadata = {"generation": case.generation, "managedFields": [*case.writes]}
    workload = ObservedObject(
        identity=GANG._replace(kind=case.kind),
        remote={"metadata": metadata, "status": case.status},
        note=case.note,
    )
    assert state.is_about_spec(workload, TEMPLATE, was_updated=case.was_updated) is case.evident, case.reason


def test_a_status_that_somebody_emptied_is_no_proof_later() -> None:
    """The pods still run what was there before B, while B went to C and came back."""
    emptied = ObservedObject(
        identity=GANG,
        remote={
            "metadata": {"generation": 3, "managedFields": [wrote(LATER), wrote(AFTER, status=True)]},
            "status": {**STATUS, "hpaPodSelector": ""},
        },
        note=f"{state.UNKNOWN};{TEMPLATE} 2 {BEFORE}",
    )
    note = state.noted(emptied, "c", state.Edit.TEMPLATE, applied=True, evident=False)
    assert note.partition(state.ASKED)[0] == state.UNKNOWN


KEY = "model-serving-main"
SPEC = {"replicas": 2, "template": {"image": "x"}}
DONE = {
    "updatedReplicas": 2,
    "replicas": 2,
    "availableReplicas": 2,
    "observedGeneration": 1,
    "conditions": [],
}
LATE = [{"type": "Progressing", "status": "False", "reason": state.STALLED, "message": "too slow"}]
NO_TIMES = "what its pods run is not evident: provider-kubernetes leaves out metadata.managedFields"
NOT_YET = "its controller has not reported on this spec yet"


class Seen(NamedTuple):
    """A Deployment of two copies as it is observed, and what is known of its engine."""

    reason: str
    expected: dict[str, Any]
    status: dict[str, Any] = DONE
    was_updated: bool = False
    more: dict[str, Any] = {}  # noqa: RUF012  # Never changed.


AT_REST = {"created": True, "ready": True, "in_use": True, "available": 2, "updated": 2, "total": 2}
AT_REST |= {"up_to_date": True, "stalled": "", "fault": "", "rolled_out": True}
UNSEEN = AT_REST | {"in_use": False, "updated": 0, "up_to_date": False, "rolled_out": False}
SEEN = (
    Seen("all copies run what is wanted", AT_REST),
    Seen(
        "one copy of two is new",
        AT_REST | {"updated": 1, "up_to_date": False, "rolled_out": False},
        DONE | {"updatedReplicas": 1},
    ),
    Seen(
        "an old copy too many",
        AT_REST | {"total": 3, "up_to_date": False, "rolled_out": False},
        DONE | {"replicas": 3},
    ),
    Seen(
        "fewer copies than are wanted, all of them new",
        AT_REST | {"available": 1, "updated": 1, "total": 1, "rolled_out": False},
        DONE | {"updatedReplicas": 1, "replicas": 1, "availableReplicas": 1},
    ),
    Seen(
        "no copies",
        AT_REST
        | {"ready": False, "in_use": False, "available": 0, "updated": 0, "total": 0}
        | {"up_to_date": False, "rolled_out": False},
        {"observedGeneration": 1, "conditions": []},
    ),
    Seen("nothing is reported: Ready counts", UNSEEN | {"available": 0, "total": 0, "fault": NOT_YET}, {}),
    Seen("its controller is late", UNSEEN | {"fault": NOT_YET}, DONE | {"observedGeneration": 0}),
    Seen("it ran out of time", AT_REST | {"stalled": "too slow"}, DONE | {"conditions": LATE}),
    Seen(
        "it says no more than that",
        AT_REST | {"stalled": state.STALLED},
        DONE | {"conditions": [LATE[0] | {"message": ""}]},
    ),
    Seen(
        "a rollout of before ran out of time",
        UNSEEN | {"fault": NOT_YET},
        DONE | {"conditions": LATE, "observedGeneration": 0},
    ),
    Seen("it was not applied yet", UNSEEN, more={"pending": True}),
    Seen("it could not be applied", UNSEEN | {"fault": "no"}, more={"synced": False, "synced_message": "no"}),
    Seen(
        "what was applied before still is, though the provider fails",
        AT_REST | {"fault": "no"},
        was_updated=True,
        more={"synced": False, "synced_message": "no"},
    ),
    Seen("not Ready", AT_REST | {"ready": False, "in_use": False}, more={"ready": False}),
)


@pytest.mark.parametrize("case", SEEN, ids=[case.reason for case in SEEN])
def test_what_is_known_of_an_engine(case: Seen) -> None:
    remote = {"metadata": {"generation": 1}, "spec": SPEC, "status": case.status}
    fields = {"manifest": {"spec": SPEC}, "remote": remote, "ready": True} | case.more
    workload = ObservedObject(identity=ObjectIdentity("apps", "Deployment", "ns", "m"), **fields)
    engine = state.engine_state(
        "main", 2, KEY, workload.manifest, {KEY: workload}, was_updated=case.was_updated
    )
    assert {name: getattr(engine, name) for name in case.expected} == case.expected, case.reason
    (observed,) = state.observed_states({KEY: workload}, was_updated=case.was_updated)
    assert observed == engine, "the copies that it asks for are those of its own manifest"
    assert state.replicas_of({"spec": {}}) == 1, "as Kubernetes takes it"
    absent = state.engine_state("main", 2, f"{KEY}-standalone", {}, {KEY: workload}, was_updated=False)
    assert absent == state.EngineState("main", 2, False, engine.ready, False, 0, 0, 0), (
        "what it supersedes serves on"
    )


@pytest.mark.parametrize(("was_updated", "fault"), [(True, ""), (False, NO_TIMES)])
def test_a_gang_without_times_is_believed_once_and_else_said_to_be_unknown(
    was_updated: bool,  # noqa: FBT001
    fault: str,
) -> None:
    status = {"readyReplicas": 2, "updatedReplicas": 2, "replicas": 2}
    remote = {"metadata": {"generation": 2}, "spec": SPEC, "status": status}
    workload = ObservedObject(identity=GANG, manifest={"spec": SPEC}, remote=remote, ready=True)
    (engine,) = state.observed_states({KEY: workload}, was_updated=was_updated)
    assert (engine.available, engine.updated, engine.fault) == (2, 2 if was_updated else 0, fault)
