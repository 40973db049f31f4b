"""Count the nodes of every pool that new pods can be put on, from the nodes and slices that are observed.

Opt-in by the input's `capacity: Usable`. Without it a declared node counts, and a replica that is placed on a
pool whose nodes are cordoned or lost waits there for ever.

What takes a node away is an observation: it is gone, not Ready, cordoned, tainted, or its driver offers fewer
devices than the class says; with `tenants: Charge`, also that others hold some of its devices. A taint that
all devices of an entry have takes none away: the entry is published with it, for requests that tolerate it.
Everything else is doubt, and a node in doubt counts (Law 2): one that was never read, or was read last before
the provider lost the cluster. Where nothing reliable is known at all (`Doubt`), nothing is published, and the
declared number counts.

    collections of nodes, slices, taint rules, claims ▶ Sighting of each member ▶ ObservedPool

Limits: the number is about new replicas. What runs stays, on whatever node it is. Pods hold devices by their
claims; what they take of a node's CPU and memory is not looked at, as it is not of ours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from function import boundary
from function.api import ModelReplica
from function.api.declared_cluster import DeclaredPool
from function.api.devices import MAX_DEVICE_TAINTS
from function.api.model import KSERVE, condition_of, mapping, mappings, number, plain_of, string
from function.api.taints import GPU_TOLERATION, Taint, Toleration, read_taints, untolerated
from function.api.text import counted, listed
from function.boundary import PACKED, Document, JsonObject, Packed, Request, Resolution, Reuse, Shape, text_at
from function.boundary.memory import Memo
from function.cluster import drift, names
from function.fail_static import Doubt
from function.objects import GONE

T = TypeVar("T")

NOT_OBSERVED = "NotObserved"
NAMED = 3
"""Nodes of a pool that a message names."""


class Sighting(NamedTuple, Generic[T]):
    """One object of the cluster, as an Object of a collection saw it."""

    content: T | None
    """The object as it was seen last; None where it was never read."""
    gone: bool
    """True once the cluster answered that the object is not there any more."""
    current: bool
    """True while the provider reaches it: otherwise nothing is known since."""


class SeenNode(NamedTuple):
    """The facts about a Node that decide whether pods can use its devices."""

    name: str
    labels: JsonObject
    fault: str
    """What keeps pods off it, taints aside; empty where nothing does."""
    taints: tuple[Taint, ...]

    @classmethod
    def read(cls, manifest: JsonObject) -> SeenNode:
        """Read one leniently."""
        metadata, spec = mapping(manifest.get("metadata")), mapping(manifest.get("spec"))
        conditions = mappings(mapping(manifest.get("status")).get("conditions"))
        fault = ""
        # What kube-scheduler refuses a pod, in the order in which a person would look.
        if metadata.get("deletionTimestamp"):
            fault = "is being deleted"
        elif any(one.get("type") == "Ready" and one.get("status") in _NOT_READY for one in conditions):
            fault = "is not Ready"
        elif spec.get("unschedulable") is True:
            fault = "is cordoned"
        taints = spec.get("taints")
        if isinstance(taints, Packed) and len(taints.key) <= MAX_TAINT_KEY:
            read = _TAINTS.of(taints.key, taints)
        else:
            read = read_taints(taints.plain() if isinstance(taints, Packed) else taints)
        return cls(string(metadata.get("name")), mapping(metadata.get("labels")), fault, read)


MAX_TAINT_KEY = 8_192
"""Bytes of taints that are remembered between calls: no real node states more, and so little is kept."""
_TAINTS: Memo[Packed, tuple[Taint, ...]] = Memo(lambda packed: read_taints(packed.plain()), 256)
"""The nodes of a pool have the same taints: those of a whole cluster are read once."""
_NOT_READY = ("False", "Unknown")
_CONDITIONS: Shape = dict.fromkeys(("type", "status", "message"))
_TAINT: Shape = dict.fromkeys(("key", "value", "effect"))
_NODE: Shape = {
    "metadata": dict.fromkeys(("name", "labels", "deletionTimestamp")),
    "spec": {"unschedulable": None, "taints": PACKED},
    "status": {"conditions": dict.fromkeys(("type", "status"))},
}
_RULE: Shape = {"spec": {"deviceSelector": None, "taint": _TAINT}}
_CLAIM: Shape = {
    "metadata": {"ownerReferences": dict.fromkeys(("kind", "name"))},
    "status": {
        "allocation": {"devices": {"results": dict.fromkeys(("driver", "pool", "device", "adminAccess"))}}
    },
}


def _slice(driver: str) -> Shape:
    """Return what is read of a ResourceSlice of a driver: of a device, what tells its kind (`type_fits`)."""
    names_of = (*drift.KINDS, *(f"{driver}/{kind}" for kind in drift.KINDS))
    content: Shape = {"attributes": dict.fromkeys(names_of), "taints": _TAINT}
    pool: Shape = dict.fromkeys(("name", "generation", "resourceSliceCount"))
    devices: Shape = {"name": None, "basic": content, **content}
    return {"spec": {"driver": None, "nodeName": None, "pool": pool, "devices": devices}}


_SLICES: Memo[str, Shape] = Memo(_slice, 64)
"""A cluster has thousands of slices, of few drivers."""


def _read(shape: Shape, read: Callable[[JsonObject], T], document: Document) -> Sighting[T]:
    """Read one Object of a collection. What cannot be read was never read."""
    seen: Shape = {"conditions": _CONDITIONS, "atProvider": {"manifest": shape}}
    plain = plain_of(document, {"metadata": {"deletionTimestamp": None}, "status": seen})
    status = mapping(plain.get("status"))
    manifest = mapping(status.get("atProvider")).get("manifest")
    synced, message = condition_of(status, "Synced")
    deleted = bool(mapping(plain.get("metadata")).get("deletionTimestamp"))
    return Sighting(
        read(manifest) if manifest and isinstance(manifest, dict) else None,
        gone=deleted or (synced is False and GONE in message),
        current=synced is True,
    )


def read_slice(document: Document) -> Sighting[drift.PublishedSlice]:
    """Read what was seen of a ResourceSlice."""
    driver = text_at(document, "status", "atProvider", "manifest", "spec", "driver")
    return _read(_SLICES.of(driver, driver), drift.PublishedSlice.read, document)


read_node = partial(_read, _NODE, SeenNode.read)
read_rule = partial(_read, _RULE, mapping)  # DeviceTaintRules.
read_claim = partial(_read, _CLAIM, mapping)  # ResourceClaims.


@boundary.frozen
class ObservedPool:
    """The nodes of one pool as they were seen."""

    name: str
    declared: int
    there: int
    """Nodes that carry its label, or might: a node that was never read may be of any pool."""
    unusable: tuple[str, ...]
    """Nodes that are there and of no use, each with the reason."""
    doubtful: int
    """Nodes that count though nothing is known of them now."""
    grows: bool
    """Whether nodes that are not there are added when they are needed."""
    tainted: tuple[tuple[str, tuple[Taint, ...]], ...] = ()
    """Entries with the taints that all their devices have, beyond those that the class states."""
    unseen: str = ""
    """Objects that were to be looked at and cannot be: that takes nothing away."""

    @property
    def nodes(self) -> int:
        """Nodes that new replicas can count on, never more than are declared."""
        # A pool that grows has its missing nodes as soon as something needs them.
        to_come = max(0, self.declared - self.there) if self.grows else 0
        return max(0, min(self.declared, self.there - len(self.unusable) + to_come))

    @property
    def to_come(self) -> int:
        """Of these, nodes that are not there yet and are added once they are needed."""
        return max(0, self.nodes - (self.there - len(self.unusable)))

    def __str__(self) -> str:
        """`h200: 3 of 4 nodes can be used: gpu-7 is not Ready`."""
        missing = self.declared - self.there
        lost = [f"{counted(missing, 'node')} missing"] if missing > 0 and not self.grows else []
        why = listed([*lost, *self.unusable], NAMED)
        return f"{self.name}: {self.nodes} of {counted(self.declared, 'node')} can be used: {why}"

    @property
    def taints(self) -> str:
        """`h200: all gpu have the taint burn-in:NoSchedule`; empty where no entry has one."""
        texts = [
            f"all {name} have the taint {listed([str(taint) for taint in of], NAMED)}"
            for name, of in self.tainted
        ]
        return f"{self.name}: {', '.join(texts)}" if texts else ""


def usable_nodes(
    request: Request,
    pools: Iterable[DeclaredPool],
    classes: Mapping[str, Any],
    replicas: Sequence[ModelReplica] | None,
    reuse: Reuse,
) -> tuple[ObservedPool, ...] | Doubt | None:
    """Return what can be used of every pool whose class is known; None where nobody asks for it.

    `classes`: the device entries of each class, by its name. `replicas`: those on the cluster, where known.
    """
    if not request.asks("capacity", "Usable"):
        return None
    doubt = _doubt(request, names.NODES) or _doubt(request, names.SLICES)
    if doubt is not None:
        return doubt

    def seen(key: str, reader: Callable[[Document], Sighting[T]]) -> list[Sighting[T]]:
        """Return what was seen of a collection, and is not gone."""
        documents = request.required.get(names.REQUIRED[key], ())
        return [one for document in documents if not (one := reuse.parsed(document, reader)).gone]

    nodes, slices = seen(names.NODES, read_node), seen(names.SLICES, read_slice)
    rules, claims = seen(names.TAINT_RULES, read_rule), seen(names.CLAIMS, read_claim)
    if not any(node.content for node in nodes):
        return Doubt(NOT_OBSERVED, "No node of the cluster could be read")
    unseen = [
        doubt.message
        for key in names.OPTIONAL
        if names.asks_for(request, key) and (doubt := _doubt(request, key))
    ]
    published = [one.content for one in slices if one.content is not None]
    by_node = drift.read_nodes(published)
    current = [rule.content for rule in rules if rule.content and rule.current]
    taint_rules = drift.TaintRules(drift.LiveRules(taints=current))
    if names.asks_for(request, names.TAINT_RULES):
        by_node = {name: taint_rules.tainted(has) for name, has in by_node.items()}
    on_kserve = text_at(request.composite, "spec", "stack") == KSERVE
    inventory = _Inventory(
        {name: _NodeKinds.of(has) for name, has in by_node.items()},
        frozenset(one.driver for one in published if not one.node),
        frozenset(one.content.node for one in slices if one.content is not None and not one.current),
        len(published) == len(slices),
        _held_by_others(claims, replicas, by_node, SERVICE_PREFIX if on_kserve else PREFIX)
        if names.asks_for(request, names.CLAIMS) and not _doubt(request, names.CLAIMS)
        else {},
    )
    return tuple(
        replace(_pool(pool, entries, nodes, inventory), unseen="; ".join(unseen))
        for pool in pools
        if isinstance(entries := classes.get(pool.class_name), tuple) and entries
    )


def _doubt(request: Request, key: str) -> Doubt | None:
    """Say why nothing can be concluded from a collection: it is not there, not complete, or cut off."""
    what = {names.NODES: "nodes", names.SLICES: "ResourceSlices", names.CLAIMS: "ResourceClaims"}.get(
        key, "DeviceTaintRules"
    )
    if key not in request.observed:
        return Doubt(NOT_OBSERVED, f"The {what} of the cluster are not observed yet")
    status = mapping(plain_of(request.observed[key]).get("status"))
    synced, message = condition_of(status, "Synced")
    if synced is False:
        return Doubt(NOT_OBSERVED, f"The {what} of the cluster cannot be listed: {message}")
    if condition_of(status, "Ready")[0] is not True:
        return Doubt(NOT_OBSERVED, f"The {what} of the cluster are not all observed yet")
    resolution = request.resolution(names.REQUIRED[key])
    # A cluster without nodes is doubt; one on which nobody claims anything, or taints, is not.
    if resolution is Resolution.UNRESOLVED or (key not in names.OPTIONAL and resolution is Resolution.ABSENT):
        return Doubt(NOT_OBSERVED, f"No {what} of the cluster were delivered")
    return None


class _NodeKinds(NamedTuple):
    """The devices of a node by driver, for drivers whose slices are all there: one of each kind."""

    by_driver: Mapping[str, Sequence[tuple[drift.PublishedDevice, int]]]
    """With how many of its kind there are."""
    unknown: frozenset[str]
    key: Hashable
    """Nodes with equal keys have the same devices, as far as anybody here asks."""

    @classmethod
    def of(cls, has: drift.NodeDevices) -> _NodeKinds:
        """Group devices of the same kind and the same taints."""
        by_driver, key = {}, []
        for driver, devices in has.by_driver.items():
            kinds: dict[Hashable, list[drift.PublishedDevice]] = defaultdict(list)
            for device in devices:
                kinds[drift.kind_of(device), device.taints].append(device)
            by_driver[driver] = [(of[0], len(of)) for of in kinds.values()]
            key += [(driver, kind, len(of)) for kind, of in kinds.items()]
        return cls(by_driver, has.unknown, (frozenset(key), frozenset(by_driver), has.unknown))


class _Inventory(NamedTuple):
    """The devices of the nodes, as far as they are known."""

    by_node: Mapping[str, _NodeKinds]
    elsewhere: frozenset[str]
    """Drivers that publish devices for other nodes than one: nothing is concluded from what a node lacks."""
    stale: frozenset[str]
    """Nodes of which some slice is not known now."""
    complete: bool
    """Whether every slice was read: one that was not may be of any node."""
    taken: Mapping[tuple[str, str], int]
    """Devices that others hold, by node and driver."""


MAX_OWNERS = 8
"""Owners of a claim that are looked at: Kubernetes gives one that it makes for a pod just that pod."""
PREFIX, SERVICE_PREFIX = 31, 13
"""Characters of a replica's name with which the names of its pods begin, however long they are: where we make
the workloads, and where KServe does."""


def _held_by_others(
    claims: Iterable[Sighting[JsonObject]],
    replicas: Sequence[ModelReplica] | None,
    by_node: Mapping[str, drift.NodeDevices],
    prefix: int,
) -> dict[tuple[str, str], int]:
    """Count the devices that claims of others hold, by node and driver. None while ours are not known.

    Pods of ours have names that begin with their replica's, behind `m-` where that begins with a digit. What
    was seen before the provider lost the cluster, and a claim with administrative access, hold nothing.
    """
    node_of = {
        (driver, device.pool): node
        for node, has in by_node.items()
        for driver, devices in has.by_driver.items()
        for device in devices
    }
    ours = {replica.name[:prefix].replace(".", "-").rstrip("-") for replica in replicas or ()}
    lengths = {len(beginning) for beginning in ours}
    # From Kubernetes 1.36 on several claims may have shares of one device.
    held: defaultdict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for sighting in claims if replicas is not None else ():
        claim = sighting.content or {}
        owners = [
            string(owner.get("name")).removeprefix("m-").replace(".", "-")
            for owner in mappings(mapping(claim.get("metadata")).get("ownerReferences"))[:MAX_OWNERS]
            if owner.get("kind") == "Pod"
        ]
        if not sighting.current or any(owner[:length] in ours for owner in owners for length in lengths):
            continue
        allocated = mapping(claim, "status", "allocation", "devices")
        for result in mappings(allocated.get("results")):
            driver, pool = string(result.get("driver")), string(result.get("pool"))
            node = node_of.get((driver, pool))
            if node is not None and result.get("adminAccess") is not True:
                held[node, driver].add((pool, string(result.get("device"))))
    return {where: len(devices) for where, devices in held.items()}


def _pool(
    pool: DeclaredPool,
    entries: Sequence[JsonObject],
    nodes: Sequence[Sighting[SeenNode]],
    inventory: _Inventory,
) -> ObservedPool:
    """Count what can be used of one pool: its nodes that are there, less those of no use now."""
    selector = drift.node_labels_of(pool.name, pool.node_selector)
    unread = sum(node.content is None for node in nodes)
    here = [
        (node.content, node.current)
        for node in nodes
        if node.content is not None and selector.items() <= node.content.labels.items()
    ]
    there = unread + len(here)
    # What was seen before the provider lost the cluster may be over: the node counts.
    tolerations = _tolerations(pool)
    repelling: Memo[tuple[Taint, ...], tuple[Taint, ...]] = Memo(
        lambda taints: untolerated(taints, tolerations)
    )
    faults = {}
    for node, current in here:
        left = repelling.of(node.taints, node.taints) if current and not node.fault else ()
        if current:
            faults[node.name] = f"has the taint {left[0]}" if left else node.fault
    # What a node seems to lack, a slice that is not known may hold.
    unknown = inventory.stale if inventory.complete else faults.keys()
    sound = [name for name, why in faults.items() if not why and name not in unknown]
    doubtful = unread + sum(not current for _, current in here)
    # A node that is added may come without the taint, and so may one that is not known.
    whole = len(sound) == sum(not why for why in faults.values()) and not doubtful
    tainted = _tainted(entries, sound, inventory) if whole and not (pool.grows and there < pool.nodes) else ()
    expected = [
        {**entry, "taints": [*entry.get("taints", ()), *(taint.model_dump() for taint in taints)]}
        for entry in entries
        for taints in (dict(tainted).get(string(entry.get("name")), ()),)
    ]
    lacking: Memo[_NodeKinds | None, str] = Memo(partial(_device_fault, expected, inventory.elsewhere))
    for name in sound:
        has = inventory.by_node.get(name)
        faults[name] = lacking.of(has and has.key, has) or _taken(expected, name, inventory)
    return ObservedPool(
        name=pool.name,
        declared=pool.nodes,
        there=there,
        unusable=tuple(sorted(f"{name or 'a node'} {why}" for name, why in faults.items() if why)),
        doubtful=doubtful,
        grows=pool.grows,
        tainted=tainted,
    )


def _tainted(
    entries: Iterable[JsonObject], nodes: Iterable[str], inventory: _Inventory
) -> tuple[tuple[str, tuple[Taint, ...]], ...]:
    """Return the entries all of whose devices have a taint that the class does not state, on every node."""
    inventories = [inventory.by_node[node] for node in nodes if node in inventory.by_node]
    # By driver and kind, and not for every entry anew: the taints that all its devices have.
    of_kinds: dict[str, dict[tuple[str, ...], set[Taint]]] = defaultdict(dict)
    for driver, devices in (item for has in inventories for item in has.by_driver.items()):
        kinds = of_kinds[driver]
        for device, _ in devices:
            kind = drift.kind_of(device)
            kinds[kind] = kinds.get(kind, {*device.taints}).intersection(device.taints)
    tainted = []
    for entry in entries:
        driver = string(entry.get("driver"))
        if driver in inventory.elsewhere or any(driver in has.unknown for has in inventories):
            continue  # A device that is not seen may be without the taint.
        wanted, kinds = drift.kind_wanted(entry), of_kinds.get(driver, {})
        shared = [taints for kind, taints in kinds.items() if drift.kinds_fit(wanted, kind)]
        common = set.intersection(*shared) - set(read_taints(entry.get("taints"))) if shared else set()
        stated = tuple(sorted(common, key=str)[: MAX_DEVICE_TAINTS - len(read_taints(entry.get("taints")))])
        if stated:
            tainted.append((string(entry.get("name")), stated))
    return tuple(tainted)


def _taken(entries: Iterable[JsonObject], node: str, inventory: _Inventory) -> str:
    """Say that others hold devices of a node, "" where they hold none that replicas may claim."""
    drivers = {string(entry.get("driver")) for entry in entries if entry.get("claim", "DRA") == "DRA"}
    taken = sum(inventory.taken.get((node, driver), 0) for driver in drivers)
    return f"has {counted(taken, 'device')} that others claim" if taken else ""


def _tolerations(pool: DeclaredPool) -> list[Toleration]:
    """Return what pods of ours tolerate of the nodes of a pool."""
    tolerations = []
    for toleration in (GPU_TOLERATION, *mappings(pool.tolerations)):
        try:
            stated = {key: value for key, value in toleration.items() if value}
            tolerations.append(Toleration.parse(stated))
        except ValueError:
            continue  # The API server takes no such toleration, so no pod has it.
    return tolerations


def _device_fault(entries: Sequence[JsonObject], elsewhere: frozenset[str], has: _NodeKinds | None) -> str:
    """Say which devices of the class a node lacks, "" where it has all of them or that is not known."""
    claimed = [entry for entry in entries if entry.get("claim", "DRA") == "DRA"]
    wanted: Counter[str] = Counter()
    for entry in claimed:
        wanted[string(entry.get("driver"))] += number(entry.get("count"), 1)
    for driver in sorted(wanted):
        if driver in elsewhere or (has is not None and driver in has.unknown):
            continue  # A slice of another kind, or one that is not seen, may have what this node lacks.
        if has is None or driver not in has.by_driver:
            return f"has no ResourceSlice of {driver}"
        kinds, of_driver = has.by_driver[driver], [one for one in claimed if one.get("driver") == driver]
        devices = [device for device, _ in kinds]
        anywhere = {taint for entry in of_driver for taint in read_taints(entry.get("taints"))}
        able = sum(of_kind for device, of_kind in kinds if not device.unexpected(anywhere))
        if able < wanted[driver]:
            return _short(driver, able, wanted[driver], drift.first_taint(devices, anywhere))
        for entry in of_driver:
            count, expected = number(entry.get("count"), 1), read_taints(entry.get("taints"))
            fitting = sum(
                of_kind
                for device, of_kind in kinds
                if drift.type_fits(entry, device) and not device.unexpected(expected)
            )
            if fitting < count:
                what = string(entry.get("name")) or driver
                return _short(what, fitting, count, drift.first_taint(devices, expected))
    return ""


def _short(what: str, able: int, wanted: int, taint: str) -> str:
    """Return the phrase for too few of something, with the taint that keeps the others away."""
    return f"has {able} of {wanted} {what}" + (f", others have the taint {taint}" if taint else "")
