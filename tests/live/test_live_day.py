"""The day of a user, in order: each step stands on the one before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from example import caller
from tests.live import fleet, install
from tests.live.plane import Refused, controller, is_true, name_of, path, until
from tests.schema.bad import BAD, GOOD

if TYPE_CHECKING:
    from tests.live.day import Day
    from tests.live.plane import ControlPlane, Plain

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("unasked")]
"""What takes a minute by itself is begun now, and looked at by the tests of the fleet."""

MODEL = fleet.example_deployment("small-model")
NAMESPACE = MODEL["metadata"]["namespace"]
SERVED = "modelplane.ai/"
"""The group that the API server knows. Inputs of the function are of another: Crossplane does not install
what a Function package holds."""
NEWER = "vllm/vllm-openai:v0.12.0"


def uids(manifests: list[Plain]) -> set[str]:
    return {manifest["metadata"]["uid"] for manifest in manifests}


def images(manifests: list[Plain]) -> set[str]:
    members = [
        member
        for manifest in manifests
        for engine in manifest["spec"]["engines"]
        for member in engine["members"]
    ]
    return {one_member["template"]["spec"]["containers"][0]["image"] for one_member in members}


def edited(plain: Plain, image: str = NEWER, architecture: str = "Ada Lovelace") -> Plain:
    """A deployment with another image, and perhaps another architecture asked for."""
    changed: Plain = json.loads(json.dumps(plain).replace("Ada Lovelace", architecture))
    member = changed["spec"]["template"]["spec"]["engines"][0]["members"][0]
    member["template"]["spec"]["containers"][0]["image"] = image
    return changed


def serving(plane: ControlPlane, name: str, replicas: int = 2) -> Plain:
    """Create a deployment and make it serve.

    Each step has one of its own: the circuit breaker counts the events of each deployment, and a
    person does not do all of this within seconds.
    """
    made = fleet.small_deployment(name, "day", replicas, NAMESPACE)
    plane.apply(made)
    fleet.until_placed(plane, made, replicas)
    fleet.until_serving(plane, made)
    return made


def test_a_fleet_is_published(living: ControlPlane, day: Day) -> None:
    with day.step("publish the example fleet", "8 clusters with their status"):
        fleet.publish_example(living)
    names = {
        name_of(manifest) for manifest in fleet.example_fleet() if manifest["kind"] == "InferenceCluster"
    }
    manifests = [manifest for manifest in living.list("InferenceCluster") if name_of(manifest) in names]
    assert len(manifests) == 8
    assert all(manifest["status"]["gpuPools"] for manifest in manifests)
    fleet.create_fleet(living, [fleet.small_cluster(f"day-{number}", "day", nodes=8) for number in (1, 2)])


def test_bad_objects_are_refused(living: ControlPlane, day: Day) -> None:
    fleet.create_namespace(living, NAMESPACE)
    bad = [
        document
        for document in BAD
        if document.old is None and document.plain["apiVersion"].startswith(SERVED)
    ]
    good = [document for document in GOOD if document.plain["apiVersion"].startswith(SERVED)]
    with day.step(f"{len(bad)} bad objects, {len(good)} good ones", "bad ones refused, good ones accepted"):
        assert [rejection.reason for rejection in bad if accepted(living, rejection.plain)] == []
        assert [rejection.reason for rejection in good if not accepted(living, rejection.plain)] == []


def accepted(plane: ControlPlane, plain: Plain) -> bool:
    """Whether the API server would take an object."""
    namespace = "" if plain["kind"].startswith("Inference") else NAMESPACE
    where = path(plain["kind"], namespace=namespace)
    try:
        taken = plane.request("POST", f"{where}?dryRun=All&fieldValidation=Strict", plain)
    except Refused:
        return False
    assert taken is not None, f"no such kind: {where}"
    return True


def test_replicas_are_placed(living: ControlPlane, day: Day) -> None:
    with day.step("create a deployment of 3 replicas", "3 ModelReplicas, ReplicasCreated"):
        living.shell("\n".join(install.commands("install.md", "apply -f example/small-model")))
        manifests = fleet.until_placed(living, MODEL, 3)
        fleet.until_reason(living, MODEL, "ReplicasCreated")
    assert fleet.clusters_of(manifests) == ["eks-us-east-1", "gke-europe-west4", "gke-europe-west4"]


def test_traffic_reaches_ready_replicas(living: ControlPlane, day: Day) -> None:
    with day.step("replicas and endpoints turn Ready", "an endpoint each, AllReplicasReady, Ready"):
        fleet.until_serving(living, MODEL)
        until(lambda: is_true(fleet.current(living, MODEL), "Ready"), "the deployment Ready")


def need_scale(living: ControlPlane) -> None:
    """Skip where Crossplane drops the scale subresource of an XRD."""
    if not install.knows_scale(living):
        pytest.skip("this Crossplane has no scale subresource: before 2.3")


def test_scale_up_and_down(living: ControlPlane, day: Day) -> None:
    need_scale(living)
    model = serving(living, "scaled")
    before = uids(fleet.replicas(living, model))
    scale = ("scale", "modeldeployment", name_of(model), "-n", NAMESPACE)
    with day.step("kubectl scale from 2 to 4", "2 more replicas"):
        living.kubectl(*scale, "--replicas=4")
        more = fleet.until_placed(living, model, 4)
    assert before < uids(more)
    with day.step("kubectl scale from 4 to 1", "3 replicas fewer"):
        living.kubectl(*scale, "--replicas=1")
        left = fleet.until_placed(living, model, 1)
    assert uids(left) < uids(more)


def test_an_autoscaler_is_served(living: ControlPlane, day: Day) -> None:
    """Kubernetes' own HPA controller gets past the selector, and stops only at the metric nobody serves."""
    need_scale(living)
    model = serving(living, "autoscaled")
    scale = living.request("GET", f"{path('ModelDeployment', name_of(model), NAMESPACE)}/scale")
    assert scale is not None
    assert scale["spec"]["replicas"] == scale["status"]["replicas"] == 2
    assert scale["status"]["selector"] == fleet.labels_of(model)
    assert len(living.list("ModelReplica", NAMESPACE, scale["status"]["selector"])) == 2
    autoscaler = next(iter(caller.objects(caller.HERE / "autoscale" / "hpa.yaml")))
    autoscaler["metadata"] = {"name": name_of(model), "namespace": NAMESPACE}
    autoscaler["spec"]["scaleTargetRef"]["name"] = name_of(model)
    with (
        controller(living, "horizontal-pod-autoscaler-controller"),
        day.step("an HPA on a deployment", "AbleToScale; it asks for its metric"),
    ):
        living.apply(autoscaler)
        said = until(lambda: autoscaling(living, name_of(model)), "the HPA controller's verdict", 120)
    assert said["AbleToScale"] == ("True", "SucceededGetScale")
    assert said["ScalingActive"] == ("False", "FailedGetExternalMetric"), "not InvalidSelector"


def autoscaling(living: ControlPlane, name: str) -> dict[str, tuple[str, str]]:
    """The conditions of an HPA: status and reason by type; empty while its metric was not asked for."""
    autoscaler = living.get("HorizontalPodAutoscaler", name, NAMESPACE)
    conditions = ((autoscaler or {}).get("status") or {}).get("conditions") or []
    said = {condition["type"]: (condition["status"], condition["reason"]) for condition in conditions}
    return said if "ScalingActive" in said else {}


def test_an_image_is_edited(living: ControlPlane, day: Day) -> None:
    model = serving(living, "edited")
    before = uids(fleet.replicas(living, model))
    with day.step("edit the image", "every replica has it, none is replaced"):
        living.apply(edited(model))
        until(lambda: images(fleet.replicas(living, model)) == {NEWER}, "the new image in every replica")
    assert uids(fleet.replicas(living, model)) == before


MISTAKES = [
    ("compile", "a selector that does not compile", 'Ada\\" +', "InvalidNodeSelector"),
    ("match", "a selector that nothing satisfies", "Ada Lovelaec", "ReplacementBlocked"),
]


@pytest.mark.parametrize(
    ("name", "mistake", "architecture", "reason"), MISTAKES, ids=[pair[0] for pair in MISTAKES]
)
def test_a_typo_keeps_what_runs_and_is_named(
    living: ControlPlane, day: Day, name: str, mistake: str, architecture: str, reason: str
) -> None:
    model = serving(living, name)
    before = uids(fleet.replicas(living, model))
    with day.step(mistake, f"{reason}, all replicas kept"):
        living.apply(edited(model, NEWER, architecture))
        said = fleet.until_reason(living, model, reason)
    assert said["status"] == "False"
    assert said["message"]
    assert uids(fleet.replicas(living, model)) == before
    with day.step("correct it", "ReplicasCreated"):
        living.apply(edited(model))
        fleet.until_reason(living, model, "ReplicasCreated")
    assert uids(fleet.replicas(living, model)) == before


def test_a_deployment_is_deleted(living: ControlPlane, day: Day) -> None:
    model = serving(living, "deleted")
    with day.step("delete a deployment", "its replicas and endpoints are collected"):
        living.kubectl("delete", "modeldeployment", name_of(model), "-n", NAMESPACE, "--wait=false")
        until(
            lambda: not fleet.replicas(living, model, leaving=True) and not fleet.endpoints(living, model),
            "nothing left of the deployment",
        )


def test_the_namespace_is_deleted(living: ControlPlane, day: Day) -> None:
    with day.step("delete the namespace", "no deployment, replica or endpoint is left"):
        living.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
        until(lambda: living.get("Namespace", NAMESPACE) is None, "the namespace gone", 120)
    for kind in ("ModelDeployment", "ModelReplica", "ModelEndpoint"):
        assert [
            manifest for manifest in living.list(kind) if manifest["metadata"]["namespace"] == NAMESPACE
        ] == []
