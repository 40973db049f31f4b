"""The selectors of random worlds, each with what it means in Python.

The oracle knows no CEL: it looks a selector's source up here. A meaning is True, False or None (a run time
error); a source that is missing from `MEANINGS` does not compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]
Meaning = bool | None

GPU = "gpu.nvidia.com"
NET = "dra.net"
_GIB = {"24Gi": 24, "80Gi": 80, "141Gi": 141}


def _attribute(device: Plain, domain: str, name: str) -> Any:
    """Return a bare attribute (its domain is the driver), None when the device has none such."""
    if device["driver"] != domain:
        return None
    typed = device.get("attributes", {}).get(name)
    return None if typed is None else next(iter(typed.values()))


def _driver(name: str) -> Callable[[Plain], Meaning]:
    return lambda device: device["driver"] == name


def _architecture(name: str) -> Callable[[Plain], Meaning]:
    def meaning(device: Plain) -> Meaning:
        architecture = _attribute(device, GPU, "architecture")
        return None if architecture is None else bool(architecture == name)

    return meaning


def _memory(least: int) -> Callable[[Plain], Meaning]:
    def meaning(device: Plain) -> Meaning:
        capacity = device.get("capacity", {}).get("memory")
        if device["driver"] != GPU or capacity is None:
            return None
        return _GIB[capacity["value"]] >= least

    return meaning


def _guarded_memory(least: int) -> Callable[[Plain], Meaning]:
    return lambda device: device["driver"] == GPU and bool(_memory(least)(device))


def _rdma(device: Plain) -> Meaning:
    return _attribute(device, NET, "rdma")


SAFE: dict[str, Callable[[Plain], Meaning]] = {
    f'device.driver == "{GPU}"': _driver(GPU),
    f'device.driver == "{NET}"': _driver(NET),
    "true": lambda _: True,
    f'device.driver == "{GPU}" && device.capacity["{GPU}"].memory.compareTo(quantity("80Gi")) >= 0': (
        _guarded_memory(80)
    ),
    f'device.driver == "{GPU}" && device.capacity["{GPU}"].memory.compareTo(quantity("120Gi")) >= 0': (
        _guarded_memory(120)
    ),
}
"""Selectors that are never an error on the devices of random worlds."""

RISKY: dict[str, Callable[[Plain], Meaning]] = {
    f'device.attributes["{GPU}"].architecture == "Hopper"': _architecture("Hopper"),
    f'device.attributes["{GPU}"].architecture == "Ada"': _architecture("Ada"),
    f'device.capacity["{GPU}"].memory.compareTo(quantity("80Gi")) >= 0': _memory(80),
    f'device.attributes["{NET}"].rdma': _rdma,
    'device.attributes["nowhere.example.com"].nothing == 1': lambda _: None,
}
"""Selectors that are an error on a device that does not have what they read."""

MEANINGS = SAFE | RISKY

INVALID = f'device.driver = "{GPU}"'
"""A selector that does not compile."""
