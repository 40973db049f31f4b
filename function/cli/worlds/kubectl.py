"""Write the kubectl commands that make a change, and those that take it back. None is ever run here.

Lists are changed with JSON patches, whose `test` fails where the list is no longer the one that was read. A
line that begins with `#` is for the reader; the others can be piped to a shell.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Any

from function.api.names import PAUSED_ANNOTATION, RECONCILE_ANNOTATION
from function.cli.live.resources import BY_KIND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.boundary import JsonObject


@dataclass(frozen=True, slots=True)
class Commands:
    """What to run, and what takes it back, each in the order in which it is run."""

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
    verb = line.removeprefix("kubectl ")
    return line if verb == line else f"{kubectl} {verb}"


@dataclass(slots=True)
class Script:
    """Several changes, one after the other: the last is taken back first."""

    parts: list[Commands] = field(default_factory=list)

    @property
    def commands(self) -> Commands:
        """All of them."""
        apply = [line for part in self.parts for line in part.apply]
        revert = [line for part in reversed(self.parts) for line in part.revert]
        return Commands(tuple(apply), tuple(revert))


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
        return [nothing, {"op": "add", "path": path, "value": [item]}], _removed(path, [item])
    return [{"op": "add", "path": f"{path}/-", "value": item}], _removed(f"{path}/{len(listed)}", item)


def remove_item(listed: list[Any], path: str, index: int) -> tuple[list[JsonObject], list[JsonObject]]:
    """The patch that takes an item off a list, and its reverse."""
    at, item = f"{path}/{index}", listed[index]
    return _removed(at, item), [{"op": "add", "path": at, "value": item}]


def replace_item(
    listed: list[Any], path: str, index: int, item: JsonObject
) -> tuple[list[JsonObject], list[JsonObject]]:
    """The patch that replaces an item of a list, and its reverse."""
    at = f"{path}/{index}"
    return _replaced(at, listed[index], item), _replaced(at, item, listed[index])


def set_value(
    holder: JsonObject, path: str, key: str, value: Any
) -> tuple[list[JsonObject], list[JsonObject]]:
    """The patch that sets a field, and its reverse."""
    at = f"{path}/{key}"
    if holder.get(key) is None:
        return [{"op": "add", "path": at, "value": value}], [{"op": "remove", "path": at}]
    before = holder[key]
    return _replaced(at, before, value), _replaced(at, value, before)


def _removed(at: str, before: Any) -> list[JsonObject]:
    return [{"op": "test", "path": at, "value": before}, {"op": "remove", "path": at}]


def _replaced(at: str, before: Any, after: Any) -> list[JsonObject]:
    return [{"op": "test", "path": at, "value": before}, {"op": "replace", "path": at, "value": after}]


def scale(namespace: str, name: str, replicas: object) -> str:
    """Want another number of replicas."""
    return f"kubectl scale {resource('ModelDeployment', name, namespace)} --replicas={replicas}"


def delete_replica(namespace: str, replica: str) -> str:
    """Give up a replica; its deployment places another."""
    return f"kubectl delete {resource('ModelReplica', replica, namespace)}"


def move(namespace: str, deployment: str, replica: str) -> Commands:
    """Give up a replica while its deployment is paused, so that it cannot take its old place again."""
    target = resource("ModelDeployment", deployment, namespace)
    pause = f"kubectl annotate {target} {PAUSED_ANNOTATION}=true --overwrite"
    return Commands(
        (pause, delete_replica(namespace, replica)), (f"kubectl annotate {target} {PAUSED_ANNOTATION}-",)
    )


def reconcile_until(namespace: str, deployment: str, total: int) -> tuple[str, str]:
    """Ask a deployment to place what it misses, and wait until it has."""
    target = resource("ModelDeployment", deployment, namespace)
    now = f'kubectl annotate {target} {RECONCILE_ANNOTATION}="$(date +%s)" --overwrite'
    return now, f"kubectl wait {target} --for=jsonpath='{{.status.replicas.total}}'={total} --timeout=5m"
