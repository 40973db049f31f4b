"""InferenceCluster: a GPU cluster of the fleet, with the node pools it publishes.

Three forms of a pool: `NodePool` as it is declared in spec, `PublishedPool` as it stands in status, and
`Pool` as the scheduler sees it, the published one completed from the declaration. A cluster whose spec or
status cannot be read is unreadable as a whole: doubt, which removes nothing (docs/how-it-schedules.md, Law
2). Fields that no placement depends on (`Any` below) are read leniently and are never a fault.

A fleet has thousands of pools and most calls look at few. So everything derived is computed on first use,
equal device lists are one object (`api.devices`), and `canonical` tells by one text if two states of a
cluster decide the same. `SHAPE` names the fields that are read: a reader of bytes decodes no others.
"""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias

from pydantic import Field, model_validator

from function.api import model
from function.api.devices import Attributes, Device, DeviceList, Devices, SharedDevices
from function.api.model import STANDARD, CelVersion, ConditionStatus, Model, Name, condition, mapping, number
from function.api.taints import Taint
from function.api.text import latest, seconds_of
from function.boundary import Shape, frozen
from function.cel.subject import Subject, bind_node

# A pool of nodes of a cluster: as it is declared, as it is published, and as the scheduler sees it.

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
"""Writes values down so that equal values give equal texts."""


class InfiniBand(Model):
    """The identity of an InfiniBand fabric."""

    fabric: str = ""


class Fabric(Model):
    """The network between the nodes of a pool."""

    type: str = ""
    infiniband: InfiniBand = InfiniBand.model_construct()


class NodePool(Model):
    """A node pool as the platform engineer declared it in `spec.nodePools`."""

    name: Name
    class_name: str = ""
    attributes: Attributes | None = None
    accounting: Literal["Node", "Device"] | None = None
    across_nodes: Literal["Required"] | None = None
    """Whether pods of one engine are kept on different nodes, by a rule of the pods themselves."""
    fabric: Fabric | None = None


class PublishedPool(Model):
    """A pool as the platform published it in `status.gpuPools`."""

    name: Name
    nodes: model.Nodes = 0
    class_name: str = ""
    devices: Devices | None = None
    attributes: Attributes | None = None
    accounting: Literal["Node", "Device"] | None = None
    fabric: Fabric | None = None
    overcommitted: Any = None
    """True where its replicas hold more than it has; anything else is no fault of the pool."""
    usable: Any = None
    """Observations of its nodes; whatever stands there, it is no fault of the pool."""

    @property
    def unusable(self) -> int:
        """Nodes that are declared and known to be of no use; none where that is in doubt."""
        usable = number(mapping(self.usable).get("nodes"), self.nodes)
        return self.nodes - usable if 0 <= usable < self.nodes else 0

    @property
    def to_come(self) -> int:
        """Of the nodes that can be counted on, those that are added once they are needed."""
        later = number(mapping(self.usable).get("toCome"), 0)
        return later if 0 < later <= self.nodes - self.unusable else 0


DeviceKey: TypeAlias = tuple[SharedDevices | None, str]
"""A device list and the release that reads it; no list where none is published."""


@frozen(slots=False, eq=False)
class Pool:
    """A pool as the scheduler sees it: what is published, completed from the declaration."""

    name: str
    nodes: int
    devices: tuple[Device, ...] | None
    """None: no list is published; empty: a list of none is."""
    class_name: str
    attributes: dict[str, Any]
    accounting: Literal["Node", "Device"]
    fabrics: tuple[str, str]
    """Evidence of the fabric it is on: the InfiniBand id and the attribute; empty where there is none."""
    cel_version: str = ""
    """The release that reads selectors on its cluster, where the cluster says it."""
    across_nodes: bool = False
    """Whether no two pods of an engine may share a node."""
    shared: SharedDevices | None = None
    """The devices that its list shares with lists of equal content, which are recognised by them."""
    unusable: int = 0
    """Of its nodes, those that new replicas cannot count on."""
    to_come: int = 0
    """Of the others, those that are not there yet and are added once they are needed."""

    @property
    def device_key(self) -> DeviceKey:
        """A key of the pool's devices: pools with equal keys have equal devices."""
        return (self.shared, self.cel_version)

    def shares_fabric(self, other: Self) -> bool:
        """Tell whether both are proven to be on one fabric: an equal id, or an equal attribute."""
        pairs = zip(self.fabrics, other.fabrics, strict=True)
        return any(mine and mine == theirs for mine, theirs in pairs)

    @cached_property
    def node(self) -> Subject:
        """The pool as a CEL node selector sees it."""
        return bind_node(name=self.name, class_name=self.class_name, attributes=self.attributes)

    @cached_property
    def canonical(self) -> str:
        """A text of everything that decides which engines fit the pool: equal texts fit the same engines."""
        return CANONICAL.encode([self.name, *self.parts[2:]])

    @property
    def parts(self) -> list[Any]:
        """The pool's name, its number of nodes, and the text that decides which engines fit."""
        published = None if self.devices is None else [_device_parts(device) for device in self.devices]
        uneven = self.unusable or self.to_come
        return [
            self.name,
            (self.nodes, self.unusable, self.to_come) if uneven else self.nodes,
            self.class_name,
            self.attributes,
            self.accounting,
            self.fabrics,
            published,
            *([self.cel_version] if self.cel_version else []),
            *(["across nodes"] if self.across_nodes else []),
        ]


FABRIC_ATTRIBUTE = "modelplane.ai/fabric"


def completed(published: PublishedPool, declared: NodePool | None, cel_version: str) -> Pool:
    """Complete what is published of a pool from its declaration."""
    attributes = published.attributes or {}
    accounting = published.accounting
    fabric = published.fabric
    if declared is not None:
        attributes = {**(declared.attributes or {}), **attributes}
        accounting = accounting or declared.accounting
        fabric = fabric or declared.fabric
    devices, shared = published.devices, None
    if devices is not None:  # A device list that occurs once shares what it has with no other.
        shared = devices.shared if isinstance(devices, DeviceList) else SharedDevices(devices, 0)
        if cel_version:
            devices = tuple(device.read_by(cel_version) for device in devices)
    infiniband = fabric.infiniband.fabric if fabric and fabric.type in ("", "InfiniBand") else ""
    return Pool(
        name=published.name,
        nodes=published.nodes,
        devices=devices,
        class_name=published.class_name or (declared.class_name if declared else ""),
        attributes=attributes,
        accounting=accounting or "Node",
        fabrics=(infiniband, str(attributes.get(FABRIC_ATTRIBUTE, {}).get("string", ""))),
        cel_version=cel_version,
        across_nodes=bool(declared and declared.across_nodes),
        shared=shared,
        unusable=published.unusable,
        to_come=published.to_come,
    )


def _device_parts(device: Device) -> list[Any]:
    """Return what decides which requests fit a device.

    Taints only where there are some: a device without has the text that it had before there were taints.
    """
    content = [device.driver, device.attributes, device.capacity, device.allow_multiple_allocations]
    taints = sorted(str(taint) for taint in device.taints)
    return [
        *(device.name, device.claim, device.device_class_name, device.count, *content),
        *([taints] if taints else []),
    ]


MAX_POOLS, MAX_TAINTS = 8, 16
"""Entries of the lists of a cluster, as the XRDs bound them; more are a fault of the cluster. The ways to put
an engine on several pools of one fabric grow with the number of pools to the power of its members."""


class ClusterSpec(model.StackSpec):
    """The part of a cluster that its platform engineer declares."""

    taints: Annotated[tuple[Taint, ...], Field(max_length=MAX_TAINTS)] = ()
    node_pools: Annotated[tuple[NodePool, ...], Field(max_length=MAX_POOLS)] = ()
    attributes: Attributes | None = None
    cel_version: CelVersion | None = None
    """The Kubernetes release that reads selectors here; the function's input says it for all others."""


class Gateway(Model):
    """Where the cluster's replicas are reached."""

    address: str = ""


class ClusterStatus(Model):
    """The part of a cluster that the platform publishes."""

    conditions: tuple[ConditionStatus, ...] = ()
    gateway: Gateway = Gateway.model_construct()
    gpu_pools: Annotated[tuple[PublishedPool, ...], Field(max_length=MAX_POOLS)] = ()
    attributes: Attributes | None = None
    heartbeat: Any = None
    """When the cluster was last seen alive; whatever stands there, it is no fault of the cluster."""
    gives_way: Any = None
    """Replicas that give way here; a list, also an empty one, says that the cluster arbitrates."""


class NamedVictim(NamedTuple):
    """A replica that a cluster names to give way, and to whom."""

    uid: str
    to: str
    """Namespace and name of the deployment that preempts, with a slash."""
    class_name: str
    quota: str = ""
    """The quotas to whose guarantee it returns what it borrowed; empty where it gives way to the class."""


class InferenceCluster(model.Named):
    """One cluster of the fleet. Its name is unique there."""

    spec: ClusterSpec = ClusterSpec.model_construct()
    status: ClusterStatus | None = None

    @model_validator(mode="after")
    def _pool_names(self) -> Self:
        """Refuse a name that is published twice: what is charged there would be anybody's."""
        names = [pool.name for pool in self.published]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f'status.gpuPools: the name "{twice[0]}" is published twice')
        return self

    @property
    def labels(self) -> dict[str, str]:
        """The surface that clusterSelector matches."""
        return self.metadata.labels

    @property
    def deleting(self) -> bool:
        """Tell whether the cluster is being deleted."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def ready(self) -> bool | None:
        """The condition Ready; None when unknown."""
        return condition(self.status.conditions, "Ready") if self.status else None

    @property
    def reached(self) -> bool:
        """Tell whether the control plane says that it reaches the cluster: condition ClusterReachable."""
        return bool(self.status and condition(self.status.conditions, "ClusterReachable"))

    @cached_property
    def heartbeat(self) -> int | None:
        """When the cluster was last seen alive, by its own clock; None where nothing legible is published."""
        return seconds_of(self.status.heartbeat) if self.status else None

    @cached_property
    def unready_since(self) -> int | None:
        """Since when it is not Ready, and at most as long as it exists; None where that is not known."""
        if self.ready is not False or self.status is None:
            return None
        transitions = [
            condition_row.last_transition_time
            for condition_row in self.status.conditions
            if condition_row.type == "Ready"
        ]
        return latest([*transitions, *filter(None, [self.metadata.creation_timestamp])])

    @property
    def gateway(self) -> str:
        """The gateway's address; empty when there is none."""
        return self.status.gateway.address if self.status else ""

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Typed facts about the whole cluster."""
        published = (self.status.attributes if self.status else None) or {}
        return {**(self.spec.attributes or {}), **published}

    @property
    def published(self) -> tuple[PublishedPool, ...]:
        """The entries of `status.gpuPools` as they stand there; none where nothing is published."""
        return self.status.gpu_pools if self.status else ()

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """The published pools as the scheduler sees them, in the order they are published.

        One that the declaration no longer has is left out: what would be placed there would be mismatched.
        """
        declared = {pool.name: pool for pool in self.spec.node_pools}
        usable = (pool for pool in self.published if not declared or pool.name in declared)
        cel_version = self.spec.cel_version or ""
        return tuple(completed(pool, declared.get(pool.name), cel_version) for pool in usable)

    @cached_property
    def device_keys(self) -> tuple[DeviceKey, ...]:
        """The devices of its pools: clusters with equal keys match the same members."""
        return tuple(pool.device_key for pool in self.pools)

    @cached_property
    def canonical(self) -> str:
        """A text of everything that scheduling reads of the cluster: equal texts decide the same.

        Resource versions, times and conditions other than Ready are not in it.
        """
        declared = [pool.name for pool in self.spec.node_pools]
        taints = sorted(str(taint) for taint in self.spec.taints)
        parts = [
            *(self.name, sorted(self.labels.items()), self.deleting, self.ready, self.gateway),
            *(taints, self.attributes, declared, [pool.parts for pool in self.pools]),
        ]
        if self.spec.stack != STANDARD:
            parts.append(self.spec.dialect)
        if self.overcommitted:
            parts.append(sorted(self.overcommitted))
        parts += ({mark: sorted(pools)} for mark, pools in self.marked.items() if pools)
        if self.arbitrates:
            parts.append({"givesWay": sorted(self.gives_way.values())})
        return CANONICAL.encode(parts)

    @cached_property
    def overcommitted(self) -> frozenset[str]:
        """The pools that hold more than they have, as far as the cluster says so."""
        return frozenset(pool.name for pool in self.published if pool.overcommitted is True)

    @cached_property
    def marked(self) -> dict[Literal["exceeded", "awaiting"], frozenset[str]]:
        """The pools that hold more than can be used of them, and more than is there yet, if it says so."""
        usable = {pool.name: pool.usable for pool in self.published if isinstance(pool.usable, dict)}
        exceeded, awaiting = (
            frozenset(name for name, stated in usable.items() if stated.get(mark) is True)
            for mark in ("exceeded", "awaiting")
        )
        return {"exceeded": exceeded, "awaiting": awaiting}

    @cached_property
    def unusable_nodes(self) -> dict[tuple[str, str], int]:
        """Nodes that new replicas cannot count on, by its name and the pool's: of pools that have some."""
        lacking = (pool for pool in self.published if pool.usable is not None and pool.unusable)
        return {(self.name, pool.name): pool.unusable for pool in lacking}

    @cached_property
    def nodes_to_come(self) -> dict[tuple[str, str], int]:
        """Nodes that are added once they are needed, by its name and the pool's: of pools that have some."""
        growing = (pool for pool in self.published if pool.usable is not None and pool.to_come)
        return {(self.name, pool.name): pool.to_come for pool in growing}

    @property
    def arbitrates(self) -> bool:
        """Tell whether the cluster says which replicas give way to those that preempt."""
        return self.status is not None and isinstance(self.status.gives_way, list)

    @cached_property
    def gives_way(self) -> dict[str, NamedVictim]:
        """The replicas that are named to give way, by uid. An entry that cannot be read names nobody."""
        named = model.mappings(self.status.gives_way) if self.status else []
        entries = [
            NamedVictim(
                *(model.string(entry.get(field)) for field in ("uid", "to", "priorityClassName", "quota"))
            )
            for entry in named
        ]
        return {entry.uid: entry for entry in entries if all(entry[:2]) and (entry.class_name or entry.quota)}

    @cached_property
    def by_name(self) -> dict[str, Pool]:
        """The published pools by name."""
        return {pool.name: pool for pool in self.pools}

    @cached_property
    def node_counts(self) -> dict[tuple[str, str], int]:
        """The nodes of its pools, by its name and theirs: what a ledger opens with."""
        return {(self.name, pool.name): pool.nodes for pool in self.pools}

    @cached_property
    def counts_devices(self) -> bool:
        """Tell whether some pool charges devices instead of whole nodes.

        Most clusters state it nowhere: their pools are not completed to learn that.
        """
        stated = {
            *(pool.accounting for pool in self.published),
            *(declared.accounting for declared in self.spec.node_pools),
        }
        return "Device" in stated and any(pool.accounting == "Device" for pool in self.pools)

    @property
    def shared(self) -> Iterator[SharedDevices]:
        """The device lists that the cluster publishes and may share with other clusters."""
        for pool in self.published:
            if isinstance(pool.devices, DeviceList):
                yield pool.devices.shared

    def decides_like(self, other: Self) -> bool:
        """Tell whether scheduling reads the same of both, times aside: only evacuation reads these."""
        return (
            self.metadata == other.metadata
            and self.spec == other.spec
            and _published(self.status) == _published(other.status)
        )

    def lost(self, pool: str) -> bool:
        """Tell whether the declaration (present and not empty) no longer has the pool."""
        declared = self.spec.node_pools
        return bool(declared) and all(entry.name != pool for entry in declared)


_COMPARED_APART = ("heartbeat", "conditions")


def _published(status: ClusterStatus | None) -> tuple[Any, ...]:
    """All that is published but the times: the heartbeat, and when each condition became what it is."""
    if status is None:
        return ()
    stated = [(condition_row.type, condition_row.status) for condition_row in status.conditions]
    return stated, {field: value for field, value in status if field not in _COMPARED_APART}


_METADATA = ("name", "labels", "uid", "creationTimestamp", "deletionTimestamp")
SHAPE: Shape = model.shape_of(InferenceCluster) | {"metadata": dict.fromkeys(_METADATA)}
"""The fields scheduling reads of an InferenceCluster."""
CHARGED_SHAPE: Shape = {"status": {"gpuPools": {"name": None, "charged": None}}}
"""The fields that say what is charged to its pools."""
