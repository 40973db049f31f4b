"""Completes clusters as the platform would: published pools from node pools and classes, an assumed status.

Nothing that a file tells is changed; what is assumed is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.model import whole
from function.cli.bad_input import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    spec = classes[str(name)].content.get("spec")
    return (spec if isinstance(spec, dict) else {}).get("devices", [])


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
