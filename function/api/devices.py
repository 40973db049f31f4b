"""Devices of a node pool. Most device lists of a fleet are equal: each content is read and converted once.

A device entry stands for `count` equal devices of one driver on every node of a pool. It is checked for form
here; the selector that reads a value says if it is a semver or a quantity (docs/selectors.md).

Equal lists of several clusters become one object. They are recognised by a key of their content, which for
bytes is the bytes themselves, so that a list seen before is never decoded. Weak references hold them: a list
goes when the last cluster that publishes it does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any
from weakref import WeakValueDictionary

from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator, model_validator
from pydantic_core import PydanticCustomError

from function.api.fault import Malformed, shown
from function.api.model import ClaimKind, Model, Name, whole
from function.api.taints import Taint
from function.boundary import Packed
from function.cel.subject import Subject, bind_device

# Typed attribute values and capacities, checked for form only.
#
# An attribute holds exactly one of string, int, bool, version, or a list of one of them; a capacity is
# `{value: <quantity>}`. Anything else is a fault of the object it stands in. Whether a version is a semver
# or a quantity parses is for the selector that reads it to say (the CEL dialect).

_PLURAL = {"strings": "string", "ints": "int", "bools": "bool", "versions": "version"}


def _scalar(kind: str, value: object) -> object:
    """Check one value of a type. A version is a text here: the selector that reads it parses it."""
    if kind == "int":
        return whole(value)
    expected = bool if kind == "bool" else str
    if not isinstance(value, expected):
        raise ValueError(f"expected a {kind}, found {shown(value)}")
    return value


def _items(kind: str, value: object) -> list[object]:
    """Check every value of a list attribute (gate DRAListTypeAttributes)."""
    if not isinstance(value, list):
        raise ValueError(f"expected a list of {kind}, found {shown(value)}")
    return [_scalar(kind, item) for item in value]


def _one(holder: object) -> tuple[str, object]:
    """Return the one field that is set, and its value; a null is as good as left out."""
    if not isinstance(holder, dict):
        raise ValueError(f"expected a map, found {shown(holder)}")
    entries = [(key, value) for key, value in holder.items() if value is not None]
    if len(entries) != 1:
        raise ValueError(
            f"expected exactly one of string, int, bool, version, list, found {len(entries)} fields"
        )
    return entries[0]


def attribute(holder: object) -> dict[str, Any]:
    """Check one attribute and give it in its one form: `{"string": x}` or `{"list": {"string": [x]}}`."""
    kind, value = _one(holder)
    if kind == "list":
        kind, value = _one(value)
        if kind not in _PLURAL.values():
            raise ValueError(f"a list has no type {kind}")
        return {"list": {kind: _items(kind, value)}}
    if kind in _PLURAL:
        return {"list": {_PLURAL[kind]: _items(_PLURAL[kind], value)}}
    if kind not in _PLURAL.values():
        raise ValueError(f"an attribute has no type {kind}")
    return {kind: _scalar(kind, value)}


def quantity(holder: object) -> dict[str, str]:
    """Check one capacity: `{value: <quantity>}`. A bare number is a quantity too."""
    value = holder.get("value") if isinstance(holder, dict) else None
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value != value:  # noqa: PLR0124
        raise ValueError(
            "expected {value: <quantity>}, found " + shown(value if isinstance(holder, dict) else holder)
        )
    return {"value": str(value)}


def _every_value(check: Any) -> Any:
    """Return the check of a map by name, in the order of names: the first fault is always the same."""

    def run(holders: dict[str, Any]) -> dict[str, Any]:
        checked = {}
        for name in sorted(holders):
            try:
                checked[name] = check(holders[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return checked

    return run


Attributes = Annotated[dict[str, Any], AfterValidator(_every_value(attribute))]
Capacity = Annotated[dict[str, Any], AfterValidator(_every_value(quantity))]


Published = Annotated[int, BeforeValidator(whole), Field(ge=0, le=1_000_000)]
"""How many devices an entry has. The platform may publish an entry that has none; no class declares one."""


MAX_DEVICE_TAINTS = 16
"""Of a device (Kubernetes)."""


class Device(Model):
    """One device entry of a node: so many equal devices of one driver on every node of the pool."""

    name: str = ""
    claim: ClaimKind = "DRA"
    driver: Name
    device_class_name: str = ""
    count: Published = 1
    attributes: Attributes = {}
    capacity: Capacity = {}
    allow_multiple_allocations: bool = False
    taints: Annotated[tuple[Taint, ...], Field(max_length=MAX_DEVICE_TAINTS)] = ()
    """They keep new claims off it that do not tolerate them."""

    @model_validator(mode="after")
    def _claimable(self) -> Device:
        """Refuse a DRA device without a class: a claim asks for devices by their class."""
        if self.claim == "DRA" and not self.device_class_name:
            raise ValueError("deviceClassName: required for claim DRA, but missing")
        return self

    @property
    def claimable(self) -> bool:
        """Tell whether a pod can bind this device through a DRA claim."""
        return self.claim == "DRA"

    @cached_property
    def domains(self) -> frozenset[str]:
        """The domains it publishes something in: its driver's, and those that names are qualified with."""
        named = (name.partition("/") for held in (self.attributes, self.capacity) for name in held)
        return frozenset({self.driver, *(domain for domain, slash, _ in named if slash)})

    @cached_property
    def qualified(self) -> dict[str, Values]:
        """The values of its attributes by their qualified names."""
        values: dict[str, Values] = {}
        for published, holder in self.attributes.items():
            kind, value = next(iter(holder.items()))
            if kind == "list":
                kind, value = next(iter(value.items()))
                held = frozenset((kind, item) for item in value)
            else:
                held = frozenset({(kind, value)})
            values.setdefault(published if "/" in published else f"{self.driver}/{published}", held)
        return values

    @cached_property
    def subject(self) -> Subject:
        """The device as a CEL selector sees it."""
        return bind_device(
            driver=self.driver,
            attributes=self.attributes,
            capacity=self.capacity,
            allow_multiple=self.allow_multiple_allocations,
        )

    @cached_property
    def _readings(self) -> dict[str, Device]:
        """The device as the selectors of other releases see it, by release."""
        return {}

    def read_by(self, cel_version: str) -> Device:
        """Return the device as the selectors of a Kubernetes release see it: one object for each release."""
        reading = self._readings.get(cel_version)
        if reading is None:
            reading = self.model_copy()
            reading.__dict__.pop("_readings")  # It would hold itself, and comparing two of them never end.
            reading.__dict__["subject"] = self.subject.read_by(cel_version)
            self._readings[cel_version] = reading
        return reading


Values = frozenset[tuple[str, object]]
"""Values of an attribute, each with its type."""


def values_of(device: Device, name: str) -> Values:
    """The values a device publishes under a qualified name; empty when it lacks the attribute.

    A name without a domain is in the domain of the driver, on either side.
    """
    if not name:
        return frozenset()
    return device.qualified.get(name if "/" in name else f"{device.driver}/{name}", frozenset())


class _Content(Packed):
    """Plain values, compared by content."""

    __slots__ = ("_plain", "key")

    def __init__(self, plain: object) -> None:
        """Take plain values; their canonical text is the key."""
        self._plain = plain
        self.key = json.dumps(plain, sort_keys=True)

    def items(self) -> list[_Content] | None:
        """Return the entries of a list, each with a key of its own; None for what is no list."""
        return [_Content(device) for device in self._plain] if isinstance(self._plain, list) else None

    def plain(self) -> object:
        """Return the values themselves."""
        return self._plain


MAX_DEVICES = 16
"""Entries of a device list, as the XRDs bound them. A longer one is not read: a fault of its object."""


COST, COST_EACH = 24, 3_000
"""Bytes that a device list takes, for each byte of its content and for each of its devices."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class SharedDevices:
    """The devices of one content, for as long as a cluster has them."""

    devices: tuple[Device, ...]
    size: int
    """The bytes they take."""


class DeviceList(tuple[Device, ...]):  # noqa: SLOT001 - a tuple with a field has no slots
    """The devices of a pool, and what it shares with the pools that publish the same."""

    shared: SharedDevices

    @classmethod
    def of(cls, shared: SharedDevices) -> DeviceList:
        """Return a list of shared devices."""
        made = cls(shared.devices)
        made.shared = shared
        return made


# A content is compared with another by its key, once for all clusters that publish it; who has its devices
# keeps them here, so that nothing is remembered that the memory of `boundary` does not charge somebody for.
_DEVICES: WeakValueDictionary[bytes | str, Device] = WeakValueDictionary()
_LISTS: WeakValueDictionary[bytes | str, SharedDevices] = WeakValueDictionary()


def _device(content: Packed) -> Device | None:
    """The one device entry of a content, converted for selectors once; None when it has a fault."""
    device = _DEVICES.get(content.key)
    if device is None:
        try:
            device = _DEVICES[content.key] = Device.parse(content.plain())
        except Malformed:
            return None
    return device


def _read(content: Packed) -> SharedDevices | None:
    """The one device list of a content; None when it has a fault. Raises where it is too long."""
    items = content.items()
    if items is None:
        return None
    if len(items) > MAX_DEVICES:
        context = {"max_length": MAX_DEVICES}
        raise PydanticCustomError("too_long", "must have at most {max_length} items", context)
    devices = tuple(device for item in items if (device := _device(item)) is not None)
    if len(devices) < len(items):
        return None
    return SharedDevices(devices, COST * len(content.key) + COST_EACH * len(devices))


def _intern(devices: object, validate: Callable[[object], tuple[Device, ...]]) -> tuple[Device, ...] | None:
    """Replace a readable device list by the one of its content; pydantic names the faults of the others."""
    if isinstance(devices, DeviceList):
        return devices
    packed = _Content(devices) if isinstance(devices, list) else devices
    if not isinstance(packed, Packed):
        return validate(devices)
    shared = _LISTS.get(packed.key)
    if shared is None:
        shared = _read(packed)
        if shared is None:
            plain = packed.plain()
            return None if plain is None else validate(plain)  # A null is no list, as everywhere.
        _LISTS[packed.key] = shared
    return DeviceList.of(shared)


Devices = Annotated[tuple[Device, ...], Field(max_length=MAX_DEVICES), WrapValidator(_intern), Packed]
