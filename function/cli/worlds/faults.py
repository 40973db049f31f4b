"""Faults in the files: every object that the scheduler could not read, by file, object, field and value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api import InferenceClass, InferenceCluster, Malformed, ModelCache, ModelDeployment
from function.api.replica import parse as parse_replica
from function.boundary import PlainDocument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api.model import Model
    from function.cli.worlds.manifests import Manifest, Manifests
    from function.cli.worlds.world import World

_MODELS: dict[str, type[Model]] = {
    "ModelDeployment": ModelDeployment,
    "InferenceClass": InferenceClass,
    "ModelCache": ModelCache,
}


def _parsed(manifest: Manifest, model: type[Model], content: object) -> Iterator[str]:
    try:
        model.parse(content)
    except Malformed as error:
        for fault in error.faults:
            yield f"{manifest.title}: {fault}"


def faults_of(manifests: Manifests, world: World) -> list[str]:
    """Every fault, in the order of kinds and files. The plan goes on without what cannot be read."""
    faults: list[str] = []
    for kind, model in _MODELS.items():
        for manifest in manifests[kind]:
            faults.extend(_parsed(manifest, model, manifest.content))
    completed = {str(cluster["metadata"]["name"]): cluster for cluster in world.clusters}
    for manifest in manifests["InferenceCluster"]:
        faults.extend(_parsed(manifest, InferenceCluster, completed[manifest.name]))
        faults.extend(_values(manifest, completed[manifest.name]))
    for manifest in manifests["ModelReplica"]:
        fault = parse_replica(PlainDocument(manifest.content)).fault
        if fault:
            faults.append(f"{manifest.title}: {fault}; it is charged for what can be read")
    return faults


def _values(manifest: Manifest, content: object) -> Iterator[str]:
    """Values that selectors cannot read, though the cluster can be: every selector errs on such a device."""
    try:
        pools = InferenceCluster.parse(content).pools
    except Malformed:
        return
    for pool in pools:
        for device in pool.devices or ():
            if device.subject.problem:
                yield f"{manifest.title}: pool {pool.name}, device {device.name}: {device.subject.problem}"
