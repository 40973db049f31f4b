"""Completes clusters as the platform would: published pools from node pools and classes, an assumed status.

A manifest of a cluster in a repository has no status, and a fleet in files should be plannable before it
exists. So pools are derived from `spec.nodePools` and their InferenceClasses, by the same functions that
the handler of clusters publishes with, and a missing status reads as Ready with a placeholder gateway.

Nothing that a file tells is changed; each assumption is said on standard error, equal ones in one line.
A pool whose class is missing tells no devices: it takes nothing new and keeps what runs there.

At the end stands what a cluster publishes by itself: its ResourceSlices, where files have them.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from function.api import ModelReplica, replica as replica_api
from function.api.declared_cluster import DEFAULT_NODES
from function.api.fault import path_of, shown_type
from function.api.model import mapping, mappings, whole
from function.boundary import PlainDocument, frozen
from function.cli.bad_input import BadInput, closest
from function.cli.text import listed
from function.cluster import publish
from function.cluster.classes import attributes_of, devices_of, with_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from function.boundary import JsonObject
    from function.cli.admission import FieldPath
    from function.cli.worlds.manifest import Manifest, Manifests

Classes: TypeAlias = "Mapping[str, Manifest]"
"""The InferenceClasses of the files, by name."""

PLACEHOLDER_GATEWAY = "gateway.invalid"
"""A gateway address that reaches nothing (RFC 2606)."""


@frozen
class Assumption:
    """A fact that a cluster does not state, with the assumed value."""

    cluster: str
    lacks: tuple[str, str]
    """The verb, of one cluster and of several."""
    what: str

    def __str__(self) -> str:
        """`cluster use1 has no status: assumed Ready, with a placeholder gateway`."""
        return f"cluster {self.cluster} {self.lacks[0]} {self.what}"


@dataclass(slots=True)
class Completed:
    """Clusters as the platform would complete them."""

    clusters: list[dict[str, Any]] = field(default_factory=list)
    assumptions: list[Assumption] = field(default_factory=list)
    accounting: str | None = None
    """The accounting of pools that do not say how they are charged."""
    arbitrate: bool = False
    """Clusters say who gives way to replicas that preempt."""
    faults: dict[tuple[str, str], str] = field(default_factory=dict)
    """Pools whose class is not in the files, by object and field: they do not tell their devices."""


def folded(assumptions: Iterable[Assumption]) -> Iterator[str]:
    """A line for each different assumption, whatever the number of clusters."""
    groups: dict[tuple[tuple[str, str], str], list[str]] = defaultdict(list)
    for assumption in assumptions:
        groups[assumption.lacks, assumption.what].append(assumption.cluster)
    for ((one, several), what), names in groups.items():
        if len(names) == 1:
            yield f"cluster {names[0]} {one} {what}"
        else:
            yield f"{len(names)} clusters {several} {what} ({listed(names)})"


def _nodes(pool: Mapping[str, Any]) -> int:
    """Published nodes: maxNodeCount, else nodeCount, else 1, as the platform publishes them."""
    stated = (pool.get(field) for field in ("maxNodeCount", "nodeCount"))
    return whole(next((count for count in stated if count is not None), DEFAULT_NODES))


def _class_devices(manifest: Manifest, at: int, name: object, into: Completed, classes: Classes) -> Any:
    """The devices of a class; None where it is not in the files, which costs only this pool.

    A pool that does not tell its devices takes nothing new, and what runs there stays and is charged.
    """
    if name is None:  # That it is missing, its schema says.
        return None
    if name not in classes:
        field = f"spec.nodePools[{at}].className"
        suggestion = closest(str(name), classes) if classes else "none is given"
        missing = f'no InferenceClass "{name}" in the files, so nothing new goes to the pool'
        into.faults[manifest.short_title, field] = f"{manifest.title}: {field}: {missing}; {suggestion}"
        return None
    content = classes[str(name)].content
    stated = mapping(content.get("spec"))
    if stated.get("from") is None:
        return stated.get("devices", [])
    try:
        return list(devices_of(content))
    except ValueError as error:
        text = f"{classes[str(name)].title}: {error}; nothing new goes to its pools"
        into.faults[classes[str(name)].short_title, "spec.from"] = text
        return None


def _pool(manifest: Manifest, at: int, pool: object, into: Completed, classes: Classes) -> dict[str, Any]:
    """A pool as the platform would publish it, from its entry in spec.nodePools. Raises BadInput."""
    if not isinstance(pool, dict):
        raise BadInput(f"{manifest.title}: spec.nodePools[{at}]: expected a map")
    try:
        nodes: object = _nodes(pool)
    except ValueError:
        nodes = pool.get("nodeCount")  # It is no number, which the reader of the cluster says.
    mirrored = {key: pool[key] for key in ("attributes", "accounting", "fabric") if key in pool}
    of_class = classes.get(str(pool.get("className")))
    with suppress(ValueError):  # Typed facts of a class that cannot be read: that is said elsewhere.
        if of_class is not None and (facts := attributes_of(of_class.content)):
            mirrored["attributes"] = with_class(mapping(pool.get("attributes")), facts)
    if into.accounting and mirrored.get("accounting") is None:
        mirrored["accounting"] = into.accounting
    devices = _class_devices(manifest, at, pool.get("className"), into, classes)
    published = {} if devices is None else {"devices": devices}
    return {"name": pool.get("name"), "nodes": nodes, **published, **mirrored}


def _complete(manifest: Manifest, into: Completed, classes: Classes) -> None:
    """Complete one cluster. Raises BadInput.

    A status without pools gets them from spec.nodePools. A cluster that publishes its pools is believed,
    whatever its spec says meanwhile.
    """
    content = manifest.content
    status = content.get("status")
    if status is None:
        declared = _declared_gateway(content)
        status = {
            "conditions": [{"type": "Ready", "status": "True"}],
            "gateway": {"address": declared or PLACEHOLDER_GATEWAY},
        }
        what = f"no status: assumed Ready, with {'the declared' if declared else 'a placeholder'} gateway"
        into.assumptions.append(Assumption(manifest.name, ("has", "have"), what))
    spec = content.get("spec")
    pools = spec.get("nodePools") if isinstance(spec, dict) else None
    if isinstance(status, dict) and status.get("gpuPools") is None and isinstance(pools, list) and pools:
        derived = [_pool(manifest, at, pool, into, classes) for at, pool in enumerate(pools)]
        status = {**status, "gpuPools": derived}
        what = "no pools: derived from nodePools and their classes"
        into.assumptions.append(Assumption(manifest.name, ("publishes", "publish"), what))
    if into.arbitrate and isinstance(status, dict):
        status = {"givesWay": [], **status}
    into.clusters.append({**content, "status": status})


def _declared_gateway(content: Mapping[str, Any]) -> str:
    """The address that a cluster which is there already declares, as its handler would publish it."""
    cluster = mapping(content, "spec", "cluster")
    address = mapping(cluster, "existing", "gateway").get("address")
    return address if isinstance(address, str) else ""


class ChargedClusters:
    """Clusters with what replicas hold of their pools, where they do not say it themselves.

    Each is charged once, and again when a replica is added to it.
    """

    def __init__(self, clusters: list[dict[str, Any]]) -> None:
        """Take the clusters, with nothing on them."""
        self._clusters = clusters
        self._here: dict[str, list[ModelReplica]] = defaultdict(list)
        self._places: dict[str, list[int]] = defaultdict(list)
        for at, cluster in enumerate(clusters):
            self._places[_name_of(cluster)].append(at)
        self._charged: list[PlainDocument | None] = [None] * len(clusters)
        self._documents: tuple[PlainDocument, ...] | None = None

    def add(self, replica: ModelReplica) -> None:
        """Put one replica on its cluster."""
        self._here[replica.cluster].append(replica)
        for at in self._places.get(replica.cluster, ()):
            self._charged[at] = self._documents = None

    @property
    def documents(self) -> tuple[PlainDocument, ...]:
        """The clusters as they publish it."""
        if self._documents is None:
            self._documents = tuple(map(self._document, range(len(self._clusters))))
        return self._documents

    def _document(self, at: int) -> PlainDocument:
        """One cluster with its charges, made anew only where a replica was added."""
        document, cluster = self._charged[at], self._clusters[at]
        if document is None:
            here = self._here[_name_of(cluster)]
            document = self._charged[at] = PlainDocument(_with_charges(cluster, here))
        return document


def _name_of(cluster: Mapping[str, Any]) -> str:
    """The name of a cluster."""
    return str(mapping(cluster.get("metadata")).get("name"))


def _with_charges(cluster: dict[str, Any], replicas: list[ModelReplica]) -> dict[str, Any]:
    """The cluster with what these replicas hold of each pool; as it is where it says so itself, or cannot."""
    status = mapping(cluster.get("status"))
    pools = status.get("gpuPools")
    if not isinstance(pools, list) or any("charged" in mapping(pool) or not mapping(pool) for pool in pools):
        return cluster
    declared = mapping(cluster.get("spec")).get("nodePools")
    by_name = {mapping(pool).get("name"): mapping(pool) for pool in declared or () if isinstance(pool, dict)}
    charged_by = {name: pool["accounting"] for name, pool in by_name.items() if pool.get("accounting")}
    stated = [
        {"accounting": charged_by[pool.get("name")], **pool} if pool.get("name") in charged_by else pool
        for pool in pools
    ]
    return {**cluster, "status": {**status, "gpuPools": publish.charge(_name_of(cluster), stated, replicas)}}


def arbitrated(
    clusters: list[dict[str, Any]], replicas: Iterable[dict[str, Any]]
) -> tuple[list[dict[str, Any]], set[str] | None]:
    """Return the clusters with who gives way on those that arbitrate, and those on which nobody has to.

    On the latter a replica that preempts has its nodes. None where no cluster arbitrates.

    A cluster names who gives way from what stands on it, so this is asked again in every round.
    """
    arbitrating = {
        _name_of(cluster)
        for cluster in clusters
        if isinstance(mapping(cluster.get("status")).get("givesWay"), list)
    }
    if not arbitrating:
        return clusters, None
    parsed = [replica_api.parse(PlainDocument(replica)) for replica in replicas]
    made, calm = [], set()
    for cluster in clusters:
        name, status = _name_of(cluster), mapping(cluster.get("status"))
        if name in arbitrating:
            named, over = publish.victims(name, mappings(status.get("gpuPools")), parsed)
            made.append({**cluster, "status": {**status, "givesWay": named}})
            calm |= set() if over else {name}
        else:
            made.append(cluster)
    return made, calm


def complete_all(manifests: Manifests) -> Completed:
    """Complete every cluster of the files, in the order of their names. Raises BadInput."""
    classes = {manifest.name: manifest for manifest in manifests["InferenceClass"]}
    configs = manifests["ClusterConfig"]
    stated = configs[0].content if configs else {}
    arbitrate = stated.get("preemption") == "Arbitrate"
    completed = Completed(accounting=stated.get("accounting"), arbitrate=arbitrate)
    for manifest in sorted(manifests["InferenceCluster"], key=lambda manifest: manifest.name):
        _complete(manifest, completed, classes)
    return completed


# ResourceSlices in files: held to the shape that every API server holds them to, and taken as they are.
#
# `drift`, `class` and `cluster` read slices from a cluster or from files. A cluster's are well-formed; those
# edited by hand need not be, and the readers below the command line trust the shape. So the first fault is
# said with its file, line and path, as of any other object. `v1beta1` keeps the attributes of a device one
# level further down. That a value is one that DRA takes (a quantity, a version) is seen where it is compared.

BASIC = "basic"
"""Where a device of `v1beta1` has its attributes and capacity."""


def slices_of(manifests: Manifests) -> list[JsonObject]:
    """Return the ResourceSlices of the files.

    Raises:
        BadInput: for one that no driver could have published.
    """
    for manifest in manifests["ResourceSlice"]:
        for path, kind, value in _faults(manifest.content):
            fault = f"{path_of(path)}: expected {kind}, found {shown_type(value)}"
            raise BadInput(f"{manifest.place(path)}: {manifest.short_title}: {fault}")
    return [manifest.content for manifest in manifests["ResourceSlice"]]


def _faults(content: JsonObject) -> Iterator[tuple[FieldPath, str, Any]]:
    """Yield each field that is not of the type which the API has for it: path, type and value."""
    spec = content.get("spec")
    if not isinstance(spec, dict):
        yield ("spec",), "a map", spec
        return
    pool, devices = spec.get("pool"), spec.get("devices", [])
    if not isinstance(pool, dict):
        yield ("spec", "pool"), "a map", pool
    else:
        for key in ("generation", "resourceSliceCount"):
            if not isinstance(pool.get(key), int):
                yield ("spec", "pool", key), "a whole number", pool.get(key)
    if not isinstance(devices, list | None):
        yield ("spec", "devices"), "a list", devices
        return
    for number, device in enumerate(devices or ()):
        yield from _of_device(device, ("spec", "devices", number))


def _of_device(device: Any, path: FieldPath) -> Iterator[tuple[FieldPath, str, Any]]:
    """Yield those of one device, likewise."""
    if not isinstance(device, dict):
        yield path, "a map", device
        return
    holder, above = (device[BASIC], (*path, BASIC)) if BASIC in device else (device, path)
    if not isinstance(holder, dict):
        yield above, "a map", holder
        return
    for key in ("attributes", "capacity"):
        entries = holder.get(key)
        if entries is None:
            continue
        if not isinstance(entries, dict):
            yield (*above, key), "a map", entries
            continue
        for name, entry in entries.items():
            if not isinstance(entry, dict):
                yield (*above, key, name), "a map", entry
