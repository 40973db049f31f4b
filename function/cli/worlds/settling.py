"""Follow how a deployment settles: its state in a control plane, and what changed between two looks.

`standing` reads one state from a deployment and its replicas, `changes` compares two, and `is_settled` says
when there is nothing left to wait for: every wanted replica Ready, none leaving, no condition False, and
all of that about the spec as it is now. A condition may be old: Crossplane says by `Synced`, and by
`observedGeneration`, whether it has acted on the last edit.

An adapter settles by the same rules (`adapter_standing`): its places stand for replicas.

`plan` and `why` use the same reading for replicas that are not Ready, and their exit codes come from here.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from function.api.adapter import read_base, read_placement
from function.api.model import mapping, mappings, string
from function.api.replica import parse as parse_replica
from function.api.text import joined
from function.boundary import JsonObject, PlainDocument, frozen
from function.cli.group import BAD_INPUT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from function.cli.worlds.world import Planned


# What a replica that is not Ready says of itself: the one condition that tells why.

CROSSPLANE = ("Synced", "Ready")
"""Crossplane's own conditions, the one that names a cause first. Those of the replica's handler say more."""


class Unready(NamedTuple):
    """A replica that exists and is not Ready."""

    name: str
    cluster: str
    why: str
    """`ModelReady: Unschedulable: no node has 8 GPUs`; empty where nothing was said of it yet."""


def unready_of(planned: Planned) -> list[Unready]:
    """The replicas of a planned deployment that stay and are not Ready, by name."""
    staying = {row.name for row in planned.forecast.standing if not row.is_new}
    unready = []
    for plain in (document.plain() for document in planned.request.observed.values()):
        if plain.get("kind") == "ModelReplica":
            replica = parse_replica(PlainDocument(plain))
            if replica.ready is not True and replica.name in staying:
                unready.append(Unready(replica.name, replica.cluster, obstacle(plain)))
    return sorted(unready)


def obstacle(plain: JsonObject) -> str:
    """Return the first False condition that keeps a replica from being Ready, or ""."""
    refused = {
        string(entry.get("type")): joined(
            *(string(entry.get(key)) for key in ("type", "reason", "message")), by=": "
        )
        for entry in mappings(mapping(plain, "status").get("conditions"))
        if entry.get("status") == "False"
    }
    of_handler = [text for kind, text in refused.items() if kind not in CROSSPLANE]
    return next(iter([*of_handler, *(refused[kind] for kind in CROSSPLANE if kind in refused)]), "")


DECIDING = {
    "Deployment": (
        "ReplicasScheduled",
        "ReplicasReady",
        "ReplicasUpdated",
        "ModelCacheResolved",
        "CapacityRespected",
    ),
    "Adapter": ("AdapterScheduled", "AdapterReady"),
}
"""Conditions that must not be False once one has settled; those it does not have do not matter.

The first two it must have: that all replicas have a place, and that all that have one serve.
"""
SYNCED, READY, RESPONSIVE = "Synced", "Ready", "Responsive"
"""Crossplane's own: whether it acted on the spec, whether all that is composed is Ready (an endpoint that is
not serves nobody), and whether its circuit breaker lets events through (if not, changes are seen late)."""

LATE = "changes are seen late for some minutes, see docs/operations.md, The circuit breaker"
"""What an open circuit breaker means: Crossplane's words do not say what to do."""


class ConditionState(NamedTuple):
    """A condition, without the times that change nothing."""

    status: str
    reason: str = ""
    message: str = ""


class Replica(NamedTuple):
    """A replica: where it is, and how far."""

    cluster: str
    state: str
    """`starting`, `ready` or `leaving`."""
    why: str = ""
    """What keeps it from being Ready, as it says itself."""


class StateChange(NamedTuple):
    """One thing that is not as it was."""

    kind: str
    """`Deployment`, `Condition` or `Replica`."""
    name: str
    text: str


@frozen
class Standing:
    """The state of a deployment at one moment."""

    wanted: int = 0
    current: bool = False
    """Whether the control plane has acted on the spec as it is now."""
    conditions: Mapping[str, ConditionState] = field(default_factory=dict)
    replicas: Mapping[str, Replica] = field(default_factory=dict)
    behind: str = ""
    """Which edit the control plane has not acted on yet, in words."""
    kind: str = "Deployment"
    """`Deployment` or `Adapter`."""

    @property
    def stalled(self) -> list[str]:
        """Why what conditions say may be old: Crossplane had no answer, did not act yet, or hears late."""
        refused = self._status(SYNCED) not in ("", "True")
        synced = self._sentence(SYNCED) if refused else ""
        return [text for text in (synced, self.behind, self.late) if text]

    @property
    def late(self) -> str:
        """Say what an open circuit breaker means; empty while it is closed."""
        return f"{self._sentence(RESPONSIVE)} ({LATE})" if self._status(RESPONSIVE) == "False" else ""

    @property
    def is_settled(self) -> bool:
        """Tell whether every wanted replica is Ready, none is leaving, and no condition says otherwise."""
        states = [replica.state for replica in self.replicas.values()]
        if not self.current or states != ["ready"] * self.wanted:
            return False
        needed = DECIDING[self.kind][: 2 if self.wanted else 1]
        refuses = any(self._status(name) == "False" for name in self._deciding)
        return not refuses and all(self._status(name) == "True" for name in needed)

    @property
    def _deciding(self) -> tuple[str, ...]:
        """Conditions that must not be False. Without a replica, ReplicasReady says so and is."""
        placed, served, *others = DECIDING[self.kind]
        return (placed, *([served] if self.wanted else []), *others, READY)

    def _status(self, name: str) -> str:
        """The status of a condition; "" of one that is not there."""
        condition = self.conditions.get(name)
        return condition.status if condition is not None else ""

    @property
    def summary(self) -> str:
        """`2 of 3 replicas ready, 1 leaving`."""
        states = [replica.state for replica in self.replicas.values()]
        leaving = f", {states.count('leaving')} leaving" if "leaving" in states else ""
        late = f"; but {self.late}" if self.late else ""
        return f"{states.count('ready')} of {self.wanted} replicas ready{leaving}{late}"

    @property
    def unsettled(self) -> str:
        """The condition that says what is missing, for people; the summary where none does.

        What stalls comes first: where Crossplane had no answer or did not act, all others are of before.
        """
        refusing = (
            self._sentence(name)
            for name in self._deciding
            if name in self.conditions and self._status(name) != "True"
        )
        return next(iter(self.stalled if not self.current else ()), None) or next(refusing, self.summary)

    def _sentence(self, name: str) -> str:
        """A condition in words: its type, its reason and its message."""
        condition = self.conditions[name]
        return joined(name, condition.reason, condition.message, by=": ")


def standing(deployment: JsonObject, replicas: Iterable[JsonObject]) -> Standing:
    """Read what stands; of a deployment that cannot be read, what can.

    The edit that Crossplane has acted on is told by `Synced`: without it, conditions may be about the spec
    before.
    """
    metadata, status = mapping(deployment.get("metadata")), mapping(deployment.get("status"))
    wanted = mapping(deployment.get("spec")).get("replicas", 1)
    listed = mappings(status.get("conditions"))
    conditions = {
        str(entry.get("type")): ConditionState(
            *(str(entry.get(key) or "") for key in ("status", "reason", "message"))
        )
        for entry in listed
    }
    synced: JsonObject = next((entry for entry in listed if entry.get("type") == SYNCED), {})
    behind = _behind(synced.get("observedGeneration"), metadata.get("generation"))
    return Standing(
        wanted if isinstance(wanted, int) else 0,
        synced.get("status") == "True" and not behind,
        conditions,
        dict(_replica(plain) for plain in replicas),
        behind,
    )


def _behind(observed: object, generation: object) -> str:
    """Which generation was not acted on yet, in words; "" where the latest was, or nobody says.

    Where one of the two numbers is missing, nothing can be said.
    """
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        return f"Crossplane has not acted on the last edit yet: generation {generation}, seen {observed}"
    return ""


def _replica(plain: JsonObject) -> tuple[str, Replica]:
    """One replica by its name, with its state and its obstacle."""
    replica = parse_replica(PlainDocument(plain))
    state = "leaving" if replica.deleting else "ready" if replica.ready else "starting"
    return replica.name, Replica(replica.cluster, state, obstacle(plain) if state == "starting" else "")


def adapter_standing(
    adapter: JsonObject, placements: Iterable[JsonObject], replicas: Iterable[JsonObject]
) -> Standing:
    """Read what stands of an adapter: each of its places, as far as the replica says that it is there.

    `placements` and `replicas`: of its namespace; those of others are left out.
    """
    adapter_name, standing_replicas = mapping(adapter.get("metadata")).get("name"), {}
    for plain in replicas:
        standing_replicas[mapping(plain.get("metadata")).get("name")] = plain
    places = {}
    for placement in (read_placement(PlainDocument(plain)) for plain in placements):
        if placement.adapter != adapter_name:
            continue
        plain = standing_replicas.get(placement.replica, {})
        base = read_base(PlainDocument(plain))
        if placement.terminating or base.terminating or not plain:
            place = Replica(base.cluster or "a replica that is gone", "leaving")
        elif base.ready is True and adapter_name in base.configured:
            place = Replica(base.cluster, "ready")
        else:
            place = Replica(base.cluster, "starting", obstacle(plain) or "not configured yet")
        places[placement.replica] = place
    return replace(standing(adapter, ()), replicas=places, kind="Adapter")


def changes(before: Standing, after: Standing) -> Iterator[StateChange]:
    """Yield the changes, replicas first: conditions only sum them up."""
    if before.wanted != after.wanted:
        yield StateChange(
            after.kind, "", f"wants {after.wanted} {'replica' if after.wanted == 1 else 'replicas'}"
        )
    for name in sorted({*before.replicas, *after.replicas}):
        was, now = before.replicas.get(name), after.replicas.get(name)
        if was != now:
            text = joined(f"{now.state} on {now.cluster}", now.why, by=": ") if now else "gone"
            yield StateChange("Replica", name, text)
    for name in [*after.conditions, *(name for name in before.conditions if name not in after.conditions)]:
        condition = after.conditions.get(name)
        if condition != before.conditions.get(name):
            yield StateChange("Condition", name, joined(*(condition or ("removed",)), by=": "))


# Say how a plan ended: the exit code of `plan` and `why`, and the first fields of their data.

PLACED, SHORTFALL = 0, 2


def worst_code(results: Iterable[Planned], faults: Collection[str]) -> int:
    """The exit code of several plans from files with some faults: that of the worst."""
    forecasts = [planned.forecast for planned in results]
    if faults or not all(forecast.valid for forecast in forecasts):
        return BAD_INPUT
    return PLACED if all(forecast.complete for forecast in forecasts) else SHORTFALL


def summary_of(planned: Planned) -> dict[str, Any]:
    """Name, status, conditions and unready replicas of a planned deployment as plain data."""
    manifest = planned.manifest
    return {
        "namespace": manifest.namespace,
        "name": manifest.name,
        **planned.response.status,
        "conditions": [condition.plain for condition in planned.response.conditions],
        "stalled": standing(planned.manifest.content, ()).stalled,
        "unready": [unready._asdict() for unready in unready_of(planned)],
    }


def explained(planned: Planned, cluster: str | None = None, pool: str | None = None) -> dict[str, Any]:
    """The whole explanation of a deployment as data; of all clusters and pools, or of those asked about."""
    placement = planned.forecast.full_report(cluster)
    if pool is not None:
        for entry in placement["clusters"]:
            entry["pools"] = [row for row in entry.get("pools", ()) if row["name"] == pool]
    held = [finding.plain for finding in planned.forecast.partly_held]
    return {**summary_of(planned), "placement": placement, "partlyHeld": held}
