"""Remedies for device requests that nothing matches: relax one selector, or ask for fewer devices."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from function.api.reasons import Reason
from function.deployment.explain.catalogue import Catalogue
from function.deployment.explain.change import Change, Plain, edited, requests_in
from function.deployment.explain.relax import Relaxed, relaxed, respelt
from function.deployment.explain.remedies.seen import EACH, Seen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import Device, InferenceCluster, Member
    from function.api.reasons import Rejection
    from function.cel import Subject
    from function.scheduler.scheduling_input import SchedulingInput


BLAMED = (Reason.NoMatchingDevice, Reason.DeviceSelectorError)


def selectors(seen: Seen) -> Iterator[Change]:
    """Relax one device selector to a value that a device has: less of the same before another thing."""
    catalogue = Catalogue.of(seen.inputs.fleet)
    known: dict[tuple[str, Subject], Relaxed | None] = {}
    wider: Counter[Relaxed] = Counter()
    for cluster, found in seen.headed(*BLAMED):
        failing = {each for leaf in found.leaves if (each := _failing(seen.inputs, cluster, leaf))}
        for each in failing - known.keys():
            selector = seen.inputs.selectors.device[each[0]]
            known[each] = relaxed(selector, each[1]) or respelt(selector, each[1], catalogue)
        wider.update({new for each in failing if (new := known[each])})
    ordered = sorted(wider.items(), key=lambda item: (item[0].another, -item[1], item[0]))
    for change, _ in ordered[:EACH]:
        yield _rewritten(change.old, change.new)


def _failing(
    inputs: SchedulingInput, cluster: InferenceCluster, leaf: Rejection
) -> tuple[str, Subject] | None:
    """The selector that fails and the closest device."""
    source = source_of(inputs, leaf) if leaf.reason in BLAMED else ""
    device = _device(cluster, leaf)
    return (source, device.subject) if device is not None and source else None


def source_of(inputs: SchedulingInput, leaf: Rejection) -> str:
    """The text of the selector that a rejection is about; empty when it is about none."""
    if leaf.selector is None:
        return ""
    for member in _members(inputs, leaf):
        if not leaf.request and member.node_selector:
            return member.node_selector.selectors[leaf.selector].cel
        for request in member.requests:
            if request.name == leaf.request:
                return request.ranked[leaf.rank].selectors[leaf.selector].cel
    return ""


def _members(inputs: SchedulingInput, leaf: Rejection) -> Iterator[Member]:
    """The member that a rejection is about."""
    for shape in inputs.deployment.shapes:
        for engine in shape.engines if shape.name == leaf.alternative else ():
            yield from (
                each for each in engine.members if (engine.name, each.role) == (leaf.engine, leaf.member)
            )


def _device(cluster: InferenceCluster, leaf: Rejection) -> Device | None:
    pool = cluster.by_name.get(leaf.pool)
    named = [each for each in (pool.devices or ()) if leaf.device in (each.name, each.driver)] if pool else []
    return named[0] if named else None


def _rewritten(old: str, new: str) -> Change:
    def edit(plain: Plain) -> None:
        for each in requests_in(plain):
            for selector in each.get("selectors", ()):
                selector["cel"] = new if selector["cel"] == old else selector["cel"]

    facts = {"selector": old, "instead": new}
    text = f"change the selector {old} to {new}"
    return Change("RelaxSelector", text, lambda inputs: edited(inputs, edit), facts, group=f"relax {old}")


def counts(seen: Seen) -> Iterator[Change]:
    """Ask for as many devices per node as there are."""
    found = Counter(
        (leaf.request, leaf.needs, leaf.free)
        for _, each in seen.headed(Reason.DeviceCountShort)
        for leaf in each.leaves
        if leaf.reason is Reason.DeviceCountShort and leaf.free
    )
    for (request, asked, most), _ in sorted(found.items(), key=lambda item: (-(item[0][2] or 0), item[0]))[
        :1
    ]:
        yield _lowered(request, asked or 0, most or 0)


def _lowered(request: str, asked: int, most: int) -> Change:
    def edit(plain: Plain) -> None:
        for each in requests_in(plain):
            if each.get("name") == request and each.get("count", 1) == asked:
                each["count"] = most

    text = f"ask for {most} instead of {asked} devices in request {request}"
    facts = {"request": request, "from": asked, "to": most}
    return Change("LowerCount", text, lambda inputs: edited(inputs, edit), facts, group=f"count {request}")
