"""Write what scheduling reads of a cluster as one canonical text: equal texts decide alike.

Equal texts decide alike. Resource versions, times and conditions other than Ready are not in it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from function.api.cluster import InferenceCluster, Pool
    from function.api.devices import Device


def canonical(cluster: InferenceCluster) -> str:
    """Write a cluster down."""
    declared = [pool.name for pool in cluster.spec.node_pools or ()]
    taints = sorted(str(taint) for taint in cluster.spec.taints)
    parts = [
        *(cluster.name, sorted(cluster.labels.items()), cluster.deleting, cluster.ready, cluster.gateway),
        *(taints, cluster.attributes, declared, [_pool(pool) for pool in cluster.pools]),
    ]
    return json.dumps(parts, sort_keys=True, separators=(",", ":"))


def canonical_pool(pool: Pool) -> str:
    """Write a pool down, without how many nodes it has: what decides which engines it fits."""
    return json.dumps([pool.name, *_pool(pool)[2:]], sort_keys=True, separators=(",", ":"))


def _pool(pool: Pool) -> list[Any]:
    published = None if pool.devices is None else [_device(device) for device in pool.devices]
    parts = [
        pool.name,
        pool.nodes,
        pool.class_name,
        pool.attributes,
        pool.accounting,
        pool.fabrics,
        published,
    ]
    return [*parts, pool.cel_version] if pool.cel_version else parts


def _device(device: Device) -> list[Any]:
    what = [device.driver, device.attributes, device.capacity, device.allow_multiple_allocations]
    return [device.name, device.claim, device.device_class_name, device.count, *what]
