"""Compare what a cluster publishes with what its drivers publish: ResourceSlices, and Nodes by pool.

A class says what a driver will publish; where it says too much, pods bind no device and wait for ever, and
nothing else tells why. Declared attributes stay the authority: drift changes no placement. It says which pods
would wait, and for what: a selector matches what a class claims, and the driver's device has less.

    read_nodes (slices by node) ▶ Likeness (nodes of a kind) ▶ _pool (one published pool against the nodes of
    its label) ▶ Drift, worst first

Rules:

- Slices are grouped by driver and node. A driver's pool counts as seen when all `resourceSliceCount` slices
  of its newest generation are there, else nothing is said of its node.
- A node belongs to the pool whose label it carries. A pool scaled to zero has no node, which is not drift,
  nor has one that scales fewer than it may grow to.
- Tainted devices do not count, whether a slice or a rule taints them, unless the class says that they have
  that taint. A taint of effect None is information.
- Claims are held against the devices that nobody declares, too: the allocator asks all of a class.
- Devices that satisfy no entry are drift only where an entry has too few: a node may have more kinds.

Limits: of a condition, only what the cluster publishes about itself is read. What rules on a live cluster
change (`LiveRules`) is known to the command line alone, which reads them (`fleet-scheduler drift`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from function.api.model import mapping, mappings, number, string
from function.api.names import POOL_LABEL
from function.api.taints import MAX_READ_TAINTS, Taint, read_taints
from function.api.text import listed
from function.boundary import JsonObject, frozen
from function.boundary.memory import Memo
from function.cel import CompileError, Subject, bind_device, compile_device
from function.cel.library.quantity import quantity
from function.cel.selector import MATCH, NO_MATCH, Outcome
from function.cel.values import EvaluationError

BLOCKING, DOUBTFUL, CAPACITY, INFORMATION = range(4)
"""Weights: pods wait for ever; some may; fewer fit than declared; nothing is wrong."""

WEIGHTS = {
    "DriverMissing": BLOCKING,
    "DeviceCountShort": BLOCKING,
    "CapacityShort": BLOCKING,
    "SelectorErrs": BLOCKING,
    "ClassNarrower": BLOCKING,
    "AttributeDiffers": DOUBTFUL,
    "ClassWider": DOUBTFUL,
    "DevicesTainted": CAPACITY,
    "TaintMissing": CAPACITY,
    "NodesCordoned": CAPACITY,
    "NodesShort": CAPACITY,
    "NodesUnlabelled": CAPACITY,
    "Undeclared": INFORMATION,
}


@frozen
class Drift:
    """One difference between what a pool publishes and what a node of it has."""

    pool: str
    kind: str
    """A key of `WEIGHTS`."""
    detail: str

    @property
    def order(self) -> tuple[int, str, str]:
        """Worst first, then by kind and detail: the order of no list decides what is said of a pool."""
        return (WEIGHTS[self.kind], self.kind, self.detail)


@frozen
class PoolDrift:
    """The findings about one pool."""

    name: str
    declared: int
    complete: int
    """Nodes whose slices were all there."""
    findings: tuple[Drift, ...]
    """Worst first."""

    def phrase(self) -> str:
        """`h200: 3 of 4 nodes seen; CapacityShort memory: class 141Gi, smallest 143771Mi (node gpu-7)`."""
        wrong = (finding for finding in self.findings if WEIGHTS[finding.kind] != INFORMATION)
        phrases = [f"{finding.kind} {finding.detail}" for finding in wrong]
        return "; ".join((f"{self.name}: {self.complete} of {self.declared} nodes seen", *phrases))

    @property
    def drifts(self) -> bool:
        """Tell whether something is wrong, beyond what is merely not declared."""
        return any(WEIGHTS[finding.kind] != INFORMATION for finding in self.findings)


@frozen
class PublishedDevice:
    """One device as its driver publishes it."""

    driver: str
    name: str
    attributes: Mapping[str, JsonObject]
    capacity: Mapping[str, JsonObject]
    taints: tuple[Taint, ...]
    """Those that keep pods off it, sorted."""
    pool: str = ""
    """The pool of its slice, which its driver names."""

    def unexpected(self, expected: Collection[Taint]) -> tuple[Taint, ...]:
        """Return the taints that nobody expects of it."""
        return tuple([taint for taint in self.taints if taint not in expected])


@frozen
class NodeDevices:
    """The devices of one node, by driver, for drivers whose slices are all there."""

    name: str
    by_driver: Mapping[str, tuple[PublishedDevice, ...]]
    unknown: frozenset[str]
    """Drivers some of whose slices are missing."""


class LiveRules(NamedTuple):
    """The rules on a live cluster that decide who gets its devices; empty where the cluster is not read."""

    claims: Sequence[JsonObject] = ()
    """ResourceClaimTemplates."""
    classes: Sequence[JsonObject] = ()
    """DeviceClasses."""
    taints: Sequence[JsonObject] = ()
    """DeviceTaintRules."""

    @property
    def selectors(self) -> dict[str, tuple[str, ...]]:
        """The selectors of every DeviceClass."""
        return {
            str(mapping(one.get("metadata")).get("name")): _expressions(mapping(one.get("spec")))
            for one in self.classes
        }


def drift(
    cluster: JsonObject,
    slices: Iterable[JsonObject],
    nodes: Iterable[JsonObject],
    rules: LiveRules = LiveRules(),  # noqa: B008 - it cannot be changed
) -> tuple[PoolDrift, ...]:
    """Return what drifts, pool by pool in the order they are published.

    A pure function of what was read: the command line and the handler get the same findings. Doubt is no
    finding: a driver with an incomplete set of slices is passed over on that node.
    """
    declared = {
        str(pool.get("name")): pool for pool in mappings(mapping(cluster.get("spec")).get("nodePools"))
    }
    labels, cordoned = {}, set()
    for node in nodes:
        metadata = mapping(node.get("metadata"))
        labels[str(metadata.get("name"))] = mapping(metadata.get("labels"))
        if mapping(node.get("spec")).get("unschedulable") is True:
            cordoned.add(str(metadata.get("name")))
    taint_rules = TaintRules(rules)
    devices_by_node = {
        name: taint_rules.tainted(has) for name, has in read_nodes(map(PublishedSlice.read, slices)).items()
    }
    selectors = [node_labels_of(name, declared[name].get("nodeSelector")) for name in declared]
    # A node that has the label of some pool is no stranger, if only of one that the cluster does not declare.
    strangers = [
        node
        for node in sorted(devices_by_node)
        if POOL_LABEL not in labels.get(node, {})
        and not any(selector.items() <= labels.get(node, {}).items() for selector in selectors)
    ]
    pools = mappings(mapping(cluster.get("status")).get("gpuPools"))
    likeness = Likeness(entry for pool in pools for entry in mappings(pool.get("devices")))
    kinds = {
        (node, driver): likeness.number(devices)
        for node, has in devices_by_node.items()
        for driver, devices in has.by_driver.items()
    }
    return tuple(
        _pool(
            pool,
            declared.get(str(pool.get("name")), {}),
            labels,
            devices_by_node,
            strangers,
            (cordoned, rules, kinds),
        )
        for pool in pools
    )


def node_labels_of(name: str, node_selector: object) -> dict[str, Any]:
    """Return the labels that the nodes of a pool carry."""
    return mapping(node_selector) or {POOL_LABEL: name}


def _pool(
    pool: JsonObject,
    declared: JsonObject,
    labels: Mapping[str, Mapping[str, Any]],
    devices_by_node: Mapping[str, NodeDevices],
    strangers: Sequence[str],
    live: tuple[set[str], LiveRules, Mapping[tuple[str, str], int]],
) -> PoolDrift:
    """Hold one published pool against the nodes that carry its label. `strangers`: nodes of no pool.

    `live`: the nodes that are cordoned, the rules of the cluster, and the `Likeness` by node and driver.
    """
    (cordoned, rules, kinds), name, most = live, str(pool.get("name")), number(pool.get("nodes"), 0)
    selector = node_labels_of(name, declared.get("nodeSelector"))
    members = sorted(node for node, node_labels in labels.items() if selector.items() <= node_labels.items())
    inventories = [(node, devices_by_node.get(node)) for node in members]
    entries = mappings(pool.get("devices"))
    findings = {Drift(name, kind, detail) for kind, detail in of_classes(entries, rules)}
    findings |= set(_by_rules(name, inventories, rules))
    for entry in entries:
        if entry.get("claim", "DRA") != "DRA":
            continue  # A synthetic entry has no device behind it that a driver publishes.
        driver = str(entry.get("driver"))
        missing = [
            node
            for node, has in inventories
            if has is None or (driver not in has.by_driver and driver not in has.unknown)
        ]
        if missing:
            text = f"{driver}: no ResourceSlice on node {missing[0]}"
            findings.add(Drift(name, "DriverMissing", text))
        published = [
            (node, has.by_driver[driver], kinds[node, driver])
            for node, has in inventories
            if has and driver in has.by_driver
        ]
        findings |= set(_entry(name, entry, published))
    off = [node for node in members if node in cordoned]
    if off:
        findings.add(Drift(name, "NodesCordoned", f"{len(off)} of {len(members)} nodes: {listed(off, 3)}"))
    # What is published of a pool that scales is the most it grows to: fewer are no drift.
    least = number(declared.get("nodeCount"), most)
    if members and len(members) < least:
        findings.add(Drift(name, "NodesShort", f"{len(members)} of {least} nodes carry its label"))
    if most and not members and strangers:
        where = listed(strangers, 3)
        findings.add(Drift(name, "NodesUnlabelled", f"no node carries its label; devices are on {where}"))
    whole = sum(1 for node in members if node in devices_by_node and not devices_by_node[node].unknown)
    return PoolDrift(name, most, whole, tuple(sorted(findings, key=lambda finding: finding.order)))


def _expressions(holder: JsonObject) -> tuple[str, ...]:
    """The CEL selectors of a DeviceClass or a request."""
    selectors = mappings(holder.get("selectors"))
    return tuple(str(mapping(selector.get("cel")).get("expression")) for selector in selectors)


def _says(expressions: Sequence[str], subject: Subject) -> Outcome:
    """Evaluate selectors on a device: the first that does not match decides, as in Kubernetes."""
    outcome = MATCH
    for expression in expressions:
        try:
            outcome = compile_device(expression).evaluate(subject)
        except CompileError:
            return NO_MATCH  # The API server takes no such selector: a newer one may read it.
        if not outcome.matched:
            return outcome
    return outcome


def selecting(entry: JsonObject, rules: LiveRules) -> list[str]:
    """The names of the DeviceClasses that select the devices of an entry."""
    subject = _subject(entry)
    return [name for name, stated in sorted(rules.selectors.items()) if _says(stated, subject).matched]


def _subject(entry: JsonObject) -> Subject:
    """The devices of an entry of a class, as a selector sees them."""
    attributes, capacity = mapping(entry.get("attributes")), mapping(entry.get("capacity"))
    return bind_device(driver=str(entry.get("driver")), attributes=attributes, capacity=capacity)


def of_classes(entries: Iterable[JsonObject], rules: LiveRules) -> Iterator[tuple[str, str]]:
    """Kind and detail of DeviceClasses that select other devices than the entries that name them."""
    selectors = rules.selectors
    claimed = [entry for entry in entries if entry.get("claim", "DRA") == "DRA"]
    for entry in claimed:
        subject = _subject(entry)
        device_class, name = str(entry.get("deviceClassName")), str(entry.get("name") or entry.get("driver"))
        if device_class in selectors and _says(selectors[device_class], subject) == NO_MATCH:
            yield "ClassNarrower", f"DeviceClass {device_class} does not select entry {name}: its pods wait"
        for other in sorted({str(entry.get("deviceClassName")) for entry in claimed} - {device_class}):
            if other in selectors and _says(selectors[other], subject).matched:
                yield (
                    "ClassWider",
                    f"DeviceClass {other} selects entry {name} too, which is charged to {device_class}",
                )


def _by_rules(
    pool: str, members: Sequence[tuple[str, NodeDevices | None]], rules: LiveRules
) -> Iterator[Drift]:
    """Claims whose selectors err on a device beside those that they select, and rules that taint devices."""
    inventories = [
        (node, [device for listed in has.by_driver.values() for device in listed])
        for node, has in members
        if has is not None
    ]
    for where, expressions in _claimed(rules):
        for node, devices in inventories:
            said = [
                (
                    device,
                    _says(
                        expressions,
                        bind_device(
                            driver=device.driver, attributes=device.attributes, capacity=device.capacity
                        ),
                    ),
                )
                for device in devices
            ]
            # The allocator ends with the first error, whatever else it could take (DRA, cel.md).
            erring = [(device, outcome) for device, outcome in said if outcome.kind in ("error", "cost")]
            if erring and any(outcome.matched for _, outcome in said):
                device, outcome = erring[0]
                text = f"{where} on device {device.name}: {outcome.message} (node {node}); its pods wait"
                yield Drift(pool, "SelectorErrs", text)
                break
    for rule in rules.taints:
        name, spec = mapping(rule.get("metadata")).get("name"), mapping(rule.get("spec"))
        hit = [device for _, devices in inventories for device in devices if _is_hit(rule, device)]
        if hit:
            key = mapping(spec.get("taint")).get("key")
            text = f"DeviceTaintRule {name} ({key}) keeps pods off {len(hit)}, first {hit[0].name}"
            yield Drift(pool, "DevicesTainted", text)


def _claimed(rules: LiveRules) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every way of a request of a claim template, with the selectors of its class and its own."""
    selectors = rules.selectors
    for template in rules.claims:
        head = mapping(template.get("metadata"))
        devices = mapping(template, "spec", "spec", "devices")
        for request in mappings(devices.get("requests")):
            for way in (mapping(request.get("exactly")), *mappings(request.get("firstAvailable"))):
                of_class = selectors.get(str(way.get("deviceClassName")))
                if of_class is not None:
                    where = f"request {request.get('name')} of {head.get('namespace')}/{head.get('name')}"
                    yield where, (*of_class, *_expressions(way))


Selected: TypeAlias = "tuple[str | None, ...]"
"""Driver, pool and name of the devices that a rule is about; None stands for any."""


class TaintRules:
    """The taints of rules by what they select, so that no device is held against all rules."""

    def __init__(self, rules: LiveRules) -> None:
        """Read the taints of each selection once."""
        stated: dict[Selected, list[JsonObject]] = defaultdict(list)
        for rule in rules.taints:
            selected = _selected(rule)
            if selected is not None:
                stated[selected].append(mapping(rule, "spec", "taint"))
        self._by_selection = {selected: read_taints(taints) for selected, taints in stated.items()}
        # The devices of a cluster mostly have the same: their taints are put together once.
        self._together: Memo[Sequence[tuple[Taint, ...]], tuple[Taint, ...]] = Memo(_together)

    def tainted(self, has: NodeDevices) -> NodeDevices:
        """Return the devices of a node, with what rules taint."""
        if not self._by_selection:
            return has
        by_driver = {driver: tuple(map(self._tainted, devices)) for driver, devices in has.by_driver.items()}
        return replace(has, by_driver=by_driver)

    def _tainted(self, device: PublishedDevice) -> PublishedDevice:
        selections = product((None, device.driver), (None, device.pool), (None, device.name))
        hits = [selected for selected in selections if selected in self._by_selection]
        if not hits:
            return device
        taints = (device.taints, *map(self._by_selection.__getitem__, hits))
        return replace(device, taints=self._together.of((device.taints, *hits), taints))


def _together(taints: Sequence[tuple[Taint, ...]]) -> tuple[Taint, ...]:
    return tuple(sorted({taint for some in taints for taint in some}, key=str)[:MAX_READ_TAINTS])


def first_taint(devices: Iterable[PublishedDevice], expected: Collection[Taint]) -> str:
    """Return the first taint of some devices that nobody expects, as kubectl writes it; empty for none."""
    return min((str(taint) for device in devices for taint in device.unexpected(expected)), default="")


def _selected(rule: JsonObject) -> Selected | None:
    """Return what a DeviceTaintRule is about: nothing without a selector, or with one of a newer kind."""
    spec = mapping(rule.get("spec"))
    selector = spec.get("deviceSelector")
    if not isinstance(selector, dict) or mapping(spec.get("taint")).get("effect") == "None":
        return None
    stated = {key: value for key, value in selector.items() if value is not None}
    fields = ("driver", "pool", "device")
    if not (stated.keys() <= {*fields} and all(isinstance(value, str) for value in stated.values())):
        return None
    return tuple(stated.get(key) for key in fields)


def _is_hit(rule: JsonObject, device: PublishedDevice) -> bool:
    """Tell whether a DeviceTaintRule keeps pods off a device."""
    selected, has = _selected(rule), (device.driver, device.pool, device.name)
    return selected is not None and all(
        one in (None, other) for one, other in zip(selected, has, strict=True)
    )


class Likeness:
    """Gives devices of one kind one number: nodes that an entry cannot tell apart are judged once.

    Devices are alike in what entries read of them: the values of attributes that some entry states, the names
    of the others, capacities and taints. A cluster has few kinds of nodes, and several pools may select the
    same thousands of them.
    """

    def __init__(self, entries: Iterable[JsonObject]) -> None:
        """Take the entries of all pools of a cluster."""
        self._read = sorted({*KINDS, *(key for entry in entries for key in mapping(entry.get("attributes")))})
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, devices: Iterable[PublishedDevice]) -> int:
        """Return the number of all devices that are like these, in their order."""
        return self._numbers.setdefault(tuple(map(self._content, devices)), len(self._numbers))

    def _content(self, device: PublishedDevice) -> tuple[object, ...]:
        attributes, driver = device.attributes, device.driver
        values = [_value(attributes, driver, key) for key in self._read]
        return driver, frozenset(attributes), repr((values, sorted(device.capacity.items()))), device.taints


class Judgement(NamedTuple):
    """The verdict of an entry on nodes that it cannot tell apart."""

    fitting: int
    """Devices that satisfy it."""
    unexpected: str
    """The first taint that keeps pods off others."""
    differences: tuple[tuple[str, str], ...]
    """By kind of drift, why the others do not satisfy it."""
    missing: tuple[Taint, ...]
    """Taints that the class states and that no device has: new replicas keep off for nothing."""
    attributes: frozenset[str]
    """The names that its devices publish."""


def _judged(entry: JsonObject, devices: Sequence[PublishedDevice]) -> Judgement:
    """Hold an entry against the devices of a node."""
    wanted, expected = kind_wanted(entry), read_taints(entry.get("taints"))
    of_kind = [device for device in devices if kinds_fit(wanted, kind_of(device))]
    able = [device for device in of_kind if not device.unexpected(expected)]
    fitting = [device for device in able if not _short_of(entry, device) and not _differs(entry, device)]
    differences: dict[tuple[str, str], None] = {}
    # Where enough satisfy it, the others are another entry's, or nobody's.
    for device in able if len(fitting) < number(entry.get("count"), 1) else ():
        for key in _short_of(entry, device):
            has = mapping(_value(device.capacity, device.driver, key)).get("value", "none")
            wants = mapping(entry, "capacity", key).get("value")
            differences["CapacityShort", f"{key}: class {wants}, smallest {has}"] = None
        for key in _differs(entry, device):
            has, wants = _value(device.attributes, device.driver, key), mapping(entry["attributes"])[key]
            differences["AttributeDiffers", f"{key}: class {_shown(wants)}, device {_shown(has)}"] = None
    return Judgement(
        len(fitting),
        first_taint(devices, expected),
        tuple(differences),
        tuple(taint for taint in expected if of_kind and all(taint not in item.taints for item in of_kind)),
        frozenset(key for device in fitting or able for key in device.attributes),
    )


def _entry(
    pool: str, entry: JsonObject, inventories: Sequence[tuple[str, tuple[PublishedDevice, ...], int]]
) -> Iterator[Drift]:
    """Hold a claimable entry against every node whose slices are known; the worst node is named.

    An inventory has the node, its devices and their number of `Likeness`.
    """
    name, count = str(entry.get("name")), number(entry.get("count"), 1)
    judgements: Memo[tuple[PublishedDevice, ...], Judgement] = Memo(partial(_judged, entry))
    short: list[tuple[int, str, str]] = []
    attributes = set[str]()
    for node, devices, likeness in inventories:
        judged = judgements.of(likeness, devices)
        attributes |= judged.attributes
        for kind, text in judged.differences:
            yield Drift(pool, kind, f"{text} (node {node})")
        for taint in judged.missing:
            text = f"{name}: class has {taint}, no device does (node {node})"
            yield Drift(pool, "TaintMissing", text)
        if judged.fitting < count:
            short.append((judged.fitting, node, judged.unexpected))
    if short:
        fewest, node, unexpected = min(short)
        tainted = f", others have the taint {unexpected}" if unexpected else ""
        text = f"{name}: class has {count}, {fewest} satisfy it (node {node}{tainted})"
        yield Drift(pool, "DeviceCountShort", text)
    # Classes may write a name with its driver's domain or without; findings are without.
    domain = f"{entry.get('driver')}/"
    declared = {key.removeprefix(domain) for key in mapping(entry.get("attributes"))}
    for key in {attribute.removeprefix(domain) for attribute in attributes} - declared:
        if key.rpartition("/")[2].lower() not in INDIVIDUAL:
            yield Drift(pool, "Undeclared", key)


KINDS = ("type", "profile")
"""Attributes that tell of what kind a device is."""


def kind_of(device: PublishedDevice) -> tuple[str, ...]:
    """Return of what kind a device is, empty texts where it does not say."""
    published, driver = device.attributes, device.driver
    return tuple([string(mapping(_value(published, driver, kind)).get("string")) for kind in KINDS])


def kind_wanted(entry: JsonObject) -> tuple[str, ...]:
    """Return of what kind the devices of an entry are, as `kind_of`; empty texts where any will do."""
    attributes = mapping(entry.get("attributes"))
    return tuple([string(mapping(attributes.get(kind)).get("string")) for kind in KINDS])


def type_fits(entry: JsonObject, device: PublishedDevice) -> bool:
    """Tell if a device is of the entry's kind at all: a driver publishes GPUs and their partitions alike."""
    return kinds_fit(kind_wanted(entry), kind_of(device))


def kinds_fit(wanted: tuple[str, ...], kind: tuple[str, ...]) -> bool:
    """Tell if devices of a kind can be of another: what either does not say stands against nothing."""
    for wants, has in zip(wanted, kind, strict=True):  # noqa: SIM110 - a generator takes twice as long
        if wants and has and wants != has:
            return False
    return True


def _short_of(entry: JsonObject, device: PublishedDevice) -> list[str]:
    """Return the capacities of which the class claims more than the device has."""
    wanted = mapping(entry.get("capacity"))
    return sorted(key for key in wanted if _more(wanted[key], _value(device.capacity, device.driver, key)))


def _more(wants: object, has: object) -> bool:
    """Tell whether the class claims more than the device has; what cannot be compared is no finding."""
    claimed, published = (mapping(holder).get("value") for holder in (wants, has))
    if published is None:
        return True
    try:
        return quantity(str(claimed)).compare(quantity(str(published))) > 0
    except EvaluationError:
        return False


def _differs(entry: JsonObject, device: PublishedDevice) -> list[str]:
    """Return the attributes that the device has otherwise than the class says, or not at all."""
    wanted = mapping(entry.get("attributes"))
    return sorted(key for key in wanted if _value(device.attributes, device.driver, key) != wanted[key])


def _value(published: Mapping[str, JsonObject], driver: str, key: str) -> JsonObject | None:
    """Look a name up as DRA does: one without a domain is the driver's."""
    bare = key.removeprefix(f"{driver}/")
    return published[bare] if bare in published else published.get(f"{driver}/{bare}")


INDIVIDUAL = (
    *("uuid", "parentuuid", "serial", "name", "alias", "index", "minor", "cardindex", "renderindex"),
    *("pciaddr", "pciaddress", "pcibusid", "pciebusid", "pcieroot", "numanode", "numanodeid"),
    *("ifname", "rdmadevice", "mac", "ipv4", "ipv6", "cpuid", "coreid", "socketid", "cachel3id"),
)
"""Attributes, bare and in lower case, that tell one device from another of its kind."""


def _shown(typed: JsonObject | None) -> str:
    """Return a typed value for a message, `none` where there is none."""
    values = sorted(mapping(typed).items())
    return ", ".join(f"{kind} {json.dumps(value, sort_keys=True)}" for kind, value in values) or "none"


class PublishedSlice(NamedTuple):
    """One ResourceSlice."""

    node: str
    """Empty where it is about more nodes than one."""
    driver: str
    pool: str
    generation: int
    of: int
    """Slices of its generation."""
    devices: tuple[PublishedDevice, ...]

    @classmethod
    def read(cls, manifest: JsonObject) -> PublishedSlice:
        """Read one leniently."""
        spec = mapping(manifest.get("spec"))
        pool, driver, devices = mapping(spec.get("pool")), string(spec.get("driver")), []
        stated, taints = None, read_taints([])
        for device in mappings(spec.get("devices")):
            # Before resource.k8s.io/v1 the content of a device was in `basic`.
            content, name = mapping(device.get("basic")) or device, str(device.get("name"))
            attributes, capacity = mapping(content.get("attributes")), mapping(content.get("capacity"))
            if (marks := content.get("taints")) != stated:  # a node's devices mostly have the same
                stated, taints = marks, read_taints(marks)
            devices.append(
                PublishedDevice(driver, name, attributes, capacity, taints, pool=str(pool.get("name")))
            )
        generation, of = number(pool.get("generation"), 1), number(pool.get("resourceSliceCount"), 1)
        node = string(spec.get("nodeName"))
        return cls(node, driver, str(pool.get("name")), generation, of, tuple(devices))


def read_nodes(slices: Iterable[PublishedSlice]) -> dict[str, NodeDevices]:
    """Group ResourceSlices by node and driver, each pool of a driver at its newest generation."""
    pools: dict[tuple[str, str, str], list[PublishedSlice]] = defaultdict(list)
    for one in slices:
        if one.node:
            pools[one.node, one.driver, one.pool].append(one)
    whole: dict[str, dict[str, list[PublishedDevice]]] = defaultdict(lambda: defaultdict(list))
    unknown: dict[str, set[str]] = defaultdict(set)
    for (node, driver, _), published in sorted(pools.items()):
        # Slices of an older generation are on their way out: the driver writes all of a pool anew.
        newest = max(one.generation for one in published)
        current = [one for one in published if one.generation == newest]
        # A driver says how many slices its pool has: until all are there, none of them is evidence.
        if len(current) < max(one.of for one in current):
            unknown[node].add(driver)
            continue
        for one in current:
            whole[node][driver] += one.devices
    nodes = {}
    for node in sorted({node for node, _, _ in pools}):
        by_driver = {
            driver: tuple(devices) for driver, devices in whole[node].items() if driver not in unknown[node]
        }
        nodes[node] = NodeDevices(node, by_driver, frozenset(unknown[node]))
    return nodes
