"""The catalogue: every distinct device entry of the fleet and what it publishes under which name."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from function.cel import Reference, suggest
from function.cel.checker.suggest import distance

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api import Device
    from function.cel import Selector
    from function.scheduler.fleet import Fleet

KINDS = ("attribute", "capacity")
_FIELDS = {"attributes": "attribute", "capacity": "capacity"}


def nearest(name: str, names: Iterable[str]) -> str:
    """The nearest of several names to one that is not among them; empty when none is near."""
    return suggest(name, names) or ""


def unqualified(name: str) -> str:
    """The driver that a device plugin's resource name stands for: `nvidia.com/gpu` is `gpu.nvidia.com`."""
    vendor, slash, kind = name.partition("/")
    return f"{kind}.{vendor}" if slash and kind and "/" not in kind else ""


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
        lists = {pool.device_key: pool.devices or () for pool in pools}
        distinct: dict[object, Device] = {}
        for device in chain.from_iterable(lists.values()):
            distinct.setdefault((device.subject, device.count, device.claim), device)
        return cls.listing(distinct.values())

    @classmethod
    def listing(cls, devices: Iterable[Device]) -> Catalogue:
        """List devices."""
        listed = tuple(devices)
        names = (
            (_FIELDS[path[0]], path[1], path[2])
            for device in listed
            for path in device.subject.content
            if path[0] in _FIELDS
        )
        return cls(listed, frozenset(device.driver for device in listed), frozenset(names))

    @property
    def domains(self) -> frozenset[str]:
        """Every domain that something is published in."""
        return frozenset(domain for _, domain, _ in self.names)

    def beside(self, selectors: Iterable[Selector]) -> Catalogue:
        """The devices that a request is about: of the drivers, else in the domains, that its selectors name.

        What is meant by a name that nobody publishes is looked for there, never at another vendor's. Where
        the selectors name nothing that is published, all devices are.
        """
        listed = tuple(selectors)
        drivers = {
            compared.literal
            for selector in listed
            for compared in selector.comparisons()
            if compared.reference.kind == "driver" and compared.operator == "=="
        } & self.drivers
        domains = {read.domain for selector in listed for read in selector.reads} & self.domains
        about = [device for device in self.devices if device.driver in drivers]
        about = about or [device for device in self.devices if not domains.isdisjoint(device.domains)]
        return Catalogue.listing(about) if about else self

    def publishes(self, read: Reference) -> bool:
        """Whether some device publishes what a selector reads; a name that is not written out always is."""
        if read.kind not in KINDS or read.domain is None:
            return True
        if read.id is None:
            return any(kind == read.kind and domain == read.domain for kind, domain, _ in self.names)
        return (read.kind, read.domain, read.id) in self.names

    def driver_like(self, name: str) -> str:
        """The driver that a name which no device has probably means; empty for none.

        The first label says the kind of device: `nic.nvidia.com` is no slip of `gpu.nvidia.com`.
        """
        plugin, kind = unqualified(name), name.partition(".")[0]
        if plugin in self.drivers:
            return plugin
        kinds = {driver: driver.partition(".")[0] for driver in self.drivers}
        same = [driver for driver, other in kinds.items() if other == kind or nearest(kind, [other])]
        return nearest(name, same)

    def intended(self, read: Reference) -> Reference | None:
        """What is meant by something that nobody publishes: the nearest that somebody does; None for none.

        In this order: a name with its domain in one key, the same name in the nearest domain or of the other
        kind, a like name in the same domain, a like domain.
        """
        domain, name = read.domain or "", read.id or ""
        holder, slash, flat = domain.partition("/")
        if slash and (read.kind, holder, flat) in self.names:
            return Reference(read.kind, holder, flat)
        same = [
            (distance(domain, other[1]), other[0] != read.kind, other)
            for other in self.names
            if other[2] == name
        ]
        plugin = unqualified(domain)
        for _, _, (kind, where, _) in sorted(same, key=lambda item: (item[2][1] != plugin, item)):
            return Reference(kind, where, name)
        here = {other for kind, where, other in self.names if (kind, where) == (read.kind, domain)}
        like = nearest(name, here)
        if like:
            return Reference(read.kind, domain, like)
        where = plugin if plugin in self.domains else nearest(domain, self.domains)
        return Reference(read.kind, where) if where and where != domain else None

    def instead_of(self, read: Reference) -> str:
        """What is meant by something that nobody publishes, as it is written; empty for none."""
        intended = self.intended(read)
        if intended is None:
            return ""
        return written(intended) if intended.id else f'the domain "{intended.domain}"'


def written(read: Reference) -> str:
    """`device.attributes["gpu.nvidia.com"].architecture`."""
    field = "attributes" if read.kind == "attribute" else "capacity"
    return f'device.{field}["{read.domain}"].{read.id}'
