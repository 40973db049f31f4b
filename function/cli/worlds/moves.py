"""Which replicas to move so that another fits: tried on a copy of the fleet, the fewest moves first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

from function.api.replica import parse as parse_replica
from function.boundary import PlainDocument
from function.cli.commands.headroom import going_on
from function.cli.progress import track
from function.cli.worlds.compare import outcome, pools_of, title
from function.cli.worlds.simulate import after, one_round
from function.scheduler.schedule import may_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import ModelReplica
    from function.boundary import Reuse
    from function.cli.worlds.manifests import Manifest
    from function.cli.worlds.world import Planned, World

TRIES = 2_000
"""Sets of moves that are tried for one deployment."""


@dataclass(frozen=True, slots=True)
class Move:
    """One replica that would leave its place for another."""

    deployment: str
    replica: str
    origin: str
    target: str


@dataclass(frozen=True, slots=True)
class Advice:
    """Moves that would let one more replica in."""

    deployment: str
    moves: tuple[Move, ...]
    gains: tuple[str, ...]
    """Where the deployment's new replicas would go."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A deployment for which no moves were found."""

    deployment: str
    short: int
    message: str


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A replica on an alternative that could have a better one now."""

    deployment: str
    replica: str
    origin: str
    alternative: str
    target: str
    better: str


@dataclass(frozen=True, slots=True)
class Resident:
    """An existing replica that could move, because its deployment is in the files."""

    content: dict[str, Any]
    replica: ModelReplica
    owner: Manifest


def _residents(world: World) -> list[Resident]:
    owners = {(each.namespace, each.name): each for each in world.deployments}
    found = []
    for content in world.replicas:
        replica = parse_replica(PlainDocument(content))
        owner = owners.get((replica.namespace, replica.deployment))
        if owner is not None and not replica.deleting and replica.nodes:
            found.append(Resident(content, replica, owner))
    return sorted(
        found, key=lambda each: (sum(each.replica.nodes.values()), each.replica.namespace, each.replica.name)
    )


def _crowded(planned: Planned) -> list[str]:
    """Clusters where only room is missing for one more."""
    decision = planned.decision
    if decision is None or not may_place(decision.inputs):
        return []
    rejections = going_on(decision, decision.inputs.fleet.clusters).places.rejections()
    return [name for name, each in rejections.items() if each.reason.short_of_nodes]


def _without(world: World, moved: tuple[Resident, ...], first: list[Manifest]) -> World:
    """The world without some replicas, where these deployments plan first and the owners next."""
    gone = {id(each.content) for each in moved}
    owners = [each.owner for each in moved]
    order = list({(each.namespace, each.name): each for each in (*first, *owners)}.values())
    left = [each for each in world.replicas if id(each) not in gone]
    names = {(each.replica.namespace, each.replica.name) for each in moved}
    endpoints = [each for each in world.endpoints if _named(each) not in names]
    return replace(world, replicas=left, endpoints=endpoints, deployments=order)


def _named(content: dict[str, Any]) -> tuple[object, object]:
    metadata = content.get("metadata") or {}
    return metadata.get("namespace"), metadata.get("name")


def _place(resident: Resident) -> str:
    return f"{resident.replica.cluster}/{'+'.join(resident.replica.nodes)}"


def _new(planned: Planned) -> list[str]:
    """Places of the replicas that were placed just now, as `cluster/pools`."""
    decision = planned.decision
    names = {each.name for each in decision.placed} if decision else set()
    found = pools_of(decision) if decision else ()
    return [f"{cluster}/{pools}" for name, cluster, pools in found if name in names]


def _tried(
    world: World, starving: Planned, moved: tuple[Resident, ...], reuse: Reuse
) -> tuple[Advice, World] | None:
    """Try one set of moves: the starving deployment gains, and everybody who moves finds another place."""
    trial = _without(world, moved, [starving.manifest])
    planned = one_round(trial, reuse)
    gained, *others = planned
    if outcome(gained).total <= outcome(starving).total:
        return None
    targets = {title(each): _new(each) for each in others}
    moves = []
    for each in moved:
        owner = f"{each.owner.namespace}/{each.owner.name}"
        free = [place for place in targets.get(owner, []) if place != _place(each)]
        if not free:
            return None
        targets[owner].remove(free[0])
        moves.append(Move(owner, each.replica.name, _place(each), free[0]))
    advice = Advice(title(starving), tuple(moves), tuple(_new(gained)))
    settled = replace(after(trial, planned), deployments=world.deployments)
    return advice, settled


def _sets(residents: list[Resident], crowded: list[str], most: int) -> Iterator[tuple[Resident, ...]]:
    """Sets of replicas of one cluster, the smallest sets and the smallest replicas first."""
    for size in range(1, most + 1):
        for cluster in crowded:
            yield from combinations([each for each in residents if each.replica.cluster == cluster], size)


def for_one(world: World, starving: Planned, most: int, reuse: Reuse) -> tuple[list[Advice], World]:
    """Advice for one deployment: again and again, until nothing is missing or nothing helps."""
    found: list[Advice] = []
    while outcome(starving).short:
        own = (starving.manifest.namespace, starving.manifest.name)
        residents = [each for each in _residents(world) if (each.owner.namespace, each.owner.name) != own]
        sets = islice(_sets(residents, _crowded(starving), most), TRIES)
        tried = (_tried(world, starving, each, reuse) for each in track(sets, f"Trying moves for {own[1]}"))
        better = next((each for each in tried if each is not None), None)
        if better is None:
            break
        advice, world = better
        found.append(advice)
        (starving,) = one_round(replace(world, deployments=[starving.manifest]), reuse)
    return found, world


def upgrades_of(world: World, reuse: Reuse) -> Iterator[Upgrade]:
    """Replicas on an alternative whose deployment would choose a better one today."""
    for each in _residents(world):
        if not each.replica.alternative:
            continue
        (planned,) = one_round(_without(world, (each,), [each.owner]), reuse)
        decision = planned.decision
        if decision is None or not decision.placed:
            continue
        order = [shape.name for shape in decision.inputs.deployment.shapes]
        new = decision.placed[0]
        better = new.candidate.shape.name
        current = each.replica.alternative
        if current not in order or order.index(better) < order.index(current):
            target = _new(planned)[0]
            yield Upgrade(
                title(planned),
                each.replica.name,
                _place(each),
                current,
                target,
                better or "the primary engines",
            )
