"""Count the nodes of every pool that new pods can be put on, from the nodes and slices that are observed.

Opt-in by the input's `capacity: Usable`. Without it a declared node counts, and a replica that is placed on a
pool whose nodes are cordoned or lost waits there for ever.

What takes a node away is an observation: it is gone, not Ready, cordoned, tainted, or its driver offers fewer
devices than the class says. Everything else is doubt, and a node in doubt counts (Law 2): one that was never
read, or was read last before the provider lost the cluster. Where nothing reliable is known at all (`Doubt`),
nothing is published, and the declared number counts.

    collections of nodes and slices ▶ Sighting of each member ▶ ObservedPool

Limits: the number is about new replicas. What runs stays, on whatever node it is, and other pods' use of a
node is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from function.api.declared_cluster import DeclaredPool
from function.api.model import condition_of, mapping, mappings, number, plain_of, string
from function.api.taints import GPU_TOLERATION, Toleration, read_taints, untolerated
from function.api.text import counted, listed
from function.boundary import Document, JsonObject, Request, Resolution, Reuse, Shape, Unreadable
from function.cluster.drift import (
    NodeDevices,
    carries,
    first_taint,
    node_labels_of,
    read_nodes,
    taints_of,
    type_fits,
)
from function.cluster.names import NODES, REQUIRED, SLICES, observes_capacity
from function.fail_static import Doubt
from function.objects import GONE

NOT_OBSERVED = "NotObserved"
NAMED = 3
"""Nodes of a pool that a message names."""


class Sighting(NamedTuple):
    """One object of the cluster, as an Object of a collection saw it."""

    manifest: JsonObject | None
    """The object when it was read last; None where it was never read."""
    gone: bool
    """Whether the cluster answered that it is not there any more."""
    current: bool
    """Whether the provider still reaches it: otherwise nothing is known since."""


_CONTENT: Shape = {
    "metadata": {"name": None, "labels": None, "deletionTimestamp": None},
    "spec": None,
    "status": {"conditions": None},
}
_SIGHTING: Shape = {
    "metadata": {"deletionTimestamp": None},
    "status": {"conditions": None, "atProvider": {"manifest": _CONTENT}},
}


def read_sighting(document: Document) -> Sighting:
    """Read one Object of a collection. What cannot be read was never read."""
    try:
        plain = document.project(_SIGHTING)
    except Unreadable:
        return Sighting(None, gone=False, current=False)
    status = mapping(plain.get("status"))
    manifest = mapping(status.get("atProvider")).get("manifest")
    synced, message = condition_of(status, "Synced")
    return Sighting(
        manifest if isinstance(manifest, dict) else None,
        gone=bool(mapping(plain.get("metadata")).get("deletionTimestamp"))
        or (synced is False and GONE in message),
        current=synced is True,
    )


@dataclass(frozen=True, slots=True)
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

    @property
    def nodes(self) -> int:
        """Nodes that new replicas can count on, never more than are declared."""
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


def usable_nodes(
    request: Request, pools: Iterable[DeclaredPool], classes: Mapping[str, Any], reuse: Reuse
) -> tuple[ObservedPool, ...] | Doubt | None:
    """Return what can be used of every pool whose class is known; None where nobody asks for it.

    `classes`: the device entries of each class, by its name.
    """
    if not observes_capacity(request):
        return None
    doubt = _doubt(request, NODES) or _doubt(request, SLICES)
    if doubt is not None:
        return doubt
    nodes, slices = (
        [
            sighting
            for document in request.required[REQUIRED[key]]
            if not (sighting := reuse.parsed(document, read_sighting)).gone
        ]
        for key in (NODES, SLICES)
    )
    if not any(node.manifest for node in nodes):
        return Doubt(NOT_OBSERVED, "No node of the cluster could be read")
    specs = [(sighting, mapping((sighting.manifest or {}).get("spec"))) for sighting in slices]
    inventory = _Inventory(
        read_nodes(sighting.manifest for sighting in slices if sighting.manifest),
        frozenset(string(spec.get("driver")) for _, spec in specs if not string(spec.get("nodeName"))),
        frozenset(string(spec.get("nodeName")) for sighting, spec in specs if not sighting.current),
        all(sighting.manifest for sighting in slices),
    )
    return tuple(
        _pool(pool, entries, nodes, inventory)
        for pool in pools
        if isinstance(entries := classes.get(pool.class_name), tuple) and entries
    )


def _doubt(request: Request, key: str) -> Doubt | None:
    """Say why nothing can be concluded from a collection: it is not there, not complete, or cut off."""
    what = "nodes" if key == NODES else "ResourceSlices"
    if key not in request.observed:
        return Doubt(NOT_OBSERVED, f"The {what} of the cluster are not observed yet")
    status = mapping(plain_of(request.observed[key]).get("status"))
    synced, message = condition_of(status, "Synced")
    if synced is False:
        return Doubt(NOT_OBSERVED, f"The {what} of the cluster cannot be listed: {message}")
    if condition_of(status, "Ready")[0] is not True:
        return Doubt(NOT_OBSERVED, f"The {what} of the cluster are not all observed yet")
    if request.resolution(REQUIRED[key]) is not Resolution.DELIVERED:
        return Doubt(NOT_OBSERVED, f"No {what} of the cluster were delivered")
    return None


class _Inventory(NamedTuple):
    """The devices of the nodes, as far as they are known."""

    by_node: Mapping[str, NodeDevices]
    elsewhere: frozenset[str]
    """Drivers that publish devices for other nodes than one: nothing is concluded from what a node lacks."""
    stale: frozenset[str]
    """Nodes of which some slice is not known now."""
    complete: bool
    """Whether every slice was read: one that was not may be of any node."""


def _pool(
    pool: DeclaredPool,
    entries: Sequence[JsonObject],
    nodes: Sequence[Sighting],
    inventory: _Inventory,
) -> ObservedPool:
    selector = node_labels_of(pool.name, pool.node_selector)
    unread = sum(node.manifest is None for node in nodes)
    there = doubtful = unread
    unusable = []
    for node in nodes:
        metadata = mapping((node.manifest or {}).get("metadata"))
        if node.manifest is None or not carries(mapping(metadata.get("labels")), selector):
            continue
        there += 1
        doubtful += not node.current
        # What was seen before the provider lost the cluster may be over: the node counts.
        why = _fault(node, pool, entries, inventory) if node.current else ""
        if why:
            unusable.append(f"{string(metadata.get('name')) or 'a node'} {why}")
    return ObservedPool(
        name=pool.name,
        declared=pool.nodes,
        there=there,
        unusable=tuple(sorted(unusable)),
        doubtful=doubtful,
        grows=pool.grows,
    )


def _fault(
    sighting: Sighting, pool: DeclaredPool, entries: Sequence[JsonObject], inventory: _Inventory
) -> str:
    """Say why no new pod of ours can use a node, "" where nothing says so."""
    node = sighting.manifest or {}
    metadata, spec = mapping(node.get("metadata")), mapping(node.get("spec"))
    if metadata.get("deletionTimestamp"):
        return "is being deleted"
    if any(
        condition.get("type") == "Ready" and condition.get("status") in ("False", "Unknown")
        for condition in mappings(mapping(node.get("status")).get("conditions"))
    ):
        return "is not Ready"
    if spec.get("unschedulable") is True:
        return "is cordoned"
    tolerations = []
    for toleration in (GPU_TOLERATION, *mappings(pool.tolerations)):
        try:
            stated = {key: value for key, value in toleration.items() if value}
            tolerations.append(Toleration.parse(stated))
        except ValueError:
            continue  # The API server takes no such toleration, so no pod has it.
    repelling = untolerated(read_taints(mappings(spec.get("taints"))), tolerations)
    if repelling:
        return f"has the taint {repelling[0]}"
    name = string(metadata.get("name"))
    if not inventory.complete or name in inventory.stale:
        # A slice that is not known may hold the devices that seem to be missing.
        return ""
    return _device_fault(entries, inventory.by_node.get(name), inventory.elsewhere)


def _device_fault(entries: Sequence[JsonObject], has: NodeDevices | None, elsewhere: frozenset[str]) -> str:
    """Say which devices of the class a node lacks, "" where it has all of them or that is not known."""
    claimed = [entry for entry in entries if entry.get("claim", "DRA") == "DRA"]
    wanted: Counter[str] = Counter()
    for entry in claimed:
        wanted[string(entry.get("driver"))] += number(entry.get("count"), 1)
    for driver in sorted(wanted):
        if driver in elsewhere or (has is not None and driver in has.unknown):
            continue
        if has is None or driver not in has.by_driver:
            return f"has no ResourceSlice of {driver}"
        devices, of_driver = has.by_driver[driver], [one for one in claimed if one.get("driver") == driver]
        anywhere = {taint for entry in of_driver for taint in taints_of(entry)}
        able = sum(not device.unexpected(anywhere) for device in devices)
        if able < wanted[driver]:
            return _short(driver, able, wanted[driver], first_taint(devices, anywhere))
        for entry in of_driver:
            count, expected = number(entry.get("count"), 1), taints_of(entry)
            fitting = sum(type_fits(entry, one) and not one.unexpected(expected) for one in devices)
            if fitting < count:
                what = string(entry.get("name")) or driver
                return _short(what, fitting, count, first_taint(devices, expected))
    return ""


def _short(what: str, able: int, wanted: int, taint: str) -> str:
    return f"has {able} of {wanted} {what}" + (f", others have the taint {taint}" if taint else "")
