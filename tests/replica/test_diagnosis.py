"""Why a replica is pending: its pods are looked at again whenever there may be something new to see."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from function.boundary import Requirement
from function.replica.compose import POLL_INTERVAL
from function.replica.snapshot import declared
from tests.replica.build import (
    API,
    CLUSTER,
    NAMESPACE,
    PROVIDER_CONFIG,
    REPLICA,
    Scene,
    config,
    engine,
    gang,
    replica,
    run,
)
from tests.replica.provider import applied

if TYPE_CHECKING:
    from collections.abc import Mapping

Plain = dict[str, Any]

SCENE = Scene(replica(engine("a"), gang("b")), input=config(diagnose="Pods"))


def collections(observed: Mapping[str, Plain]) -> dict[str, Plain]:
    desired = run(SCENE.but(observed=observed)).desired
    return {key: resource["spec"] for key, resource in desired.items() if key.startswith("pods-")}


def template(spec: Plain) -> Plain:
    return dict(spec["objectTemplate"]["metadata"]["annotations"])


def test_a_collection_looks_again_when_its_workload_reports_other_copies() -> None:
    """It comes before the pods, and its provider lists them only when it changes, or after ten minutes."""
    before = applied(run(SCENE), "created")
    after = copy.deepcopy(before)
    for resource in after.values():
        remote = resource.get("status", {}).get("atProvider", {}).get("manifest", {})
        if remote.get("kind") in ("Deployment", "LeaderWorkerSet"):
            remote["status"] = {**remote["status"], "replicas": 1}
    early, late = collections(before), collections(after)
    assert early.keys() == late.keys() == {"pods-a", "pods-b"}
    for key in early:
        assert template(early[key]) != template(late[key]), key
        assert early[key]["observeObjects"] == late[key]["observeObjects"], "it selects the same pods"


def test_a_collection_is_of_the_pods_of_one_engine_that_does_not_serve_in_full() -> None:
    """Of all others it would show the pods, and each of their writes would be an event of the replica."""
    seen = applied(run(SCENE), model_serving_a="started")
    ((key, spec),) = collections(seen).items()
    made = seen["model-serving-a"]["spec"]["forProvider"]["manifest"]
    selector = {"matchLabels": made["spec"]["selector"]["matchLabels"]}
    pods = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "selector": selector}
    assert (key, spec["observeObjects"]) == ("pods-a", pods)
    assert spec["providerConfigRef"]["name"] == PROVIDER_CONFIG
    partly = applied(run(SCENE.edited(engines=[engine("a", copies=2), gang("b")])))
    made = partly["model-serving-a"]["status"]["atProvider"]["manifest"]
    made["status"]["availableReplicas"] = 1
    scene = SCENE.edited(engines=[engine("a", copies=2), gang("b")]).but(observed=partly)
    assert "pods-a" in run(scene).desired, "it takes requests, and one copy is missing"


def test_a_collection_changes_only_when_copies_do() -> None:
    """Every write to it is an event of the replica."""
    before = applied(run(SCENE), "started")
    after = copy.deepcopy(before)
    for resource in after.values():
        resource["status"]["conditions"][0]["message"] = "seen again"
    assert collections(before) == collections(after)


def test_members_are_looked_at_within_seconds() -> None:
    for spec in collections(applied(run(SCENE), "created")).values():
        assert POLL_INTERVAL.items() <= template(spec).items()


def observed_pod(spec: Plain, status: Plain, **metadata: str) -> Plain:
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", **metadata}}
    return {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "metadata": {"name": "p", "namespace": "ml-team"},
        "spec": {"forProvider": {"manifest": head}},
        "status": {"atProvider": {"manifest": {**head, "spec": spec, "status": status}}},
    }


def diagnosed(pod: Plain) -> dict[str, tuple[bool, str, str]]:
    """Return the conditions of the replica while its pods are as this one."""
    seen = applied(run(SCENE), "created")
    scene = SCENE.but(observed=applied(run(SCENE.but(observed=seen)), "created"))
    return dict(run(scene.but(more={"pods-a": [pod]})).conditions)


def test_the_gates_that_hold_a_pod_are_named() -> None:
    """As Kueue's: the API server says only that there are some."""
    blocked = "Scheduling is blocked due to non-empty scheduling gates"
    said = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": blocked}
    gates = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}, {"name": "quota"}]}
    conditions = diagnosed(observed_pod(gates, {"conditions": [said]}))
    wanted = (False, "Unschedulable", f"{blocked}: kueue.x-k8s.io/admission, quota")
    assert conditions["ModelReady"] == conditions["PodsScheduled"] == wanted


def waiting(reason: str, message: str = "", **more: Any) -> Plain:
    return {"name": "engine", "state": {"waiting": {"reason": reason, "message": message}}, **more}


KILLED: Plain = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
SILENT: Plain = {"terminated": {"exitCode": 1}}
NO_FILE = 'exec: "vllm": executable file not found in $PATH'
UNSTARTED: Plain = {"terminated": {"exitCode": 128, "reason": "StartError", "message": NO_FILE}}
NOT_STARTED = f"StartError; {NO_FILE}"
STARTS = "Not serving yet: a, b"
CONTAINERS: list[tuple[str, Plain, str]] = [
    ("an image", waiting("ErrImagePull", "401 Unauthorized"), "its image cannot be pulled"),
    ("the next try: no other text", waiting("ImagePullBackOff", "Back-off"), "its image cannot be pulled"),
    (
        "a Secret",
        waiting("CreateContainerConfigError", 'secret "token" not found'),
        'CreateContainerConfigError; secret "token" not found',
    ),
    ("it ended", {"name": "engine", "state": KILLED}, "it ended with exit code 137 (OOMKilled)"),
    (
        "between two tries: no other text",
        waiting("CrashLoopBackOff", "back-off 40s", lastState=KILLED),
        "it ended with exit code 137 (OOMKilled)",
    ),
    (
        "the next try runs",
        {"name": "engine", "ready": False, "state": {"running": {}}, "lastState": KILLED},
        "it ended with exit code 137 (OOMKilled)",
    ),
    ("the first try", waiting("RunContainerError", NO_FILE), f"RunContainerError; {NO_FILE}"),
    ("a process that is not there", waiting("RunContainerError", NO_FILE, lastState=UNSTARTED), NOT_STARTED),
    (
        "between two tries of it",
        waiting("CrashLoopBackOff", "back-off 40s", lastState=UNSTARTED),
        NOT_STARTED,
    ),
    ("no reason", waiting("CrashLoopBackOff", lastState=SILENT), "it ended with exit code 1 (no reason)"),
    ("it is ready again", {"name": "engine", "ready": True, "state": {}, "lastState": KILLED}, ""),
    ("it starts", waiting("ContainerCreating"), ""),
    ("it loads weights", {"name": "engine", "ready": False, "state": {"running": {}}}, ""),
    ("it did what it had to", {"name": "loader", "state": {"terminated": {"exitCode": 0}}}, ""),
    ("nobody can read it", {"name": 7, "state": "?", "lastState": {"terminated": {"exitCode": "x"}}}, ""),
]


@pytest.mark.parametrize("key", ["containerStatuses", "initContainerStatuses"])
@pytest.mark.parametrize(
    ("status", "fault"), [row[1:] for row in CONTAINERS], ids=[row[0] for row in CONTAINERS]
)
def test_a_container_that_cannot_start_is_named_with_why(status: Plain, fault: str, key: str) -> None:
    conditions = diagnosed(observed_pod({}, {key: [status]}))
    text = f"{STARTS}; Pod p, container engine: {fault}" if fault else STARTS
    assert conditions["ModelReady"] == (False, "ModelStarting", text)
    assert conditions["ModelUpdated"][2].endswith(text.removeprefix(STARTS))
    leaves = observed_pod({}, {key: [status]}, deletionTimestamp="2026-03-01T09:00:00Z")
    assert diagnosed(leaves)["ModelReady"][2] == STARTS, "a pod on its way out"


def test_a_rollout_that_stalled_says_which_container_cannot_start() -> None:
    """Pods of before serve on, and what holds the new ones up is their first container."""
    seen = applied(run(SCENE))
    stalled = {
        "type": "Progressing",
        "status": "False",
        "reason": "ProgressDeadlineExceeded",
        "message": "late",
    }
    status = seen["model-serving-a"]["status"]["atProvider"]["manifest"]["status"]
    status |= {"updatedReplicas": 0, "conditions": [{"type": "Available", "status": "True"}, stalled]}
    pod = observed_pod({}, {"containerStatuses": [waiting("ErrImagePull")]})
    said = run(SCENE.but(observed=seen, more={"pods-a": [pod]})).conditions["ModelUpdated"]
    text = "a: late; Pod p, container engine: its image cannot be pulled"
    assert said == (False, "RolloutStalled", text)


def test_of_several_pods_the_first_by_name_is_named() -> None:
    """In whatever order they are delivered: another text would be a write."""
    seen = applied(run(SCENE), "created")
    pods = [observed_pod({}, {"containerStatuses": [waiting("ErrImagePull")]}, name=name) for name in "qp"]
    said = [run(SCENE.but(observed=seen, more={"pods-a": some})).conditions for some in (pods, pods[::-1])]
    assert said[0] == said[1]
    assert "Pod p, container engine: its image" in said[0]["ModelReady"][2]


UNSEEN = observed_pod({}, {})
NO_PODS = [
    ("one that was not looked at yet", UNSEEN | {"status": {}}),
    ("another kind", UNSEEN | {"kind": "Other"}),
]


@pytest.mark.parametrize(("reason", "pod"), NO_PODS, ids=[case[0] for case in NO_PODS])
def test_what_is_no_pod_that_was_seen_says_nothing_of_pods(reason: str, pod: Plain) -> None:
    assert diagnosed(pod)["PodsScheduled"][:2] == (False, "WaitingForPods"), reason
    assert diagnosed(UNSEEN)["PodsScheduled"][:2] == (True, "Scheduled"), "a pod that nothing holds"


COMPOSITE = replica(engine("a") | {"adapters": {"slots": 2, "maxRank": 8}}, gang("b"))
ASKING = Scene(COMPOSITE, input=config(diagnose="Pods"), more={"adapters": []})
ASKING = ASKING.but(observed=applied(run(ASKING), "started"))
NAMELESS = {**ASKING.observed["pods-a"], "metadata": {}}


@pytest.mark.parametrize(
    ("reason", "scene", "names"),
    [
        ("whatever was delivered", ASKING.but(cluster=None), ["cluster", "adapters", "pods-a", "pods-b"]),
        ("no cluster is named", ASKING.edited(clusterName=""), ["adapters", "pods-a", "pods-b"]),
        ("no engine has room", ASKING.but(replica=replica()), ["cluster", "pods-a", "pods-b"]),
        ("nobody asked for pods", ASKING.but(input=None), ["cluster", "adapters"]),
        ("nothing is observed", ASKING.but(observed={}), ["cluster", "adapters"]),
        (
            "members are found by the name of a collection, and only of one",
            ASKING.but(observed={"pods-a": NAMELESS, "pods-b": ASKING.observed["model-serving-b"]}),
            ["cluster", "adapters"],
        ),
        (
            "under the key of something else no collection stands",
            ASKING.but(observed={"epp": ASKING.observed["pods-a"]}),
            ["cluster", "adapters"],
        ),
    ],
)
def test_all_that_a_replica_stands_on_is_asked_for(reason: str, scene: Scene, names: list[str]) -> None:
    """Pods change too often to wake anybody; the others are watched."""
    wanted = {
        "cluster": Requirement("cluster", API, "InferenceCluster", match_name=CLUSTER),
        "adapters": Requirement(
            *("adapters", API, "ModelAdapterPlacement", None, NAMESPACE),
            match_labels=(("modelplane.ai/replica", REPLICA),),
        ),
    }
    for key in ("pods-a", "pods-b"):
        label = ("kubernetes.crossplane.io/owned-by-collection", f"observed-{key}")
        of_provider = ("kubernetes.m.crossplane.io/v1alpha1", "Object", None, NAMESPACE)
        wanted[key] = Requirement(key, *of_provider, match_labels=(label,))
    asked = declared(scene.asked.request())
    assert asked == tuple(wanted[name] for name in names), reason
    assert [one.watched for one in asked] == [not name.startswith("pods-") for name in names], reason
