"""A pool of nodes of a cluster: as it is declared, as it is published, and as the scheduler sees it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, dataclass_transform

from function.api.devices import Device, DeviceList, Devices, SharedDevices
from function.api.model import Model, Name, Nodes
from function.api.typed import Attributes
from function.boundary import PACKED
from function.cel import Subject, bind_node

if TYPE_CHECKING:
    from function.boundary import Shape


T = TypeVar("T")


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


DeviceKey: TypeAlias = tuple[SharedDevices | None, str]
"""A device list and the release that reads it; no list where none is published."""


@dataclass_transform(eq_default=False, frozen_default=True)
def _frozen_by_type(kind: type[T]) -> type[T]:
    """Make a dataclass that the type checker keeps frozen, as it does one with `frozen=True`.

    That one sets every field through `object.__setattr__`: 19,000 instructions for a pool instead of 7,000,
    and a fleet has thousands of pools.
    """
    return dataclass(eq=False)(kind)


@_frozen_by_type
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
    """What proves which fabric it is on: the InfiniBand id and the attribute; empty where there is none."""
    cel_version: str = ""
    """The release that reads selectors on its cluster, where the cluster says it."""
    shared: SharedDevices | None = None
    """What its device list shares with the lists of equal content, which are recognised by it."""

    @property
    def device_key(self) -> DeviceKey:
        """What tells its devices from those of other pools: equal keys have equal devices."""
        return (self.shared, self.cel_version)

    def shares_fabric(self, other: Pool) -> bool:
        """Whether both are proven to be on one fabric: an equal id, or an equal attribute."""
        pairs = zip(self.fabrics, other.fabrics, strict=True)
        return any(mine and mine == theirs for mine, theirs in pairs)

    @cached_property
    def node(self) -> Subject:
        """The pool as a CEL node selector sees it."""
        return bind_node(name=self.name, class_name=self.class_name, attributes=self.attributes)

    @cached_property
    def canonical(self) -> str:
        """What decides which engines it fits, as a text: equal texts fit the same engines."""
        return canonical_text([self.name, *self.parts[2:]])

    @property
    def parts(self) -> list[Any]:
        """What scheduling reads of it: the name, how many nodes, and what decides which engines it fits."""
        published = None if self.devices is None else [_device_parts(device) for device in self.devices]
        parts = [
            *(self.name, self.nodes, self.class_name, self.attributes, self.accounting, self.fabrics),
            published,
        ]
        return [*parts, self.cel_version] if self.cel_version else parts


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
    infiniband = fabric.infiniband.fabric if fabric and fabric.type in ("", "InfiniBand") else ""
    return Pool(
        name=published.name,
        nodes=published.nodes,
        devices=_read_by(published.devices, cel_version),
        class_name=published.class_name or (declared.class_name if declared else ""),
        attributes=attributes,
        accounting=accounting or "Node",
        fabrics=(infiniband, str(attributes.get(FABRIC_ATTRIBUTE, {}).get("string", ""))),
        cel_version=cel_version,
        shared=_shared(published.devices),
    )


def _shared(devices: tuple[Device, ...] | None) -> SharedDevices | None:
    """Return what a device list shares; one that is like no other shares it with nobody."""
    if devices is None or isinstance(devices, DeviceList):
        return devices.shared if devices is not None else None
    return SharedDevices(devices, 0)


def _read_by(devices: tuple[Device, ...] | None, cel_version: str) -> tuple[Device, ...] | None:
    """Return the devices as selectors of the cluster's release see them."""
    if not cel_version or devices is None:
        return devices
    return tuple(device.read_by(cel_version) for device in devices)


def _device_parts(device: Device) -> list[Any]:
    content = [device.driver, device.attributes, device.capacity, device.allow_multiple_allocations]
    return [device.name, device.claim, device.device_class_name, device.count, *content]


def canonical_text(parts: list[Any]) -> str:
    """Write values down so that equal values give equal texts."""
    return json.dumps(parts, sort_keys=True, separators=(",", ":"))


POOL_FIELDS: dict[str, Shape | None] = {
    "name": None,
    "nodes": None,
    "className": None,
    "devices": PACKED,
    "attributes": None,
    "accounting": None,
    "fabric": None,
}
"""The fields scheduling reads of a published pool."""
