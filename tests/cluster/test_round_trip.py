"""What the handler publishes of a cluster is what `fleet-scheduler plan` derives from its classes.

The same decisions, byte for byte and digests included, so a plan on files says what the fleet will do.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from function.api import replica as replica_api
from function.boundary import PlainDocument, Request
from function.cli.worlds.derive import ChargedClusters, complete_all
from function.cli.worlds.manifest import Manifest, Manifests
from function.cluster import handler as cluster_handler
from function.cluster.snapshot import REPLICAS, class_requirement
from function.deployment import handler as deployment_handler
from tests.support import generate
from tests.support.generate import CALM
from tests.support.scale import BATCHES, batch

Plain = dict[str, Any]
ON, OF = "modelplane.ai/cluster", "modelplane.ai/deployment"
CATALOGUE = ("aws/p5en.48xlarge", "aws/p5.48xlarge")


def declared(draw: random.Random, cluster: Plain, classes: dict[str, Plain]) -> Plain:
    """Return a published cluster as its platform engineer declares it: pools of classes, and no pool yet."""
    pools = []
    accounting = {pool["name"]: pool.get("accounting") for pool in cluster["spec"].get("nodePools", ())}
    for published in cluster["status"]["gpuPools"]:
        name = f"{cluster['metadata']['name']}-{published['name']}"
        classes[name] = inference_class(draw, name, published["devices"])
        field = draw.choice(("nodeCount", "maxNodeCount"))
        pools.append({"name": published["name"], "className": name, field: published["nodes"]})
        stated = published.get("accounting") or accounting.get(published["name"])
        if stated:
            pools[-1]["accounting"] = stated
    existing = {"secretRef": {"name": "byo", "key": "kubeconfig"}}
    address = cluster["status"].get("gateway", {}).get("address")
    if address:
        existing["gateway"] = {"address": address}
    source = {"source": "Existing", "existing": existing}
    status = {key: value for key, value in cluster["status"].items() if key != "gpuPools"}
    return {**cluster, "spec": {**cluster["spec"], "cluster": source, "nodePools": pools}, "status": status}


def inference_class(draw: random.Random, name: str, devices: list[Plain]) -> Plain:
    """Return a class with these devices; now and then they are over those of a machine type."""
    spec: Plain = {"devices": devices}
    if draw.random() < 0.1:
        spec["from"] = {"machineType": draw.choice(CATALOGUE), "revision": 1}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def published(cluster: Plain, classes: dict[str, Plain], replicas: list[Plain], settings: Plain) -> Plain:
    """Return a cluster as it stands after the handler's answer was applied."""
    name = cluster["metadata"]["name"]
    here = [replica for replica in replicas if labels(replica).get(ON) == name]
    required = {REPLICAS: tuple(map(PlainDocument, here))}
    for pool in cluster["spec"]["nodePools"]:
        required[class_requirement(pool["className"])] = (PlainDocument(classes[pool["className"]]),)
    request = Request(PlainDocument(cluster), {}, required, settings)
    return {**cluster, "status": {**cluster["status"], **cluster_handler.run(request).status}}


def labels(replica: Plain) -> Plain:
    labelled: Plain = replica["metadata"].get("labels") or {}
    return labelled


def planned(clusters: list[Plain], classes: dict[str, Plain]) -> list[Plain]:
    """Return the clusters as `plan` completes them from files."""
    manifests = Manifests()
    for content in (*clusters, *classes.values()):
        manifests.by_kind[content["kind"]].append(Manifest(content, "fleet.yaml"))
    return complete_all(manifests).clusters


@pytest.mark.parametrize("number", range(BATCHES))
@pytest.mark.parametrize("capacity", ["Replicas", "Published"])
def test_the_fleet_decides_as_the_plan_says(number: int, capacity: str) -> None:
    placed = 0
    for seed in batch(number, quick=60, gate=4_000):
        draw = random.Random(f"round trip {seed}")
        made = generate.world(seed, replace(CALM, opted=seed % 2 == 0))
        if (made.input or {}).get("coordination") == "GlobalOrder":
            continue
        classes: dict[str, Plain] = {}
        clusters = [declared(draw, cluster, classes) for cluster in made.clusters or ()]
        replicas = list(made.replicas or ())
        ways = ("Pools", "Attributes") if capacity == "Replicas" else ("Attributes",)
        settings = {"publish": draw.choice(ways)}
        fleet = [published(cluster, classes, replicas, settings) for cluster in clusters]
        plan = planned(clusters, classes)
        required = {"all-replicas": replicas}
        if capacity == "Published":
            name = made.deployment["metadata"]["name"]
            required = {"own-replicas": [replica for replica in replicas if labels(replica).get(OF) == name]}
            charged = ChargedClusters(plan)
            for replica in replicas:
                charged.add(replica_api.parse(PlainDocument(replica)))
            plan = [document.content for document in charged.documents]
        asked = {**(made.input or {}), "capacity": capacity, "explain": "Status"}
        answers = [
            deployment_handler.run(
                made.but(clusters=source, replicas=None, input=asked, more=required).request()
            )
            for source in (fleet, plan)
        ]
        assert answers[0] == answers[1], seed
        placed += len(answers[0].desired)
    assert placed
