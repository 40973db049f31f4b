"""Lint: find what a deployment asks for and no cluster of the fleet could give, however idle it were.

Why. A selector with a misspelt attribute compiles, and matches nothing for ever. The scheduler can only say
"no matching device"; the author wants to know which word is wrong, and what it should have been.

Theory of operation
1. The catalogue holds every distinct device of the fleet, and every name that is published with its domain.
2. Each selector is read for names, drivers, quantities and texts that nothing in the catalogue has. The
   nearest published spelling is looked for among the devices that the request is about, never at another
   vendor's.
3. What no single selector explains is looked at as a whole: no device satisfies all of them, no node has so
   many, no claim may hold so many.
4. A text is proposed only where it compiles, and corrects exactly one name, unit or literal.

Limits. It never changes a decision. Every finding holds for the fleet as it is published now, however idle: a
want of capacity is no finding. At most `SHOWN` are given, one for each text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from function import cel
from function.api import Device
from function.api.deployment import RequestReference
from function.api.text import VERSION_DOTS, full_version, listed
from function.boundary import frozen
from function.cel.checker.references import distance
from function.cel.library.charges import LIMIT
from function.cel.library.quantity import Quantity, is_quantity, quantity
from function.cel.values import EvaluationError
from function.scheduler.device_matching import MAX_CLAIMED
from function.scheduler.scheduling_input import Fleet, SchedulingInput
from function.scheduler.selectors import InvalidSelector

# The catalogue: every distinct device entry of the fleet and what it publishes under which name.

KINDS = ("attribute", "capacity")
_FIELDS = {"attributes": "attribute", "capacity": "capacity"}


def unqualified(name: str) -> str:
    """The driver that a device plugin's resource name stands for: `nvidia.com/gpu` is `gpu.nvidia.com`."""
    vendor, slash, kind = name.partition("/")
    return f"{kind}.{vendor}" if slash and kind and "/" not in kind else ""


@frozen
class Catalogue:
    """Devices of a fleet, each distinct entry once."""

    devices: tuple[Device, ...]
    drivers: frozenset[str]
    names: frozenset[tuple[str, str, str]]
    """(attribute or capacity, domain, name) of everything published."""
    domains: frozenset[str]
    """Every domain that something is published in."""
    nodes: tuple[tuple[Device, ...], ...] = ()
    """What nodes have: the different device lists of pools."""

    @classmethod
    def of(cls, fleet: Fleet) -> Catalogue:
        """Go through every published pool."""
        pools = (pool for cluster in fleet.clusters.values() for pool in cluster.pools)
        lists = {pool.device_key: pool.devices or () for pool in pools}
        distinct: dict[object, Device] = {}
        for device in chain.from_iterable(lists.values()):
            distinct.setdefault((device.subject, device.count, device.claim), device)
        return replace(cls.listing(distinct.values()), nodes=tuple(lists.values()))

    @classmethod
    def listing(cls, devices: Iterable[Device]) -> Catalogue:
        """List devices."""
        listed = tuple(devices)
        names = frozenset(
            (_FIELDS[path[0]], path[1], path[2])
            for device in listed
            for path in device.subject.content
            if path[0] in _FIELDS
        )
        domains = frozenset(domain for _, domain, _ in names)
        return cls(listed, frozenset(device.driver for device in listed), names, domains)

    def beside(self, selectors: Iterable[cel.Selector]) -> Catalogue:
        """The devices that a request is about: of the drivers, else in the domains, that its selectors name.

        What an unpublished name means is looked for there, never at another vendor's. Where
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

    def publishes(self, read: cel.Reference) -> bool:
        """Tell if some device publishes what a selector reads; a name that is not written out always is."""
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
        same = [driver for driver, other in kinds.items() if other == kind or cel.suggest(kind, [other])]
        return cel.suggest(name, same)

    def intended(self, read: cel.Reference) -> cel.Reference | None:
        """Return the published name nearest to an unpublished one; None where no name is near.

        In this order: a name with its domain in one key, the same name in the nearest domain or of the other
        kind, a like name in the same domain, a like domain.
        """
        domain, name = read.domain or "", read.id or ""
        holder, slash, flat = domain.partition("/")
        if slash and (read.kind, holder, flat) in self.names:
            return cel.Reference(read.kind, holder, flat)
        same = [
            (distance(domain, other[1]), other[0] != read.kind, other)
            for other in self.names
            if other[2] == name
        ]
        plugin = unqualified(domain)
        for _, _, (kind, where, _) in sorted(same, key=lambda item: (item[2][1] != plugin, item)):
            return cel.Reference(kind, where, name)
        here = {other for kind, where, other in self.names if (kind, where) == (read.kind, domain)}
        like = cel.suggest(name, here)
        if like:
            return cel.Reference(read.kind, domain, like)
        where = plugin if plugin in self.domains else cel.suggest(domain, self.domains)
        return cel.Reference(read.kind, where) if where and where != domain else None

    def instead_of(self, read: cel.Reference) -> str:
        """Return the published text nearest to an unpublished one; empty where no text is near."""
        intended = self.intended(read)
        if intended is None:
            return ""
        return written(intended) if intended.id else f'the domain "{intended.domain}"'


def written(read: cel.Reference) -> str:
    """`device.attributes["gpu.nvidia.com"].architecture`."""
    field = "attributes" if read.kind == "attribute" else "capacity"
    return f'device.{field}["{read.domain}"].{read.id}'


# Suggest the spelling of a selector that does not compile, or reads what is not published.
#
# Nothing is proposed that was not compiled: advice that does not compile itself is worse than none.

_FLAT = re.compile(r"""\bdevice\.(attributes|capacity)\[(["'])([^"'/\]]+)/([A-Za-z_]\w*)\2\]""")
"""A name with its domain in one key: `device.attributes["gpu.nvidia.com/architecture"]`."""
_BARE = re.compile(r"""\bdevice\.(attributes|capacity)(?:\[(["'])([A-Za-z_]\w*)\2\]|\.([A-Za-z_]\w*))""")
"""A name without a domain: `device.attributes["architecture"]`, `device.attributes.architecture`."""

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtpe])(i?)b?", re.IGNORECASE)
_PLACES = {
    "node": "it selects node pools: write it under nodeSelector.selectors",
    "cluster": "it selects clusters: write it under clusterSelector.cel",
    "device": "it selects devices: write it under the selectors of a device request",
}
"""Where a selector belongs, by the variable that it is over."""


def advice(invalid: InvalidSelector, fleet: Fleet) -> str:
    """Suggest a text for a selector that does not compile; empty where nothing near compiles."""
    source = invalid.error.source
    for variable, text in _PLACES.items():
        if f"undeclared reference to '{variable}'" in invalid.error.message and _compiles(variable, source):
            return text
    text, meant = cel.respelt_operators(source)
    if text and any(_compiles(variable, text) for variable in _PLACES):
        return meant
    return f"did you mean {corrected}?" if (corrected := unflattened(source, fleet)[1]) else ""


def unflattened(source: str, fleet: Fleet) -> tuple[str, str]:
    """A device selector with every flat or bare key written as domain and name, and the first such name.

    Both are empty if that is no help. A name without a domain is corrected where exactly one domain
    publishes it.
    """
    names: list[str] = []

    def flat(match: re.Match[str]) -> str:
        names.append(f'device.{match[1]}["{match[3]}"].{match[4]}')
        return names[-1]

    def bare(match: re.Match[str]) -> str:
        kind, name = ("attribute" if match[1] == "attributes" else "capacity"), match[3] or match[4]
        published = Catalogue.of(fleet).names
        domains = sorted(domain for other, domain, id_ in published if (other, id_) == (kind, name))
        if len(domains) != 1:
            return match[0]
        names.append(f'device.{match[1]}["{domains[0]}"].{name}')
        return names[-1]

    for pattern, corrected in ((_FLAT, flat), (_BARE, bare)):
        names.clear()
        text = pattern.sub(corrected, source)
        if names and _compiles("device", text):
            return text, names[0]
    return "", ""


def respelt(source: str, read: cel.Reference, intended: cel.Reference) -> str:
    """A selector with an unpublished name replaced by the one that is meant; empty if that cannot be done."""
    if intended.id is None or intended.kind != read.kind:
        return ""
    domain, name = re.escape(read.domain or ""), re.escape(read.id or "")
    key = rf"""\bdevice\.(?:attributes|capacity)\[(["']){domain}\1\]\s*(?:\.\s*{name}\b|\[(["']){name}\2\])"""
    text = re.sub(key, lambda _: written(intended), source)
    return text if text != source and _compiles("device", text) else ""


def with_unit(literal: str) -> str:
    """A quantity with a unit of Kubernetes: `141G` for `141GB`, `80Gi` for `80gib`; empty for no slip."""
    match = _QUANTITY.fullmatch(literal.strip())
    if match is None or is_quantity(literal):
        return ""
    number, prefix, binary = match[1], match[2].upper(), match[3].lower()
    unit = "k" if prefix == "K" and not binary else f"{prefix}{binary}"
    return f"{number}{unit}"


def _compiles(variable: str, source: str) -> bool:
    """Tell whether a text compiles: the gate of everything that is suggested."""
    try:
        cel.compile_selector(variable, source)
    except cel.CompileError:
        return False
    return True


SHOWN = 20
"""The most findings given."""
GATE, GATED = "DRAListTypeAttributes", "1.36"
"""The gate that lists of attributes are behind, off by default, and the release that brought them."""
DRIVERS = VALUES = 5
"""The most drivers, or values of an attribute, of the fleet that a finding names."""
BOX = 0.93
"""A device of at least this share of what is asked is taken to be the one that was meant.

The drivers that keep most back do so with ECC: 23034Mi of 24Gi are 0.937.
"""
BOXES = frozenset(
    {5, 8, 10, 11, 12, 16, 18, 20, 23, 24, 32, 35, 40, 45, 47, 48, 64, 71, 80, 90, 94, 96}
    | {128, 141, 144, 180, 192, 256, 288}
)
"""Gigabytes that GPUs, and slices of them, are sold with: other numbers were reckoned, not read off a box."""
UNITS = (2**30, 10**9)
SAME_NODE = frozenset({"node", "nodeName", "hostname", "kubernetes.io/hostname"})
"""What people write who want the devices of a pod on one node."""


@frozen(order=True)
class Unmet:
    """One thing that is asked and that the fleet does not have."""

    path: str
    code: str
    message: str


def lint(inputs: SchedulingInput) -> list[Unmet]:
    """Every finding, once per text: a second place that asks the same adds none."""
    catalogue = Catalogue.of(inputs.fleet)
    first: dict[tuple[str, str], Unmet] = {}
    for finding in _findings(inputs, catalogue):
        first.setdefault((finding.code, finding.message), finding)
        if len(first) == SHOWN:
            break
    return list(first.values())


def _findings(inputs: SchedulingInput, catalogue: Catalogue) -> Iterator[Unmet]:
    """Yield all findings. Without a device in the fleet, or with an invalid selector, fewer make sense."""
    yield from _labels(inputs)
    for invalid in inputs.selectors.invalid:
        text = advice(invalid, inputs.fleet)
        if text:  # It is known what is meant.
            yield Unmet(invalid.path, "DoesNotCompile", f"{invalid.error}; {text}")
    if catalogue.devices:
        yield from _constraints(inputs, catalogue)
    if catalogue.devices and not inputs.selectors.invalid:
        yield from _claims(inputs, catalogue)
        for reference in inputs.deployment.requests:
            yield from _request(inputs, catalogue, reference)


def _request(inputs: SchedulingInput, catalogue: Catalogue, reference: RequestReference) -> Iterator[Unmet]:
    """The findings on one request: its selectors one by one, then all of them together."""
    selectors = [inputs.evaluations.program(selector) for selector in reference.sub.selectors]
    before, about = 0, catalogue.beside(selectors)
    for index, selector in enumerate(selectors):
        yield from _refusable(f"{reference.path}.selectors[{index}]", selector)
        for finding in _selector(catalogue, about, f"{reference.path}.selectors[{index}]", selector):
            before += 1
            yield finding
    for index, stated in enumerate(reference.sub.claim_selectors):  # What they read is on the nodes only.
        path = f"{reference.path}.claimSelectors[{index}]"
        yield from _refusable(path, inputs.evaluations.program(stated))
    outcome = inputs.evaluations.outcome
    nodes = [
        [
            device
            for device in devices
            if all(outcome(selector, device.subject).kind == "match" for selector in selectors)
        ]
        for devices in catalogue.nodes
    ]
    if any(nodes):
        yield from _count(reference, nodes)
    elif not before:
        name = reference.request.name
        text = f"no device of the fleet satisfies request {name}"
        values = "; ".join(_values(about, selectors))
        yield Unmet(reference.path, "NeverSatisfied", f"{text}: {values}" if values else text)


def _of_another_type(about: Catalogue, compared: cel.Comparison) -> list[tuple[str, Any]]:
    """The types and values of an attribute that the literal beside it is never equal to."""
    key = ("attributes", compared.reference.domain or "", compared.reference.id or "")
    typed: set[Any] = {device.subject.content.get(key) for device in about.devices} - {None}
    return sorted(pair for pair in typed if compared.kind in _NOT_OF.get(pair[0], ()))


_NOT_OF = {"version": ("string", "double", "int"), "bool": ("string", "int"), "int": ("string",)}
"""Kinds of literals that a value of a type is never equal to, by the type."""
_COMPARED = {
    "version": 'a version: compare it with .compareTo(semver("{version}")) {of} 0',
    "bool": "a boolean: write {value} without quotes",
    "int": "a number: write it without quotes",
}
"""How a value of a type is compared."""


def _values(about: Catalogue, selectors: list[cel.Selector]) -> Iterator[str]:
    """The values that there are where a selector asks for a text that no device has, or for another type."""
    for compared in (compared for selector in selectors for compared in selector.comparisons()):
        read = compared.reference
        if compared.kind == "semver" and compared.literal.count(".") < VERSION_DOTS:
            yield f'"{compared.literal}" is no version: write "{full_version(compared.literal)}"'
        if read.kind != "attribute":
            continue
        others = _of_another_type(about, compared)
        if others:
            kind, value = others[0]
            held = str(value).lower() if kind == "bool" else value
            how = _COMPARED[kind].format(
                value=held, version=full_version(compared.literal), of=compared.operator
            )
            yield f"{read.id} is {held}, {how}"
        if compared.kind != "string" or compared.operator != "==" or others:
            continue
        values = {cel.published(device.subject, compared.reference) for device in about.devices} - {None}
        if values and compared.literal not in values:
            published = listed(sorted(f'"{value}"' for value in values), VALUES)
            yield f'{compared.reference.id} is {published}, not "{compared.literal}"'


def _count(reference: RequestReference, nodes: list[list[Device]]) -> Iterator[Unmet]:
    """A count that no node has; `nodes`: the devices of nodes that match."""
    name, count = reference.request.name, reference.sub.count
    most = max(map(_together, nodes))
    if most < count:
        text = f"request {name} asks for {count} devices of one node, but no node of the fleet has more than"
        yield Unmet(reference.path, "CountNeverCovered", f"{text} {most} that match")
    elif count > MAX_CLAIMED and all(device.claimable for devices in nodes for device in devices):
        text = (
            f"request {name} asks for {count} devices, but a claim holds {MAX_CLAIMED} for all its requests"
        )
        yield Unmet(reference.path, "ClaimTooLarge", text)


def _together(devices: list[Device]) -> int:
    """The most devices of a node that one request may get: of one entry, or of one driver and class."""
    counted: Counter[object] = Counter()
    for at, device in enumerate(devices):
        counted[(device.driver, device.device_class_name) if device.claimable else at] += device.count
    return max(counted.values(), default=0)


def _claims(inputs: SchedulingInput, catalogue: Catalogue) -> Iterator[Unmet]:
    """Members whose requests each fit a claim, and not all together, whatever devices they get."""
    unclaimed = [device for device in catalogue.devices if not device.claimable]
    for reference in inputs.deployment.members:
        counts = {
            request.name: min(sub.count for sub in request.ranked)
            for request in reference.member.requests
            if not any(
                inputs.evaluations.probe(sub, device).kind == "match"
                for sub in request.ranked
                for device in unclaimed
            )
        }
        if sum(counts.values()) > MAX_CLAIMED >= max(counts.values()):
            claims = ", ".join(f"{name} takes {count}" for name, count in counts.items())
            text = f"a claim holds {MAX_CLAIMED} devices for all its requests, but {claims}"
            yield Unmet(f"{reference.path}.nodeSelector.devices", "ClaimTooLarge", text)


def _constraints(inputs: SchedulingInput, catalogue: Catalogue) -> Iterator[Unmet]:
    """Attributes that devices must share and that none publishes."""
    published = {f"{domain}/{name}" for kind, domain, name in catalogue.names if kind == "attribute"}
    stated = (
        (f"{reference.path}.nodeSelector.constraints[{index}].matchAttribute", constraint.match_attribute)
        for reference in inputs.deployment.members
        for index, constraint in enumerate(reference.member.constraints)
    )
    for path, name in stated:
        qualified = {name} if "/" in name else {f"{driver}/{name}" for driver in catalogue.drivers}
        if not published.isdisjoint(qualified):
            continue
        text = f"no device of the fleet publishes the attribute {name}"
        if name in SAME_NODE:
            text = f"{text}; all devices of a pod are on one node anyway: leave the constraint out"
        else:
            text = _with_nearest(text, cel.suggest(name, published))
        yield Unmet(path, "UnknownAttribute", text)


def _selector(catalogue: Catalogue, about: Catalogue, path: str, selector: cel.Selector) -> Iterator[Unmet]:
    """The findings on one selector; `about` has the devices that its request is about."""
    for read in selector.reads:
        if not catalogue.publishes(read):
            text = f"no device of the fleet publishes the {read.kind} {read}"
            code = f"Unknown{read.kind.capitalize()}"
            yield Unmet(path, code, _with_nearest(text, about.instead_of(read)))
    for comparison in selector.comparisons():
        if comparison.reference.kind == "driver":
            yield from _driver(catalogue, path, comparison)
        elif comparison.kind == "quantity" and (unit := with_unit(comparison.literal)):
            text = f'"{comparison.literal}" is no quantity of Kubernetes; write {unit}'
            yield Unmet(path, "UnknownUnit", text)
        elif comparison.kind == "quantity" and comparison.operator in (">", ">="):
            yield from _below_the_box(catalogue, path, comparison)


def _with_nearest(text: str, name: str) -> str:
    """A finding about something unknown, with the nearest that is known, if there is one."""
    return f"{text}; the nearest is {name}" if name else text


def _refusable(path: str, selector: cel.Selector) -> Iterator[Unmet]:
    """A selector that the API server may refuse for what it might cost, or while a feature gate is off."""
    units = selector.estimate()
    if units is not None and units > LIMIT:
        text = f"the API server may refuse this selector: estimated cost {units} exceeds {LIMIT}"
        yield Unmet(path, "MayBeRefused", text)
    if selector.gated:
        words = [word.name for word in selector.requirements if word.since == GATED]
        why = f"it has {', '.join(words)}" if words else selector.gated
        text = f"your API server will refuse this claim unless its feature gate {GATE} is on: {why}"
        yield Unmet(path, "NeedsFeatureGate", text)


def _driver(catalogue: Catalogue, path: str, comparison: cel.Comparison) -> Iterator[Unmet]:
    """A driver that no device has, with the one that is meant, else with those that there are."""
    name = comparison.literal
    if comparison.operator == "==" and name not in catalogue.drivers:
        text = f'no device of the fleet has the driver "{name}"'
        drivers = f"{text}; its drivers are {listed(sorted(catalogue.drivers), DRIVERS)}"
        like = catalogue.driver_like(name)
        yield Unmet(path, "UnknownDriver", _with_nearest(text, like) if like else drivers)


def _below_the_box(catalogue: Catalogue, path: str, comparison: cel.Comparison) -> Iterator[Unmet]:
    """A capacity asked by the number on the box, where drivers report a little less."""
    read, wanted = comparison.reference, _quantity(comparison.literal)
    published = {
        text
        for device in catalogue.devices
        for text in [device.subject.content.get(("capacity", read.domain or "", read.id or ""))]
        if isinstance(text, str) and wanted and _just_below(text, wanted)
    }
    if published:
        most = max(published, key=lambda text: (quantity(text).real(), text))
        yield Unmet(
            path,
            "BelowTheBox",
            f"asks for {read.id} {comparison.literal} and leaves out devices that publish {most}: drivers "
            f"report a little less than the number on the box",
        )


def _quantity(text: str) -> Quantity | None:
    """Read a quantity; None where it cannot be read, which is a finding of its own (`UnknownUnit`)."""
    try:
        return quantity(text)
    except EvaluationError:
        return None


def _just_below(text: str, wanted: Quantity) -> bool:
    """Tell whether a published quantity is a little less than one asked for that is read off a box."""
    published = _quantity(text)
    on_a_box = any(wanted.real() == unit * size for unit in UNITS for size in BOXES)
    return published is not None and on_a_box and BOX * wanted.real() <= published.real() < wanted.real()


def _labels(inputs: SchedulingInput) -> Iterator[Unmet]:
    """Labels that clusterSelector asks for, or topologySpread counts by, and no cluster carries."""
    clusters = inputs.fleet.clusters.values()
    if not clusters:
        return
    for key, value in sorted(inputs.deployment.template.cluster_selector.match_labels.items()):
        values = {cluster.labels[key] for cluster in clusters if key in cluster.labels}
        path = f'clusterSelector.matchLabels["{key}"]'
        if not values:
            yield _no_label(inputs, path, key)
        elif value not in values:
            text = f"no cluster has {key}={value}; its values are {listed(sorted(values), VALUES)}"
            yield Unmet(path, "UnknownLabel", text)
    for number, spread in enumerate(inputs.policy.topology_spread or ()):
        if not any(spread.topology_key in cluster.labels for cluster in clusters):
            yield _no_label(inputs, f"placement.topologySpread[{number}].topologyKey", spread.topology_key)


def _no_label(inputs: SchedulingInput, path: str, key: str) -> Unmet:
    """The finding about a label that no cluster carries, with the nearest that some does."""
    like = cel.suggest(key, {name for cluster in inputs.fleet.clusters.values() for name in cluster.labels})
    return Unmet(path, "UnknownLabel", _with_nearest(f"no cluster has the label {key}", like))
