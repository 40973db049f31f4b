"""The devices of one node, as capacity counts them, without a cluster around them."""

from __future__ import annotations

from function.api.cluster import PublishedPool, completed
from function.scheduler.device_accounting import PoolDevices


def node(*entries: tuple[str, int]) -> PoolDevices:
    """A node with so many devices of some classes."""
    devices = [
        {"name": f"e{at}", "driver": name, "deviceClassName": name, "count": count, "attributes": {}}
        for at, (name, count) in enumerate(entries)
    ]
    return node_of(devices)


def node_of(devices: list[dict[str, object]]) -> PoolDevices:
    """A node with these device entries."""
    published = PublishedPool.parse({"name": "p", "nodes": 1, "devices": devices})
    return PoolDevices(completed(published, None, ""))
