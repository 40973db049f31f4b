"""Keys in the composition and names of what is composed for a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from function.api.declared_cluster import InferenceClass
from function.api.fault import Fault, Malformed, shown, shown_type
from function.api.model import mapping, refuse_twice
from function.api.names import child_name, dns_1035_name, is_dns_subdomain
from function.catalogue import entry
from function.fail_static import base_of
from function.objects import COLLECTION, KIND

PROVIDER_CONFIG, GUARD, STACK = "cluster-provider-config-kubernetes", "usage-replicas", "serving-stack"
GATEWAY, LEADER_WORKER_SET, CLASS_PREFIX = "see-gateway", "see-lws", "see-class-"
HEARTBEAT = "see-heartbeat"
SLICES, NODES = "see-slices", "see-nodes"
OBSERVATIONS = "see-"
"""How every key of an observation begins."""


def provider_config_name(cluster: str) -> str:
    """Return the name of the ClusterProviderConfig, as Modelplane v0.3 gives it."""
    return _child(cluster, "cluster-kubeconfig")


def stack_name(cluster: str) -> str:
    """Return the name of the ServingStack, as Modelplane v0.3 gives it."""
    return _child(cluster, "serving-stack")


def _child(cluster: str, what: str) -> str:
    """Return the name that v0.3 gives, mended where it was cut at a dot: Kubernetes refuses that one."""
    name = child_name(cluster, what)
    return name if is_dns_subdomain(name) else dns_1035_name(cluster, what)


KINDS = {
    PROVIDER_CONFIG: "ClusterProviderConfig",
    GUARD: "ClusterUsage",
    STACK: "ServingStack",
    **dict.fromkeys((GATEWAY, LEADER_WORKER_SET, HEARTBEAT), KIND),
    **dict.fromkeys((SLICES, NODES), COLLECTION),
}
"""What stands under the keys that do not depend on the cluster."""


def kind_of(key: str) -> str | None:
    """Return the kind of what this handler composes under a key, None for a key that is not ours."""
    return KIND if key.startswith(CLASS_PREFIX) else KINDS.get(base_of(key))


# The devices of an InferenceClass as they are published: its own, over those of a machine type.
#
# `spec.from` names an entry of the catalogue and its revision; `spec.devices` override it by device name,
# field by field, and maps (attributes, capacity) key by key.

MAX_ATTRIBUTES = 32
"""Of a pool, as the XRD bounds them."""
MAPS = ("attributes", "capacity")
"""Fields of a device that are overridden key by key."""


def devices_of(plain: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the devices of a class with the defaults of the API.

    Raises:
        ValueError: when the class, or what it makes of its machine type, cannot be read.
    """
    stated = InferenceClass.parse(plain).spec
    spec = mapping(plain.get("spec"))
    if stated.origin is None:
        return tuple(map(_defaulted, spec.get("devices") or ()))
    base = entry(stated.origin.machine_type, stated.origin.revision)["spec"]["devices"]
    made = _overridden(base, _overrides(spec.get("devices")))
    InferenceClass.parse({**plain, "spec": {"devices": made}})
    return tuple(map(_defaulted, made))


def attributes_of(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the typed facts that a readable class states about its nodes, in their one form."""
    return InferenceClass.parse(plain).spec.attributes or {}


def with_class(attributes: Mapping[str, Any] | None, of_class: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a pool with those of its class, as many as a pool may publish; its own win."""
    stated = dict(attributes or {})
    added = [(name, of_class[name]) for name in sorted(of_class) if name not in stated]
    return stated | dict(added[: max(0, MAX_ATTRIBUTES - len(stated))])


def _overrides(devices: object) -> list[dict[str, Any]]:
    """Return the devices that override those of a machine type. What they state is checked with the rest.

    Raises:
        Malformed: when one has no name, or is nothing that could override.
    """
    if devices is not None and not isinstance(devices, list):
        raise Malformed([Fault("spec.devices", "expected a list", shown_type(devices))])
    listed = devices or []
    faults = [fault for number, device in enumerate(listed) for fault in _faults(number, device)]
    if faults:
        raise Malformed(faults)
    names = [device["name"] for device in listed]
    refuse_twice("spec.devices", names)
    return listed


def _faults(number: int, device: object) -> Iterator[Fault]:
    path = f"spec.devices[{number}]"
    if not isinstance(device, dict):
        yield Fault(path, "expected a map", shown_type(device))
        return
    name = device.get("name")
    if not isinstance(name, str) or not name:
        yield Fault(f"{path}.name", "expected the name of a device", shown(name))
    for key in MAPS:
        if not isinstance(device.get(key), dict | None):
            yield Fault(f"{path}.{key}", "expected a map", shown_type(device[key]))


def _overridden(base: list[dict[str, Any]], overrides: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_name = {device.get("name"): device for device in overrides}
    names = {device["name"] for device in base}
    over = [_merged(device, by_name.get(device["name"], {})) for device in base]
    return [*over, *(device for device in overrides if device.get("name") not in names)]


def _merged(base: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    maps = {
        key: {**base.get(key, {}), **mapping(overrides.get(key))}
        for key in MAPS
        if key in base or key in overrides
    }
    return {**base, **{key: value for key, value in overrides.items() if value is not None}, **maps}


def _defaulted(device: dict[str, Any]) -> dict[str, Any]:
    return {"claim": "DRA", "count": 1, **{key: value for key, value in device.items() if value is not None}}
