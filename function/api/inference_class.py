"""InferenceClass: the devices a node of a pool has. Read by the command line, to derive published pools."""

from __future__ import annotations

from function.api.devices import Device
from function.api.model import Metadata, Model


class ClassSpec(Model):
    """The devices of one node."""

    description: str = ""
    devices: tuple[Device, ...] = ()


class InferenceClass(Model):
    """A kind of node."""

    metadata: Metadata
    spec: ClassSpec = ClassSpec()
