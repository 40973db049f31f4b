"""The devices of an InferenceClass: as they are published, and as they are found on machines.

    devices_of ▶ what a class publishes, over its machine type        describe ▶ a class, from ResourceSlices

A class says what the DRA driver of a machine will publish, before the machine is there: pods are placed on
pools that have no node yet. It may start from an entry of the catalogue, whose revision never changes
(`function.catalogue`), or be written from what the drivers of a running machine say.

`describe` takes devices that differ only in what tells two of a kind apart (a uuid, a PCI address, an index)
as one entry with a count. Nodes are grouped by what they have, and the class describes the largest group.

Limits: nothing here looks whether a class is right. `drift.py` compares it with what a cluster has.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from function.api.declared_cluster import InferenceClass
from function.api.fault import Fault, Malformed, shown, shown_type
from function.api.model import mapping, refuse_twice
from function.boundary import JsonObject, frozen
from function.catalogue import entry
from function.cluster.drift import (
    INDIVIDUAL,
    LiveRules,
    PublishedDevice,
    PublishedSlice,
    read_nodes,
    selecting,
)

MAX_ATTRIBUTES = 32
"""Of a pool, as the XRD bounds them."""
MAPS = ("attributes", "capacity")
"""Fields of a device that are overridden key by key."""


def devices_of(plain: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the devices of a class with the defaults of the API.

    `spec.from` names an entry of the catalogue and its revision; `spec.devices` override it by device name,
    field by field, and maps (attributes, capacity) key by key.

    Raises:
        ValueError: when the class, or what it makes of its machine type, cannot be read.
    """
    stated = InferenceClass.parse(plain).spec
    devices = mapping(plain.get("spec")).get("devices")
    if stated.origin is not None:
        overrides = {device["name"]: device for device in _overrides(devices)}
        base = entry(stated.origin.machine_type, stated.origin.revision)["spec"]["devices"]
        devices = [_merged(device, overrides.pop(device["name"], {})) for device in base]
        devices += overrides.values()
        # What was put together is checked as a whole: an override alone may lack what a device needs.
        InferenceClass.parse({**plain, "spec": {"devices": devices}})
    return tuple(
        {"claim": "DRA", "count": 1, **{key: value for key, value in device.items() if value is not None}}
        for device in devices or ()
    )


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
    faults = []
    for number, device in enumerate(devices or ()):
        path = f"spec.devices[{number}]"
        if not isinstance(device, dict):
            faults.append(Fault(path, "expected a map", shown_type(device)))
            continue
        name = device.get("name")
        if not isinstance(name, str) or not name:
            faults.append(Fault(f"{path}.name", "expected the name of a device", shown(name)))
        faults += [
            Fault(f"{path}.{key}", "expected a map", shown_type(device[key]))
            for key in MAPS
            if not isinstance(device.get(key), dict | None)
        ]
    if faults:
        raise Malformed(faults)
    refuse_twice("spec.devices", [device["name"] for device in devices or ()])
    return devices or []


def _merged(base: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Lay overrides over a base: maps are merged by key, everything else is replaced, null is left out."""
    maps = {
        key: {**base.get(key, {}), **mapping(overrides.get(key))}
        for key in MAPS
        if key in base or key in overrides
    }
    return {**base, **{key: value for key, value in overrides.items() if value is not None}, **maps}


NAMES = {"gpu": "gpu", "tpu": "tpu", "dra": "nic"}
"""Names of entries by the first label of their driver; another driver's entry is called device."""
MIG = {"string": "mig"}
"""The type of a part of a GPU: NVIDIA's driver has a DeviceClass of its own for these."""


class NothingPublished(ValueError):
    """The slices hold no complete pool of any driver."""


@frozen
class Described:
    """A class, and what it was made of."""

    spec: JsonObject
    nodes: int
    """Nodes that have exactly these devices."""
    others: int
    """Nodes that have others."""


def describe(slices: Iterable[JsonObject], device_classes: Sequence[JsonObject] = ()) -> Described:
    """Return the spec of the class of the most frequent kind of node.

    Its claims name a DeviceClass that selects the devices, as far as `device_classes` are those there.

    Raises:
        NothingPublished: when no node's slices are complete.
    """
    nodes = [node for node in read_nodes(map(PublishedSlice.read, slices)).values() if node.by_driver]
    if not nodes:
        raise NothingPublished("no node has a complete set of ResourceSlices")
    machines: Counter[str] = Counter()
    for node in nodes:
        counts = Counter(
            json.dumps(_kind(device), sort_keys=True)
            for driver in sorted(node.by_driver)
            for device in node.by_driver[driver]
        )
        entries = [{**json.loads(kind), "count": count} for kind, count in sorted(counts.items())]
        machines[json.dumps(entries, sort_keys=True)] += 1
    content, count = min(machines.items(), key=lambda machine: (-machine[1], machine[0]))
    used: Counter[str] = Counter()
    devices, rules = [], LiveRules(classes=device_classes)
    for entry_of_kind in json.loads(content):
        # Named by the driver, the second of a name with a number.
        base = NAMES.get(str(entry_of_kind["driver"]).partition(".")[0], "device")
        used[base] += 1
        name = base if used[base] == 1 else f"{base}-{used[base]}"
        entry_of_kind["deviceClassName"] = _device_class(entry_of_kind, rules)
        order = ("driver", "deviceClassName", "count", "attributes", "capacity")
        devices.append({"name": name, **{key: entry_of_kind[key] for key in order if key in entry_of_kind}})
    return Described({"devices": devices}, count, len(nodes) - count)


def _device_class(entry_of_kind: JsonObject, rules: LiveRules) -> str:
    """The DeviceClass that a claim of these devices names: the one that drivers bring, if it selects them."""
    driver, kind = str(entry_of_kind["driver"]), mapping(entry_of_kind.get("attributes")).get("type")
    usual = "mig.nvidia.com" if driver == "gpu.nvidia.com" and kind == MIG else driver
    names = selecting(entry_of_kind, rules)
    return usual if usual in names or not names else names[0]


def _kind(device: PublishedDevice) -> JsonObject:
    """Return what a device has in common with others of its kind."""
    attributes = {
        name.removeprefix(f"{device.driver}/"): value
        for name, value in sorted(device.attributes.items())
        if name.rpartition("/")[2].lower() not in INDIVIDUAL
    }
    capacity = {
        name.removeprefix(f"{device.driver}/"): {"value": value["value"]}
        for name, value in sorted(device.capacity.items())
        if isinstance(value, dict) and "value" in value
    }
    kind: JsonObject = {"driver": device.driver}
    published = {"attributes": attributes, "capacity": capacity}
    return kind | {key: values for key, values in published.items() if values}
