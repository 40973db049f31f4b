"""InferenceClass: the devices a node of a pool has. Read by the command line, to derive published pools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from function.api.devices import MAX_DEVICES, Device
from function.api.model import Metadata, Model


class ClassSpec(Model):
    """The devices of one node."""

    description: str = ""
    devices: Annotated[tuple[Device, ...], Field(max_length=MAX_DEVICES)] = ()


class InferenceClass(Model):
    """A kind of node."""

    metadata: Metadata
    spec: ClassSpec = ClassSpec()
