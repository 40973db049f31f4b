"""Lint: what a deployment asks that nobody in the fleet could ever give, however idle the fleet were.

It never changes a decision. Every finding holds for the fleet as it is published now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.cel.cost import LIMIT
from function.cel.errors import EvaluationError
from function.cel.quantity import quantity
from function.deployment.explain.catalogue import Catalogue, nearest
from function.deployment.explain.spelling import advice, with_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import Device, ModelDeployment
    from function.api.requests import RequestReference
    from function.cel import Comparison, Selector
    from function.cel.quantity import Quantity
    from function.scheduler.scheduling_input import SchedulingInput

SHOWN = 20
"""How many findings are told."""
GATE, GATED = "DRAListTypeAttributes", "1.36"
"""The gate that lists of attributes are behind, off by default, and the release that brought them."""
BOX = 0.9
"""A device of at least this share of what is asked is taken to be the one that was meant."""
SAME_NODE = frozenset({"node", "nodeName", "hostname", "kubernetes.io/hostname"})
"""What people write who want the devices of a pod on one node."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is asked and that the fleet does not have."""

    path: str
    code: str
    message: str

    @property
    def plain(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {"path": self.path, "code": self.code, "message": self.message}


def lint(inputs: SchedulingInput) -> list[Finding]:
    """Every finding, once per text: a second place that asks the same is not told again."""
    catalogue = Catalogue.of(inputs.fleet)
    found = [*_labels(inputs), *_invalid(inputs)]
    if catalogue.devices:
        found.extend(_constraints(inputs, catalogue))
    if catalogue.devices and not inputs.selectors.invalid:
        for each in inputs.deployment.requests:
            found.extend(_request(inputs, catalogue, each))
    first: dict[tuple[str, str], Finding] = {}
    for finding in found:
        first.setdefault((finding.code, finding.message), finding)
    return list(first.values())[:SHOWN]


def _request(inputs: SchedulingInput, catalogue: Catalogue, each: RequestReference) -> Iterator[Finding]:
    """The findings on one request: its selectors one by one, then all of them together."""
    selectors = [inputs.evaluations.program(selector) for selector in each.sub.selectors]
    before, about = 0, catalogue.beside(selectors)
    for index, selector in enumerate(selectors):
        yield from _estimate(f"{each.path}.selectors[{index}]", selector)
        yield from _gate(f"{each.path}.selectors[{index}]", selector)
        for finding in _selector(catalogue, about, f"{each.path}.selectors[{index}]", selector):
            before += 1
            yield finding
    evaluations = inputs.evaluations
    matching = [
        device
        for device in catalogue.devices
        if all(evaluations.matches(selector, device.subject) for selector in selectors)
    ]
    if matching:
        yield from _count(each, matching)
    elif not before:
        name = each.request.name
        yield Finding(each.path, "NeverSatisfied", f"no device of the fleet satisfies request {name}")


def _count(each: RequestReference, matching: list[Device]) -> Iterator[Finding]:
    most = max(matching, key=lambda device: device.count)
    if most.count < each.sub.count:
        yield Finding(
            each.path,
            "CountNeverCovered",
            f"request {each.request.name} asks for {each.sub.count} devices of one node, but no matching "
            f"device entry of the fleet has more than {most.count}",
        )


def _invalid(inputs: SchedulingInput) -> Iterator[Finding]:
    """Selectors that do not compile, where it is known what is meant."""
    for invalid in inputs.selectors.invalid:
        text = advice(invalid, inputs.fleet)
        if text:
            yield Finding(invalid.path, "DoesNotCompile", f"{invalid.error}; {text}")


def _constraints(inputs: SchedulingInput, catalogue: Catalogue) -> Iterator[Finding]:
    """Attributes that devices must share and that none publishes."""
    published = {f"{domain}/{name}" for kind, domain, name in catalogue.names if kind == "attribute"}
    for path, name in _matched_attributes(inputs.deployment):
        qualified = {name} if "/" in name else {f"{driver}/{name}" for driver in catalogue.drivers}
        if not published.isdisjoint(qualified):
            continue
        if name in SAME_NODE:
            text = "; all devices of a pod are on one node anyway: leave the constraint out"
        else:
            like = nearest(name, published)
            text = f"; the nearest is {like}" if like else ""
        yield Finding(
            path, "UnknownAttribute", f"no device of the fleet publishes the attribute {name}{text}"
        )


def _matched_attributes(deployment: ModelDeployment) -> Iterator[tuple[str, str]]:
    """Every matchAttribute with its path."""
    for number, shape in enumerate(deployment.shapes):
        base = f"alternatives[{number - 1}].engines" if number else "engines"
        for at, engine in enumerate(shape.engines):
            for place, member in enumerate(engine.members):
                stated = member.node_selector.constraints if member.node_selector else ()
                for index, constraint in enumerate(stated):
                    where = f"{base}[{at}].members[{place}].nodeSelector.constraints[{index}]"
                    yield f"{where}.matchAttribute", constraint.match_attribute


def _selector(catalogue: Catalogue, about: Catalogue, path: str, selector: Selector) -> Iterator[Finding]:
    """The findings on one selector; `about` has the devices that its request is about."""
    for read in sorted(selector.reads, key=str):
        if not catalogue.publishes(read):
            instead = about.instead_of(read)
            told = f"; the nearest is {instead}" if instead else ""
            code = f"Unknown{read.kind.capitalize()}"
            yield Finding(path, code, f"no device of the fleet publishes the {read.kind} {read}{told}")
    for each in selector.comparisons():
        if each.reference.kind == "driver":
            yield from _driver(catalogue, path, each)
        elif each.kind == "quantity" and with_unit(each.literal):
            unit = with_unit(each.literal)
            yield Finding(path, "UnknownUnit", f'"{each.literal}" is no quantity of Kubernetes; write {unit}')
        elif each.kind == "quantity" and each.operator in (">", ">="):
            yield from _below_the_box(catalogue, path, each)


def _estimate(path: str, selector: Selector) -> Iterator[Finding]:
    """A selector that the API server may refuse for what it might cost."""
    units = selector.estimate()
    if units is not None and units > LIMIT:
        yield Finding(
            path,
            "MayBeRefused",
            f"the API server may refuse this selector: estimated cost {units} exceeds {LIMIT}",
        )


def _gate(path: str, selector: Selector) -> Iterator[Finding]:
    """A selector that an API server refuses whose feature gates are as they are by default."""
    if selector.gated:
        words = [each.name for each in selector.requirements if each.since == GATED]
        why = f"it has {', '.join(words)}" if words else selector.gated
        yield Finding(
            path,
            "NeedsFeatureGate",
            f"your API server will refuse this claim unless its feature gate {GATE} is on: {why}",
        )


def _driver(catalogue: Catalogue, path: str, asked_for: Comparison) -> Iterator[Finding]:
    name = asked_for.literal
    if asked_for.operator == "==" and name not in catalogue.drivers:
        like = catalogue.driver_like(name)
        told = f"; the nearest is {like}" if like else ""
        yield Finding(path, "UnknownDriver", f'no device of the fleet has the driver "{name}"{told}')


def _below_the_box(catalogue: Catalogue, path: str, asked_for: Comparison) -> Iterator[Finding]:
    """A capacity asked by the number on the box, where drivers report a little less."""
    read, wanted = asked_for.reference, _quantity(asked_for.literal)
    published = {
        text
        for device in catalogue.devices
        for text in [device.subject.content.get(("capacity", read.domain or "", read.id or ""))]
        if isinstance(text, str) and wanted and _just_below(text, wanted)
    }
    if published:
        most = max(published, key=lambda text: (quantity(text).real(), text))
        yield Finding(
            path,
            "BelowTheBox",
            f"asks for {read.id} {asked_for.literal} and leaves out devices that publish {most}: drivers "
            f"report a little less than the number on the box",
        )


def _quantity(text: str) -> Quantity | None:
    try:
        return quantity(text)
    except EvaluationError:
        return None


def _just_below(text: str, wanted: Quantity) -> bool:
    found = _quantity(text)
    return found is not None and BOX * wanted.real() <= found.real() < wanted.real()


def _labels(inputs: SchedulingInput) -> Iterator[Finding]:
    """Labels that clusterSelector asks for and no cluster carries."""
    clusters = inputs.fleet.clusters.values()
    for key, value in sorted(inputs.deployment.template.cluster_selector.match_labels.items()):
        values = {each.labels[key] for each in clusters if key in each.labels}
        if not clusters or value in values:
            continue
        path = f'clusterSelector.matchLabels["{key}"]'
        if values:
            carried = ", ".join(sorted(values)[:5])
            yield Finding(path, "UnknownLabel", f"no cluster has {key}={value}; its values are {carried}")
        else:
            like = nearest(key, {name for each in clusters for name in each.labels})
            told = f"; the nearest is {like}" if like else ""
            yield Finding(path, "UnknownLabel", f"no cluster has the label {key}{told}")
