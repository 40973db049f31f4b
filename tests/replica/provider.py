"""What provider-kubernetes and the controllers behind it would report of desired Objects.

Stages of a remote object: `nothing` (the Object was just applied), `created` (its status is empty), `started`
(its controller has reported, no pod is available) and `available`.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tests.replica import kserve_cluster
from tests.replica.build import NAMESPACE
from tests.support.build import condition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.drive import Answer

Plain = dict[str, Any]

STAGES = ("nothing", "created", "started", "available")


def applied(answer: Answer, stage: str = "available", **stages: str) -> dict[str, Plain]:
    """Return what is observed after an answer was applied. `stages` names keys, dashes as underscores."""
    named = {key.replace("_", "-"): value for key, value in stages.items()}
    seen = {key: observed(key, manifest, named.get(key, stage)) for key, manifest in answer.desired.items()}
    return {
        key: _made_by_kserve(key, resource, answer, named.get(key, stage))
        if resource["kind"] == "Object"
        else resource
        for key, resource in seen.items()
    }


def _made_by_kserve(key: str, resource: Plain, answer: Answer, stage: str) -> Plain:
    """Return what an Object that only looks sees of what KServe made of the service beside it."""
    if resource["spec"].get("managementPolicies") != ["Observe"]:
        return resource
    manifests = [
        one["spec"]["forProvider"]["manifest"] for one in answer.desired.values() if one["kind"] == "Object"
    ]
    wanted = resource["spec"]["forProvider"]["manifest"]
    for service in (manifest for manifest in manifests if manifest["kind"] == "LLMInferenceService"):
        made = kserve_cluster.workloads(service).get((wanted["kind"], wanted["metadata"]["name"]))
        if made is not None and stage != "nothing":
            resource["status"]["atProvider"] = {"manifest": remote(made, stage)}
    return resource


def observed(key: str, desired: Mapping[str, Any], stage: str = "available") -> Plain:
    """Return one applied Object with the status of a stage."""
    made = copy.deepcopy(dict(desired))
    made["metadata"] = {"name": f"observed-{key}".replace(".", "-"), "namespace": NAMESPACE} | made.get(
        "metadata", {}
    )
    conditions = [condition("Synced", status=True, reason="ReconcileSuccess")]
    if made["kind"] != "Object":
        return made | {"status": {"conditions": [*conditions, condition("Ready", status=True)]}}
    status: Plain = {"conditions": conditions}
    if stage != "nothing":
        status["atProvider"] = {"manifest": remote(made["spec"]["forProvider"]["manifest"], stage)}
    queried = made["spec"].get("readiness", {}).get("policy") == "DeriveFromCelQuery"
    ready = stage == "available" or (stage != "nothing" and not queried)
    conditions.append(condition("Ready", status=ready))
    return made | {"status": status}


def remote(manifest: Mapping[str, Any], stage: str = "available") -> Plain:
    """Return a remote object as its API server and its controller leave it."""
    made = copy.deepcopy(dict(manifest))
    made["metadata"] = {**made["metadata"], "generation": 1, "uid": "remote"}
    if made["kind"] == "LLMInferenceService":
        made["status"] = kserve_cluster.status(stage)
    if made["kind"] in ("Deployment", "LeaderWorkerSet") and "spec" in made:
        made["status"] = _workload_status(made, stage)
    if made["kind"] == "HTTPRoute" and stage == "available":
        conditions = [condition("Accepted", status=True), condition("ResolvedRefs", status=True)]
        made["status"] = {"parents": [{"conditions": conditions}]}
    return made


def _workload_status(made: Plain, stage: str) -> Plain:
    copies = made["spec"]["replicas"]
    if stage == "created":
        return {}
    available = stage == "available"
    if made["kind"] == "LeaderWorkerSet":
        status: Plain = {"replicas": copies, "conditions": [condition("Available", status=available)]}
        return status | ({"updatedReplicas": copies, "readyReplicas": copies} if available else {})
    status = {
        "observedGeneration": 1,
        "replicas": copies,
        "updatedReplicas": copies,
        "conditions": [condition("Available", status=available), condition("Progressing", status=True)],
    }
    return status | ({"availableReplicas": copies, "readyReplicas": copies} if available else {})
