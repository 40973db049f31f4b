"""What a deployment holds of what was found out about it, to be charged while it is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.devices import DeviceList
from function.scheduler.matching.matcher import Known
from function.scheduler.matching.selectors import NOTE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import ModelDeployment
    from function.boundary import Part

FOUND = 800
"""Bytes that one thing takes which was found out, about."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much one deployment's match cache takes."""

    owner: int
    size: int


def held_by(deployment: ModelDeployment) -> Iterator[Part]:
    """Yield the match caches of a deployment, the device lists they know, and its compiled selectors."""
    for note in list(deployment.notes.values()):
        if isinstance(note, Known):
            yield Extent(id(note), FOUND * note.entries)
            for _, devices in list(note.shapes.values()):
                if isinstance(devices, DeviceList):
                    yield devices.shared
    yield from deployment.notes.get(NOTE, ())
