"""SchedulerConfig: the input of the function's step in a Composition."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from function.api.model import Model, Whole
from function.api.placement import PlacementPolicy

API_VERSION: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = (
    "fleet-scheduler.fn.modelplane.ai/v1alpha1"
)
KIND: Literal["SchedulerConfig"] = "SchedulerConfig"
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(value: object) -> object:
    """Read a duration: a number of seconds or a text such as 15s, 1m."""
    if isinstance(value, str):
        for unit in sorted(UNITS, key=len, reverse=True):
            number = value.removesuffix(unit)
            if number != value and number.replace(".", "", 1).isdigit():
                return float(number) * UNITS[unit]
        raise ValueError("expected a duration such as 15s or 1m")
    return value


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=86_400, allow_inf_nan=False)]


class _Strict(Model):
    model_config = ConfigDict(extra="forbid")


class Ttl(_Strict):
    """How long Crossplane may use an answer, while something is pending and once settled."""

    pending: Seconds | None = None
    settled: Seconds | None = None


class Defaults(_Strict):
    """What applies where a deployment sets nothing."""

    placement: PlacementPolicy = PlacementPolicy()


class SchedulerConfig(_Strict):
    """The function's input; every field is optional."""

    api_version: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = API_VERSION
    kind: Literal["SchedulerConfig"] = KIND
    metadata: dict[str, Any] = {}
    explain: Literal["Conditions", "Status"] = "Conditions"
    defaults: Defaults = Defaults()
    overcommit: Literal["Report", "Yield"] = "Report"
    coordination: Literal["None", "GlobalOrder"] = "None"
    search_budget: Annotated[Whole, Field(ge=1, le=100_000_000)] = 100_000
    ttl: Ttl = Ttl()
