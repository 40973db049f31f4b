"""Completes clusters as the platform would: published pools from node pools and classes, an assumed status.

Nothing that a file tells is changed; what is assumed is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api import replica as replica_api
from function.api.model import whole
from function.boundary import PlainDocument
from function.cli.bad_input import BadInput
from function.cluster.charges import charge
from function.cluster.classes import devices_of
from function.objects import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.api import ModelReplica
    from function.cli.worlds.manifests import Manifest, Manifests

NODE_COUNT = 1
"""Nodes of a pool that states none: the default of `spec.nodePools[].nodeCount` in the XRD."""
PLACEHOLDER_GATEWAY = "gateway.invalid"
"""A gateway address that reaches nothing (RFC 2606)."""


def _nodes(pool: Mapping[str, Any]) -> int:
    """Published nodes: maxNodeCount, else nodeCount, else 1, as the platform publishes them."""
    stated = (pool.get(field) for field in ("maxNodeCount", "nodeCount"))
    return whole(next((count for count in stated if count is not None), NODE_COUNT))


def _class_devices(manifest: Manifest, at: int, name: object, classes: Mapping[str, Manifest]) -> Any:
    if name not in classes:
        class_names = ", ".join(sorted(classes)) or "none is given"
        field = f"{manifest.title}: spec.nodePools[{at}].className"
        raise BadInput(f'{field}: no InferenceClass "{name}" in the files ({class_names})')
    content = classes[str(name)].content
    spec = content.get("spec")
    stated = spec if isinstance(spec, dict) else {}
    if stated.get("from") is None:
        return stated.get("devices", [])
    try:
        return list(devices_of(content))
    except ValueError as error:
        raise BadInput(f"{classes[str(name)].title}: {error}") from None


def _pool(manifest: Manifest, at: int, pool: object, classes: Mapping[str, Manifest]) -> dict[str, Any]:
    if not isinstance(pool, dict):
        raise BadInput(f"{manifest.title}: spec.nodePools[{at}]: expected a map")
    try:
        nodes = _nodes(pool)
    except ValueError as error:
        raise BadInput(f"{manifest.title}: spec.nodePools[{at}].nodeCount: {error}") from None
    mirrored = {key: pool[key] for key in ("attributes", "accounting", "fabric") if key in pool}
    devices = _class_devices(manifest, at, pool.get("className"), classes)
    return {"name": pool.get("name"), "nodes": nodes, "devices": devices, **mirrored}


def complete(manifest: Manifest, classes: Mapping[str, Manifest]) -> tuple[dict[str, Any], list[str]]:
    """Complete one cluster. Returns it and what had to be assumed. Raises BadInput."""
    content = manifest.content
    assumed: list[str] = []
    status = content.get("status")
    if status is None:
        status = {
            "conditions": [{"type": "Ready", "status": "True"}],
            "gateway": {"address": PLACEHOLDER_GATEWAY},
        }
        assumed.append("has no status: assumed Ready, with a placeholder gateway")
    spec = content.get("spec")
    pools = spec.get("nodePools") if isinstance(spec, dict) else None
    if isinstance(status, dict) and status.get("gpuPools") is None and isinstance(pools, list) and pools:
        derived = [_pool(manifest, at, pool, classes) for at, pool in enumerate(pools)]
        status = {**status, "gpuPools": derived}
        assumed.append("publishes no pools: derived from its nodePools and their classes")
    return {**content, "status": status}, assumed


def with_charges(clusters: list[dict[str, Any]], replicas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the clusters with what replicas hold of their pools, where they do not say it themselves."""
    read = [replica_api.parse(PlainDocument(replica)) for replica in replicas]
    return [_with_charges(cluster, read) for cluster in clusters]


def _with_charges(cluster: dict[str, Any], replicas: list[ModelReplica]) -> dict[str, Any]:
    status = mapping(cluster.get("status"))
    pools = status.get("gpuPools")
    if not isinstance(pools, list) or any("charged" in mapping(pool) or not mapping(pool) for pool in pools):
        return cluster
    declared = mapping(cluster.get("spec")).get("nodePools")
    by_name = {mapping(pool).get("name"): mapping(pool) for pool in declared or () if isinstance(pool, dict)}
    stated = [{**_accounting(by_name.get(pool.get("name"), {})), **pool} for pool in pools]
    name = str(mapping(cluster.get("metadata")).get("name"))
    return {**cluster, "status": {**status, "gpuPools": charge(name, stated, replicas)}}


def _accounting(declared: Mapping[str, Any]) -> dict[str, Any]:
    return {"accounting": declared["accounting"]} if declared.get("accounting") else {}


def complete_all(manifests: Manifests) -> tuple[list[dict[str, Any]], list[str]]:
    """Complete every cluster of the files, in the order of their names."""
    classes = {manifest.name: manifest for manifest in manifests["InferenceClass"]}
    clusters: list[dict[str, Any]] = []
    notes: list[str] = []
    for manifest in sorted(manifests["InferenceCluster"], key=lambda manifest: manifest.name):
        content, assumed = complete(manifest, classes)
        clusters.append(content)
        notes.extend(f"cluster {manifest.name} {assumption}" for assumption in assumed)
    return clusters, notes
