"""Replicas of one name in two namespaces do not get the same objects on a cluster, if that is asked for."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from function.api.names import BASE_LENGTH
from function.boundary import Requirement
from function.replica.snapshot import declared
from tests.replica.build import API, CLUSTER, NAMESPACE, REPLICA, Scene, config, manifests, replica, run
from tests.replica.provider import applied
from tests.support import scale

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.drive import Answer

Plain = dict[str, Any]
EARLY, LATE = "2026-03-01T08:00:00Z", "2026-03-01T08:00:01Z"
LABELS = {"modelplane.ai/deployment": "my-model", "modelplane.ai/cluster": CLUSTER}
REFUSE = config(namesakes="Refuse")


def existing(
    namespace: str = NAMESPACE,
    *,
    created: str = EARLY,
    labels: Mapping[str, str] = LABELS,
    name: str = REPLICA,
) -> Plain:
    """Return a replica as the API server has it."""
    made = replica(name=name, namespace=namespace)
    made["metadata"] |= {"creationTimestamp": created, "labels": dict(labels), "uid": f"uid-in-{namespace}"}
    return made


def scene(ours: Plain, *others: Plain, asked: Plain | None = REFUSE) -> Scene:
    """Return a request about a replica, with all that its requirement would fetch."""
    return Scene(ours, input=asked, more={"namesakes": [ours, *others]})


def planned() -> Plain:
    """Return a replica that is in no API server yet."""
    made = existing()
    del made["metadata"]["creationTimestamp"]
    return made


def moved(made: Plain, cluster: str) -> Plain:
    return {**made, "spec": {**made["spec"], "clusterName": cluster}}


class Case(NamedTuple):
    """A replica, who else is there, the input, and the reason of ModelAccepted."""

    reason: str
    ours: Plain
    others: tuple[Plain, ...]
    accepted: str
    asked: Plain | None = REFUSE


THEIRS = existing("team-b")
CASES = [
    Case("alone", existing(), (), "Deploying"),
    Case("who came first has the name", existing(created=LATE), (THEIRS,), "NameTaken"),
    Case("who came later has not", existing(), (existing("team-b", created=LATE),), "Deploying"),
    Case("in one second the namespace decides", existing(), (existing("a-team"),), "NameTaken"),
    Case("and for the other one too", existing(), (THEIRS,), "Deploying"),
    Case("another name", existing(created=LATE), (existing("team-b", name="other"),), "Deploying"),
    Case("another cluster", existing(created=LATE), (moved(THEIRS, "b"),), "Deploying"),
    Case("one that is being deleted has it until it is gone", existing(created=LATE),
         ({**THEIRS, "metadata": {**THEIRS["metadata"], "deletionTimestamp": LATE}},), "NameTaken"),
    Case("one that is planned comes last", planned(), (existing("team-b", created=LATE),), "NameTaken"),
    Case("nobody asked", existing(created=LATE), (THEIRS,), "Deploying", None),
    Case("Ignore", existing(created=LATE), (THEIRS,), "Deploying", config(namesakes="Ignore")),
    Case("pods are in namespaces of their own", existing(created=LATE), (THEIRS,), "Deploying",
         config(namesakes="Refuse", remoteNamespace="Same")),
    Case("made by hand: there is nothing to find namesakes by", existing(created=LATE, labels={}), (THEIRS,),
         "Deploying"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.reason for case in CASES])
@pytest.mark.parametrize("level", ["plain", "wire"])
def test_who_came_first_has_the_name(case: Case, level: str) -> None:
    answer = run(scene(case.ours, *case.others, asked=case.asked), level=level)
    assert answer.reason("ModelAccepted") == case.accepted
    assert bool(answer.desired) == (case.accepted == "Deploying")
    if case.accepted == "NameTaken":
        holder = case.others[0]["metadata"]["namespace"]
        assert answer.conditions["ModelAccepted"][2] == (
            f"ModelReplica {holder}/{REPLICA} came first on {CLUSTER}, and in the namespace default the pods"
            " of both would have the same names: delete this ModelReplica, and its deployment places one of"
            " another name; what is on the cluster is left to the other, nothing new is composed"
        )
        assert answer.unready


def test_the_replicas_of_deployments_of_this_name_on_this_cluster_are_asked_for() -> None:
    answer = run(Scene(existing(), input=REFUSE))
    asked = next(asked for asked in answer.requirements if asked["name"] == "namesakes")
    assert (asked["apiVersion"], asked["kind"], asked["namespace"]) == (API, "ModelReplica", None)
    assert (asked["matchName"], asked["matchLabels"]) == (None, LABELS)


@pytest.mark.parametrize(
    "labels", [{}, {"modelplane.ai/deployment": "my-model"}, {**LABELS, "modelplane.ai/cluster": ""}]
)
def test_without_both_labels_nothing_is_asked_for(labels: Plain) -> None:
    answer = run(Scene(existing(labels=labels), input=REFUSE))
    assert [asked["name"] for asked in answer.requirements] == ["cluster"]


def test_until_they_are_delivered_nothing_new_is_composed() -> None:
    answer = run(Scene(existing(), input=REFUSE))
    text = (
        f"Waiting for the ModelReplicas that may have its names on {CLUSTER}; everything running is kept,"
        " nothing new is composed"
    )
    assert answer.conditions["ModelAccepted"] == (False, "WaitingForCluster", text)
    assert not answer.desired


def test_pods_that_share_their_names_already_stay_and_serve() -> None:
    """As after an upgrade: doubt deletes and withdraws nothing; one of the two manages from here on."""
    ours = existing(created=LATE)
    observed = applied(run(scene(ours)))
    ours["status"] = {"conditions": [{"type": "ModelReady", "status": "True", "reason": "Serving"}]}
    answer = run(scene(ours, THEIRS).but(observed=observed))
    assert answer.desired.keys() == observed.keys()
    for key, made in answer.desired.items():
        assert made["spec"] == {**observed[key]["spec"], "managementPolicies": ["Observe"]}
    assert answer.reason("ModelReady") == "Serving"
    assert answer.ready == observed.keys(), "what is not Ready would take the endpoint along"
    assert not answer.unready


def test_what_both_composed_is_left_to_the_one_that_came_first() -> None:
    """Two of one second are composed before either sees the other; then one of them manages nothing more."""
    alone = scene(existing())
    both = alone.but(observed=applied(run(alone)), more={"namesakes": [existing(), existing("a-team")]})
    answer = run(both)
    assert answer.desired.keys() == both.observed.keys()
    objects = [made for made in answer.desired.values() if made["kind"] == "Object"]
    assert objects
    assert all(made["spec"]["managementPolicies"] == ["Observe"] for made in objects)
    assert answer.conditions["ModelReady"][:2] == (False, "NameTaken")
    again = both.but(observed=applied(answer), more={"namesakes": [existing()]})
    assert run(again).desired == run(both.but(more={"namesakes": [existing()]})).desired


@pytest.mark.parametrize(
    ("change", "accepted", "ready"),
    [
        ({"cluster": None}, "WaitingForCluster", "WaitingForCluster"),
        ({"more": {}}, "WaitingForCluster", "WaitingForCluster"),
        ({"input": {"kind": "Nonsense"}}, "Malformed", "Malformed"),
        ({"more": {"namesakes": [existing()]}}, "Accepted", "NameTaken"),
    ],
)
def test_what_was_let_go_makes_nobody_ready_in_any_other_doubt(
    change: Plain, accepted: str, ready: str
) -> None:
    """The pods are those of the other team, and would get its requests, whatever is in doubt after that."""
    alone = scene(existing())
    both = alone.but(observed=applied(run(alone)), more={"namesakes": [existing(), existing("a-team")]})
    left = both.but(observed=applied(run(both)))
    answer = run(left.but(**change))
    assert answer.reason("ModelAccepted") == accepted
    assert answer.conditions["ModelReady"][:2] == (False, ready)
    assert answer.conditions["ModelUpdated"][0] is False
    served = left.but(**change)
    served.replica["status"] = {"conditions": [{"type": "ModelReady", "status": "True"}]}
    assert run(served).conditions["ModelReady"][0] is True, "who served goes on"


def test_who_gets_a_name_is_ready_once_the_workloads_are_written_again() -> None:
    """Until then what is seen of them is what the other team's pods did."""
    alone = scene(existing())
    both = alone.but(observed=applied(run(alone)), more={"namesakes": [existing(), existing("a-team")]})
    left = both.but(observed=applied(run(both)), more={"namesakes": [existing()]})
    managed = run(left)
    workload = "model-serving-main"
    assert "managementPolicies" not in managed.desired[workload]["spec"]
    status, reason, message = managed.conditions["ModelReady"]
    assert (status, reason) == (False, "NameTaken")
    text = "What another ModelReplica of this name left on the cluster is not written by this one yet"
    assert message == text
    now = existing()
    now["status"] = {"conditions": [{"type": "ModelReady", "status": str(status), "reason": reason}]}
    written = left.but(replica=now, observed=applied(managed))
    assert run(written).conditions["ModelReady"][:2] == (True, "Serving")
    for said, words in (
        ({"observedGeneration": 1}, ""),
        ({"status": "False", "message": "no route"}, "no route"),
    ):
        observed = applied(managed)
        synced = next(row for row in observed[workload]["status"]["conditions"] if row["type"] == "Synced")
        observed[workload]["metadata"]["generation"] = 2
        synced |= {"observedGeneration": 2} | said
        answer = run(written.but(observed=observed))
        assert answer.conditions["ModelReady"] == (
            False,
            "NameTaken",
            f"{message}; {words}" if words else message,
        )
        assert answer.conditions["ModelUpdated"][0] is False


def test_what_only_one_of_them_has_is_still_managed() -> None:
    """A workload of an engine that the other has not would be left behind with its devices."""
    theirs = existing("a-team")
    for engine in theirs["spec"]["engines"]:
        engine["name"] = "another"
    alone = scene(existing())
    both = alone.but(observed=applied(run(alone)), more={"namesakes": [existing(), theirs]})
    answer = run(both)
    assert answer.reason("ModelAccepted") == "NameTaken"
    let_go = {
        key for key, made in answer.desired.items() if made["spec"].get("managementPolicies") == ["Observe"]
    }
    assert let_go
    assert not {key for key in let_go if key.startswith(("model-serving", "resource-claim"))}


@pytest.mark.parametrize("seed", scale.seeds(20))
def test_of_all_namesakes_exactly_one_is_composed(seed: int) -> None:
    draw = random.Random(seed)
    namespaces = draw.sample(["a", "b", "c", "d", "e"], draw.randint(1, 5))
    all_of_them = [existing(one, created=draw.choice((EARLY, LATE))) for one in namespaces]
    draw.shuffle(all_of_them)
    composed = [bool(run(scene(one, *all_of_them)).desired) for one in all_of_them]
    assert composed.count(True) == 1


# Volumes of ModelCaches


def cache(namespace: str, name: str, created: str = EARLY) -> Plain:
    metadata = {"namespace": namespace, "name": name, "creationTimestamp": created}
    return {"apiVersion": API, "kind": "ModelCache", "metadata": metadata, "spec": {}}


def mounting(namespace: str, name: str, *caches: Plain, asked: Plain | None = REFUSE) -> Scene:
    """Return a request about a replica that mounts a cache, with what its requirements would fetch."""
    made = replica(name="chat-1a2b3", namespace=namespace, cache=name)
    made["metadata"] |= {"creationTimestamp": EARLY, "labels": dict(LABELS)}
    first = Scene(made, input=asked)
    fetched: dict[str, list[Plain]] = {"namesakes": [made]}
    for wanted in run(first).requirements:
        if wanted["kind"] == "ModelCache":
            identity = wanted["namespace"], wanted["matchName"]
            fetched[wanted["name"]] = [
                one for one in caches
                if identity in ((None, None), (one["metadata"]["namespace"], one["metadata"]["name"]))
            ]  # fmt: skip
    return first.but(more=fetched)


def volumes(answer: Answer) -> set[str]:
    """Return the claims that pods mount."""
    return {
        volume["persistentVolumeClaim"]["claimName"]
        for manifest in manifests(answer).values()
        for volume in manifest.get("spec", {}).get("template", {}).get("spec", {}).get("volumes", ())
        if "persistentVolumeClaim" in volume
    }


LONG = "w" * 50
MODEL = "llama-3-3-70b-instruct-fp8-dynamic-w8a8-tuned"


class Mounted(NamedTuple):
    """Our cache, the others, and whether ours is refused."""

    reason: str
    taken: bool
    ours: tuple[str, str] = ("team", "a-weights")
    created: str = LATE
    others: tuple[Plain, ...] = (cache("team-a", "weights"),)
    asked: Plain | None = REFUSE


MOUNTED = [
    Mounted("the other spelling came first", taken=True),
    Mounted("ours came first", taken=False, others=(cache("team-a", "weights", LATE),), created=EARLY),
    Mounted("in one second the namespace decides", taken=True, ours=("team-a", "weights"), created=EARLY,
            others=(cache("team", "a-weights"),)),
    Mounted("another cache of the other namespace", taken=False, others=(cache("team-a", "w"),)),
    Mounted("ours does not exist", taken=True, created=""),
    Mounted("neither exists", taken=False, created="", others=()),
    Mounted("nobody asked", taken=False, asked=None),
    Mounted("pods are in namespaces of their own", taken=False,
            asked=config(namesakes="Refuse", remoteNamespace="Same")),
    Mounted("a third spelling", taken=True, ours=("a", "b-c-d"), others=(cache("a-b-c", "d"),)),
    Mounted("the same join, cut", taken=True, ours=("team", f"a-{LONG}"), others=(cache("team-a", LONG),)),
    Mounted("another join whose name was tried until it was the same", taken=True,
            ours=("team", f"a-{MODEL}-485839"), others=(cache("team-a", MODEL),)),
    Mounted("cut alike, and another join", taken=False, ours=("team", f"a-{LONG}"),
            others=(cache("team-a", f"{LONG}x"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", MOUNTED, ids=[case.reason for case in MOUNTED])
@pytest.mark.parametrize("level", ["plain", "wire"])
def test_two_caches_never_share_a_volume(case: Mounted, level: str) -> None:
    existing_cache = (cache(*case.ours, case.created),) if case.created else ()
    scene = mounting(*case.ours, *existing_cache, *case.others, asked=case.asked)
    answer = run(scene, level=level)
    assert answer.reason("ModelAccepted") == ("NameTaken" if case.taken else "Deploying")
    assert bool(answer.desired) == (not case.taken)
    if case.taken:
        (theirs,) = (one["metadata"] for one in case.others)
        assert (
            f"ModelCache {theirs['namespace']}/{theirs['name']} came first"
            in answer.conditions["ModelAccepted"][2]
        )
        assert answer.unready
    running = scene.but(observed=applied(run(scene.but(input=None))))
    kept = run(running)
    assert {key: made["spec"] for key, made in kept.desired.items() if made["kind"] == "Object"} == {
        key: made["spec"] for key, made in running.observed.items()
    } or case.asked != REFUSE


@pytest.mark.parametrize(("reason", "taken"), [("a replica is no cache", False), ("it came first", True)])
def test_of_a_replica_made_by_hand_the_volume_is_judged_too(reason: str, *, taken: bool) -> None:
    """Nothing says which its namesakes are, and its cache has other spellings as any other has."""
    scene = mounting("team", "a-weights", *((cache("team-a", "weights"),) if taken else ()))
    replicas = [existing("team-a", name="weights")]
    for labels, more in (({}, {}), (LABELS, {"namesakes": replicas})):
        made = scene.replica | {"metadata": {**scene.replica["metadata"], "labels": labels}}
        delivered = {key: documents for key, documents in scene.more.items() if key != "namesakes"} | more
        answer = run(scene.but(replica=made, more=delivered))
        assert answer.reason("ModelAccepted") == ("NameTaken" if taken else "Deploying"), reason


def test_a_cache_without_another_spelling_is_not_looked_up() -> None:
    names = [asked["name"] for asked in run(mounting("team", "weights")).requirements]
    assert names == ["cluster", "namesakes"]


def test_until_the_caches_are_delivered_nothing_new_is_composed() -> None:
    scene = mounting("team", "a-weights")
    waiting = scene.but(more={"namesakes": scene.more["namesakes"], "caches-0": []})
    assert run(waiting).reason("ModelAccepted") == "WaitingForCluster"
    assert not run(waiting).desired


@pytest.mark.parametrize("seed", scale.seeds(40))
def test_no_two_that_are_composed_write_to_one_volume(seed: int) -> None:
    """Whatever they are called: of all that would mount one volume, those of one cache are composed."""
    draw = random.Random(seed)
    parts = ["-".join(draw.choice(("a", "b", LONG)) for _ in range(draw.randint(1, 3))) for _ in range(4)]
    pairs = {(first[:63].rstrip("-"), second) for first in parts for second in parts}
    caches = [cache(*pair, draw.choice((EARLY, LATE))) for pair in sorted(pairs)]
    mounts: dict[str, list[tuple[str, str]]] = {}
    for pair in sorted(pairs):
        for claim in volumes(run(mounting(*pair, *caches))):
            mounts.setdefault(claim, []).append(pair)
    assert mounts
    assert {claim: pairs for claim, pairs in mounts.items() if len(pairs) > 1} == {}


@pytest.mark.parametrize(("length", "is_whole"), [(BASE_LENGTH, True), (BASE_LENGTH + 1, False)])
def test_a_deployments_name_that_is_cut_is_looked_for_among_all_of_its_cluster(
    length: int, *, is_whole: bool
) -> None:
    """Among all of them it is read and not watched: each of their writes would wake it."""
    labels = {**LABELS, "modelplane.ai/deployment": "d" * length}
    _, asked = declared(Scene(existing(labels=labels), input=REFUSE).asked.request())
    by = labels if is_whole else {"modelplane.ai/cluster": CLUSTER}
    assert asked == Requirement("namesakes", API, "ModelReplica", match_labels=tuple(sorted(by.items())))
    assert asked.watched is is_whole


SPELLINGS = [
    ("no cache", "team", "", []),
    ("no other spelling", "team", "weights", []),
    ("by name", "team", "a-b", [("caches-0", "a-b", "team"), ("caches-1", "b", "team-a")]),
    ("no namespace has such a name", "team", "a.b-c", []),
    ("too long to be whole: all of them", "team", f"a-{LONG}", [("caches", None, None)]),
]


@pytest.mark.parametrize(("reason", "namespace", "name", "expected"), SPELLINGS)
def test_every_cache_whose_volume_could_be_ours_is_asked_for(
    reason: str, namespace: str, name: str, expected: list[tuple[str, str | None, str | None]]
) -> None:
    made = replica(name="chat-1a2b3", namespace=namespace, cache=name)
    made["metadata"]["labels"] = dict(LABELS)
    asked = declared(Scene(made, input=REFUSE).asked.request())[2:]
    assert asked == tuple(Requirement(key, API, "ModelCache", *place) for key, *place in expected), reason
