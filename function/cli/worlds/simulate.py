"""Simulate: pass after pass over all deployments, as the control plane goes, until nothing changes any more.

One round is one `plan` of everything. Between two rounds, what is no longer desired is gone, what is new or
was updated by a staged rollout has become Ready, and what is desired stands as desired. Nothing else changes:
no clock, no failures, no order of arrival. A fleet that never settles is cut off after `ROUNDS` rounds.

Two simulations are compared by what a change moves and what gets stuck. "Worse" means: fewer placed, more
missing or held, or a time on the way at which no endpoint serves though one would have (`Difference.worse`).

`forecast_both` puts the parts together: the manifests are edited change by change, the fleet settles with
and without the edits, and the two ends are compared. Nothing is executed: what would make the changes is
printed as commands.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from function.api.model import mapping
from function.api.names import KEY_ANNOTATION
from function.api.replica import DEPLOYMENT_LABEL, LEAVING_ANNOTATION, PREEMPTING_LABEL, WAS_READY_ANNOTATION
from function.boundary import frozen
from function.cli.text import track
from function.cli.worlds.changes import Change, Commands, Delete, Drain, one_after_another
from function.cli.worlds.derive import arbitrated
from function.cli.worlds.inputs import FLEET, Origin, taken
from function.cli.worlds.world import Planned, Simulation, World, identity_of, plan_all
from function.deployment.forecast import NO_PRICE, Price

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.boundary import JsonObject
    from function.cli.worlds.adapters import AdapterDifference
    from function.cli.worlds.manifest import Manifests


ROUNDS = 100
"""A fleet that has not settled after so many rounds is said not to settle."""

ObjectKey: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name of an object."""
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def one_round(world: World) -> tuple[Planned, ...]:
    """Plan every deployment once; the world itself stays as it is."""
    world_copy = replace(world, replicas=list(world.replicas))
    return tuple(track(plan_all(world_copy), "Planning", total=len(world.deployments)))


def settle(world: World) -> Simulation:
    """Go round after round until the world stays as it is."""
    rounds: list[tuple[Planned, ...]] = []
    while len(rounds) < ROUNDS:
        rounds.append(one_round(world))
        following = after(world, rounds[-1])
        stands = (following.replicas, following.endpoints, following.clusters)
        if stands == (world.replicas, world.endpoints, world.clusters):
            return Simulation(rounds, world, settled=True)
        world = following
    return Simulation(rounds, world, settled=False)


def after(world: World, planned: tuple[Planned, ...]) -> World:
    """Let Crossplane do what was planned.

    What is no longer desired is gone, what is new or restarts becomes Ready, and all else stands as
    desired. A cluster that arbitrates then says anew who gives way.
    """
    changed: dict[ObjectKey, JsonObject | None] = {}  # Every observed object as desired; None: deleted.
    for plan in planned:
        restarted = set(plan.forecast.updating) if plan.forecast.staged else set()
        for key, document in plan.request.observed.items():
            observed, desired = document.plain(), plan.response.desired.get(key)
            if desired is None:
                changed[_key(observed)] = None
                continue
            now = _updated(observed, desired.resource)
            is_replica = observed.get("kind") == "ModelReplica"
            starts = is_replica and desired.resource["metadata"].get("name") in restarted
            changed[_key(observed)] = {**now, "status": READY} if starts else now
    made = [resource for plan in planned for resource in _made(plan)]
    stand: dict[str, list[JsonObject]] = {}
    for kind, objects in (("ModelReplica", world.replicas), ("ModelEndpoint", world.endpoints)):
        remaining = (
            changed.get(_key(before), before)
            for before in objects
            if not mapping(before, "metadata").get("deletionTimestamp")
        )
        stand[kind] = [now for now in remaining if now is not None]
        stand[kind] += [resource for resource in made if resource["kind"] == kind]
    replicas = stand["ModelReplica"]
    clusters, calm = arbitrated(world.clusters, map(_with_uid, replicas))
    if calm is not None:
        replicas = [_served(_with_uid(replica), calm) for replica in replicas]
    return replace(world, clusters=clusters, replicas=replicas, endpoints=stand["ModelEndpoint"])


def _with_uid(replica: JsonObject) -> JsonObject:
    """A replica with a uid, which files have not: a cluster names by it who gives way."""
    metadata = mapping(replica.get("metadata"))
    return {**replica, "metadata": {"uid": "/".join(identity_of(replica)), **metadata}}


def _served(replica: JsonObject, calm: set[str]) -> JsonObject:
    """A replica that preempts, Ready once nobody has to give way on its cluster any more."""
    preempts = PREEMPTING_LABEL in mapping(replica, "metadata", "labels")
    waits = preempts and "status" not in replica
    at_rest = replica["spec"].get("clusterName") in calm
    return {**replica, "status": READY} if waits and at_rest else replica


def _key(plain: JsonObject) -> ObjectKey:
    """Kind, namespace and name of an object."""
    return str(plain.get("kind")), *identity_of(plain)


def _updated(observed: JsonObject, desired: JsonObject) -> JsonObject:
    """Write desired spec, labels and notes over an object; Crossplane keeps the rest, and so its name."""
    metadata = observed.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **(desired["metadata"].get("labels") or {})}
    before, now = (mapping(plain, "metadata", "annotations") for plain in (observed, desired))
    noted = {name: text for name, text in now.items() if name != WAS_READY_ANNOTATION}
    # What is noted until a replica leaves goes when it is noted no longer.
    lasting = {name: text for name, text in before.items() if name != LEAVING_ANNOTATION}
    is_noted = noted or LEAVING_ANNOTATION in before
    annotations = {"annotations": {**lasting, **noted}} if is_noted else {}
    updated = {
        **observed,
        "metadata": {**metadata, "labels": labels, **annotations},
        "spec": desired.get("spec"),
    }
    return observed if updated == observed else updated


def _made(planned: Planned) -> Iterator[JsonObject]:
    """The objects that were not there before, as they stand once they are Ready.

    A replica that preempts is not yet: others give way first.
    """
    uid = planned.manifest.metadata.get("uid")
    owned = {"ownerReferences": [{"controller": True, "uid": uid}]} if uid else {}
    for key, desired in sorted(planned.response.desired.items()):
        if key not in planned.request.observed:
            annotations = {**mapping(desired.resource, "metadata", "annotations"), KEY_ANNOTATION: key}
            metadata = {**desired.resource["metadata"], "annotations": annotations, **owned}
            preempts = PREEMPTING_LABEL in mapping(metadata.get("labels"))
            yield {**desired.resource, "metadata": metadata, **({} if preempts else {"status": READY})}


# Compare two simulations: what a change moves, what gets stuck, which endpoints disappear.

NOT_PLACED = "not placed here any more"
UNTOUCHED = "no replica changes its place or restarts"
UNSEEN = "the files have no replicas of it; with them, or with --context, its rollout is shown step by step"


@frozen
class DeploymentOutcome:
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
    price: Price = NO_PRICE

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
            **({"centsPerHour": self.price.cents} if self.price.priced else {}),
        }


@frozen
class Step:
    """The effect of one round on a deployment whose template is outdated.

    Each step follows when what the one before started is in service.
    """

    updates: tuple[str, ...]
    """Replicas that get the new template in place."""
    places: tuple[str, ...]
    leaves: tuple[str, ...]
    waits: int
    """Replicas that keep the old template for now."""

    def __str__(self) -> str:
        """`update use1/chat-0a1b2; 2 wait`."""
        parts = [
            f"{verb} {', '.join(names)}"
            for verb, names in (("update", self.updates), ("place", self.places), ("drop", self.leaves))
            if names
        ]
        waits = f"{self.waits} wait{'s' * (self.waits == 1)}" if self.waits else ""
        return "; ".join(part for part in (*parts, waits) if part)

    @property
    def as_data(self) -> dict[str, Any]:
        """The step as plain data."""
        names = {"updates": self.updates, "places": self.places, "leaves": self.leaves}
        return {**{key: list(value) for key, value in names.items()}, "waiting": self.waits}


@frozen
class Difference:
    """One deployment before and after a change."""

    name: str
    before: DeploymentOutcome
    after: DeploymentOutcome
    leaving: dict[str, str]
    """Replicas that would have been there, by name, with why each leaves or is not placed to begin with."""
    arriving: list[str]
    """Replicas that would not have been there."""
    lost_endpoints: list[str]
    """URLs that would have been there."""
    serving: tuple[int, int]
    """The fewest endpoints in service at any time on the way, without and with the change."""
    steps: tuple[Step, ...] = ()
    """How the change of its template goes, round by round; empty where that is none."""
    paused: str = ""
    """Why it does not come to an end."""
    edit: str = ""
    """The effect of a changed spec, where nothing else is to be said about it."""

    @property
    def worse(self) -> bool:
        """Tell whether more is missing, or stuck, than without the change, or all of it is out of service."""
        before, after = self.before, self.after
        lost = after.total < min(before.total, after.wanted) or after.short > before.short
        refused = after.reason.startswith("Invalid") and after != before
        return lost or refused or self.interrupted or after.held > before.held

    @property
    def interrupted(self) -> bool:
        """Tell whether there is a time on the way at which nothing serves, though something would have."""
        without, least = self.serving
        return least == 0 < without and self.after.wanted > 0

    @property
    def changed(self) -> bool:
        """Tell whether the change concerns this deployment at all."""
        ends = replace(self.before, message=""), replace(self.after, message="")
        return bool(self.steps or self.edit) or ends[0] != ends[1]

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
                {"name": name, "cluster": before.placements[name][0], "why": why}
                for name, why in self.leaving.items()
            ],
            "arriving": [{"name": name, "cluster": after.placements[name][0]} for name in self.arriving],
            "moves": min(len(self.leaving), len(self.arriving)),
            "shortfall": after.short,
            "endpointsGone": self.lost_endpoints,
            "servingAtWorst": self.serving[1],
            "edit": self.edit,
            "rollout": {"steps": [step.as_data for step in self.steps], "paused": self.paused},
        }


def outcome(planned: Planned) -> DeploymentOutcome:
    """Read one deployment's outcome from its plan.

    Of a deployment that cannot be read, only the reason is known.
    """
    response, forecast, scheduled = planned.response, planned.forecast, planned.forecast.scheduled
    reason, message = (scheduled.reason, scheduled.message) if scheduled else ("Unknown", "")
    if not forecast.readable:
        return DeploymentOutcome(reason=reason, message=message)
    endpoints = {
        str(desired.resource["metadata"].get("name")): str(
            mapping(desired.resource.get("spec")).get("url", "")
        )
        for desired in response.desired.values()
        if desired.resource.get("kind") == "ModelEndpoint"
    }
    placements = {row.name: (row.cluster, "+".join(row.all_pools)) for row in forecast.standing}
    counts = (forecast.wanted, forecast.total, forecast.held)
    ordered = dict(sorted(endpoints.items()))
    return DeploymentOutcome(*counts, reason, message, placements, ordered, forecast.price)


def compare(before: Simulation, after: Simulation) -> list[Difference]:
    """Every deployment before and after, in the order of their names.

    A deployment that is in one of the two only has an empty outcome in the other. Steps of a rollout that
    would happen anyway are left out.
    """
    was = {planned.title: outcome(planned) for planned in before.last}
    now = {planned.title: outcome(planned) for planned in after.last}
    causes, anyway = _causes(after), _serving(before, {})
    already, steps = _steps(before), _steps(after)
    # What is outdated without the change too is no part of it.
    steps = {name: rounds for name, rounds in steps.items() if rounds != already.get(name)}
    serving, edits = _serving(after, steps), _edits(before, after)
    paused = {
        planned.title: planned.forecast.updated.message
        for planned in after.last
        if planned.title in steps and planned.forecast.updated and not planned.forecast.updated.status
    }
    differences = []
    for name in sorted({*was, *now}):
        ends = was.get(name, DeploymentOutcome()), now.get(name, DeploymentOutcome())
        here, there = (end.placements for end in ends)
        leaving = {gone: causes[name].get(gone, NOT_PLACED) for gone in here if gone not in there}
        arriving = [new for new in there if new not in here]
        in_service = anyway.get(name, 0), serving.get(name, 0)
        rounds, pause = steps.get(name, ()), paused.get(name, "")
        edit = "" if rounds or leaving or arriving else edits.get(name, "")
        urls, kept = (end.endpoints for end in ends)
        lost = [url for replica, url in urls.items() if replica not in kept]
        made = Difference(name, *ends, leaving, arriving, lost, in_service, rounds, pause, edit)
        differences.append(made)
    return differences


def _edits(before: Simulation, after: Simulation) -> dict[str, str]:
    """The deployments whose spec is another one with the change, and what that does to their replicas."""
    specs = {planned.title: planned.manifest.content.get("spec") for planned in before.last}
    edits = {}
    for planned in after.rounds[0]:
        if planned.title in specs and planned.manifest.content.get("spec") != specs[planned.title]:
            composed = planned.request.observed.values()
            observed = any(document.plain().get("kind") == "ModelReplica" for document in composed)
            edits[planned.title] = UNTOUCHED if observed else UNSEEN
    return edits


def _causes(simulation: Simulation) -> dict[str, dict[str, str]]:
    """Why replicas leave, by deployment and replica, over all rounds."""
    causes: dict[str, dict[str, str]] = defaultdict(dict)
    for planned in simulation.plans:
        for row in planned.forecast.leaving:
            causes[planned.title].setdefault(row.name, row.phrase)
    return causes


def _steps(simulation: Simulation) -> dict[str, tuple[Step, ...]]:
    """How outdated templates are changed, by deployment; the rounds in which something happens.

    A deployment counts only where a replica restarts or waits for its turn: moves alone are no rollout.
    """
    steps: dict[str, list[Step]] = defaultdict(list)
    for planned in simulation.plans:
        forecast = planned.forecast
        placements = {
            row.name: f"{row.cluster}/{row.name}" for row in (*forecast.standing, *forecast.leaving)
        }
        step = Step(
            tuple(placements[name] for name in forecast.updating),
            tuple(placements[row.name] for row in forecast.placed),
            tuple(placements[row.name] for row in forecast.leaving),
            len(forecast.awaiting),
        )
        if step.updates or step.places or step.leaves:
            steps[planned.title].append(step)
    restarts = {
        title for title, rounds in steps.items() if any(step.updates or step.waits for step in rounds)
    }
    return {title: tuple(rounds) for title, rounds in steps.items() if title in restarts}


def _serving(simulation: Simulation, steps: Mapping[str, tuple[Step, ...]]) -> dict[str, int]:
    """The fewest endpoints in service in any round, by deployment; what restarts in a round is not."""
    counts: dict[str, list[int]] = defaultdict(list)
    for planned in simulation.plans:
        restarting = planned.forecast.updating if planned.title in steps else ()
        endpoints = outcome(planned).endpoints
        counts[planned.title].append(len(endpoints.keys() - set(restarting)))
    return {name: min(numbers) for name, numbers in counts.items()}


# Ask what some changes would do: the fleet settled with and without them, and the difference.


@frozen
class WhatIf:
    """Both forecasts and their difference."""

    changes: tuple[Change, ...]
    before: Simulation
    after: Simulation
    differences: list[Difference]
    bystanders: list[str]
    """Replicas on a drained or deleted cluster whose deployment is not in the files."""
    commands: Commands
    """The commands that make the changes, and those that take them back."""
    adapters: list[AdapterDifference] = field(default_factory=list)
    """Empty where there are no adapters."""

    @property
    def as_data(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "changes": [str(change) for change in self.changes],
            "settles": self.after.settled,
            "rounds": len(self.after.rounds),
            "deployments": [difference.as_data for difference in self.differences],
            "notForecast": self.bystanders,
            "commands": self.commands.as_data,
            "assumptions": list(map(str, self.after.world.assumptions)),
            **({"adapters": [adapter.as_data for adapter in self.adapters]} if self.adapters else {}),
        }


def script_of(manifests: Manifests, changes: tuple[Change, ...]) -> Commands:
    """The kubectl commands that make the changes, and those that take them back. Raises BadInput."""
    parts = []
    for change in changes:
        before, manifests = manifests, change.apply(manifests)
        parts.append(change.commands(before))
    return one_after_another(parts)


def forecast_both(
    manifests: Manifests, changes: tuple[Change, ...], origin: Origin | None, *, quietly: bool = False
) -> tuple[WhatIf, tuple[str, ...]]:
    """Forecast with and without the changes. Returns the answer and what cannot be read. Raises BadInput.

    Both fleets share what was parsed. An object that cannot be read is left out of both, and the changes are
    still compared on all others.
    """
    edited = manifests
    for change in changes:
        edited = change.apply(edited)
    changed = taken(edited, origin, quietly=quietly, needs=FLEET)
    start = taken(manifests, quietly=True, needs=FLEET)
    before = settle(replace(start.world, memo=changed.world.memo))
    after = settle(changed.world)
    emptied = {change.cluster for change in changes if isinstance(change, Drain | Delete)}
    bystanders = list(_bystanders(manifests, emptied))
    chosen = changed.titles(())
    differences = [entry for entry in compare(before, after) if not chosen or entry.name in chosen]
    commands = script_of(manifests, changes).on(origin.kubectl if origin else "kubectl")
    adapters: list[AdapterDifference] = []
    if manifests["ModelAdapter"] or edited["ModelAdapter"]:
        from function.cli.worlds.adapters import compared, settled  # noqa: PLC0415 - all handlers are needed

        only = changed.origin.only
        every = compared(settled(start.manifests, before), settled(edited, after))
        adapters = [entry for entry in every if not only or entry.name.startswith(f"{only}/")]
    return WhatIf(changes, before, after, differences, bystanders, commands, adapters), changed.faults


def _bystanders(manifests: Manifests, emptied: set[str]) -> Iterator[str]:
    """Replicas on clusters that are emptied, whose deployment is in no file."""
    identities = {manifest.identity for manifest in manifests["ModelDeployment"]}
    for replica in manifests["ModelReplica"]:
        cluster = replica.spec.get("clusterName")
        owner = mapping(replica.metadata, "labels").get(DEPLOYMENT_LABEL)
        if cluster in emptied and (replica.namespace, str(owner)) not in identities:
            yield f"{replica.namespace}/{replica.name} on {cluster}"
