"""Changes: what `whatif` does to the files before it plans them, each as an edit of the YAML."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any, Protocol

from function.cli.admission.kinds import check, head
from function.cli.bad_input import BadInput, closest
from function.cli.worlds.kubectl import (
    RESOURCES,
    Commands,
    add_item,
    patch_cluster,
    remove_item,
    replace_item,
    resource,
    scale,
    set_value,
)
from function.cli.worlds.manifests import Manifest, Manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DRAIN_KEY = "fleet-scheduler.whatif/drain"
"""Key of the taint that stands for a drain: only a toleration of everything covers it."""

Plain = dict[str, Any]


class Change(Protocol):
    """One edit of the files."""

    def apply(self, manifests: Manifests) -> Manifests:
        """Return the files as they would be. Raises BadInput when the edit does not apply."""

    def commands(self, manifests: Manifests) -> Commands:
        """The kubectl commands that do the same to the objects as they are before, and their reverse."""


def edited(
    manifests: Manifests,
    kind: str,
    where: tuple[str, str],
    edit: Callable[[Plain], None],
    *,
    overlay: bool = False,
) -> Manifests:
    """Edit a copy of one object, named by (namespace, name).

    Raises BadInput when it is not there, and when the API server would refuse the edit. What an `overlay`
    from a file brings in was looked at when the file was read.
    """
    those = manifests[kind]
    before = next((manifest for manifest in those if manifest.identity == where), None)
    if before is None:
        names = ("/".join(manifest.identity).lstrip("/") for manifest in those)
        title = "/".join(where).lstrip("/")
        raise BadInput(f'there is no {kind} "{title}"; {closest(title, names)}')
    content = deepcopy(before.content)
    edit(content)
    if not overlay:
        _refuse_invalid(before, content)
    after = Manifest(content, before.file)
    return manifests.having(kind, [after if manifest is before else manifest for manifest in those])


def _refuse_invalid(before: Manifest, content: Plain) -> None:
    """Refuse an edit that the API server would: what was wrong already is said elsewhere. Raises BadInput."""
    kind, _ = head(content)
    if kind is None:
        return
    existing = set(map(str, check(before.content, kind)))
    broken = [text for text in map(str, check(content, kind)) if text not in existing]
    if broken:
        raise BadInput(f"{before.short_title}: {broken[0]}")


def _spec(content: Plain) -> Plain:
    spec = content.get("spec")
    if not isinstance(spec, dict):
        spec = content["spec"] = {}
    return spec


@dataclass(frozen=True, slots=True)
class Taint:
    """Taint a cluster, or (with `remove`) take a taint off."""

    cluster: str
    key: str
    value: str
    effect: str
    remove: bool = False

    def __str__(self) -> str:
        """`taint use1 maintenance=yes:NoExecute`."""
        value = f"={self.value}" if self.value else ""
        return f"taint {self.cluster} {self.key}{value}:{self.effect}{'-' if self.remove else ''}"

    def apply(self, manifests: Manifests) -> Manifests:
        """Edit spec.taints of the cluster; a taint of the same key and effect is replaced."""
        return edited(manifests, "InferenceCluster", ("", self.cluster), self._edit)

    def commands(self, manifests: Manifests) -> Commands:
        """Patch spec.taints."""
        stated = _section(manifests, self.cluster, "taints")
        listed = stated or []
        positions = [index for index, taint in enumerate(listed) if self._is(taint)]
        path = "/spec/taints"
        if self.remove:
            there, back = remove_item(listed, path, positions[0])
        elif positions:
            there, back = replace_item(listed, path, positions[0], self._taint)
        else:
            there, back = add_item(stated, path, self._taint)
        return Commands((patch_cluster(self.cluster, there),), (patch_cluster(self.cluster, back),))

    @property
    def _taint(self) -> Plain:
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, **value, "effect": self.effect}

    def _edit(self, content: Plain) -> None:
        spec = _spec(content)
        before = spec.get("taints") or []
        others = [taint for taint in before if not self._is(taint)]
        if self.remove and len(others) == len(before):
            raise BadInput(f"cluster {self.cluster} has no taint {self.key}:{self.effect}")
        added = [] if self.remove else [self._taint]
        spec["taints"] = [*others, *added]

    def _is(self, taint: object) -> bool:
        return isinstance(taint, dict) and (taint.get("key"), taint.get("effect")) == (self.key, self.effect)


@dataclass(frozen=True, slots=True)
class Drain:
    """Drain a cluster: a NoExecute taint that nobody expects."""

    cluster: str

    def __str__(self) -> str:
        """`drain use1`."""
        return f"drain {self.cluster}"

    def apply(self, manifests: Manifests) -> Manifests:
        """Add the taint."""
        return self._taint.apply(manifests)

    def commands(self, manifests: Manifests) -> Commands:
        """Add the taint."""
        return self._taint.commands(manifests)

    @property
    def _taint(self) -> Taint:
        return Taint(self.cluster, DRAIN_KEY, "", "NoExecute")


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a cluster."""

    cluster: str

    def __str__(self) -> str:
        """`delete use1`."""
        return f"delete {self.cluster}"

    def apply(self, manifests: Manifests) -> Manifests:
        """Leave the cluster out."""
        edited(manifests, "InferenceCluster", ("", self.cluster), lambda _: None)  # It must be there.
        left = [cluster for cluster in manifests["InferenceCluster"] if cluster.name != self.cluster]
        return manifests.having("InferenceCluster", left)

    def commands(self, manifests: Manifests) -> Commands:  # noqa: ARG002 - as every change
        """Keep the object, and delete it; where the platform made the cluster, that is deleted too."""
        who, file = resource("InferenceCluster", self.cluster), quote(f"{self.cluster}.yaml")
        kept = f"kubectl get {who} -o yaml > {file}"
        return Commands((kept, f"kubectl delete {who}"), (f"kubectl create -f {file}",))


@dataclass(frozen=True, slots=True)
class AddNodes:
    """Add nodes to a pool; a negative number takes some away."""

    cluster: str
    pool: str
    nodes: int

    def __str__(self) -> str:
        """`add 2 nodes to use1/frontier`."""
        return f"add {self.nodes} nodes to {self.cluster}/{self.pool}"

    def apply(self, manifests: Manifests) -> Manifests:
        """Edit the declared count that is published, and what is published of it."""
        return edited(manifests, "InferenceCluster", ("", self.cluster), self._edit)

    def _edit(self, content: Plain) -> None:
        status = content.get("status")
        published = _pools(status.get("gpuPools") if isinstance(status, dict) else None)
        declared = _pools(_spec(content).get("nodePools"))
        if self.pool not in (*published, *declared):
            suggestion = closest(self.pool, {**declared, **published})
            raise BadInput(f'cluster {self.cluster} has no pool "{self.pool}"; {suggestion}')
        if self.pool in declared:
            pool = declared[self.pool]
            self._add(pool, _count_field(pool))
        if self.pool in published:
            self._add(published[self.pool], "nodes")

    def commands(self, manifests: Manifests) -> Commands:
        """Patch the declared count; what only the platform publishes, it has to change."""
        pools = enumerate(_section(manifests, self.cluster, "nodePools") or [])
        matching = [
            (at, pool) for at, pool in pools if isinstance(pool, dict) and pool.get("name") == self.pool
        ]
        if not matching:
            text = f"# {self.cluster}/{self.pool} is not declared in spec.nodePools: the platform sizes it"
            return Commands((text,), (text,))
        at, pool = matching[0]
        key = _count_field(pool)
        there, back = set_value(pool, f"/spec/nodePools/{at}", key, (pool.get(key) or 0) + self.nodes)
        return Commands((patch_cluster(self.cluster, there),), (patch_cluster(self.cluster, back),))

    def _add(self, holder: Plain, field: str) -> None:
        now = holder.get(field) or 0
        if isinstance(now, bool) or not isinstance(now, int | float):
            where = f"cluster {self.cluster}: pool {self.pool}: {field}"
            raise BadInput(f'{where}: expected a number, found "{now}"')
        if now + self.nodes < 0:
            raise BadInput(f"cluster {self.cluster}: pool {self.pool} has only {now} nodes to take away")
        holder[field] = now + self.nodes


def _count_field(pool: Plain) -> str:
    """The field that says how many nodes a declared pool has."""
    return "nodeCount" if pool.get("maxNodeCount") is None else "maxNodeCount"


def _section(manifests: Manifests, cluster: str, key: str) -> list[Any] | None:
    """A list of a cluster's spec; None where there is none."""
    spec = next(entry.content.get("spec") for entry in manifests["InferenceCluster"] if entry.name == cluster)
    listed = spec.get(key) if isinstance(spec, dict) else None
    return listed if isinstance(listed, list) else None


def _pools(listed: object) -> dict[str, Plain]:
    pools = listed if isinstance(listed, list) else []
    return {str(pool.get("name")): pool for pool in pools if isinstance(pool, dict)}


@dataclass(frozen=True, slots=True)
class Replicas:
    """Want another number of replicas."""

    namespace: str
    name: str
    replicas: int

    def __str__(self) -> str:
        """`3 replicas of ml/chat`."""
        return f"{self.replicas} replicas of {self.namespace}/{self.name}"

    def apply(self, manifests: Manifests) -> Manifests:
        """Edit spec.replicas."""
        return edited(manifests, "ModelDeployment", (self.namespace, self.name), self._edit)

    def _edit(self, content: Plain) -> None:
        _spec(content)["replicas"] = self.replicas

    def commands(self, manifests: Manifests) -> Commands:
        """Scale it."""
        where = (self.namespace, self.name)
        before = next(placement for placement in manifests["ModelDeployment"] if placement.identity == where)
        spec = before.content.get("spec")
        wanted = spec.get("replicas") if isinstance(spec, dict) else None
        return Commands((scale(*where, self.replicas),), (scale(*where, wanted),))


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply a file: an object that is there gets the new labels, annotations and spec, others are added."""

    manifests: Manifests
    files: tuple[str, ...]

    def __str__(self) -> str:
        """`apply changes.yaml`."""
        return f"apply {', '.join(self.files)}"

    def apply(self, manifests: Manifests) -> Manifests:
        """Replace or add every object; what is derived from a changed class or pool is derived anew."""
        given = self.manifests
        replaced = {_key(manifest) for those in given.by_kind.values() for manifest in those}
        kept = [issue for issue in manifests.issues if _key(issue.manifest) not in replaced]
        manifests = replace(
            manifests, issues=[*kept, *given.issues], ignored=manifests.ignored + given.ignored
        )
        classes = _changed_classes(manifests, self.manifests["InferenceClass"])
        for kind, those in self.manifests.by_kind.items():
            for manifest in those:
                manifests = _applied(manifests, kind, manifest)
        for cluster in manifests["InferenceCluster"]:
            if _uses(cluster, classes):
                manifests = edited(manifests, cluster.kind, cluster.identity, _republish, overlay=True)
        return manifests

    def commands(self, manifests: Manifests) -> Commands:
        """Apply the files; what they replace is kept before, and what they add is deleted again."""
        given = [
            item for those in self.manifests.by_kind.values() for item in those if item.kind in RESOURCES
        ]
        existing = {_key(item) for those in manifests.by_kind.values() for item in those}
        old = [item for item in given if _key(item) in existing]
        names = [
            f"before-{entry.kind.lower()}-{entry.namespace or 'cluster'}-{entry.name}.yaml" for entry in old
        ]
        kept = [
            f"kubectl get {_titled(item)} -o yaml > {quote(file)}"
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


def _overlay(new: Manifest, content: Plain) -> None:
    """Put a manifest over an object; a cluster whose node pools change publishes anew."""
    pools = _spec(content).get("nodePools")
    content["metadata"] = {**content.get("metadata", {}), **new.metadata}
    content.update({key: value for key, value in new.content.items() if key != "metadata"})
    moved = new.kind == "InferenceCluster" and _spec(content).get("nodePools") != pools
    if moved and "status" not in new.content:
        _republish(content)


def _changed_classes(before: Manifests, applied: Iterable[Manifest]) -> set[str]:
    class_specs = {manifest.name: manifest.content.get("spec") for manifest in before["InferenceClass"]}
    given = {manifest.name: manifest.content.get("spec") for manifest in applied}
    return {name for name, spec in given.items() if name in class_specs and class_specs[name] != spec}


def _uses(cluster: Manifest, classes: set[str]) -> bool:
    spec = cluster.content.get("spec")
    pools = _pools(spec.get("nodePools") if isinstance(spec, dict) else None)
    return any(pool.get("className") in classes for pool in pools.values())


def _republish(content: Plain) -> None:
    """Forget the published pools: they are derived from node pools and classes, as the platform would."""
    status = content.get("status")
    if isinstance(status, dict):
        status.pop("gpuPools", None)
