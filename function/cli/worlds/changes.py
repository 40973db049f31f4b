"""Changes: what `whatif` does to the files before it plans them, each as an edit of the YAML.

A change knows how to edit the manifests (`apply`), which kubectl commands do the same to the objects and
which take them back (`commands`), and how it reads in a heading (`str`). The order in which several are
made is the command's business.

Four parts. First, edits of one object on a copy (`edited`), refused where an API server would refuse them.
Then the kubectl commands that make a change and take it back: text, for people to run. Then the changes that
an option of `whatif` names. Last, `Apply`, which puts whole files over what is there, with the three-way
merge that kubectl has for custom resources.

Pools that a cluster published are derived anew when its node pools or one of their classes change: the
platform would publish them again.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any, Protocol

from function.api.model import mapping
from function.api.names import PAUSED_ANNOTATION, RECONCILE_ANNOTATION
from function.boundary import frozen
from function.cli.admission.kinds import check, head
from function.cli.bad_input import BadInput, closest
from function.cli.live import BY_KIND
from function.cli.text import counted
from function.cli.worlds.manifest import Manifest, Manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from function.boundary import JsonObject


# Edit one object of the files, as an API server would let it be edited.


def existing(manifests: Manifests, kind: str, where: tuple[str, str]) -> Manifest:
    """Return the object that is named by (namespace, name). Raises BadInput when it is not there."""
    listed = manifests[kind]
    for manifest in listed:
        if manifest.identity == where:
            return manifest
    names = ("/".join(manifest.identity).lstrip("/") for manifest in listed)
    title = "/".join(where).lstrip("/")
    raise BadInput(f'there is no {kind} "{title}"; {closest(title, names)}')


def edited(
    manifests: Manifests,
    kind: str,
    where: tuple[str, str],
    edit: Callable[[JsonObject], None],
    *,
    overlay: bool = False,
) -> Manifests:
    """Edit a copy of one object, named by (namespace, name).

    Raises BadInput when it is not there, and when the API server would refuse the edit. What an `overlay`
    from a file brings in was looked at when the file was read.

    Everything else is shared with what was read. Objects are recognised by identity, so none is ever
    changed in place.
    """
    before = existing(manifests, kind, where)
    content = deepcopy(before.content)
    edit(content)
    if not overlay:
        _refuse_invalid(before, content)
    after = Manifest(content, before.file)
    return manifests.having(kind, [after if manifest is before else manifest for manifest in manifests[kind]])


def _refuse_invalid(before: Manifest, content: JsonObject) -> None:
    """Refuse an edit that the API server would: what was wrong already is said elsewhere. Raises BadInput."""
    kind, _ = head(content)
    if kind is None:
        return
    already = set(map(str, check(before.content, kind)))
    refusal = next((text for text in map(str, check(content, kind)) if text not in already), None)
    if refusal:
        raise BadInput(f"{before.short_title}: {refusal}")


def spec_of(content: JsonObject) -> JsonObject:
    """Return the spec of an object to edit: one is added where there is none."""
    spec = content.get("spec")
    if not isinstance(spec, dict):
        spec = content["spec"] = {}
    return spec


def pools_of(listed: object) -> dict[str, JsonObject]:
    """Return the pools of a list by their names."""
    pools = listed if isinstance(listed, list) else []
    return {str(pool.get("name")): pool for pool in pools if isinstance(pool, dict)}


# Write the kubectl commands that make a change, and those that take it back. None is ever run here.
#
# Lists are changed with JSON patches, whose `test` fails where the list is no longer the one that was read.
# A line that begins with `#` is for the reader; the others can be piped to a shell.


@frozen
class Commands:
    """The commands to run and those that undo them, each in the order of running."""

    apply: tuple[str, ...] = ()
    revert: tuple[str, ...] = ()

    def on(self, kubectl: str) -> Commands:
        """The same for the control plane that `kubectl` names, whatever the current context is by then."""
        return Commands(*(tuple(_on(line, kubectl) for line in lines) for lines in (self.apply, self.revert)))

    @property
    def as_data(self) -> dict[str, list[str]]:
        """The commands as plain data."""
        return {"apply": list(self.apply), "revert": list(self.revert)}


def _on(line: str, kubectl: str) -> str:
    """The same command with another beginning; a comment stays as it is."""
    verb = line.removeprefix("kubectl ")
    return line if verb == line else f"{kubectl} {verb}"


def one_after_another(parts: Sequence[Commands]) -> Commands:
    """The commands of several changes: the last is taken back first."""
    apply = tuple(line for part in parts for line in part.apply)
    return Commands(apply, tuple(line for part in reversed(parts) for line in part.revert))


def resource(kind: str, name: str, namespace: str = "") -> str:
    """Name an object to kubectl: `modeldeployments.modelplane.ai chat -n ml`."""
    where = f" -n {quote(namespace)}" if namespace else ""
    return f"{BY_KIND[kind].name} {quote(name)}{where}"


def patch_cluster(name: str, operations: Iterable[JsonObject]) -> str:
    """Change a cluster by a JSON patch."""
    text = json.dumps(list(operations), ensure_ascii=False, separators=(",", ":"))
    return f"kubectl patch {resource('InferenceCluster', name)} --type=json -p {quote(text)}"


def add_item(
    listed: list[Any] | None, path: str, item: JsonObject
) -> tuple[list[JsonObject], list[JsonObject]]:
    """The patch that appends to a list, None where there is none yet, and its reverse.

    A new list would replace one that was made since: for the API server, a `test` for null holds where there
    is nothing.
    """
    if not listed:
        nothing = {"op": "test", "path": path, "value": listed}
        return [nothing, {"op": "add", "path": path, "value": [item]}], _patch(path, [item])
    return [{"op": "add", "path": f"{path}/-", "value": item}], _patch(f"{path}/{len(listed)}", item)


def remove_item(listed: list[Any], path: str, index: int) -> tuple[list[JsonObject], list[JsonObject]]:
    """The patch that takes an item off a list, and its reverse."""
    at, item = f"{path}/{index}", listed[index]
    return _patch(at, item), [{"op": "add", "path": at, "value": item}]


def replace_item(
    listed: list[Any], path: str, index: int, item: JsonObject
) -> tuple[list[JsonObject], list[JsonObject]]:
    """The patch that replaces an item of a list, and its reverse."""
    at = f"{path}/{index}"
    return _patch(at, listed[index], item), _patch(at, item, listed[index])


def set_value(
    holder: JsonObject, path: str, key: str, value: Any
) -> tuple[list[JsonObject], list[JsonObject]]:
    """The patch that sets a field, and its reverse."""
    at = f"{path}/{key}"
    if holder.get(key) is None:
        return [{"op": "add", "path": at, "value": value}], [{"op": "remove", "path": at}]
    before = holder[key]
    return _patch(at, before, value), _patch(at, value, before)


def _patch(at: str, before: Any, after: Any = None) -> list[JsonObject]:
    """The patch that replaces a value, or without `after` removes it; it fails where another value stands."""
    operation = (
        {"op": "remove", "path": at} if after is None else {"op": "replace", "path": at, "value": after}
    )
    return [{"op": "test", "path": at, "value": before}, operation]


def move(namespace: str, deployment: str, replica: str) -> Commands:
    """Give up a replica while its deployment is paused, so that it cannot take its old place again."""
    target = resource("ModelDeployment", deployment, namespace)
    pause = f"kubectl annotate {target} {PAUSED_ANNOTATION}=true --overwrite"
    delete = f"kubectl delete {resource('ModelReplica', replica, namespace)}"
    return Commands((pause, delete), (f"kubectl annotate {target} {PAUSED_ANNOTATION}-",))


def reconcile_until(namespace: str, deployment: str, total: int) -> tuple[str, str]:
    """Ask a deployment to place what it misses, and wait until it has."""
    target = resource("ModelDeployment", deployment, namespace)
    now = f'kubectl annotate {target} {RECONCILE_ANNOTATION}="$(date +%s)" --overwrite'
    return now, f"kubectl wait {target} --for=jsonpath='{{.status.replicas.total}}'={total} --timeout=5m"


# The changes that an option of `whatif` names.

DRAIN_KEY = "fleet-scheduler.whatif/drain"
"""Key of the taint that stands for a drain: only a toleration of everything covers it."""


class Change(Protocol):
    """One edit of the files."""

    def apply(self, manifests: Manifests) -> Manifests:
        """Return the files as they would be. Raises BadInput when the edit does not apply."""

    def commands(self, manifests: Manifests) -> Commands:
        """The kubectl commands that do the same to the objects as they are before, and their reverse."""


@frozen
class SetTaint:
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
    def _taint(self) -> JsonObject:
        """The taint as it stands in a cluster."""
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, **value, "effect": self.effect}

    def _edit(self, content: JsonObject) -> None:
        """Put the taint into the list, or take it off.

        Raises:
            BadInput: where there is none to take off.
        """
        spec = spec_of(content)
        before = spec.get("taints") or []
        others = [taint for taint in before if not self._is(taint)]
        if self.remove and len(others) == len(before):
            raise BadInput(f"cluster {self.cluster} has no taint {self.key}:{self.effect}")
        added = [] if self.remove else [self._taint]
        spec["taints"] = [*others, *added]

    def _is(self, taint: object) -> bool:
        """Tell whether an entry is this taint: key and effect are what the API tells taints apart by."""
        return isinstance(taint, dict) and (taint.get("key"), taint.get("effect")) == (self.key, self.effect)


@frozen
class Drain(SetTaint):
    """Drain a cluster: a NoExecute taint that nobody expects."""

    key: str = DRAIN_KEY
    value: str = ""
    effect: str = "NoExecute"

    def __str__(self) -> str:
        """`drain use1`."""
        return f"drain {self.cluster}"


@frozen
class Delete:
    """Delete a cluster."""

    cluster: str

    def __str__(self) -> str:
        """`delete use1`."""
        return f"delete {self.cluster}"

    def apply(self, manifests: Manifests) -> Manifests:
        """Leave the cluster out."""
        gone = existing(manifests, "InferenceCluster", ("", self.cluster))
        left = [cluster for cluster in manifests["InferenceCluster"] if cluster.identity != gone.identity]
        return manifests.having("InferenceCluster", left)

    def commands(self, manifests: Manifests) -> Commands:  # noqa: ARG002 - as every change
        """Keep the object, and delete it; where the platform made the cluster, that is deleted too."""
        target, file = resource("InferenceCluster", self.cluster), quote(f"{self.cluster}.yaml")
        kept = f"kubectl get {target} -o yaml > {file}"
        return Commands((kept, f"kubectl delete {target}"), (f"kubectl create -f {file}",))


@frozen
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

    def _edit(self, content: JsonObject) -> None:
        """Change the declared count, and all that is published of the pool.

        Nodes that come are usable as soon as they are there, so `usable` grows along.

        Raises:
            BadInput: where there is no such pool.
        """
        status = content.get("status")
        published = pools_of(status.get("gpuPools") if isinstance(status, dict) else None)
        declared = pools_of(spec_of(content).get("nodePools"))
        if self.pool not in (*published, *declared):
            suggestion = closest(self.pool, {**declared, **published})
            raise BadInput(f'cluster {self.cluster} has no pool "{self.pool}"; {suggestion}')
        if self.pool in declared:
            pool = declared[self.pool]
            self._add(pool, _count_field(pool))
        if self.pool in published:
            pool = published[self.pool]
            self._add(pool, "nodes")
            usable = mapping(pool.get("usable"))
            if isinstance(usable.get("nodes"), int | float):
                usable["nodes"] = max(0, usable["nodes"] + self.nodes)
                if isinstance(usable.get("toCome"), int | float):
                    usable["toCome"] = max(0, usable["toCome"] + self.nodes)

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

    def _add(self, holder: JsonObject, field: str) -> None:
        """Add to one count. Raises BadInput where it is no number, or would fall below zero."""
        now = holder.get(field) or 0
        if isinstance(now, bool) or not isinstance(now, int | float):
            where = f"cluster {self.cluster}: pool {self.pool}: {field}"
            raise BadInput(f'{where}: expected a number, found "{now}"')
        if now + self.nodes < 0:
            raise BadInput(f"cluster {self.cluster}: pool {self.pool} has only {now} nodes to take away")
        holder[field] = now + self.nodes


def _count_field(pool: JsonObject) -> str:
    """The field that says how many nodes a declared pool has."""
    return "nodeCount" if pool.get("maxNodeCount") is None else "maxNodeCount"


def _section(manifests: Manifests, cluster: str, key: str) -> list[Any] | None:
    """A list of a cluster's spec; None where there is none."""
    listed = existing(manifests, "InferenceCluster", ("", cluster)).spec.get(key)
    return listed if isinstance(listed, list) else None


@frozen
class Replicas:
    """Want another number of replicas."""

    namespace: str
    name: str
    replicas: int

    def __str__(self) -> str:
        """`3 replicas of ml/chat`."""
        return f"{counted(self.replicas, 'replica')} of {self.namespace}/{self.name}"

    def apply(self, manifests: Manifests) -> Manifests:
        """Edit spec.replicas; a schema refuses a number that no API server takes."""
        where = (self.namespace, self.name)
        return edited(
            manifests, "ModelDeployment", where, lambda plain: spec_of(plain).update(replicas=self.replicas)
        )

    def commands(self, manifests: Manifests) -> Commands:
        """Scale it."""
        before = existing(manifests, "ModelDeployment", (self.namespace, self.name))
        scale = f"kubectl scale {resource('ModelDeployment', self.name, self.namespace)} --replicas"
        return Commands((f"{scale}={self.replicas}",), (f"{scale}={before.spec.get('replicas')}",))


# Apply whole files, as `kubectl apply` would.

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Where `kubectl apply` keeps the manifest it was given, so that it can tell what others set."""


@frozen
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
        """Replace or add every object; what is derived from a changed class or pool is derived anew.

        Faults of an object that is replaced go with it, and those of the new one come in their place.
        """
        given = self.manifests
        replaced = {manifest.key for listed in given.by_kind.values() for manifest in listed}
        kept = [issue for issue in manifests.issues if issue.manifest.key not in replaced]
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
        existing = {item.key for listed in manifests.by_kind.values() for item in listed}
        old = [item for item in given if item.key in existing]
        names = [
            f"before-{entry.kind.lower()}-{entry.namespace or 'cluster'}-{entry.name}.yaml" for entry in old
        ]
        titles = {item.key: resource(item.kind, item.name, item.namespace) for item in given}
        kept = [
            f"kubectl get {titles[item.key]} -o yaml | sed '/^  resourceVersion:/d' > {quote(file)}"
            for item, file in zip(old, names, strict=True)
        ]
        applied = [f"kubectl apply -f {quote(file)}" for file in self.files]
        replaced = [f"kubectl replace -f {quote(file)}" for file in names]
        deleted = [f"kubectl delete {title}" for key, title in titles.items() if key not in existing]
        return Commands((*kept, *applied), (*deleted, *replaced))


def _applied(manifests: Manifests, kind: str, new: Manifest) -> Manifests:
    """Add one object, or put it over the one of its name."""
    if not any(manifest.identity == new.identity for manifest in manifests[kind]):
        return manifests.having(kind, [*manifests[kind], new])
    return edited(manifests, kind, new.identity, partial(_overlay, new), overlay=True)


def _overlay(new: Manifest, content: JsonObject) -> None:
    """Put a manifest over an object; a cluster whose node pools change publishes anew.

    Pools that were published are forgotten only where the manifest changes the node pools and has no status
    of its own.
    """
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
    text = mapping(content, "metadata", "annotations").get(LAST_APPLIED)
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
    """The names of the InferenceClasses that are applied with another spec than they had."""
    class_specs = {manifest.name: manifest.content.get("spec") for manifest in before["InferenceClass"]}
    given = {manifest.name: manifest.content.get("spec") for manifest in applied}
    return {name for name, spec in given.items() if name in class_specs and class_specs[name] != spec}


def _uses(cluster: Manifest, classes: set[str]) -> bool:
    """Tell whether one of the node pools has one of these classes."""
    pools = pools_of(cluster.spec.get("nodePools"))
    return any(pool.get("className") in classes for pool in pools.values())


def _republish(content: JsonObject) -> None:
    """Forget the published pools: they are derived from node pools and classes, as the platform would."""
    status = content.get("status")
    if isinstance(status, dict):
        status.pop("gpuPools", None)
