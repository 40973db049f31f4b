"""SchedulerConfig: the input of the step that places a ModelDeployment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from function.api.model import CelVersion, Whole
from function.api.placement import PlacementPolicy
from function.api.step_input import API_VERSION, StepInput, TtlConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

KIND: Literal["SchedulerConfig"] = "SchedulerConfig"


def _no_unknown(model: type[BaseModel], plain: object, path: str) -> None:
    """Refuse fields that a model does not have, at any depth. Raises ValueError naming the first."""
    if isinstance(plain, list):
        for number, entry in enumerate(plain):
            _no_unknown(model, entry, f"{path.removesuffix('.')}[{number}].")
    if not isinstance(plain, dict):
        return
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    for key in sorted(plain):
        if key not in fields:
            raise ValueError(f"{path}{key}: no such field")
        for inner in _models_in(fields[key]):
            _no_unknown(inner, plain[key], f"{path}{key}.")


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """The models an annotation speaks of: of an optional field, of a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for arg in get_args(annotation):
        yield from _models_in(arg)


def _without_unknown_fields(plain: object) -> object:
    """A deployment may come from a newer API; the input belongs to this build, and a typo is an error."""
    _no_unknown(PlacementPolicy, plain, "")
    return plain


class Defaults(StepInput):
    """What applies where a deployment sets nothing."""

    placement: Annotated[PlacementPolicy, BeforeValidator(_without_unknown_fields)] = PlacementPolicy()


class SchedulerConfig(StepInput):
    """The function's input; every field is optional."""

    api_version: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = API_VERSION
    kind: Literal["SchedulerConfig"] = KIND
    metadata: dict[str, Any] = {}
    explain: Literal["Conditions", "Status"] = "Conditions"
    defaults: Defaults = Defaults()
    overcommit: Literal["Report", "Yield"] = "Report"
    coordination: Literal["None", "GlobalOrder"] = "None"
    capacity: Literal["Replicas", "Published"] = "Replicas"
    """Where the capacity that is taken is read: from every replica, or from what the clusters publish."""
    search_budget: Annotated[Whole, Field(ge=1, le=100_000_000)] = 100_000
    ttl: TtlConfig = TtlConfig()
    cel_version: CelVersion = "1.36"
    """The Kubernetes release whose reading of selectors applies where a cluster does not say its own."""
    scale_selector: Literal["None", "Status"] = "None"
    """Whether `status.replicas.selector` is written: the label selector that the scale subresource serves."""

    @model_validator(mode="after")
    def _order_needs_replicas(self) -> SchedulerConfig:
        if self.capacity == "Published" and self.coordination == "GlobalOrder":
            raise ValueError(
                "capacity: Published cannot be combined with coordination: GlobalOrder, which places the"
                " deployments of the fleet from all its replicas"
            )
        return self

    @property
    def coordinates(self) -> bool:
        """Whether deployments are asked to respect what the others of the fleet hold or will hold."""
        return self.overcommit == "Yield" or self.coordination == "GlobalOrder"
