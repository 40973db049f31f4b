"""The devices of an InferenceClass as they are published: its own, over those of a machine type.

`spec.from` names an entry of the catalogue and its revision; `spec.devices` override it by device name, field
by field, and maps (attributes, capacity) key by key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.fault import Fault, Malformed, shown, shown_type
from function.api.inference_class import InferenceClass
from function.api.lenient import mapping
from function.api.model import refuse_twice
from function.catalogue import entry

if TYPE_CHECKING:
    from collections.abc import Iterator

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
