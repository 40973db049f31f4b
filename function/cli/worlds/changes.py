"""Changes: what `whatif` does to the files before it plans them, each as an edit of the YAML.

A change knows how to edit the manifests (`apply`), which kubectl commands do the same to the objects and
which take them back (`commands`), and how it reads in a heading (`str`). The order in which several are
made is the command's business.

Edits go through `worlds.apply.edited`: a value that an API server would refuse is refused here.
"""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, Protocol

from function.api.model import mapping
from function.cli.bad_input import BadInput, closest
from function.cli.text import counted
from function.cli.worlds.apply import (
    Commands,
    add_item,
    edited,
    existing,
    patch_cluster,
    pools_of,
    remove_item,
    replace_item,
    resource,
    scale,
    set_value,
    spec_of,
)

if TYPE_CHECKING:
    from function.boundary import JsonObject
    from function.cli.worlds.manifest import Manifests

DRAIN_KEY = "fleet-scheduler.whatif/drain"
"""Key of the taint that stands for a drain: only a toleration of everything covers it."""


class Change(Protocol):
    """One edit of the files."""

    def apply(self, manifests: Manifests) -> Manifests:
        """Return the files as they would be. Raises BadInput when the edit does not apply."""

    def commands(self, manifests: Manifests) -> Commands:
        """The kubectl commands that do the same to the objects as they are before, and their reverse."""


@dataclass(frozen=True, slots=True)
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
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, **value, "effect": self.effect}

    def _edit(self, content: JsonObject) -> None:
        spec = spec_of(content)
        before = spec.get("taints") or []
        others = [taint for taint in before if not self._is(taint)]
        if self.remove and len(others) == len(before):
            raise BadInput(f"cluster {self.cluster} has no taint {self.key}:{self.effect}")
        added = [] if self.remove else [self._taint]
        spec["taints"] = [*others, *added]

    def _is(self, taint: object) -> bool:
        return isinstance(taint, dict) and (taint.get("key"), taint.get("effect")) == (self.key, self.effect)


@dataclass(frozen=True, slots=True)
class Drain(SetTaint):
    """Drain a cluster: a NoExecute taint that nobody expects."""

    key: str = DRAIN_KEY
    value: str = ""
    effect: str = "NoExecute"

    def __str__(self) -> str:
        """`drain use1`."""
        return f"drain {self.cluster}"


@dataclass(frozen=True, slots=True)
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

    def _edit(self, content: JsonObject) -> None:
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


@dataclass(frozen=True, slots=True)
class Replicas:
    """Want another number of replicas."""

    namespace: str
    name: str
    replicas: int

    def __str__(self) -> str:
        """`3 replicas of ml/chat`."""
        return f"{counted(self.replicas, 'replica')} of {self.namespace}/{self.name}"

    def apply(self, manifests: Manifests) -> Manifests:
        """Edit spec.replicas."""
        return edited(manifests, "ModelDeployment", (self.namespace, self.name), self._edit)

    def _edit(self, content: JsonObject) -> None:
        spec_of(content)["replicas"] = self.replicas

    def commands(self, manifests: Manifests) -> Commands:
        """Scale it."""
        where = (self.namespace, self.name)
        wanted = existing(manifests, "ModelDeployment", where).spec.get("replicas")
        return Commands((scale(*where, self.replicas),), (scale(*where, wanted),))
