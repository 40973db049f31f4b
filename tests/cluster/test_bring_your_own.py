"""The example of clusters that are there already, handler by handler: from kubeconfigs to placed replicas."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from example import caller
from function.boundary import PlainDocument, Request, Response
from function.cluster import handler as clusters
from function.cluster.snapshot import REPLICAS, class_requirement
from function.deployment import handler as deployments
from function.objects import COLLECTION, KIND as OBJECT, OBSERVE
from function.replica import adapters, picker, pods
from tests.cluster.build import LEASE
from tests.replica import build as replicas, generate
from tests.schema.admission import refusals
from tests.schema.crds import schema_of
from tests.support import build

Plain = dict[str, Any]
FOLDER = caller.HERE / "bring-your-own"
CLASSES = {plain["metadata"]["name"]: plain for plain in caller.objects(FOLDER / "classes.yaml")}
CLUSTERS = {plain["metadata"]["name"]: plain for plain in caller.objects(FOLDER / "clusters.yaml")}
(DEPLOYMENT,) = caller.objects(FOLDER / "deployment.yaml")
(COMPOSITION,) = caller.objects(caller.ROOT / "apis" / "inferenceclusters" / "composition.yaml")
INPUT = COMPOSITION["spec"]["pipeline"][0]["input"]


def answer(cluster: Plain, **more: Any) -> Response:
    """Ask about a cluster that was just created."""
    named = {pool["className"] for pool in cluster["spec"]["nodePools"]}
    required = {class_requirement(name): (PlainDocument(CLASSES[name]),) for name in named}
    return clusters.run(Request(PlainDocument(cluster), {}, {**required, REPLICAS: ()}, {**INPUT, **more}))


def running(cluster: Plain, **more: Any) -> Plain:
    """Return the cluster as it stands once Crossplane has applied the answer."""
    status = {**answer(cluster, **more).status, "conditions": [build.condition("Ready", status=True)]}
    return {**cluster, "status": status}


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_is_one_of_the_catalogue(name: str) -> None:
    response = clusters.run_class(Request(PlainDocument(CLASSES[name]), {}, {}))
    assert all(condition.status for condition in response.conditions)


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_cluster_publishes_its_pools_and_becomes_ready(name: str) -> None:
    response = answer(CLUSTERS[name])
    assert not response.unready
    declared = [pool["name"] for pool in CLUSTERS[name]["spec"]["nodePools"]]
    assert [pool["name"] for pool in response.status["gpuPools"]] == declared
    assert refusals(running(CLUSTERS[name]), schema_of("InferenceCluster")) == []


@pytest.mark.parametrize("capacity", ["Replicas", "Published"])
def test_a_replica_is_placed_on_each(capacity: str) -> None:
    charges = {"charges": "Detailed"} if capacity == "Published" else {}
    fleet = tuple(PlainDocument(running(cluster, **charges)) for cluster in CLUSTERS.values())
    required = {"clusters": fleet, "all-replicas": (), "own-replicas": ()}
    response = deployments.run(Request(PlainDocument(DEPLOYMENT), {}, required, {"capacity": capacity}))
    placed = [desired.resource["spec"]["clusterName"] for desired in response.desired.values()]
    assert sorted(placed) == sorted(CLUSTERS)


def test_install_names_the_secrets_that_the_clusters_name() -> None:
    text = (caller.ROOT / "docs" / "install.md").read_text()
    created = dict(re.findall(r"create secret generic (\S+) -n modelplane-system --from-file=(\w+)=", text))
    existing = [cluster["spec"]["cluster"]["existing"]["secretRef"] for cluster in CLUSTERS.values()]
    assert created == {secret["name"]: secret["key"] for secret in existing}


def test_install_names_every_file_of_the_example() -> None:
    text = (caller.ROOT / "docs" / "install.md").read_text()
    named = {Path(path).name for path in re.findall(r"example/bring-your-own/(\S+\.yaml)", text)}
    assert named == {file.name for file in FOLDER.glob("*.yaml")}


def test_install_names_the_images_of_the_pods_that_are_ours() -> None:
    text = (caller.ROOT / "docs" / "install.md").read_text()
    images = (picker.IMAGE, pods.SIDECAR_IMAGE, adapters.LOADER_IMAGE)
    assert [image for image in images if f"`{image}`" not in text] == []


PLURALS = {"DeviceClass": "deviceclasses"}


def access(resource: Plain) -> set[tuple[str, str, str]]:
    """Return what provider-kubernetes does there for an Object or a collection: group, resource, verb."""
    spec = resource["spec"]
    if resource["kind"] == COLLECTION:
        verbs, looked_at = ("get", "list"), spec["observeObjects"]
    elif resource["kind"] == OBJECT:
        policies, looked_at = spec.get("managementPolicies", ["*"]), spec["forProvider"]["manifest"]
        writes = () if policies == [*OBSERVE] else ("list", "watch", "create", "update", "patch")
        verbs = ("get", *writes, *(("delete",) if policies == ["*"] else ()))
    else:
        return set()
    kind, group = looked_at["kind"], looked_at["apiVersion"].rpartition("/")[0]
    return {(group, PLURALS.get(kind, f"{kind.lower()}s"), verb) for verb in verbs}


def ruled(rules: list[Plain]) -> set[tuple[str, str, str]]:
    """Return what rules of RBAC allow: group, resource, verb."""
    return {
        allowed for rule in rules for allowed in product(rule["apiGroups"], rule["resources"], rule["verbs"])
    }


def test_the_permissions_allow_whatever_is_made_and_looked_at() -> None:
    """An Object that may not be applied stays unready, and a Role may grant no more than its maker may do."""
    scenes = [scene(seed) for seed in range(60) for scene in (generate.scene, generate.kserve_scene)]
    composed = [resource for scene in scenes for resource in replicas.run(scene).desired.values()]
    looks = {"publish": "Attributes", "capacity": "Usable", "tenants": "Charge", "heartbeat": LEASE}
    for spec in ({"celVersion": "1.37"}, {"stack": "KServe", "kserve": {"apiVersion": "v1alpha2"}}):
        cluster = {**CLUSTERS["gpu-east"], "spec": {**CLUSTERS["gpu-east"]["spec"], **spec}}
        composed += [desired.resource for desired in answer(cluster, **looks).desired.values()]
    used = set().union(*map(access, composed))
    (role,) = caller.objects(FOLDER / "permissions.yaml")
    allowed, kinds = ruled(role["rules"]), {resource for _, resource, _ in used}
    assert {"poddisruptionbudgets", "secrets", "namespaces", "pods", "apiservices", "resourceclaims"} <= kinds
    assert {group for group, _, _ in used} >= {"serving.kserve.io", "policy", "coordination.k8s.io"}
    assert sorted(used - allowed) == []
    made = [one["spec"]["forProvider"]["manifest"] for one in composed if one["kind"] == OBJECT]
    granted = set().union(*(ruled(manifest["rules"]) for manifest in made if manifest["kind"] == "Role"))
    assert granted, "the picker has a Role"
    assert sorted(granted - allowed) == []
