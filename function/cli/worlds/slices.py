"""ResourceSlices in files: held to the shape that every API server holds them to, and taken as they are.

`drift` and `class` read slices from a cluster or from files. A cluster's are well-formed; one that was
edited by hand need not be, and the readers below the command line trust the shape. So the first fault is said
with its file, line and path, as of any other object. `v1beta1` keeps the attributes of a device one level
further down.

Limits: only what `cluster.drift` reads is looked at. That a value is one that DRA takes (a quantity, a
version) is found where it is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.fault import path_of, shown_type
from function.cli.bad_input import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.boundary import JsonObject
    from function.cli.admission.finding import FieldPath
    from function.cli.worlds.manifest import Manifests

BASIC = "basic"
"""Where a device of `v1beta1` has its attributes and capacity."""


def slices_of(manifests: Manifests) -> list[JsonObject]:
    """Return the ResourceSlices of the files.

    Raises:
        BadInput: for one that no driver could have published.
    """
    for manifest in manifests["ResourceSlice"]:
        for path, kind, value in _faults(manifest.content):
            fault = f"{path_of(path)}: expected {kind}, found {shown_type(value)}"
            raise BadInput(f"{manifest.place(path)}: {manifest.short_title}: {fault}")
    return [manifest.content for manifest in manifests["ResourceSlice"]]


def _faults(content: JsonObject) -> Iterator[tuple[FieldPath, str, Any]]:
    """Yield each field that is not of the type which the API has for it: path, type and value."""
    spec = content.get("spec")
    if not isinstance(spec, dict):
        yield ("spec",), "a map", spec
        return
    pool, devices = spec.get("pool"), spec.get("devices", [])
    if not isinstance(pool, dict):
        yield ("spec", "pool"), "a map", pool
    else:
        for field in ("generation", "resourceSliceCount"):
            if not isinstance(pool.get(field), int):
                yield ("spec", "pool", field), "a whole number", pool.get(field)
    if not isinstance(devices, list | None):
        yield ("spec", "devices"), "a list", devices
        return
    for number, device in enumerate(devices or ()):
        yield from _of_device(device, ("spec", "devices", number))


def _of_device(device: Any, path: FieldPath) -> Iterator[tuple[FieldPath, str, Any]]:
    """Yield those of one device, likewise."""
    if not isinstance(device, dict):
        yield path, "a map", device
        return
    holder, above = (device[BASIC], (*path, BASIC)) if BASIC in device else (device, path)
    if not isinstance(holder, dict):
        yield above, "a map", holder
        return
    for field in ("attributes", "capacity"):
        entries = holder.get(field)
        if entries is None:
            continue
        if not isinstance(entries, dict):
            yield (*above, field), "a map", entries
            continue
        for name, entry in entries.items():
            if not isinstance(entry, dict):
                yield (*above, field, name), "a map", entry
