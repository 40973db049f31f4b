"""One change to the input that might let one more replica fit, and the input with it applied.

A change builds a new input out of the old one; nothing is changed in place. So many changes are tried on one
decision, in any order, and none sees another (`hints`).

Rules
1. A change is one edit that one person can make: its owner to the deployment, an operator to a cluster.
2. An edit of the deployment is made on its plain form and parsed again. What the API would refuse is refused
   here too, and is then no hint.
3. A selector is rewritten in one name, one unit or one literal, and only if the result matches a device that
   is there. A slip is corrected before anything is given up (`Effort`): who asks for an H100 is not told to
   take an L4 while a spelling is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple, TypeVar

from function.api import InferenceCluster, ModelDeployment
from function.api.model import Model
from function.boundary import JsonObject, frozen
from function.cel import Comparison, CompileError, Selector, Subject, compile_device, published, suggest
from function.deployment.explain.lint import Catalogue, respelt, with_unit
from function.scheduler.scheduling_input import SchedulingInput, scheduling_input
from function.scheduler.selectors import ALLOWANCE, MAX_LENGTH, MOST, Share

M = TypeVar("M", bound=Model)


class Effort(IntEnum):
    """The effort of a change for the person who makes it, the cheapest first. Hints come in this order."""

    SPELLING = 0
    """A name that was mistyped."""
    UNIT = 1
    """A unit that Kubernetes does not know."""
    GUARD = 2
    """A selector that asks first whether a device has what it reads."""
    ALTERNATIVE = 3
    """Something else that would do as well: another label, a limit of one's own."""
    TOLERATE = 4
    """Putting up with a taint."""
    FREE = 5
    """Taking from another deployment."""
    RELAX = 6
    """Less than was asked for."""
    ANOTHER = 7
    """Another product than was asked for."""
    HARDWARE = 8
    """Something has to be bought, built or repaired."""
    DRAINED = 9
    """Running where an operator is making everything leave."""


@frozen
class InputChange:
    """One change: what a person reads, and the input as it would be."""

    kind: str
    cost: Effort
    message: str
    apply: Callable[[SchedulingInput], SchedulingInput]
    facts: Mapping[str, object]
    """The numbers and names of the change, for machines."""
    group: str = ""
    """Of several changes of one group only the first that helps becomes a hint."""
    smaller: Callable[[int], InputChange] | None = None
    """The same change with another number, where it has one."""
    bounds: tuple[int, int] = (0, 0)
    """The least number it could have, and the one it has."""


def changed(model: M, **fields: object) -> M:
    """A parsed object with some fields exchanged; what it computed about itself is not carried over."""
    kept = {name: getattr(model, name) for name in type(model).model_fields}
    return type(model).model_validate({**kept, **fields})


def with_cluster(inputs: SchedulingInput, cluster: InferenceCluster) -> SchedulingInput:
    """The input with one cluster exchanged."""
    clusters = {**inputs.fleet.clusters, cluster.name: cluster}
    return replace(inputs, fleet=replace(inputs.fleet, clusters=clusters))


def edited(inputs: SchedulingInput, edit: Callable[[JsonObject], None]) -> SchedulingInput:
    """The input with an edit to the deployment, as its owner would make it, its selectors compiled anew.

    However many changes are tried, none costs what deciding may: its evaluations share no units, and those of
    many selectors are fewer.
    """
    plain = inputs.deployment.model_dump(mode="json", by_alias=True, exclude_unset=True)
    edit(plain)
    return scheduling_input(
        ModelDeployment.parse(plain),
        inputs.fleet,
        inputs.config,
        inputs.config_fault,
        share=Share(MOST // 8, MAX_LENGTH),
    )


def setting(path: Sequence[str], value: object) -> Callable[[SchedulingInput], SchedulingInput]:
    """Set one value in the spec of the deployment, as its owner would."""

    def edit(plain: JsonObject) -> None:
        at = plain["spec"]
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = value

    return lambda inputs: edited(inputs, edit)


def requests_in(plain: JsonObject) -> list[JsonObject]:
    """Every device request of a plain deployment; of a prioritized list, all its subrequests."""
    spec = plain["spec"]["template"]["spec"]
    shapes = [spec, *spec.get("alternatives", ())]
    members = [member for shape in shapes for engine in shape["engines"] for member in engine["members"]]
    selectors = [member.get("nodeSelector") or {} for member in members]
    requests = [request for selector in selectors for request in selector.get("devices", ())]
    return [subrequest for request in requests for subrequest in (request.get("firstAvailable") or [request])]


# Rewrites: a selector that differs in one name, one unit or one literal, and matches a device that is
# there.
#
# A slip is corrected before anything is given up: a misspelt name, a unit that Kubernetes does not know.
# What asks for another thing, or for less of the same, says so.

_SIZED = frozenset({"quantity", "semver", "int", "uint", "double"})


class Rewrite(NamedTuple):
    """A selector as it stands and as it would match, and what that means for who wrote it."""

    cost: Effort
    old: str
    new: str
    meaning: str


def rewrite(selector: Selector, subject: Subject, catalogue: Catalogue) -> Rewrite | None:
    """The cheapest rewrite of a selector that matches a device, or None.

    A slip is corrected where any device that the request is about then matches; only what is given up
    depends on the device that came closest.

    Args:
        selector: a device selector that does not match.
        subject: the device that came closest.
        catalogue: what the devices that the request is about publish.
    """
    for candidate in (*_respelt(selector, catalogue), *_with_units(selector)):
        if candidate.new and any(
            _matches(candidate.new, device.subject, selector.release) for device in catalogue.devices
        ):
            return candidate
    guarded = _guarded(selector, subject)
    if guarded and any(
        _matches(guarded.new, device.subject, selector.release) for device in catalogue.devices
    ):
        return guarded
    for candidate in _relaxed(selector, subject):
        if _matches(candidate.new, subject, selector.release):
            return candidate
    return None


def _respelt(selector: Selector, catalogue: Catalogue) -> Iterator[Rewrite]:
    """A name that is not published, a driver without devices, a value that is nearly the published one."""
    source, meaning = selector.source, "correct the spelling"
    for read in selector.reads:
        intended = None if catalogue.publishes(read) else catalogue.intended(read)
        if intended is not None:
            yield Rewrite(Effort.SPELLING, source, respelt(source, read, intended), meaning)
    for compared in selector.comparisons():
        if compared.reference.kind == "driver" and compared.literal not in catalogue.drivers:
            value = catalogue.driver_like(compared.literal)
        elif compared.kind == "string":
            value = _intended_value(compared, catalogue)
        else:
            continue
        yield Rewrite(Effort.SPELLING, source, compared.relaxed(value) if value else "", meaning)


MAX_VALUES = 64
"""Values of one attribute that a text is compared with."""


def _intended_value(compared: Comparison, catalogue: Catalogue) -> str:
    """The published value that a text is nearly, or the only one that has it as a word; empty for none.

    A text that some device publishes is no slip, nor one where nearly every device has its own (a uuid).
    """
    values = {_value(device.subject, compared) for device in catalogue.devices} - {""}
    if compared.literal in values or len(values) > MAX_VALUES:
        return ""
    words = compared.literal.lower().split()
    longer = [value for value in values if words and set(words) <= set(value.lower().split())]
    return suggest(compared.literal, values) or (longer[0] if len(longer) == 1 else "")


def _with_units(selector: Selector) -> Iterator[Rewrite]:
    """A quantity whose unit Kubernetes does not know, with the unit that is meant: `80Gi` for `80GiB`."""
    for compared in selector.comparisons():
        mended = with_unit(compared.literal) if compared.kind == "quantity" else ""
        new = compared.relaxed(mended) if mended else ""
        yield Rewrite(Effort.UNIT, selector.source, new, f"correct the unit, {mended} for {compared.literal}")


def _guarded(selector: Selector, subject: Subject) -> Rewrite | None:
    """The selector after the question whether a device has what it reads and this one lacks."""
    maps = {"attribute": "attributes", "capacity": "capacity"}
    lacks = [
        (maps[read.kind], read.domain, read.id)
        for read in selector.reads
        if read.kind in maps and read.domain and read.id and published(subject, read) is None
    ]
    if not lacks or selector.evaluate(subject, ALLOWANCE).kind != "error":
        return None
    terms = [f'"{name}" in device.{held}["{domain}"]' for held, domain, name in lacks]
    whole = f"({selector.source})" if "||" in selector.source or "?" in selector.source else selector.source
    meaning = f"leave devices without {', '.join(name for _, _, name in lacks)} out"
    return Rewrite(Effort.GUARD, selector.source, " && ".join((*terms, whole)), meaning)


def _relaxed(selector: Selector, subject: Subject) -> Iterator[Rewrite]:
    """The literal of one comparison replaced by the value the subject has: never another driver."""
    for compared in selector.comparisons():
        value = _value(subject, compared)
        if not value or compared.reference.kind == "driver":
            continue
        name, unit = compared.reference.id, " per device" if compared.kind == "quantity" else ""
        sized = compared.kind in _SIZED
        verb = "make do with" if sized else "take"
        meaning = f"{verb} {name} {value} instead of {compared.literal}{unit}"
        cost = Effort.RELAX if sized else Effort.ANOTHER
        yield Rewrite(cost, selector.source, compared.relaxed(value), meaning)


def _value(subject: Subject, compared: Comparison) -> str:
    """The value the subject has where a comparison reads; empty for none that a literal could be."""
    value = published(subject, compared.reference) if compared.kind != "bool" else None
    return "" if value is None or value.startswith("[") else value


def _matches(source: str, subject: Subject, release: str) -> bool:
    """Tell whether a rewritten selector would match a device; one that does not compile is no advice."""
    try:
        return compile_device(source, release).evaluate(subject, ALLOWANCE).matched
    except CompileError:
        return False
