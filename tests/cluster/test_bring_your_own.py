"""The example of clusters that are there already, handler by handler: from kubeconfigs to placed replicas."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from example import caller
from function.boundary import PlainDocument, Request, Response
from function.cluster import handler as clusters
from function.cluster.snapshot import REPLICAS, class_requirement
from function.deployment import handler as deployments
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
    response = clusters.run_class(Request(PlainDocument(CLASSES[name]), {}, {}, None))
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
