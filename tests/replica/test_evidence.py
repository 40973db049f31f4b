"""Nothing counts as rolled out without evidence that the controller has seen the spec.

The statuses are those that LeaderWorkerSet 0.8.0 and provider-kubernetes 1.4.1 leave, seen on a real cluster.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from function.objects import COPIES_WAIT, NOTE
from tests.replica.build import Scene, config, engine, gang, member, replica, run
from tests.replica.provider import applied

if TYPE_CHECKING:
    from tests.support.drive import Answer

Plain = dict[str, Any]

WORKLOAD = "model-serving-main"
OLD, BAD, NEW = (
    "registry.example.com/vllm:old",
    "registry.example.com/vllm:bad",
    "registry.example.com/vllm:new",
)
SETTINGS = config(status="Engines")


def write(second: int, *, status: bool = False) -> Plain:
    """Return an entry of managedFields: who wrote the template, or the status, last, and when."""
    fields: Plain = (
        {"f:status": {}} if status else {"f:spec": {"f:leaderWorkerTemplate": {}, "f:replicas": {}}}
    )
    where = {"subresource": "status"} if status else {}
    return {"manager": "x", "time": f"2026-11-23T16:38:{second:02}Z", "fieldsV1": fields, **where}


@dataclass
class Life:
    """One gang: what Crossplane, the provider and the controller make of what we desire, in any order."""

    image: str = OLD
    copies: int = 2
    workers: int = 1
    second: int = 10
    input: Plain | None = None

    def __post_init__(self) -> None:
        """Start as it is at rest after its creation."""
        self.input = self.input or SETTINGS
        self.status: Plain = {}
        self.observed: dict[str, Plain] = {}
        self.observed = applied(self.ask())
        self.provide()
        self.act()
        self.provide()
        self.ask()

    def ask(self) -> Answer:
        """Ask the function, and keep the status that it writes."""
        made = gang("main", nodes=self.workers, copies=self.copies, image=self.image)
        asked = Scene(replica(made), input=self.input)
        asked.replica["status"] = copy.deepcopy(self.status)
        answer = run(asked.but(observed=self.observed))
        conditions = [{"type": kind, "status": str(said[0])} for kind, said in answer.conditions.items()]
        self.status = {**answer.status, "conditions": conditions}
        return answer

    def edit(self, image: str | None = None, copies: int | None = None, workers: int | None = None) -> Answer:
        """Want another image, other copies or workers; Crossplane applies what is desired of it."""
        self.image, self.copies = image or self.image, copies or self.copies
        self.workers = workers or self.workers
        answer = self.ask()
        desired, observed = answer.desired[WORKLOAD], self.observed[WORKLOAD]
        observed["metadata"].pop("annotations", None)
        observed["metadata"] |= copy.deepcopy(desired.get("metadata", {})) | {"name": "x"}
        if observed["spec"] != desired["spec"]:
            observed["metadata"]["generation"] = observed["metadata"].get("generation", 1) + 1
        observed["spec"] = copy.deepcopy(desired["spec"])
        return answer

    @property
    def remote(self) -> Plain:
        """The LeaderWorkerSet on its cluster, as the provider saw it last."""
        made: Plain = self.observed[WORKLOAD]["status"]["atProvider"]["manifest"]
        return made

    def provide(self) -> None:
        """The provider applies the manifest; the API server answers with the status of before."""
        made, remote = self.observed[WORKLOAD], self.remote
        manifest, metadata = made["spec"]["forProvider"]["manifest"], remote["metadata"]
        if remote["spec"] != manifest["spec"] or "managedFields" not in metadata:
            self.second += 2
            changed = remote["spec"] != manifest["spec"]
            metadata["generation"] += changed
            statuses = [entry for entry in metadata.get("managedFields", ()) if "subresource" in entry]
            metadata["managedFields"] = [write(self.second), *statuses]
            remote["spec"] = copy.deepcopy(manifest["spec"])
        generation = made["metadata"].setdefault("generation", 1)
        made["status"]["conditions"][0]["observedGeneration"] = generation

    def act(self, updated: int | None = None, *, seconds: int = 2) -> None:
        """The controller acts on what it finds, until so many groups (all of them) are updated and ready."""
        remote, copies = self.remote, self.remote["spec"]["replicas"]
        done = copies if updated is None else updated
        self.second += seconds
        remote["metadata"]["managedFields"] = [
            remote["metadata"]["managedFields"][0],
            write(self.second, status=True),
        ]
        at = f"2026-11-23T16:38:{self.second:02}Z"
        rolled = {"Available": str(done == copies), "UpdateInProgress": str(done < copies)}
        remote["status"] = {"replicas": copies, "updatedReplicas": done, "readyReplicas": done} | {
            "conditions": [{"type": k, "status": v, "lastTransitionTime": at} for k, v in rolled.items()]
        }

    @property
    def evident(self) -> bool:
        """Whether the pods are known to run what is wanted, said in every way that there is."""
        answer = self.ask()
        evident = answer.conditions["ModelUpdated"][0]
        assert ("servingDigest" in answer.status) >= evident
        return evident

    def note(self) -> str:
        """Return what is noted on the Object."""
        return str(self.observed[WORKLOAD]["metadata"].get("annotations", {}).get(NOTE, ""))


def test_the_status_of_before_beside_the_new_spec_is_no_rollout() -> None:
    """The outage: a bad image passed the budget one replica after the other."""
    life = Life()
    digest = life.status["servingDigest"]
    assert life.evident
    life.edit(BAD)
    assert not life.evident, "the provider has not acted"
    life.provide()  # type: ignore[unreachable]
    for _ in range(4):
        assert not life.evident, "the controller has not acted, be it a round late or four"
        assert life.status["servingDigest"] == digest, "of the other spec"
    life.act(updated=1)
    assert not life.evident
    life.act()
    assert life.evident
    assert life.status["servingDigest"] != digest


def test_a_digest_that_may_be_false_is_withdrawn() -> None:
    """Taken back, an edit leaves the pods at whatever the controller made of it, and nobody saw what."""
    life = Life()
    life.edit(BAD)
    life.provide()
    life.ask()
    life.act()  # Nobody looked: the provider polls every ten minutes.
    life.edit(OLD)
    life.provide()
    answer = life.ask()
    assert answer.conditions["ModelUpdated"][:2] == (False, "Updating")
    assert "its controller has not reported on this spec yet" in answer.conditions["ModelUpdated"][2]
    assert "servingDigest" not in answer.status
    assert answer.status["engines"], "nothing is known of the pods, and that is said"
    life.act()
    assert life.evident


def test_an_edit_taken_back_before_the_controller_acted_changed_nothing() -> None:
    """It has nothing to write then: without the note, its status would be without evidence for ever."""
    for acted in (False, True):
        life = Life()
        life.edit(BAD)
        if acted:
            life.provide()
            life.ask()
        life.edit(OLD)
        life.provide()
        assert life.evident
        assert life.status["servingDigest"]


def test_a_provider_that_fails_takes_no_evidence_away() -> None:
    """Applied server-side, nothing says what it applied last: what was rolled out before still is."""
    life = Life()
    life.edit(NEW)
    life.provide()
    life.act()
    assert life.evident
    synced = life.observed[WORKLOAD]["status"]["conditions"][0]
    synced["status"] = "False"
    life.edit(BAD)
    synced["status"] = "True"
    life.provide()
    life.edit(NEW)
    life.provide()
    assert life.evident, "the controller acted on neither edit"


@pytest.mark.parametrize("lost", ["", NEW, BAD])
def test_an_edit_of_an_edit_taken_back_is_doubt_only_where_a_report_was_lost(lost: str) -> None:
    """The controller acts on the first alone. That shows beside the second, if the provider reports it."""
    life = Life()
    digest, reported = life.status["servingDigest"], life.observed[WORKLOAD]["status"]
    for image in (NEW, BAD, NEW):
        there = life.observed[WORKLOAD]["status"]
        before = copy.deepcopy(there)
        life.observed[WORKLOAD]["status"] = reported
        life.edit(image)
        life.observed[WORKLOAD]["status"] = there
        if image == BAD:
            life.act()  # On what is there, the edit before: the provider has not applied this one.
        life.second += 2
        life.provide()
        reported = before if image == lost else there
    assert life.evident is not bool(lost)
    if not lost:
        return
    answer = life.ask()
    assert answer.conditions["ModelUpdated"][1] == "Updating"
    late = "its controller has not reported on this spec yet; if this lasts, edit the template again"
    assert late in answer.conditions["ModelUpdated"][2]
    assert answer.status["servingDigest"] == digest, "of the spec before them all"
    life.remote["status"]["hpaPodSelector"] = ""
    life.remote["metadata"]["managedFields"].append(write(life.second + 2, status=True))
    assert not life.evident, "somebody let the controller write its status anew, and it has yet to"
    life.remote["status"]["hpaPodSelector"] = "leaderworkerset.sigs.k8s.io/name=x"
    assert life.evident


def test_a_doubt_that_nothing_ends_ends_with_the_next_edit() -> None:
    life = Life()
    for image in (NEW, BAD):
        life.edit(image)
        life.provide()
    life.observed[WORKLOAD]["metadata"]["annotations"][NOTE] = "unknown;"
    life.edit(OLD)
    life.provide()
    assert not life.evident
    life.edit(NEW)
    life.provide()
    assert not life.evident
    life.act()
    assert life.evident


@pytest.mark.parametrize("seconds", [0, 3], ids=["in the same second", "later"])
def test_copies_restart_no_pod(seconds: int) -> None:
    """A group that never started goes in no time, and times have seconds."""
    life = Life()
    for copies in (3, 2, 3):
        life.edit(copies=copies)
        assert not life.evident
        life.provide()
        assert not life.evident
        life.act(seconds=seconds)
        assert life.evident, copies
        assert " " not in life.note()  # type: ignore[unreachable]


@pytest.mark.parametrize(
    ("before", "after", "first", "reason"),
    [
        ((2, 3), (4, 1), 2, "groups of 4 pods become twice as many of 2"),
        ((2, 3), (4, 3), 4, "more of the same have nodes of their own"),
        ((2, 1), (4, 3), 4, "larger groups were charged with the nodes that they take"),
        ((4, 3), (2, 1), 2, "fewer copies leave first"),
    ],
)
def test_more_copies_follow_when_no_group_has_more_pods_than_it_should(
    before: tuple[int, int], after: tuple[int, int], first: int, reason: str
) -> None:
    """The controller replaces no group while new ones wait, and those wait for the nodes of the old ones."""
    life = Life(copies=before[0], workers=before[1])
    answer = life.edit(copies=after[0], workers=after[1])
    assert wanted(answer)["leaderWorkerTemplate"]["size"] == after[1] + 1, reason
    assert wanted(answer)["replicas"] == first, reason
    assert ("more copies follow" in answer.conditions["ModelUpdated"][2]) is (first < after[0]), reason
    for updated in (0, 1):
        life.provide()
        life.act(updated)
        assert wanted(life.edit())["replicas"] == first, reason
    for _ in range(2):
        life.act()
        assert wanted(life.edit())["replicas"] == after[0], reason
        life.provide()
    assert life.evident, reason
    assert not life.note().endswith(COPIES_WAIT), reason


def test_without_times_more_copies_wait_and_both_is_said() -> None:
    """Of LeaderWorkerSet 0.8 nothing else tells that a group became smaller."""
    life = Life(copies=2, workers=3)
    life.edit(copies=4, workers=1)
    life.provide()
    life.act()
    life.remote["metadata"].pop("managedFields")
    answer = life.edit()
    assert wanted(answer)["replicas"] == 2
    said = answer.conditions["ModelUpdated"][2]
    assert "provider-kubernetes leaves out metadata.managedFields" in said
    assert "more copies follow" in said
    life.remote["status"]["observedGeneration"] = life.remote["metadata"]["generation"]
    assert wanted(life.edit())["replicas"] == 4, "0.9 says what its status is about"


@pytest.mark.parametrize(
    ("updated", "copies", "reason"),
    [
        (True, 4, "a failure takes away nothing that was evident"),
        (False, 2, "nothing tells that the smaller groups were written"),
    ],
)
def test_more_copies_follow_while_a_provider_fails_where_the_update_was_evident(
    *, updated: bool, copies: int, reason: str
) -> None:
    life = Life(copies=2, workers=3)
    life.edit(workers=1)
    life.provide()
    life.act()
    life.observed[WORKLOAD]["status"]["conditions"][0] |= {"status": "False", "message": "no route to host"}
    life.status = {"conditions": [{"type": "ModelUpdated", "status": str(updated)}]}
    assert life.note().endswith(COPIES_WAIT), "it was not seen since"
    assert wanted(life.edit(copies=4))["replicas"] == copies, reason


def wanted(answer: Answer) -> Plain:
    """Return the spec of the LeaderWorkerSet that is desired."""
    made: Plain = answer.desired[WORKLOAD]["spec"]["forProvider"]["manifest"]["spec"]
    return made


def test_other_engines_get_no_more_copies_either() -> None:
    """Their pods would take what a group gave back before its successor comes, which then waits for ever."""
    scene = Scene(replica(gang("main", nodes=3, copies=2), engine("other", member())), input=SETTINGS)
    observed = applied(run(scene))
    after = replica(gang("main", nodes=1, copies=2), engine("other", member(), copies=5))
    answer = run(scene.but(replica=after, observed=observed))
    other = answer.desired["model-serving-other"]["spec"]["forProvider"]["manifest"]["spec"]
    assert (wanted(answer)["leaderWorkerTemplate"]["size"], other["replicas"]) == (2, 1)
    del observed["model-serving-other"]["spec"]["forProvider"]["manifest"]["spec"]["replicas"]
    answer = run(scene.but(replica=after, observed=observed))
    other = answer.desired["model-serving-other"]["spec"]["forProvider"]["manifest"]["spec"]
    assert other["replicas"] == 5, "what was asked for before is not said, so it is no bound"


def test_a_gang_that_does_not_say_its_size_has_not_become_smaller() -> None:
    scene = Scene(replica(gang(copies=2)), input=SETTINGS)
    observed = applied(run(scene))
    del observed[WORKLOAD]["spec"]["forProvider"]["manifest"]["spec"]["leaderWorkerTemplate"]["size"]
    answer = run(scene.edited(engines=[gang(copies=4)]).but(observed=observed))
    assert wanted(answer)["replicas"] == 4
    assert "more copies follow" not in answer.conditions["ModelUpdated"][2]


def test_a_label_of_the_workload_restarts_no_pod() -> None:
    life = Life()
    life.observed[WORKLOAD]["spec"]["forProvider"]["manifest"]["metadata"]["labels"] = {"queue": "before"}
    life.edit()
    life.second += 2
    life.remote["metadata"]["managedFields"][0] = write(life.second)  # One entry for all that we write.
    life.provide()
    assert life.evident


def test_within_one_second_nothing_is_known() -> None:
    life = Life()
    life.edit(BAD)
    life.provide()
    life.act(seconds=0)
    assert not life.evident
    life.act(seconds=1)
    assert life.evident


def test_without_times_nothing_is_known_and_that_is_said() -> None:
    """provider-kubernetes --remove-managed-fields: after an edit there is no evidence to be had."""
    life = Life()
    life.edit(NEW)
    life.provide()
    life.act()
    life.remote["metadata"].pop("managedFields")
    said = life.ask().conditions["ModelUpdated"][2]
    assert "provider-kubernetes leaves out metadata.managedFields" in said
    life.remote["metadata"]["generation"] = 1
    assert life.evident, "it has only ever had one spec"


def test_a_controller_that_says_what_it_has_seen_is_believed() -> None:
    life = Life()
    life.edit(NEW)
    life.provide()
    life.act()
    generation = life.remote["metadata"]["generation"]
    life.remote["metadata"].pop("managedFields")
    for reported, evident in ((generation - 1, False), (generation, True)):
        life.remote["status"]["observedGeneration"] = reported
        assert life.evident is evident


@pytest.mark.parametrize("was", ["True", "False"])
def test_what_an_earlier_release_left_is_believed_once_and_noted(was: str) -> None:
    """An upgrade changes nothing that runs, and makes no replica doubtful that was at rest."""
    life = Life()
    life.remote["metadata"]["generation"] = 3
    life.remote["metadata"]["managedFields"][0] = write(59)  # A label, or copies in the second of the status.
    life.status["conditions"] = [{"type": "ModelUpdated", "status": was}]
    life.edit()
    assert life.observed[WORKLOAD]["metadata"]["generation"] == 1, "nothing of its spec changes"
    life.status["conditions"] = []  # What Crossplane makes of a function that was away for two minutes.
    assert life.evident is (was == "True")
    assert bool(life.note()) is (was == "True")


def test_the_note_is_kept_in_doubt() -> None:
    life = Life()
    life.edit(NEW)
    note = life.note()
    assert note
    doubted = Scene(replica(gang("main", copies=2)), cluster=None, observed=life.observed, input=SETTINGS)
    assert run(doubted).desired[WORKLOAD]["metadata"]["annotations"] == {NOTE: note}


def test_a_gang_at_rest_has_no_note() -> None:
    life = Life()
    assert "metadata" not in life.ask().desired[WORKLOAD]


def test_an_edit_that_takes_something_away_counts_once_the_provider_has_acted() -> None:
    """All that is wanted is there before it acts, so a claim template would leave under the pods."""
    scene = Scene(replica(engine("main", member())), input=SETTINGS)
    settled = scene.but(observed=applied(run(scene)))
    edited = settled.edited(engines=[engine("main", member(claims=[]))])
    first = run(edited)
    claim = "resource-claim-main-standalone"
    assert claim in first.desired
    observed = copy.deepcopy(settled.observed)
    observed[WORKLOAD] |= {"spec": first.desired[WORKLOAD]["spec"]}
    observed[WORKLOAD]["metadata"]["generation"] = 2
    synced = observed[WORKLOAD]["status"]["conditions"][0]
    assert "observedGeneration" not in synced
    assert claim in run(edited.but(observed=observed)).desired, "Synced does not say what it is about"
    synced |= {"status": "False", "observedGeneration": 2}
    assert claim in run(edited.but(observed=observed)).desired, "the provider failed"
    synced["status"] = "True"
    assert claim not in run(edited.but(observed=observed)).desired
