"""PodGroups: where a cluster has them, the pods of a gang of one copy are bound together, or none is."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from function.api.workload import digest_of
from tests.replica.build import Scene, cluster, config, engine, gang, manifests, member, replica, run
from tests.replica.provider import applied

if TYPE_CHECKING:
    from tests.support.drive import Answer

Plain = dict[str, Any]
WITH = cluster(scheduling={"gangs": "PodGroup"})
OFF = Scene(replica(gang("main", nodes=2)))
ON = OFF.but(cluster=WITH)
ON_KSERVE = replica(gang("main", args=("--pipeline-parallel-size=2",)))
ON_KSERVE["spec"]["serving"] = {"model": {"uri": "hf://a/b"}}


def pods_of(answer: Answer) -> Plain:
    """Return what decides whether the pods of the engine `main` restart."""
    return dict(manifests(answer)["model-serving-main"]["spec"]["leaderWorkerTemplate"])


def groups_named(answer: Answer) -> set[str]:
    """Return the PodGroups that pods of the engine `main` name, "" for a template that names none."""
    parts = pods_of(answer)
    specs = (parts[template]["spec"] for template in ("leaderTemplate", "workerTemplate"))
    return {spec.get("schedulingGroup", {}).get("podGroupName", "") for spec in specs}


def groups_made(answer: Answer) -> dict[str, Plain]:
    """Return the PodGroups that are composed, by name."""
    made = (manifest for manifest in manifests(answer).values() if manifest["kind"] == "PodGroup")
    return {manifest["metadata"]["name"]: manifest for manifest in made}


def test_all_pods_of_a_gang_name_one_group_that_wants_all_of_them() -> None:
    answer = run(ON)
    (name,) = groups_named(answer)
    assert groups_made(answer) == {
        name: {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
        }
    }
    assert run(ON.but(observed=applied(answer))).desired == answer.desired
    assert run(ON.but(observed=applied(answer))).settled


def test_the_name_of_a_group_follows_from_its_pods_in_every_release() -> None:
    """Another name for the same pods is another template: an upgrade would restart the gang."""
    answer = run(ON)
    (name,) = groups_named(answer)
    parts = copy.deepcopy(pods_of(answer))
    templates = [parts["leaderTemplate"], parts["workerTemplate"]]
    for template in templates:
        del template["spec"]["schedulingGroup"]
    digest = digest_of({"size": 3, "templates": templates})[:8]
    assert name.startswith(f"my-model-5ab63-main-gang-{digest}-")


def test_the_group_has_the_priority_of_its_pods() -> None:
    """A scheduler preempts for a group by the priority of that, and not by its pods'."""
    scheduling = {"gangs": "PodGroup", "priorityClassName": "serving"}
    (made,) = groups_made(run(ON.but(cluster=cluster(scheduling=scheduling)))).values()
    assert made["spec"]["priorityClassName"] == "serving"


@pytest.mark.parametrize(
    ("scene", "reason"),
    [
        (OFF, "it is opt-in"),
        (ON.but(replica=replica(engine())), "a pod alone comes up whole"),
        (ON.but(replica=replica(gang("main", copies=2))), "one group would bind both copies together"),
        (
            Scene(ON_KSERVE, cluster(stack="KServe", scheduling={"gangs": "PodGroup"})),
            "KServe writes the pods",
        ),
    ],
)
def test_other_pods_name_none(scene: Scene, reason: str) -> None:
    answer = run(scene)
    assert any(key.startswith("model-serving") for key in answer.desired), "else it would prove nothing"
    assert not groups_made(answer), reason
    assert "schedulingGroup" not in str(answer.desired), reason


def test_a_gang_of_several_copies_says_that_nothing_binds_its_groups_together() -> None:
    several = replica(gang("one"), gang("two", copies=2), gang("three", copies=3))
    scene = ON.but(replica=several)
    said = run(scene.but(observed=applied(run(scene)))).conditions["ModelAccepted"]
    assert said[:2] == (True, "Accepted")
    assert said[2].endswith("may hold devices and wait: two, three")
    reserved = ON.but(replica=replica(gang("two", copies=2, metadata={"labels": {"modelplane.ai/x": "y"}})))
    said = run(reserved.but(observed=applied(run(reserved)))).conditions["ModelAccepted"]
    assert said[2].startswith("Reserved keys are left out")
    assert said[2].endswith(
        "; One PodGroup cannot bind several copies, so a group of these may hold devices and wait: two"
    )
    silent = OFF.but(replica=several)
    assert run(silent.but(observed=applied(run(silent)))).conditions["ModelAccepted"][2] == ""


@pytest.mark.parametrize(("before", "after"), [(OFF, ON), (ON, OFF)], ids=["on", "off"])
def test_switching_it_restarts_nothing_and_the_next_edit_takes_it_over(before: Scene, after: Scene) -> None:
    first = run(before)
    switched = after.but(observed=applied(first))
    assert run(switched).desired == first.desired
    unsized = copy.deepcopy(switched.observed)
    del unsized["model-serving-main"]["spec"]["forProvider"]["manifest"]["spec"]["leaderWorkerTemplate"][
        "size"
    ]
    silent = run(switched.but(observed=unsized))
    assert groups_named(silent) == groups_named(first), "a size that is not stated has not changed"
    scaled = run(switched.edited(engines=[gang("main", nodes=2, copies=4)]))
    assert pods_of(scaled) == pods_of(first), "copies restart no pod"
    assert groups_made(scaled) == groups_made(first)
    edited = run(switched.edited(engines=[gang("main", nodes=2, image="vllm:v2")]))
    assert groups_named(edited) != groups_named(first)
    assert groups_named(edited) - {""} <= groups_made(edited).keys()


@pytest.mark.parametrize(
    ("after", "wanted"),
    [(gang("main", nodes=2, image="vllm:v2"), 3), (gang("main", nodes=1), 2), (gang("main", nodes=4), 5)],
    ids=["an image", "fewer workers", "more workers"],
)
def test_an_edit_that_restarts_pods_makes_another_group_and_the_old_one_stays_until_all_run_it(
    after: Plain, wanted: int
) -> None:
    """In the group of before, pods on their way out count, and would let one new pod be bound alone."""
    first = run(ON)
    scene = ON.edited(engines=[after])
    edited = run(scene.but(observed=applied(first)))
    (old,), (new,) = groups_named(first), groups_named(edited)
    assert old != new
    made = groups_made(edited)
    assert made.keys() == {old, new}
    assert made[old] == groups_made(first)[old]
    assert made[new]["spec"]["schedulingPolicy"]["gang"]["minCount"] == wanted
    updating = applied(edited)
    updating["model-serving-main"]["status"]["atProvider"]["manifest"]["status"]["updatedReplicas"] = 0
    assert groups_made(run(scene.but(observed=updating))).keys() == {old, new}
    done = run(scene.but(observed=applied(edited)))
    assert groups_made(done).keys() == {new}
    assert groups_named(done) == {new}


def test_an_edit_of_workers_alone_takes_over_what_was_switched_on() -> None:
    scene = ON.but(observed=applied(run(OFF))).edited(engines=[gang("main", nodes=4)])
    (name,) = groups_named(run(scene))
    assert name


def test_a_gang_that_becomes_several_names_none_from_its_next_edit_on() -> None:
    first = run(ON)
    scaled = ON.edited(engines=[gang("main", nodes=2, copies=2)])
    second = run(scaled.but(observed=applied(first)))
    assert pods_of(second) == pods_of(first)
    edited = scaled.edited(engines=[gang("main", nodes=2, copies=2, image="vllm:v2")])
    third = run(edited.but(observed=applied(second)))
    assert groups_named(third) == {""}
    alone = run(ON.edited(engines=[gang("main", nodes=2, image="vllm:v3")]).but(observed=applied(third)))
    assert groups_named(alone) == groups_made(alone).keys() - groups_made(third).keys() != {""}


def test_a_group_leaves_with_its_engine() -> None:
    scene = ON.but(replica=replica(gang("main"), gang("other")))
    first = run(scene)
    left = run(scene.edited(engines=[gang("main")]).but(observed=applied(first)))
    assert groups_made(left).keys() == groups_named(left)


REFUSED = (
    "create failed: cannot apply object: failed to create typed patch object: "
    ".spec.leaderWorkerTemplate.workerTemplate.spec.schedulingGroup: field not declared in schema"
)


def test_what_refuses_the_field_says_so_and_gets_the_gang_without_it_once_it_is_switched_off() -> None:
    first = run(ON)
    refused = applied(first, "nothing")
    synced = refused["model-serving-main"]["status"]["conditions"][0]
    synced |= {"status": "False", "reason": "ReconcileError", "message": REFUSED}
    answer = run(ON.but(observed=refused))
    assert answer.desired == first.desired, "it is what the cluster's declaration asks for"
    assert "schedulingGroup" in answer.conditions["ModelAccepted"][2]
    assert groups_named(run(OFF.but(observed=refused))) == {""}


def test_what_drops_the_field_is_said_and_switching_it_off_changes_nothing_there() -> None:
    """Where a provider applies as clients do, an API server drops what the CRD of 0.8 has not."""
    first = run(ON)
    dropped = applied(first)
    there = dropped["model-serving-main"]["status"]["atProvider"]["manifest"]["spec"]["leaderWorkerTemplate"]
    for template in ("leaderTemplate", "workerTemplate"):
        del there[template]["spec"]["schedulingGroup"]
    answer = run(ON.but(observed=dropped))
    assert answer.desired == first.desired
    assert "drop schedulingGroup" in answer.conditions["ModelUpdated"][2]
    assert answer.conditions["ModelReady"][0], "it serves as it would without"
    assert pods_of(run(OFF.but(observed=dropped))) == there
    dropped["model-serving-main"]["metadata"]["generation"] = 2
    dropped["model-serving-main"]["status"]["conditions"][0]["observedGeneration"] = 1
    late = run(ON.but(observed=dropped)).conditions["ModelUpdated"]
    assert "drop" not in late[2], "what the provider has not applied yet tells nothing"


def test_switching_it_off_before_the_provider_has_acted_on_an_edit_restarts_no_pod_twice() -> None:
    """What the provider saw last has no group yet; it may have applied the one that has."""
    first, scene = run(OFF), ON.edited(engines=[gang("main", nodes=2, image="vllm:v2")])
    edited = run(scene.but(observed=applied(first)))
    seen, before = applied(edited), applied(first)["model-serving-main"]
    workload = seen["model-serving-main"]
    workload["metadata"]["generation"] = 2
    workload["status"]["conditions"][0]["observedGeneration"] = 1
    workload["status"]["atProvider"] = before["status"]["atProvider"]
    switched = run(scene.but(cluster=OFF.cluster, observed=seen))
    assert pods_of(switched) == pods_of(edited)
    assert groups_made(switched) == groups_made(edited)


def test_a_group_that_is_refused_is_said_and_takes_no_model_out_of_service() -> None:
    first = run(ON)
    seen = applied(first)
    (key,) = (key for key in seen if key.startswith("pod-group"))
    synced = seen[key]["status"]["conditions"][0]
    message = "observe failed: cannot get object: unable to retrieve the complete list of server APIs: "
    message += "scheduling.k8s.io/v1beta1: no matches for scheduling.k8s.io/v1beta1, Resource="
    synced |= {"status": "False", "reason": "ReconcileError", "message": message}
    conditions = run(ON.but(observed=seen)).conditions
    assert conditions["ModelAccepted"][2].startswith("Not applied: ")
    assert "PodGroup" in conditions["ModelAccepted"][2]
    assert conditions["ModelReady"][0]


def test_its_objects_are_where_the_replicas_pods_are() -> None:
    scene = ON.but(
        input=config(remoteNamespace="Same"),
        replica=replica(engine("main", member("Leader"), member("Worker"))),
    )
    answer = run(scene)
    (made,) = groups_made(answer).values()
    assert made["metadata"]["namespace"] == manifests(answer)["model-serving-main"]["metadata"]["namespace"]
