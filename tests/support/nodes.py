"""The devices of one node, as capacity counts them, without a cluster around them."""

from __future__ import annotations

from function.api.cluster import PublishedPool, completed
from function.scheduler.budget import Budget
from function.scheduler.device_accounting import PoolDevices


def ample() -> Budget:
    """Steps enough for any packing of a test."""
    return Budget(1_000_000)


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
