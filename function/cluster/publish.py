"""Publish a cluster: its pools with their devices, how it is reached, and what it can do.

Law C 3: what another kind relies on keeps its last value until it is observed to be different. A pool whose
class is undelivered, gone or unreadable is published as before; one that never was is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.declared_cluster import DeclaredCluster
from function.api.lenient import mapping, mappings, string
from function.api.names import SYSTEM_NAMESPACE
from function.api.times import seconds_of, text_of
from function.cluster.charges import charge
from function.cluster.names import CLASS_PREFIX, GATEWAY, HEARTBEAT, LEADER_WORKER_SET
from function.cluster.observe import look, presence
from function.cluster.snapshot import MissingClass
from function.gateway_api import first_address

if TYPE_CHECKING:
    from function.api.declared_cluster import DeclaredPool
    from function.cluster.snapshot import ClusterSnapshot

HEARTBEAT_STEP = 300
"""Seconds between two published heartbeats: far below the least that an evacuation may wait for."""

MIRRORED = ("className", "attributes", "accounting", "fabric")
"""Fields of a declared pool that are published with it where our XRD declares them."""


def publish(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """Return the status."""
    cluster, before = snapshot.cluster, snapshot.status
    status: dict[str, Any] = {
        key: before[key] for key in ("providerConfigRef", "namespace", "gateway", "cache") if key in before
    }
    if isinstance(cluster, DeclaredCluster):
        published = pools(snapshot, cluster)
        if published or not snapshot.missing or "gpuPools" in before:
            status["gpuPools"] = published
        if cluster.existing is not None and not snapshot.missing:
            status |= {"providerConfigRef": {"name": snapshot.provider_config}, "namespace": SYSTEM_NAMESPACE}
            if cluster.existing.cache.storage_class_name:
                status["cache"] = {"storageClassName": cluster.existing.cache.storage_class_name}
    elif "gpuPools" in before:
        status["gpuPools"] = before["gpuPools"]
    address = gateway_address(snapshot)
    if address:
        status["gateway"] = {"address": address}
    beat = heartbeat(snapshot)
    if beat:
        status["heartbeat"] = beat
    if snapshot.config.publish == "Attributes":
        status["capabilities"] = capabilities(snapshot)
    elif "capabilities" in before and not isinstance(cluster, DeclaredCluster):
        status["capabilities"] = before["capabilities"]
    return status


def heartbeat(snapshot: ClusterSnapshot) -> str:
    """Return when the cluster was last seen alive; the last that was published while nothing new is legible.

    Cut to whole steps: the lease is renewed every few seconds, and each new value is a write that whoever
    watches the cluster receives.
    """
    if snapshot.config.heartbeat is None and isinstance(snapshot.cluster, DeclaredCluster):
        return ""
    observed = look(snapshot, HEARTBEAT)
    renewed = seconds_of(mapping((observed.remote or {}).get("spec")).get("renewTime")) if observed else None
    if renewed is None:
        last = snapshot.before.get("heartbeat")
        return string(last)
    return text_of(renewed - renewed % HEARTBEAT_STEP)


def pools(snapshot: ClusterSnapshot, cluster: DeclaredCluster) -> list[dict[str, Any]]:
    """Return the pools in the order of the spec: those whose class has devices, or that were published."""
    last = {string(pool.get("name")): pool for pool in mappings(snapshot.before.get("gpuPools"))}
    published = (_pool(snapshot, pool, last.get(pool.name)) for pool in cluster.spec.node_pools)
    made = [pool for pool in published if pool is not None]
    if snapshot.config.publish != "Attributes" or snapshot.replicas is None:
        return made
    return charge(cluster.name, made, snapshot.replicas)


def overcommitted(status: dict[str, Any]) -> bool:
    """Whether some replica is asked to give way: the next reading should come soon."""
    return any("givesWay" in mapping(pool.get("charged")) for pool in mappings(status.get("gpuPools")))


def _pool(
    snapshot: ClusterSnapshot, declared: DeclaredPool, last: dict[str, Any] | None
) -> dict[str, Any] | None:
    devices = snapshot.classes.get(declared.class_name)
    if devices is None or isinstance(devices, MissingClass):
        return last
    if not devices:
        return None
    pool: dict[str, Any] = {"name": declared.name, "nodes": declared.nodes, "devices": list(devices)}
    if snapshot.config.publish == "Attributes":
        stated = declared.model_dump(mode="json", by_alias=True, exclude_unset=True)
        pool |= {key: stated[key] for key in MIRRORED if stated.get(key) is not None}
        if last is not None and "charged" in last:
            pool["charged"] = last["charged"]
    return pool


def gateway_address(snapshot: ClusterSnapshot) -> str:
    """Return where replicas are reached: the stack's word, the declared one, the Gateway's, the last one."""
    from_stack = mapping(snapshot.stack_status.get("gateway")).get("address")
    cluster = snapshot.cluster
    existing = cluster.existing if isinstance(cluster, DeclaredCluster) else None
    observed = look(snapshot, GATEWAY)
    first = first_address(observed.remote_status) if observed else ""
    declared = existing.gateway.address if existing else ""
    last = mapping(snapshot.status.get("gateway")).get("address")
    candidates = (from_stack, declared, first, last)
    return next((address for address in candidates if isinstance(address, str) and address), "")


def capabilities(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """Return what was seen on the cluster: Present, Absent, or Unknown."""
    classes = {
        key.removeprefix(CLASS_PREFIX): presence(observed_object)
        for key, observed_object in snapshot.observed.items()
        if key.startswith(CLASS_PREFIX)
    }
    return {
        "gateway": presence(look(snapshot, GATEWAY)),
        "leaderWorkerSet": presence(look(snapshot, LEADER_WORKER_SET)),
        **({"deviceClasses": classes} if classes else {}),
    }
