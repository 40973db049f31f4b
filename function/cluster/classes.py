"""The devices of an InferenceClass as they are published: its own, over those of a machine type.

`spec.from` names an entry of the catalogue and its revision; `spec.devices` override it by device name, field
by field, and maps (attributes, capacity) key by key.
"""

from __future__ import annotations

from typing import Any

from function.api.inference_class import InferenceClass
from function.catalogue import entry
from function.objects import mapping

MAPS = ("attributes", "capacity")
"""Fields of a device that are overridden key by key."""


def devices_of(plain: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the devices of a class with the defaults of the API.

    Raises:
        ValueError: when the class, or what it makes of its machine type, cannot be read.
    """
    stated = InferenceClass.parse(plain).spec
    spec = mapping(plain.get("spec"))
    own: list[dict[str, Any]] = list(spec.get("devices") or ())
    if stated.origin is None:
        return tuple(map(_defaulted, own))
    base = entry(stated.origin.machine_type, stated.origin.revision)["spec"]["devices"]
    made = _overridden(base, own)
    InferenceClass.parse({**plain, "spec": {"devices": made}})
    return tuple(map(_defaulted, made))


def _overridden(base: list[dict[str, Any]], own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_name = {device.get("name"): device for device in own}
    known = {device["name"] for device in base}
    over = [_merged(device, by_name.get(device["name"], {})) for device in base]
    return [*over, *(device for device in own if device.get("name") not in known)]


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    maps = {key: {**base.get(key, {}), **mapping(own.get(key))} for key in MAPS if key in base or key in own}
    return {**base, **{key: value for key, value in own.items() if value is not None}, **maps}


def _defaulted(device: dict[str, Any]) -> dict[str, Any]:
    return {"claim": "DRA", "count": 1, **{key: value for key, value in device.items() if value is not None}}
