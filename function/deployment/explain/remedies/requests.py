"""Remedies for device requests that nothing matches: rewrite one selector, or ask for fewer devices."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from function.api.reasons import Reason
from function.deployment.explain.catalogue import Catalogue
from function.deployment.explain.change import Change, Cost, Plain, edited, requests_in
from function.deployment.explain.relax import Rewrite, rewrite
from function.deployment.explain.remedies.seen import EACH, Seen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import Device, InferenceCluster
    from function.api.deployment import SubRequest
    from function.api.reasons import Rejection
    from function.api.requests import MemberReference
    from function.cel import Subject
    from function.scheduler.scheduling_input import SchedulingInput


BLAMED = (Reason.NoMatchingDevice, Reason.DeviceSelectorError)


def selectors(seen: Seen) -> Iterator[Change]:
    """Rewrite one device selector so that a device matches it, the cheapest rewrites first."""
    catalogue = Catalogue.of(seen.inputs.fleet)
    about: dict[SubRequest, Catalogue] = {}
    known: dict[tuple[str, Subject], Rewrite | None] = {}
    wider: Counter[Rewrite] = Counter()
    for cluster, found in seen.headed(*BLAMED):
        failing: set[tuple[str, Subject]] = set()
        for leaf in found.leaves:
            sub, device = _sub_request(seen.inputs, leaf), _device(cluster, leaf)
            if leaf.reason not in BLAMED or leaf.selector is None or sub is None or device is None:
                continue
            selector = seen.inputs.evaluations.program(sub.selectors[leaf.selector])
            key = (selector.source, device.subject)
            failing.add(key)
            if key not in known:
                if sub not in about:
                    programs = [seen.inputs.evaluations.program(one) for one in sub.selectors]
                    about[sub] = catalogue.beside(programs)
                known[key] = rewrite(selector, device.subject, about[sub])
        wider.update({new for key in failing if (new := known[key])})
    ordered = sorted(wider.items(), key=lambda item: (item[0].cost, -item[1], item[0]))
    for found_rewrite, _ in ordered[:EACH]:
        yield rewritten(found_rewrite)


def source_of(inputs: SchedulingInput, leaf: Rejection) -> str:
    """The text of the selector that a rejection is about; empty when it is about none."""
    if leaf.selector is None:
        return ""
    if leaf.request:
        sub = _sub_request(inputs, leaf)
        return sub.selectors[leaf.selector].cel if sub else ""
    about = (each.member.node_selector for each in inputs.deployment.members if _is_about(leaf, each))
    return next((found.selectors[leaf.selector].cel for found in about if found), "")


def _sub_request(inputs: SchedulingInput, leaf: Rejection) -> SubRequest | None:
    """The way of a request that a rejection is about."""
    for reference in inputs.deployment.requests:
        same = (reference.request.name, reference.rank) == (leaf.request, leaf.rank)
        if same and _is_about(leaf, reference.of):
            return reference.sub
    return None


def _is_about(leaf: Rejection, reference: MemberReference) -> bool:
    where = (reference.shape.name, reference.engine.name, reference.member.role)
    return where == (leaf.alternative, leaf.engine, leaf.member)


def _device(cluster: InferenceCluster, leaf: Rejection) -> Device | None:
    pool = cluster.by_name.get(leaf.pool)
    named = [each for each in (pool.devices or ()) if leaf.device in (each.name, each.driver)] if pool else []
    return named[0] if named else None


def rewritten(found: Rewrite) -> Change:
    """The change that writes a selector anew, wherever it is written."""

    def edit(plain: Plain) -> None:
        for each in requests_in(plain):
            for selector in each.get("selectors", ()):
                selector["cel"] = found.new if selector["cel"] == found.old else selector["cel"]

    kind = "CorrectSelector" if found.cost in (Cost.SPELLING, Cost.UNIT) else "RelaxSelector"
    text = f"{found.meaning}: change the selector {found.old} to {found.new}"
    facts = {"selector": found.old, "instead": found.new}
    return Change(
        kind, found.cost, text, lambda inputs: edited(inputs, edit), facts, group=f"relax {found.old}"
    )


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
    return Change(
        "LowerCount", Cost.RELAX, text, lambda inputs: edited(inputs, edit), facts, group=f"count {request}"
    )
