"""Apply manifests to the files, as `kubectl apply` would to the objects."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

from function.api.lenient import mapping
from function.cli.live.resources import BY_KIND
from function.cli.worlds.edits import edited, pools_of, spec_of
from function.cli.worlds.kubectl import Commands, resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.boundary import JsonObject
    from function.cli.worlds.manifest import Manifest, Manifests

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Where `kubectl apply` keeps the manifest it was given, so that it can tell what others set."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply a file: an object that is there gets the new labels, annotations and spec, others are added.

    An object that kubectl applied keeps what others set since, as it would: a taint, say. Of any other
    it is unknown whose a field is, and the manifest is taken as a whole.
    """

    manifests: Manifests
    files: tuple[str, ...]

    def __str__(self) -> str:
        """`apply changes.yaml`."""
        return f"apply {', '.join(self.files)}"

    def apply(self, manifests: Manifests) -> Manifests:
        """Replace or add every object; what is derived from a changed class or pool is derived anew."""
        given = self.manifests
        replaced = {_key(manifest) for listed in given.by_kind.values() for manifest in listed}
        kept = [issue for issue in manifests.issues if _key(issue.manifest) not in replaced]
        manifests = replace(
            manifests, issues=[*kept, *given.issues], ignored=manifests.ignored + given.ignored
        )
        classes = _changed_classes(manifests, self.manifests["InferenceClass"])
        for kind, listed in self.manifests.by_kind.items():
            for manifest in listed:
                manifests = _applied(manifests, kind, manifest)
        for cluster in manifests["InferenceCluster"]:
            if _uses(cluster, classes):
                manifests = edited(manifests, cluster.kind, cluster.identity, _republish, overlay=True)
        return manifests

    def commands(self, manifests: Manifests) -> Commands:
        """Apply the files; what they replace is kept before, and what they add is deleted again.

        Kept without its version: with it, the API server would refuse to replace what is newer by then.
        """
        given = [
            item for listed in self.manifests.by_kind.values() for item in listed if item.kind in BY_KIND
        ]
        existing = {_key(item) for listed in manifests.by_kind.values() for item in listed}
        old = [item for item in given if _key(item) in existing]
        names = [
            f"before-{entry.kind.lower()}-{entry.namespace or 'cluster'}-{entry.name}.yaml" for entry in old
        ]
        kept = [
            f"kubectl get {_titled(item)} -o yaml | sed '/^  resourceVersion:/d' > {quote(file)}"
            for item, file in zip(old, names, strict=True)
        ]
        applied = [f"kubectl apply -f {quote(file)}" for file in self.files]
        replaced = [f"kubectl replace -f {quote(file)}" for file in names]
        deleted = [f"kubectl delete {_titled(item)}" for item in given if _key(item) not in existing]
        return Commands((*kept, *applied), (*deleted, *replaced))


def _titled(manifest: Manifest) -> str:
    return resource(manifest.kind, manifest.name, manifest.namespace)


def _key(manifest: Manifest) -> tuple[str, str, str]:
    return manifest.kind, *manifest.identity


def _applied(manifests: Manifests, kind: str, new: Manifest) -> Manifests:
    if not any(manifest.identity == new.identity for manifest in manifests[kind]):
        return manifests.having(kind, [*manifests[kind], new])
    return edited(manifests, kind, new.identity, partial(_overlay, new), overlay=True)


def _overlay(new: Manifest, content: JsonObject) -> None:
    """Put a manifest over an object; a cluster whose node pools change publishes anew."""
    pools = spec_of(content).get("nodePools")
    given, applied = new.content, _last_applied(content)
    if applied is not None:
        given = _with_what_others_set(content, applied, given)
    metadata = {**mapping(content.get("metadata")), **mapping(given.get("metadata"))}
    content.update({**given, "metadata": metadata})
    moved = new.kind == "InferenceCluster" and spec_of(content).get("nodePools") != pools
    if moved and "status" not in new.content:
        _republish(content)


def _last_applied(content: JsonObject) -> JsonObject | None:
    """Return the manifest that kubectl applied last; None where it did not, or that cannot be read."""
    text = mapping(mapping(content.get("metadata")).get("annotations")).get(LAST_APPLIED)
    try:
        applied = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return applied if isinstance(applied, dict) else None


def _with_what_others_set(existing: JsonObject, applied: JsonObject, given: JsonObject) -> JsonObject:
    """Return a given manifest with the spec, labels and annotations that it does not own."""
    metadata, before, last = (mapping(plain.get("metadata")) for plain in (given, existing, applied))
    merged: JsonObject = {
        key: _merged(before.get(key), last.get(key), metadata.get(key, {}))
        for key in ("labels", "annotations")
        if key in before or key in metadata
    }
    result: JsonObject = {**given, "metadata": {**metadata, **merged}}
    if "spec" in given:
        result["spec"] = _merged(existing.get("spec"), applied.get("spec"), given["spec"])
    return result


def _merged(existing: Any, applied: Any, given: Any) -> Any:
    """Merge as kubectl does with custom resources: maps by key, lists and all else as a whole."""
    if not (isinstance(existing, dict) and isinstance(given, dict)):
        return given
    last = mapping(applied)
    kept = {key: value for key, value in existing.items() if key in given or key not in last}
    merged = {key: _merged(existing.get(key), last.get(key), value) for key, value in given.items()}
    return {**kept, **merged}


def _changed_classes(before: Manifests, applied: Iterable[Manifest]) -> set[str]:
    class_specs = {manifest.name: manifest.content.get("spec") for manifest in before["InferenceClass"]}
    given = {manifest.name: manifest.content.get("spec") for manifest in applied}
    return {name for name, spec in given.items() if name in class_specs and class_specs[name] != spec}


def _uses(cluster: Manifest, classes: set[str]) -> bool:
    spec = cluster.content.get("spec")
    pools = pools_of(spec.get("nodePools") if isinstance(spec, dict) else None)
    return any(pool.get("className") in classes for pool in pools.values())


def _republish(content: JsonObject) -> None:
    """Forget the published pools: they are derived from node pools and classes, as the platform would."""
    status = content.get("status")
    if isinstance(status, dict):
        status.pop("gpuPools", None)
