"""One change to the input that might let one more replica fit, and the input with it applied.

A change builds a new question out of the old one; nothing is changed in place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from function.api import InferenceCluster, ModelDeployment
from function.api.model import Model
from function.scheduler.question import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.scheduler.question import Question

Plain = dict[str, Any]
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what to tell a person, and the question as it would be."""

    kind: str
    message: str
    apply: Callable[[Question], Question]
    facts: Mapping[str, object]
    """The numbers and names of the change, for machines."""
    group: str = ""
    """Of several changes of one group only the first that helps is told."""
    smaller: Callable[[int], Change] | None = None
    """The same change with another number, where it has one."""
    bounds: tuple[int, int] = (0, 0)
    """The least number it could have, and the one it has."""


def changed(model: M, **fields: object) -> M:
    """A parsed object with some fields exchanged; what it computed about itself is not carried over."""
    kept = {name: getattr(model, name) for name in type(model).model_fields}
    return type(model).model_validate({**kept, **fields})


def with_cluster(question: Question, cluster: InferenceCluster) -> Question:
    """The question with one cluster exchanged."""
    clusters = {**question.fleet.clusters, cluster.name: cluster}
    return replace(question, fleet=replace(question.fleet, clusters=clusters))


def with_deployment(question: Question, deployment: ModelDeployment) -> Question:
    """The question with another deployment, its selectors compiled anew."""
    return ask(deployment, question.fleet, question.config, question.config_fault)


def edited(question: Question, edit: Callable[[Plain], None]) -> Question:
    """The question with an edit to the deployment, as its owner would make it."""
    plain = question.deployment.model_dump(mode="json", by_alias=True, exclude_unset=True)
    edit(plain)
    return with_deployment(question, ModelDeployment.parse(plain))


def requests_in(plain: Plain) -> list[Plain]:
    """Every device request of a plain deployment, each way of a prioritized list on its own."""
    spec = plain["spec"]["template"]["spec"]
    engines = [
        *spec["engines"],
        *(each for other in spec.get("alternatives", ()) for each in other["engines"]),
    ]
    members = [member for engine in engines for member in engine["members"]]
    devices = [each for one in members for each in (one.get("nodeSelector") or {}).get("devices", ())]
    return [way for each in devices for way in (each.get("firstAvailable") or [each])]
