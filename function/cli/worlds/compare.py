"""Compare two forecasts: what a change moves, what gets stuck, which endpoints disappear."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.cli.worlds.simulate import Forecast
    from function.cli.worlds.world import Planned
    from function.scheduler.decision import Decision


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where one deployment ends up."""

    wanted: int = 0
    total: int = 0
    held: int = 0
    reason: str = "Absent"
    message: str = ""
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Replica name to its cluster and pools."""
    endpoints: dict[str, str] = field(default_factory=dict)
    """Replica name to URL."""

    @property
    def short(self) -> int:
        """How many replicas are missing."""
        return max(0, self.wanted - self.total)


@dataclass(frozen=True, slots=True)
class Difference:
    """One deployment before and after a change."""

    name: str
    before: Outcome
    after: Outcome
    causes: dict[str, str]
    """Replica name to why it leaves, for those that leave in the forecast."""
    serving: tuple[int, int]
    """The fewest endpoints in service at any time on the way, without and with the change."""

    @property
    def leaving(self) -> list[str]:
        """Replicas that would have been there."""
        return [each for each in self.before.places if each not in self.after.places]

    def why(self, name: str) -> str:
        """Why a replica leaves, or is not placed to begin with."""
        return self.causes.get(name, "not placed here any more")

    @property
    def arriving(self) -> list[str]:
        """Replicas that would not have been there."""
        return [each for each in self.after.places if each not in self.before.places]

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


def pools_of(decision: Decision) -> Iterator[tuple[str, str, str]]:
    """Name, cluster and pools of every replica that stays or is placed."""
    for kept in decision.kept:
        stamped = (member.pool for engine in kept.own.replica.engines for member in engine.members)
        yield kept.own.replica.name, kept.own.cluster, "+".join(dict.fromkeys(stamped))
    for placed in decision.placed:
        candidate = placed.candidate
        chosen = (
            candidate.pool(option, at)
            for engine, option in candidate.engines
            for at in range(len(engine.members))
        )
        yield placed.name, placed.identity.cluster, "+".join(dict.fromkeys(chosen))


def _url(spec: object) -> str:
    return str(spec.get("url", "")) if isinstance(spec, dict) else ""


def outcome(planned: Planned) -> Outcome:
    """Read one deployment's outcome from its plan."""
    response, decision = planned.response, planned.decision
    told = next((each for each in response.conditions if each.type == "ReplicasScheduled"), None)
    reason, message = (told.reason, told.message) if told else ("Unknown", "")
    if decision is None:
        return Outcome(reason=reason, message=message)
    endpoints = {
        str(each.resource["metadata"].get("name")): _url(each.resource.get("spec"))
        for each in response.desired.values()
        if each.resource.get("kind") == "ModelEndpoint"
    }
    places = {name: (cluster, pools) for name, cluster, pools in pools_of(decision)}
    counts = (decision.wanted, decision.total, len(decision.held))
    return Outcome(*counts, reason, message, places, dict(sorted(endpoints.items())))


def title(planned: Planned) -> str:
    """`namespace/name` of the deployment."""
    return f"{planned.manifest.namespace}/{planned.manifest.name}"


def _causes(forecast: Forecast) -> dict[str, dict[str, str]]:
    """Why replicas leave, by deployment and replica, over all rounds."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for planned in (each for rounds in forecast.rounds for each in rounds):
        for each in planned.decision.dropped if planned.decision else ():
            why = f"{each.cause.value}: {each.detail}" if each.detail else each.cause.value
            found[title(planned)].setdefault(each.own.replica.name, why)
    return found


def _serving(forecast: Forecast) -> dict[str, int]:
    counts: dict[str, list[int]] = defaultdict(list)
    for planned in (each for rounds in forecast.rounds for each in rounds):
        counts[title(planned)].append(len(outcome(planned).endpoints))
    return {name: min(found) for name, found in counts.items()}


def compare(before: Forecast, after: Forecast) -> list[Difference]:
    """Every deployment before and after, in the order of their names."""
    was = {title(each): outcome(each) for each in before.last}
    now = {title(each): outcome(each) for each in after.last}
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


def _state(outcome: Outcome) -> dict[str, Any]:
    return {
        "wanted": outcome.wanted,
        "placed": outcome.total,
        "held": outcome.held,
        "reason": outcome.reason,
        "message": outcome.message,
        "replicas": [
            {"name": name, "cluster": cluster, "pools": pools}
            for name, (cluster, pools) in sorted(outcome.places.items())
        ],
    }


def as_data(each: Difference) -> dict[str, Any]:
    """One deployment's difference as plain data."""
    return {
        "deployment": each.name,
        "changed": each.changed,
        "worse": each.worse,
        "before": _state(each.before),
        "after": _state(each.after),
        "leaving": [
            {
                "name": name,
                "cluster": each.before.places[name][0],
                "why": each.why(name),
            }
            for name in each.leaving
        ],
        "arriving": [{"name": name, "cluster": each.after.places[name][0]} for name in each.arriving],
        "moves": each.moves,
        "shortfall": each.after.short,
        "endpointsGone": each.lost_endpoints,
        "servingAtWorst": each.serving[1],
    }
