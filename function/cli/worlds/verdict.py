"""Say how a plan ended: the exit code of `plan` and `why`, and the first fields of their data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.cli.group import BAD_INPUT
from function.cli.worlds.settling import standing
from function.cli.worlds.unready import unready_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from function.boundary import Response
    from function.cli.worlds.world import Planned

PLACED, SHORTFALL = 0, 2
_WORST = (PLACED, SHORTFALL, BAD_INPUT)


def worst_code(results: Iterable[Planned], faults: Collection[str]) -> int:
    """The exit code of several plans from files with some faults: that of the worst."""
    codes = [_code(planned) for planned in results]
    return max([*codes, BAD_INPUT if faults else PLACED], key=_WORST.index)


def _code(planned: Planned) -> int:
    if not planned.forecast.valid:
        return BAD_INPUT
    return PLACED if planned.forecast.complete else SHORTFALL


def summary_of(planned: Planned) -> dict[str, Any]:
    """Name, status, conditions and unready replicas of a planned deployment as plain data."""
    manifest = planned.manifest
    return {
        "namespace": manifest.namespace,
        "name": manifest.name,
        **planned.response.status,
        "conditions": plain_conditions(planned.response),
        "stalled": stalled_of(planned),
        "unready": [unready._asdict() for unready in unready_of(planned)],
    }


def stalled_of(planned: Planned) -> list[str]:
    """Why the control plane does not do, or did not do yet, what is planned here."""
    return standing(planned.manifest.content, ()).stalled


def plain_conditions(response: Response) -> list[dict[str, str]]:
    """The conditions of an answer as plain data."""
    return [
        {
            "type": condition.type,
            "status": str(condition.status),
            "reason": condition.reason,
            "message": condition.message,
        }
        for condition in response.conditions
    ]
