"""Faults in the files: every object that the scheduler could not read, by file, object, field and value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api import InferenceClass, InferenceCluster, Malformed, ModelCache, ModelDeployment
from function.api.replica import parse as parse_replica
from function.boundary import PlainDocument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api.model import Model
    from function.cli.worlds.manifest import Manifest, Manifests
    from function.cli.worlds.world import World

Place = tuple[str, str]
"""Which object, by its title, and which field of it."""

_MODELS: dict[str, type[Model]] = {
    "ModelDeployment": ModelDeployment,
    "InferenceClass": InferenceClass,
    "ModelCache": ModelCache,
}


def _parsed(manifest: Manifest, model: type[Model], content: object) -> Iterator[tuple[Place, str]]:
    try:
        model.parse(content)
    except Malformed as error:
        for fault in error.faults:
            yield (manifest.short_title, fault.path), f"{manifest.title}: {fault}"


def faults_of(manifests: Manifests, world: World) -> dict[Place, str]:
    """Every fault, in the order of kinds and files. The plan goes on without what cannot be read."""
    return dict(_faults(manifests, world))


def _faults(manifests: Manifests, world: World) -> Iterator[tuple[Place, str]]:
    for kind, model in _MODELS.items():
        for manifest in manifests[kind]:
            yield from _parsed(manifest, model, manifest.content)
    completed = {str(cluster["metadata"]["name"]): cluster for cluster in world.clusters}
    for manifest in manifests["InferenceCluster"]:
        yield from _parsed(manifest, InferenceCluster, completed[manifest.name])
        yield from _values(manifest, completed[manifest.name])
    for manifest in manifests["ModelReplica"]:
        fault = parse_replica(PlainDocument(manifest.content)).fault
        if fault:
            text = f"{manifest.title}: {fault}; it is charged for what can be read"
            yield (manifest.short_title, fault.partition(":")[0]), text


def _values(manifest: Manifest, content: object) -> Iterator[tuple[Place, str]]:
    """Values that selectors cannot read, though the cluster can be: every selector errs on such a device."""
    try:
        pools = InferenceCluster.parse(content).pools
    except Malformed:
        return
    for pool in pools:
        for device in pool.devices or ():
            if device.subject.problem:
                where = f"pool {pool.name}, device {device.name}"
                yield (manifest.short_title, where), f"{manifest.title}: {where}: {device.subject.problem}"
