"""What the function desires is what the XRDs declare: one unknown field fails the whole apply."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from example import caller
from function.boundary import PlainDocument, Request, Response
from function.deployment.handler import run
from tests.schema.admission import refusals
from tests.schema.blocks import BLOCKS, PLACES, whole
from tests.schema.crds import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Plain = dict[str, Any]
INPUT: Plain = {
    "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
    "kind": "SchedulerConfig",
    "explain": "Status",
    "overcommit": "Yield",
    "scaleSelector": "Status",
}
EXAMPLES = {folder.name: caller.objects(folder / "xr.yaml")[0] for folder in caller.deployments()}
FROM_DOCS = {
    f"reference-{number}": whole(*block)
    for number, block in enumerate(BLOCKS)
    if PLACES.get(block[0], block)[0] == "ModelDeployment"
}
CACHE: Plain = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "ModelCache",
    "metadata": {"name": "weights", "namespace": "docs"},
}


def decide(deployment: Plain, observed: Mapping[str, Plain], fleet: list[Plain]) -> Response:
    """Run the pipeline on plain objects."""

    def of(kind: str) -> tuple[PlainDocument, ...]:
        return tuple(PlainDocument(manifest) for manifest in fleet if manifest["kind"] == kind)

    required = {
        "clusters": of("InferenceCluster"),
        "all-replicas": of("ModelReplica"),
        "cache": (PlainDocument(CACHE),),
    }
    documents = {key: PlainDocument(manifest) for key, manifest in observed.items()}
    return run(Request(PlainDocument(deployment), documents, required, INPUT))


@pytest.mark.parametrize("name", [*EXAMPLES, *FROM_DOCS])
def test_desired_resources_and_status_are_accepted(name: str) -> None:
    deployment = (EXAMPLES | FROM_DOCS)[name]
    observed = caller.observed_in(caller.HERE / name) if name in EXAMPLES else {}
    if name in FROM_DOCS:
        deployment["metadata"] |= {"namespace": "docs", "uid": "d0c5"}
    fleet = [*caller.objects(caller.FLEET), *observed.values()]
    response = decide(deployment, observed, fleet)
    assert response.desired or name in FROM_DOCS, "an example places something"
    for desired in response.desired.values():
        assert refusals(desired.resource, schema_of(desired.resource["kind"])) == []
    assert refusals(deployment | {"status": dict(response.status)}, schema_of("ModelDeployment")) == []


def test_constraints_of_a_claim_are_accepted() -> None:
    """The one field of a replica that only an opt-in field of the deployment brings."""
    deployment = next(document for document in FROM_DOCS.values() if "matchAttribute" in str(document))
    deployment["metadata"] |= {"namespace": "docs", "uid": "d0c5"}
    fleet = deepcopy(
        [
            manifest
            for manifest in caller.objects(caller.FLEET)
            if manifest["metadata"]["name"] == "aks-eastus"
        ]
    )
    for device in fleet[0]["status"]["gpuPools"][0]["devices"]:
        device |= {"claim": "DRA", "deviceClassName": device["driver"]}
        device["attributes"]["resource.kubernetes.io/pcieRoot"] = {"string": "pci0000:01"}
    desired = decide(deployment, {}, fleet).desired["replica-aks-eastus-0"].resource
    (constraint,) = desired["spec"]["engines"][0]["members"][0]["deviceConstraints"]
    assert constraint == {"requests": ["gpu", "nic"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}
    assert refusals(desired, schema_of("ModelReplica")) == []
