"""Lint: find what a deployment asks for that nobody in the fleet could give, however idle the fleet were.

It never changes a decision. Every finding holds for the fleet as it is published now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.cel.errors import EvaluationError
from function.cel.library.charges import LIMIT
from function.cel.library.quantity import quantity
from function.deployment.explain.catalogue import Catalogue, nearest
from function.deployment.explain.spelling import advice, with_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import Device, ModelDeployment
    from function.api.requests import RequestReference
    from function.cel import Comparison, Selector
    from function.cel.library.quantity import Quantity
    from function.scheduler.scheduling_input import SchedulingInput

SHOWN = 20
"""The most findings given."""
GATE, GATED = "DRAListTypeAttributes", "1.36"
"""The gate that lists of attributes are behind, off by default, and the release that brought them."""
DRIVERS = 5
"""The most drivers of the fleet that a finding names."""
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


@dataclass(frozen=True, slots=True, order=True)
class Unmet:
    """One thing that is asked and that the fleet does not have."""

    path: str
    code: str
    message: str

    @property
    def plain(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {"path": self.path, "code": self.code, "message": self.message}


def lint(inputs: SchedulingInput) -> list[Unmet]:
    """Every finding, once per text: a second place that asks the same adds none."""
    catalogue = Catalogue.of(inputs.fleet)
    findings = [*_labels(inputs), *_invalid(inputs)]
    if catalogue.devices:
        findings.extend(_constraints(inputs, catalogue))
    if catalogue.devices and not inputs.selectors.invalid:
        for reference in inputs.deployment.requests:
            findings.extend(_request(inputs, catalogue, reference))
    first: dict[tuple[str, str], Unmet] = {}
    for finding in findings:
        first.setdefault((finding.code, finding.message), finding)
    return list(first.values())[:SHOWN]


def _request(inputs: SchedulingInput, catalogue: Catalogue, reference: RequestReference) -> Iterator[Unmet]:
    """The findings on one request: its selectors one by one, then all of them together."""
    selectors = [inputs.evaluations.program(selector) for selector in reference.sub.selectors]
    before, about = 0, catalogue.beside(selectors)
    for index, selector in enumerate(selectors):
        yield from _estimate(f"{reference.path}.selectors[{index}]", selector)
        yield from _gate(f"{reference.path}.selectors[{index}]", selector)
        for finding in _selector(catalogue, about, f"{reference.path}.selectors[{index}]", selector):
            before += 1
            yield finding
    for index, stated in enumerate(reference.sub.claim_selectors):  # What they read is on the nodes only.
        yield from _estimate(f"{reference.path}.claimSelectors[{index}]", inputs.evaluations.program(stated))
        yield from _gate(f"{reference.path}.claimSelectors[{index}]", inputs.evaluations.program(stated))
    evaluations = inputs.evaluations
    matching = [
        device
        for device in catalogue.devices
        if all(evaluations.matches(selector, device.subject) for selector in selectors)
    ]
    if matching:
        yield from _count(reference, matching)
    elif not before:
        name = reference.request.name
        yield Unmet(reference.path, "NeverSatisfied", f"no device of the fleet satisfies request {name}")


def _count(reference: RequestReference, matching: list[Device]) -> Iterator[Unmet]:
    most = max(matching, key=lambda device: device.count)
    if most.count < reference.sub.count:
        yield Unmet(
            reference.path,
            "CountNeverCovered",
            f"request {reference.request.name} asks for {reference.sub.count} devices of one node, but no "
            f"matching device entry of the fleet has more than {most.count}",
        )


def _invalid(inputs: SchedulingInput) -> Iterator[Unmet]:
    """Selectors that do not compile, where it is known what is meant."""
    for invalid in inputs.selectors.invalid:
        text = advice(invalid, inputs.fleet)
        if text:
            yield Unmet(invalid.path, "DoesNotCompile", f"{invalid.error}; {text}")


def _constraints(inputs: SchedulingInput, catalogue: Catalogue) -> Iterator[Unmet]:
    """Attributes that devices must share and that none publishes."""
    published = {f"{domain}/{name}" for kind, domain, name in catalogue.names if kind == "attribute"}
    for path, name in _matched_attributes(inputs.deployment):
        qualified = {name} if "/" in name else {f"{driver}/{name}" for driver in catalogue.drivers}
        if not published.isdisjoint(qualified):
            continue
        text = f"no device of the fleet publishes the attribute {name}"
        if name in SAME_NODE:
            text = f"{text}; all devices of a pod are on one node anyway: leave the constraint out"
        else:
            text = _with_nearest(text, nearest(name, published))
        yield Unmet(path, "UnknownAttribute", text)


def _matched_attributes(deployment: ModelDeployment) -> Iterator[tuple[str, str]]:
    """Every matchAttribute with its path."""
    for reference in deployment.members:
        selector = reference.member.node_selector
        for index, constraint in enumerate(selector.constraints if selector else ()):
            path = f"{reference.path}.nodeSelector.constraints[{index}].matchAttribute"
            yield path, constraint.match_attribute


def _selector(catalogue: Catalogue, about: Catalogue, path: str, selector: Selector) -> Iterator[Unmet]:
    """The findings on one selector; `about` has the devices that its request is about."""
    for read in sorted(selector.reads, key=str):
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


def _estimate(path: str, selector: Selector) -> Iterator[Unmet]:
    """A selector that the API server may refuse for what it might cost."""
    units = selector.estimate()
    if units is not None and units > LIMIT:
        yield Unmet(
            path,
            "MayBeRefused",
            f"the API server may refuse this selector: estimated cost {units} exceeds {LIMIT}",
        )


def _gate(path: str, selector: Selector) -> Iterator[Unmet]:
    """A selector that an API server refuses whose feature gates are as they are by default."""
    if selector.gated:
        words = [word.name for word in selector.requirements if word.since == GATED]
        why = f"it has {', '.join(words)}" if words else selector.gated
        yield Unmet(
            path,
            "NeedsFeatureGate",
            f"your API server will refuse this claim unless its feature gate {GATE} is on: {why}",
        )


def _driver(catalogue: Catalogue, path: str, comparison: Comparison) -> Iterator[Unmet]:
    name = comparison.literal
    if comparison.operator == "==" and name not in catalogue.drivers:
        text = f'no device of the fleet has the driver "{name}"'
        drivers = f"{text}; its drivers are {', '.join(sorted(catalogue.drivers)[:DRIVERS])}"
        like = catalogue.driver_like(name)
        yield Unmet(path, "UnknownDriver", _with_nearest(text, like) if like else drivers)


def _below_the_box(catalogue: Catalogue, path: str, comparison: Comparison) -> Iterator[Unmet]:
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
    try:
        return quantity(text)
    except EvaluationError:
        return None


def _just_below(text: str, wanted: Quantity) -> bool:
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
            listed = ", ".join(sorted(values)[:5])
            yield Unmet(path, "UnknownLabel", f"no cluster has {key}={value}; its values are {listed}")
    for number, spread in enumerate(inputs.policy.topology_spread or ()):
        if not any(spread.topology_key in cluster.labels for cluster in clusters):
            yield _no_label(inputs, f"placement.topologySpread[{number}].topologyKey", spread.topology_key)


def _no_label(inputs: SchedulingInput, path: str, key: str) -> Unmet:
    like = nearest(key, {name for cluster in inputs.fleet.clusters.values() for name in cluster.labels})
    return Unmet(path, "UnknownLabel", _with_nearest(f"no cluster has the label {key}", like))
