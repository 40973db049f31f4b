"""The whole chain, with provider-kubernetes itself: from a bare cluster to pods, and back to none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.live import fleet, workload
from tests.live.plane import condition, is_true, name_of, until

if TYPE_CHECKING:
    from tests.live.day import Day
    from tests.live.plane import ControlPlane

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("cluster_controllers")]

Plain = dict[str, Any]

NAMESPACE, CLUSTER, GROUP = "chain", "byo-1", "byo"
REPLICAS, NODES = 2, 3
PATIENCE = 120.0


MODEL = fleet.small_deployment("model", GROUP, REPLICAS, NAMESPACE)
BROKEN = fleet.small_deployment("broken", GROUP, 1, NAMESPACE)


def current(plane: ControlPlane) -> Plain:
    cluster = plane.get("InferenceCluster", CLUSTER)
    assert cluster is not None, f"{CLUSTER} is gone"
    return cluster


def workloads(plane: ControlPlane) -> list[Plain]:
    """What serves, without the endpoint pickers."""
    listed = plane.list("Deployment", workload.REMOTE)
    return [deployment for deployment in listed if not name_of(deployment).endswith("-epp")]


def uids(manifests: list[Plain]) -> set[str]:
    return {plain["metadata"]["uid"] for plain in manifests}


def test_a_cluster_publishes_what_it_has(living: ControlPlane, day: Day) -> None:
    living.apply(fleet.applicable(workload.declared_class()))
    with day.step("declare a cluster by its kubeconfig", "pools and gateway published, Ready"):
        living.apply(workload.declared_cluster(CLUSTER, GROUP, NODES))
        until(lambda: is_true(current(living), "Ready"), f"{CLUSTER} Ready", PATIENCE)
    status = current(living)["status"]
    assert [(pool["name"], pool["nodes"]) for pool in status["gpuPools"]] == [("l4", NODES)]
    assert status["gateway"]["address"] == workload.ADDRESS


def test_a_deployment_becomes_pods(living: ControlPlane, day: Day) -> None:
    fleet.create_namespace(living, NAMESPACE)
    with day.step(
        f"create a deployment of {REPLICAS} replicas there", "pods on the cluster, an endpoint each"
    ):
        living.apply(MODEL)
        until(lambda: len(fleet.endpoints(living, MODEL)) == REPLICAS, "an endpoint of each", PATIENCE)
    assert len(workloads(living)) == REPLICAS
    assert len(living.list("ResourceClaimTemplate", workload.REMOTE)) == REPLICAS
    routes = living.list("HTTPRoute", workload.REMOTE)
    assert list(map(name_of, routes)) == list(map(name_of, fleet.replicas(living, MODEL)))
    assert len(claiming(living)) == REPLICAS


def test_a_replica_says_why_it_has_no_pods(living: ControlPlane, day: Day) -> None:
    """Nobody schedules here: the message is written to the pod as a scheduler would."""
    engine = BROKEN["spec"]["template"]["spec"]["engines"][0]
    engine["members"][0]["template"]["spec"]["containers"][0]["image"] = workload.BAD_IMAGE
    with day.step("create one whose pods find no devices", "Unschedulable, in the scheduler's words"):
        living.apply(BROKEN)
        (replica,) = fleet.until_placed(living, BROKEN, 1)
        until(lambda: workload.pods(living, workload.BAD_IMAGE), "its pod", PATIENCE)
        until(lambda: said(living, replica) == workload.NO_DEVICES, "what the scheduler said", PATIENCE)
    living.kubectl("delete", "modeldeployment", name_of(BROKEN), "-n", NAMESPACE, "--wait=false")
    until(lambda: len(workloads(living)) == REPLICAS, "its workload is gone", PATIENCE)


def test_a_namesake_in_another_namespace_touches_no_pods(living: ControlPlane, day: Day) -> None:
    """As of a deployment of this name that was created at the same time: by hand, it is so every time."""
    before = uids(workloads(living))
    namesake = fleet.applicable(fleet.replicas(living, MODEL)[0])
    namesake["metadata"]["namespace"] = "namesake"
    namesake["spec"].pop("crossplane", None)
    fleet.create_namespace(living, "namesake")
    with day.step("create a replica of the same name in another namespace", "NameTaken, no pod is touched"):
        living.apply(namesake)
        until(lambda: accepted(living, namesake) == "NameTaken", "NameTaken", PATIENCE)
    living.kubectl("delete", "modelreplica", name_of(namesake), "-n", "namesake")
    assert uids(workloads(living)) == before
    fleet.leave(living, "namesake")


def accepted(plane: ControlPlane, replica: Plain) -> str:
    observed = plane.get("ModelReplica", name_of(replica), replica["metadata"]["namespace"])
    return str(condition(observed, "ModelAccepted").get("reason", ""))


def said(plane: ControlPlane, replica: Plain) -> str:
    observed = plane.get("ModelReplica", name_of(replica), NAMESPACE)
    return str(condition(observed, "PodsScheduled").get("message", ""))


def test_an_edit_reaches_the_pods(living: ControlPlane, day: Day) -> None:
    before = uids(fleet.replicas(living, MODEL)), uids(workloads(living))
    (engine,) = MODEL["spec"]["template"]["spec"]["engines"]
    container = engine["members"][0]["template"]["spec"]["containers"][0]
    image = container["image"] = f"{container['image']}-next"
    with day.step("edit the image there", "the pods run it, the replicas are the same"):
        living.apply(MODEL)
        until(lambda: len(workload.pods(living, image)) == REPLICAS, "every pod runs it", PATIENCE)
    assert (uids(fleet.replicas(living, MODEL)), uids(workloads(living))) == before
    fleet.until_reason(living, MODEL, "ReplicasCreated")


def claiming(plane: ControlPlane) -> list[Plain]:
    return [pod for pod in workload.pods(plane) if pod["spec"].get("resourceClaims")]


def composed(plane: ControlPlane) -> set[str]:
    """The Objects of the cluster and of its replicas; members of collections come and go with their pods."""
    owners = {CLUSTER, name_of(MODEL)}
    listed = plane.list("Object")
    labels = [(plain, plain["metadata"].get("labels", {})) for plain in listed]
    return uids([plain for plain, carried in labels if carried.get("crossplane.io/composite") in owners])


def test_a_withdrawn_class_takes_nothing_away(living: ControlPlane, day: Day) -> None:
    """v0.3.1 withdraws the ProviderConfig, and every workload of the cluster with it."""
    before = uids(workloads(living)), composed(living), current(living)["status"]["gpuPools"]
    assert len(before[1]) > REPLICAS, "Objects of the cluster and of every replica"
    with day.step("delete the class of a cluster that serves", "ClassMissing, every pod and Object stays"):
        living.kubectl("delete", "inferenceclass", name_of(workload.declared_class()))
        living.kubectl("annotate", "inferencecluster", CLUSTER, "crossplane.io/reconcile-requested-at=1")
        until(lambda: reason(living, "PoolsPublished") == "ClassMissing", "PoolsPublished ClassMissing")
    assert (
        uids(workloads(living)),
        composed(living),
        current(living)["status"]["gpuPools"],
    ) == before
    assert len(claiming(living)) == REPLICAS
    living.apply(fleet.applicable(workload.declared_class()))


def reason(plane: ControlPlane, kind: str) -> str:
    return str(condition(current(plane), kind).get("reason", ""))


def test_a_deleted_deployment_leaves_nothing_on_the_cluster(living: ControlPlane, day: Day) -> None:
    with day.step("delete the deployment there", "no pod, route or claim of it is left"):
        living.kubectl("delete", "modeldeployment", name_of(MODEL), "-n", NAMESPACE, "--wait=false")
        until(lambda: not workload.remains(living, NAMESPACE), "nothing remains", PATIENCE)
        until(lambda: not workload.pods(living), "no pod remains", PATIENCE)


def test_a_deleted_cluster_leaves_no_provider_config(living: ControlPlane) -> None:
    living.kubectl("delete", "inferencecluster", CLUSTER, "--wait=false")
    until(lambda: living.get("InferenceCluster", CLUSTER) is None, "the cluster gone", PATIENCE)
    until(lambda: not living.list("ClusterProviderConfig"), "its provider configuration gone", PATIENCE)
    assert not living.list("Object"), "what looked at the cluster is gone"
    fleet.leave(living, NAMESPACE)
