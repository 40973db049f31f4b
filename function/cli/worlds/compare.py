"""Compare two simulations: what a change moves, what gets stuck, which endpoints disappear."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from function.cli.worlds.simulate import Simulation
    from function.cli.worlds.world import Planned


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where one deployment ends up."""

    wanted: int = 0
    total: int = 0
    held: int = 0
    reason: str = "Absent"
    message: str = ""
    placements: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Replica name to its cluster and pools."""
    endpoints: dict[str, str] = field(default_factory=dict)
    """Replica name to URL."""

    @property
    def short(self) -> int:
        """How many replicas are missing."""
        return max(0, self.wanted - self.total)

    @property
    def as_data(self) -> dict[str, Any]:
        """The outcome as plain data."""
        replicas = [
            {"name": name, "cluster": cluster, "pools": pools}
            for name, (cluster, pools) in sorted(self.placements.items())
        ]
        return {
            "wanted": self.wanted,
            "placed": self.total,
            "held": self.held,
            "reason": self.reason,
            "message": self.message,
            "replicas": replicas,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """One deployment before and after a change."""

    name: str
    before: Outcome
    after: Outcome
    causes: dict[str, str]
    """Replica name to why it leaves, for those that leave in the simulation."""
    serving: tuple[int, int]
    """The fewest endpoints in service at any time on the way, without and with the change."""

    @property
    def leaving(self) -> list[str]:
        """Replicas that would have been there."""
        return [name for name in self.before.placements if name not in self.after.placements]

    def why(self, name: str) -> str:
        """Why a replica leaves, or is not placed to begin with."""
        return self.causes.get(name, "not placed here any more")

    @property
    def arriving(self) -> list[str]:
        """Replicas that would not have been there."""
        return [name for name in self.after.placements if name not in self.before.placements]

    @property
    def moves(self) -> int:
        """How many replicas leave one place and get another."""
        return min(len(self.leaving), len(self.arriving))

    @property
    def lost_endpoints(self) -> list[str]:
        """URLs that would have been there."""
        return [url for name, url in self.before.endpoints.items() if name not in self.after.endpoints]

    @property
    def worse(self) -> bool:
        """Whether more is missing, or stuck, than without the change."""
        before, after = self.before, self.after
        lost = after.total < min(before.total, after.wanted) or after.short > before.short
        return lost or after.held > before.held or (after.reason.startswith("Invalid") and after != before)

    @property
    def changed(self) -> bool:
        """Whether the change concerns this deployment at all."""
        return replace(self.before, message="") != replace(self.after, message="")

    @property
    def as_data(self) -> dict[str, Any]:
        """The difference as plain data."""
        before, after = self.before, self.after
        return {
            "deployment": self.name,
            "changed": self.changed,
            "worse": self.worse,
            "before": before.as_data,
            "after": after.as_data,
            "leaving": [
                {"name": name, "cluster": before.placements[name][0], "why": self.why(name)}
                for name in self.leaving
            ],
            "arriving": [{"name": name, "cluster": after.placements[name][0]} for name in self.arriving],
            "moves": self.moves,
            "shortfall": after.short,
            "endpointsGone": self.lost_endpoints,
            "servingAtWorst": self.serving[1],
        }


def outcome(planned: Planned) -> Outcome:
    """Read one deployment's outcome from its plan."""
    response, forecast, scheduled = planned.response, planned.forecast, planned.forecast.scheduled
    reason, message = (scheduled.reason, scheduled.message) if scheduled else ("Unknown", "")
    if not forecast.readable:
        return Outcome(reason=reason, message=message)
    endpoints = {
        str(desired.resource["metadata"].get("name")): _url(desired.resource.get("spec"))
        for desired in response.desired.values()
        if desired.resource.get("kind") == "ModelEndpoint"
    }
    placements = {row.name: (row.cluster, "+".join(row.all_pools)) for row in forecast.standing}
    counts = (forecast.wanted, forecast.total, forecast.held)
    return Outcome(*counts, reason, message, placements, dict(sorted(endpoints.items())))


def _url(spec: object) -> str:
    return str(spec.get("url", "")) if isinstance(spec, dict) else ""


def compare(before: Simulation, after: Simulation) -> list[Difference]:
    """Every deployment before and after, in the order of their names."""
    was = {planned.title: outcome(planned) for planned in before.last}
    now = {planned.title: outcome(planned) for planned in after.last}
    causes, serving, anyway = _causes(after), _serving(after), _serving(before)
    return [
        Difference(
            name,
            was.get(name, Outcome()),
            now.get(name, Outcome()),
            causes[name],
            (anyway.get(name, 0), serving.get(name, 0)),
        )
        for name in sorted({*was, *now})
    ]


def _causes(simulation: Simulation) -> dict[str, dict[str, str]]:
    """Why replicas leave, by deployment and replica, over all rounds."""
    causes: dict[str, dict[str, str]] = defaultdict(dict)
    for planned in simulation.plans:
        for row in planned.forecast.leaving:
            causes[planned.title].setdefault(row.name, row.phrase)
    return causes


def _serving(simulation: Simulation) -> dict[str, int]:
    """The fewest endpoints in service in any round, by deployment."""
    counts: dict[str, list[int]] = defaultdict(list)
    for planned in simulation.plans:
        counts[planned.title].append(len(outcome(planned).endpoints))
    return {name: min(numbers) for name, numbers in counts.items()}
