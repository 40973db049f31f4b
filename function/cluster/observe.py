"""Observe-only Objects: what a cluster must have, looked at and never touched.

CustomResourceDefinitions are never observed: the one of LeaderWorkerSet would put over 600 kB into a status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.declared_cluster import DeclaredCluster
from function.api.names import SYSTEM_NAMESPACE
from function.cluster.names import CLASS_PREFIX, GATEWAY, HEARTBEAT, LEADER_WORKER_SET
from function.cluster.snapshot import MissingClass
from function.fail_static import base_of, key_of
from function.objects import GONE, OBSERVE, composed_object, identity_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.api.cluster_config import ClusterConfig
    from function.cluster.snapshot import ClusterSnapshot
    from function.objects import ObservedObject

_ABSENT = (
    GONE,
    "no matches for kind",
    "could not find the requested resource",
)
"""What provider-kubernetes says where a cluster answered that there is no such object, or no such kind."""
_UNCONNECTED = "connect failed"
"""How it begins where it did not get that far: what is missing then is a Secret or a ProviderConfig."""


def observations(snapshot: ClusterSnapshot) -> dict[str, dict[str, Any]]:
    """Return the Objects that look at the gateway, at LeaderWorkerSet and at every device class, by key.

    Law C 4: where the input names another gateway, controller or lease, another key looks at that.
    """
    manifests = {
        key_of(base, manifest, snapshot.observed): manifest
        for base, manifest in _named_by_input(snapshot.config).items()
    }
    manifests |= {
        f"{CLASS_PREFIX}{name}": _named("resource.k8s.io/v1", "DeviceClass", name)
        for name in _device_classes(snapshot)
    }
    return {key: _observed(manifest, snapshot.provider_config) for key, manifest in manifests.items()}


def look(snapshot: ClusterSnapshot, base: str) -> ObservedObject | None:
    """Return the observation of what the input names, None while there is none.

    `base` is `GATEWAY`, `LEADER_WORKER_SET` or `HEARTBEAT`. In doubt any observation of it counts.
    """
    observed = [observation for key, observation in snapshot.observed.items() if base_of(key) == base]
    wanted = identity_of(_named_by_input(snapshot.config).get(base, {}))
    named = [observation for observation in observed if observation.identity == wanted]
    in_doubt = not isinstance(snapshot.cluster, DeclaredCluster)
    return next(iter(named or (observed if in_doubt else ())), None)


def _named_by_input(config: ClusterConfig) -> dict[str, dict[str, Any]]:
    """Return the manifests of what the input names, by the base of their keys."""
    gateway, controller, lease = config.gateway, config.leader_worker_set, config.heartbeat
    manifests = {
        GATEWAY: _named("gateway.networking.k8s.io/v1", "Gateway", gateway.name, gateway.namespace),
        LEADER_WORKER_SET: _named("apps/v1", "Deployment", controller.name, controller.namespace),
    }
    if lease is not None:
        manifests[HEARTBEAT] = _named("coordination.k8s.io/v1", "Lease", lease.name, lease.namespace)
    return manifests


def _device_classes(snapshot: ClusterSnapshot) -> list[str]:
    names = {
        device.get("deviceClassName")
        for devices in snapshot.classes.values()
        if not isinstance(devices, MissingClass)
        for device in devices
        if device.get("claim") == "DRA"
    }
    return sorted(name for name in names if isinstance(name, str) and name)


def _named(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _observed(manifest: Mapping[str, Any], provider_config: str) -> dict[str, Any]:
    made = composed_object(manifest, provider_config, management=OBSERVE)
    return {**made, "metadata": {"namespace": SYSTEM_NAMESPACE}}


def presence(observed_object: ObservedObject | None) -> str:
    """Return whether something is on the cluster: Present, Absent, or Unknown."""
    if observed_object is None:
        return "Unknown"
    if observed_object.synced is not False and observed_object.remote is not None:
        return "Present"
    return "Absent" if is_absent(observed_object) else "Unknown"


def is_absent(observed_object: ObservedObject) -> bool:
    """Whether the cluster answered that there is no such object."""
    message = observed_object.synced_message
    if observed_object.synced is not False or message.startswith(_UNCONNECTED):
        return False
    return any(phrase in message for phrase in _ABSENT)
