"""Remedies for device requests that nothing matches: rewrite one selector, or ask for fewer devices."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from function.api.reasons import Reason
from function.deployment.explain.catalogue import Catalogue
from function.deployment.explain.change import Effort, InputChange, edited, requests_in
from function.deployment.explain.relax import Rewrite, rewrite
from function.deployment.explain.remedies.context import CHANGES_PER_KIND, ProposalContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import Device, InferenceCluster
    from function.api.engine import SubRequest
    from function.api.reasons import Rejection
    from function.api.requests import MemberReference
    from function.boundary import JsonObject
    from function.cel import Subject
    from function.scheduler.scheduling_input import SchedulingInput


BLAMED = (Reason.NoMatchingDevice, Reason.DeviceSelectorError)


def selectors(context: ProposalContext) -> Iterator[InputChange]:
    """Rewrite one device selector so that a device matches: the cheapest, of those the most opening."""
    rewrites = _Rewrites(context.inputs)
    opened: Counter[Rewrite] = Counter()
    for cluster, rejection in context.headed(*BLAMED):
        opened.update({remedy for leaf in rejection.leaves if (remedy := rewrites.of(cluster, leaf))})
    ordered = sorted(opened.items(), key=lambda item: (item[0].cost, -item[1], item[0]))
    yield from (rewritten(cheapest) for cheapest, _ in ordered[:CHANGES_PER_KIND])


class _Rewrites:
    """The rewrites of a deployment's device selectors, each pair of selector and device looked at once."""

    def __init__(self, inputs: SchedulingInput) -> None:
        self._inputs = inputs
        self._catalogue = Catalogue.of(inputs.fleet)
        self._beside: dict[SubRequest, Catalogue] = {}
        self._rewrites: dict[tuple[str, Subject], Rewrite | None] = {}

    def of(self, cluster: InferenceCluster, leaf: Rejection) -> Rewrite | None:
        """The rewrite of the selector that a rejection is about, for the device that came closest."""
        sub, device = _sub_request(self._inputs, leaf), _device(cluster, leaf)
        if leaf.reason not in BLAMED or leaf.selector is None or sub is None or device is None:
            return None
        selector = self._inputs.evaluations.program(sub.selectors[leaf.selector])
        key = (selector.source, device.subject)
        if key not in self._rewrites:
            self._rewrites[key] = rewrite(selector, device.subject, self._about(sub))
        return self._rewrites[key]

    def _about(self, sub: SubRequest) -> Catalogue:
        """What the devices publish that a request is about."""
        if sub not in self._beside:
            programs = [self._inputs.evaluations.program(selector) for selector in sub.selectors]
            self._beside[sub] = self._catalogue.beside(programs)
        return self._beside[sub]


def source_of(inputs: SchedulingInput, leaf: Rejection) -> str:
    """The text of the selector that a rejection is about; empty when it is about none."""
    if leaf.selector is None:
        return ""
    if leaf.request:
        sub = _sub_request(inputs, leaf)
        return sub.selectors[leaf.selector].cel if sub else ""
    members = (reference.member for reference in inputs.deployment.members if _is_about(leaf, reference))
    selectors = (member.node_selector.selectors for member in members if member.node_selector)
    return next((stated[leaf.selector].cel for stated in selectors), "")


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
    devices = pool.devices or () if pool else ()
    return next((device for device in devices if leaf.device in (device.name, device.driver)), None)


def rewritten(selector: Rewrite) -> InputChange:
    """The change that writes a selector anew, wherever it is written."""

    def edit(plain: JsonObject) -> None:
        for request in requests_in(plain):
            for stated in (*request.get("selectors", ()), *request.get("claimSelectors", ())):
                stated["cel"] = selector.new if stated["cel"] == selector.old else stated["cel"]

    kind = "CorrectSelector" if selector.cost in (Effort.SPELLING, Effort.UNIT) else "RelaxSelector"
    text = f"{selector.meaning}: change the selector {selector.old} to {selector.new}"
    facts = {"selector": selector.old, "instead": selector.new}
    group = f"relax {selector.old}"
    return InputChange(kind, selector.cost, text, lambda inputs: edited(inputs, edit), facts, group=group)


def counts(context: ProposalContext) -> Iterator[InputChange]:
    """Ask for as many devices per node as there are, where the most are."""
    short = {
        (leaf.request, leaf.needs or 0, leaf.free)
        for _, rejection in context.headed(Reason.DeviceCountShort)
        for leaf in rejection.leaves
        if leaf.reason is Reason.DeviceCountShort and leaf.free
    }
    if short:
        yield _lowered(*min(short, key=lambda item: (-item[2], item)))


def _lowered(request: str, needs: int, most: int) -> InputChange:
    def edit(plain: JsonObject) -> None:
        for stated in requests_in(plain):
            if stated.get("name") == request and stated.get("count", 1) == needs:
                stated["count"] = most

    text = f"ask for {most} instead of {needs} devices in request {request}"
    facts = {"request": request, "from": needs, "to": most}
    group = f"count {request}"
    return InputChange(
        "LowerCount", Effort.RELAX, text, lambda inputs: edited(inputs, edit), facts, group=group
    )
