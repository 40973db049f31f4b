"""One change to the input that might let one more replica fit, and the input with it applied.

A change builds a new input out of the old one; nothing is changed in place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from function.api import InferenceCluster, ModelDeployment
from function.api.model import Model
from function.scheduler.scheduling_input import scheduling_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.boundary import JsonObject
    from function.scheduler.scheduling_input import SchedulingInput

M = TypeVar("M", bound=Model)


class Effort(IntEnum):
    """What a change costs who makes it, the cheapest first. Hints come in this order."""

    SPELLING = 0
    """A name that was mistyped."""
    UNIT = 1
    """A unit that Kubernetes does not know."""
    ALTERNATIVE = 2
    """Something else that would do as well: another label, a limit of one's own."""
    TOLERATE = 3
    """Putting up with a taint."""
    FREE = 4
    """Taking from another deployment."""
    RELAX = 5
    """Less than was asked for."""
    ANOTHER = 6
    """Another product than was asked for."""
    HARDWARE = 7
    """Something has to be bought, built or repaired."""
    DRAINED = 8
    """Running where an operator is making everything leave."""


@dataclass(frozen=True, slots=True)
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


def with_deployment(inputs: SchedulingInput, deployment: ModelDeployment) -> SchedulingInput:
    """The input with another deployment, its selectors compiled anew."""
    return scheduling_input(deployment, inputs.fleet, inputs.config, inputs.config_fault)


def edited(inputs: SchedulingInput, edit: Callable[[JsonObject], None]) -> SchedulingInput:
    """The input with an edit to the deployment, as its owner would make it."""
    plain = inputs.deployment.model_dump(mode="json", by_alias=True, exclude_unset=True)
    edit(plain)
    return with_deployment(inputs, ModelDeployment.parse(plain))


def requests_in(plain: JsonObject) -> list[JsonObject]:
    """Every device request of a plain deployment; of a prioritized list, all its subrequests."""
    spec = plain["spec"]["template"]["spec"]
    shapes = [spec, *spec.get("alternatives", ())]
    members = [member for shape in shapes for engine in shape["engines"] for member in engine["members"]]
    selectors = [member.get("nodeSelector") or {} for member in members]
    requests = [request for selector in selectors for request in selector.get("devices", ())]
    return [subrequest for request in requests for subrequest in (request.get("firstAvailable") or [request])]
