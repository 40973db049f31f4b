"""InferenceClass: the devices a node of a pool has. Read by the command line, to derive published pools."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from function.api.devices import MAX_DEVICES, Device
from function.api.model import Metadata, Model, Name, Whole


class MachineTypeRef(Model):
    """An entry of the catalogue of machine types, at one revision: what it says never changes."""

    machine_type: Name
    revision: Annotated[Whole, Field(ge=1)]


class ClassSpec(Model):
    """The devices of one node: its own, over those of a machine type.

    With `from`, a device may state only what it overrides; the whole is checked once it is put together.
    """

    description: str = ""
    origin: Annotated[MachineTypeRef | None, Field(alias="from")] = None
    devices: Annotated[tuple[Device, ...], Field(max_length=MAX_DEVICES)] = ()

    @model_validator(mode="before")
    @classmethod
    def _overrides_are_partial(cls, data: Any) -> Any:
        partial = isinstance(data, dict) and data.get("from") is not None
        return {key: value for key, value in data.items() if key != "devices"} if partial else data


class InferenceClass(Model):
    """A kind of node."""

    metadata: Metadata
    spec: ClassSpec = ClassSpec()
