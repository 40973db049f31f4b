"""What the inputs of the function's steps have in common: version, strictness, how long an answer holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from function.api.fault import shown
from function.api.model import Model
from function.boundary import text_at

if TYPE_CHECKING:
    from function.api.fault import Malformed
    from function.boundary import Request

API_VERSION: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = (
    "fleet-scheduler.fn.modelplane.ai/v1alpha1"
)
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def invalid_input(request: Request, error: Malformed) -> str:
    """Say that the function's input cannot be read: which object, of which Composition, and its faults.

    A request does not name the step. The Composition is the one that Crossplane has chosen for the composite.
    """
    composition = text_at(request.composite, "spec", "crossplane", "compositionRef", "name")
    kind = (request.input or {}).get("kind")
    where = f" of Composition {shown(composition)}" if composition else ""
    return f"The function's input is invalid: {kind if isinstance(kind, str) else 'input'}{where}: {error}"


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


class StepInput(Model):
    """An input, or a part of one: it belongs to this build, so an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class TtlConfig(StepInput):
    """How long Crossplane may use an answer, while something is pending and once settled.

    `waiting` is for what only a change of the fleet ends; where it is not set, that is pending too.
    """

    waiting: Seconds | None = None
    pending: Seconds | None = None
    settled: Seconds | None = None
