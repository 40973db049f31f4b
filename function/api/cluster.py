"""InferenceCluster: a GPU cluster of the fleet, with the node pools it publishes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BeforeValidator, model_validator

from function.api.canonical import canonical
from function.api.fault import Malformed
from function.api.model import Claim, ConditionStatus, Count, Metadata, Model, Name, Nodes, condition
from function.api.taints import Taint
from function.api.typed import Attributes, Capacity
from function.cel import Subject, bind_device, bind_node
from function.exchange import PACKED

if TYPE_CHECKING:
    from function.exchange import Packed, Shape

from typing import Annotated


class Device(Model):
    """One device entry of a node: so many equal devices of one driver on every node of the pool."""

    name: str = ""
    claim: Claim = "DRA"
    driver: Name
    device_class_name: str = ""
    count: Count = 1
    attributes: Attributes = {}
    capacity: Capacity = {}
    allow_multiple_allocations: bool = False

    @model_validator(mode="after")
    def _claimable(self) -> Device:
        if self.claim == "DRA" and not self.device_class_name:
            raise ValueError("deviceClassName: required for claim DRA, but missing")
        return self

    @property
    def claimable(self) -> bool:
        """Whether a pod can bind this device through a DRA claim."""
        return self.claim == "DRA"

    @cached_property
    def domains(self) -> frozenset[str]:
        """The domains it publishes something in: its driver's, and those that names are qualified with."""
        named = (name.partition("/") for held in (self.attributes, self.capacity) for name in held)
        return frozenset({self.driver, *(domain for domain, slash, _ in named if slash)})

    @cached_property
    def subject(self) -> Subject:
        """The device as a CEL selector sees it."""
        return bind_device(
            driver=self.driver,
            attributes=self.attributes,
            capacity=self.capacity,
            allow_multiple=self.allow_multiple_allocations,
        )


class _Content:
    """A device list that arrived plain, compared by content."""

    __slots__ = ("_key", "_plain")

    def __init__(self, plain: object) -> None:
        self._plain = plain
        self._key = json.dumps(plain, sort_keys=True)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and self._key == other._key

    @property
    def size(self) -> int:
        return len(self._key)

    def plain(self) -> object:
        return self._plain


_LARGE = 16 * 1024
"""Bytes of a device list that are far more than any real node publishes."""


def _read(content: Packed) -> tuple[Device, ...] | None:
    """The one device list of a content, converted for selectors once; None when it has a fault."""
    plain = content.plain()
    if not isinstance(plain, list):
        return None
    try:
        return tuple(Device.parse(each) for each in plain)
    except Malformed:
        return None


_interned = lru_cache(maxsize=4_096)(_read)
_interned_large = lru_cache(maxsize=64)(_read)


def _intern(devices: object) -> object:
    """Replace a readable device list by the one of its content; pydantic names the faults of the others."""
    packed: Any = _Content(devices) if isinstance(devices, list) else devices
    if not hasattr(packed, "plain"):
        return devices
    found = _interned(packed) if packed.size < _LARGE else _interned_large(packed)
    return packed.plain() if found is None else found


Devices = Annotated[tuple[Device, ...], BeforeValidator(_intern)]


class InfiniBand(Model):
    """The identity of an InfiniBand fabric."""

    fabric: str = ""


class Fabric(Model):
    """The network between the nodes of a pool."""

    type: str = ""
    infiniband: InfiniBand = InfiniBand()


class NodePool(Model):
    """A node pool as the platform engineer declared it in `spec.nodePools`."""

    name: Name
    class_name: str = ""
    attributes: Attributes | None = None
    accounting: Literal["Node", "Device"] | None = None
    fabric: Fabric | None = None
    node_count: Any = None
    max_node_count: Any = None


class PublishedPool(Model):
    """A pool as the platform published it in `status.gpuPools`."""

    name: Name
    nodes: Nodes = 0
    class_name: str = ""
    devices: Devices | None = None
    attributes: Attributes | None = None
    accounting: Literal["Node", "Device"] | None = None
    fabric: Fabric | None = None


@dataclass(frozen=True, eq=False)
class Pool:
    """A pool as the scheduler sees it: what is published, completed from the declaration."""

    name: str
    nodes: int
    devices: tuple[Device, ...] | None
    """None: not told which devices; empty: told that there are none."""
    class_name: str
    attributes: dict[str, Any]
    accounting: Literal["Node", "Device"]
    fabrics: tuple[str, str]
    """What proves which fabric it is on: the InfiniBand id and the attribute; empty where there is none."""

    def shares_fabric(self, other: Pool) -> bool:
        """Whether both are proven to be on one fabric: an equal id, or an equal attribute."""
        pairs = zip(self.fabrics, other.fabrics, strict=True)
        return any(mine and mine == theirs for mine, theirs in pairs)

    @cached_property
    def node(self) -> Subject:
        """The pool as a CEL node selector sees it."""
        return bind_node(name=self.name, class_name=self.class_name, attributes=self.attributes)

    @cached_property
    def shape(self) -> tuple[int, ...] | None:
        """What decides a match on its devices: pools of equal shape match the same members.

        Device lists of equal content are one object (`_interned`), so identities will do. They mean
        something only as long as the pools live: within one pass.
        """
        return None if self.devices is None else tuple(map(id, self.devices))


FABRIC_ATTRIBUTE = "modelplane.ai/fabric"


def _pool(published: PublishedPool, declared: NodePool | None) -> Pool:
    attributes = published.attributes or {}
    accounting = published.accounting
    fabric = published.fabric
    if declared is not None:
        attributes = {**(declared.attributes or {}), **attributes}
        accounting = accounting or declared.accounting
        fabric = fabric or declared.fabric
    infiniband = fabric.infiniband.fabric if fabric and fabric.type in ("", "InfiniBand") else ""
    return Pool(
        name=published.name,
        nodes=published.nodes,
        devices=published.devices,
        class_name=published.class_name or (declared.class_name if declared else ""),
        attributes=attributes,
        accounting=accounting or "Node",
        fabrics=(infiniband, str(attributes.get(FABRIC_ATTRIBUTE, {}).get("string", ""))),
    )


class ClusterSpec(Model):
    """What the platform engineer declared."""

    taints: tuple[Taint, ...] = ()
    node_pools: tuple[NodePool, ...] | None = None
    attributes: Attributes | None = None


class Gateway(Model):
    """Where the cluster's replicas are reached."""

    address: str = ""


class ClusterStatus(Model):
    """What the platform published."""

    conditions: tuple[ConditionStatus, ...] = ()
    gateway: Gateway = Gateway()
    gpu_pools: tuple[PublishedPool, ...] | None = None
    attributes: Attributes | None = None


class InferenceCluster(Model):
    """One cluster of the fleet."""

    metadata: Metadata
    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus | None = None

    @model_validator(mode="after")
    def _pool_names(self) -> InferenceCluster:
        names = [pool.name for pool in self.status.gpu_pools or ()] if self.status else []
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f'status.gpuPools: the name "{twice[0]}" is published twice')
        return self

    @cached_property
    def name(self) -> str:
        """The cluster's name, unique in the fleet."""
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        """The surface that clusterSelector matches."""
        return self.metadata.labels

    @property
    def deleting(self) -> bool:
        """Whether the cluster is being deleted."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def ready(self) -> bool | None:
        """The condition Ready; None when not told."""
        return condition(self.status.conditions, "Ready") if self.status else None

    @property
    def gateway(self) -> str:
        """The gateway's address; empty when there is none."""
        return self.status.gateway.address if self.status else ""

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Typed facts about the whole cluster."""
        published = (self.status.attributes if self.status else None) or {}
        return {**(self.spec.attributes or {}), **published}

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """The published pools, in the order they are published.

        One that the declaration no longer has is left out: what would be placed there would be mismatched.
        """
        declared = {pool.name: pool for pool in self.spec.node_pools or ()}
        published = (self.status.gpu_pools or ()) if self.status else ()
        known = (pool for pool in published if not declared or pool.name in declared)
        return tuple(_pool(pool, declared.get(pool.name)) for pool in known)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """The shapes of its pools."""
        return tuple(pool.shape for pool in self.pools)

    @cached_property
    def canonical(self) -> str:
        """What scheduling reads of it, as a text: equal texts decide alike."""
        return canonical(self)

    @cached_property
    def by_name(self) -> dict[str, Pool]:
        """The published pools by name."""
        return {pool.name: pool for pool in self.pools}

    @cached_property
    def counts_devices(self) -> bool:
        """Whether some pool charges devices instead of whole nodes."""
        return any(pool.accounting == "Device" for pool in self.pools)

    def lost(self, pool: str) -> bool:
        """Whether the declaration (present and not empty) no longer has the pool."""
        declared = self.spec.node_pools
        return bool(declared) and all(each.name != pool for each in declared or ())


SHAPE: Shape = {
    "metadata": {"name": None, "labels": None, "uid": None, "deletionTimestamp": None},
    "spec": {
        "taints": None,
        "attributes": None,
        "nodePools": {
            "name": None,
            "className": None,
            "attributes": None,
            "accounting": None,
            "fabric": None,
        },
    },
    "status": {
        "conditions": {"type": None, "status": None},
        "gateway": {"address": None},
        "gpuPools": {
            "name": None,
            "nodes": None,
            "className": None,
            "devices": PACKED,
            "attributes": None,
            "accounting": None,
            "fabric": None,
        },
        "attributes": None,
    },
}
"""The fields scheduling reads of an InferenceCluster."""
