"""The catalogue: every distinct device entry of the fleet and what it publishes under which name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.cel import suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api import Device
    from function.cel import Reference
    from function.scheduler.fleet import Fleet

KINDS = ("attribute", "capacity")
_FIELDS = {"attributes": "attribute", "capacity": "capacity"}


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name nearest to another; empty when none is near."""
    return suggest(name, known) or ""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Devices of a fleet, each distinct entry once."""

    devices: tuple[Device, ...]
    drivers: frozenset[str]
    names: frozenset[tuple[str, str, str]]
    """(attribute or capacity, domain, name) of everything published."""

    @classmethod
    def of(cls, fleet: Fleet) -> Catalogue:
        """Go through every published pool."""
        pools = (pool for cluster in fleet.clusters.values() for pool in cluster.pools)
        entries = {id(device): device for pool in pools for device in pool.devices or ()}
        found: dict[object, Device] = {}
        for device in entries.values():
            found.setdefault((device.subject, device.count, device.claim), device)
        devices = tuple(found.values())
        names = (
            (_FIELDS[path[0]], path[1], path[2])
            for device in devices
            for path in device.subject.content
            if path[0] in _FIELDS
        )
        return cls(devices, frozenset(each.driver for each in devices), frozenset(names))

    def publishes(self, read: Reference) -> bool:
        """Whether some device publishes what a selector reads; a name that is not written out always is."""
        if read.kind not in KINDS or read.domain is None:
            return True
        if read.id is None:
            return any(kind == read.kind and domain == read.domain for kind, domain, _ in self.names)
        return (read.kind, read.domain, read.id) in self.names

    def alike(self, read: Reference) -> str:
        """A like name of the same kind and domain, for one that nobody publishes; empty for none."""
        if self.publishes(read):
            return ""
        here = {name for kind, domain, name in self.names if (kind, domain) == (read.kind, read.domain)}
        return nearest(read.id or "", here)

    def instead_of(self, read: Reference) -> str:
        """The nearest thing that is published: other kind, other domain or a like name; empty for none."""
        kind, domain, name = read.kind, read.domain or "", read.id or ""
        alike = [each for each in self.names if each[2] == name]
        for other in sorted(alike, key=lambda each: (each[1] != domain, each[0] != kind, each)):
            return f'device.{_plural(other[0])}["{other[1]}"].{other[2]}'
        like = self.alike(read)
        if like:
            return f'device.{_plural(kind)}["{domain}"].{like}'
        other_domain = nearest(domain, {each[1] for each in self.names})
        return f'the domain "{other_domain}"' if other_domain and other_domain != domain else ""


def _plural(kind: str) -> str:
    return "attributes" if kind == "attribute" else "capacity"
