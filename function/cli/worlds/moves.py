"""Find the fewest replicas to move so that another fits, by trying on a copy of the fleet.

For a deployment that is short, only clusters where room alone is missing are looked at. Sets of replicas
there are tried, smallest sets and smallest replicas first: without the set, the deployment must get one
more place, and every replica of the set must find another. Each trial is a plan of exactly the deployments
concerned, so an advice was seen to work and is no estimate.

The search is bounded by `MAX_TRIES` sets for each step. Moves across several clusters at once are not
tried. Nothing is executed: the scheduler never moves a healthy replica (docs/how-it-schedules.md).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, islice
from typing import TYPE_CHECKING

from function.api.reasons import Level, Nature
from function.api.replica import parse as parse_replica
from function.boundary import PlainDocument, frozen
from function.cli.text import track
from function.cli.worlds.changes import Commands, move, one_after_another, reconcile_until
from function.cli.worlds.simulate import after, one_round, outcome
from function.cli.worlds.world import Planned, World, identity_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import ModelReplica
    from function.cli.worlds.manifest import Manifest

MAX_TRIES = 2_000
"""Sets of moves that are tried for one deployment."""


@frozen
class Move:
    """One replica that would leave its place for another."""

    deployment: str
    replica: str
    origin: str
    target: str


@frozen
class Advice:
    """Moves that would let one more replica in."""

    deployment: str
    moves: tuple[Move, ...]
    gains: tuple[str, ...]
    """Where the deployment's new replicas would go."""
    before: int
    """Replicas with a place, of those that are wanted."""
    wanted: int

    @property
    def after(self) -> int:
        """Replicas with a place after the moves."""
        return self.before + len(self.gains)

    @property
    def commands(self) -> Commands:
        """The commands of the moves: the movers wait while the deployment takes the room."""
        moves = [move(*_named(moved.deployment), moved.replica) for moved in self.moves]
        waiting = one_after_another(moves)
        resume = dict.fromkeys(waiting.revert)
        command = reconcile_until(*_named(self.deployment), self.after)
        return Commands((*dict.fromkeys(waiting.apply), *command, *resume), tuple(resume))


def _named(title: str) -> tuple[str, str]:
    """Namespace and name of a title."""
    namespace, _, name = title.partition("/")
    return namespace, name


@frozen
class Stuck:
    """A deployment for which no moves were found."""

    deployment: str
    short: int
    message: str
    hints: tuple[str, ...] = ()
    """Other changes that would let one more in, each tried out, the cheapest first."""

    @classmethod
    def of(cls, planned: Planned) -> Stuck:
        """A deployment as it is planned, with what would help besides moves."""
        now, hints = outcome(planned), planned.forecast.hints()
        return cls(planned.title, now.short, now.message, tuple(hint.change.message for hint in hints))


@frozen
class Upgrade:
    """A replica on an alternative that could have a better one now."""

    deployment: str
    replica: str
    origin: str
    alternative: str
    target: str
    better: str


@frozen
class Resident:
    """An existing replica that could move, because its deployment is in the files."""

    replica: ModelReplica
    identity: tuple[str, str]
    """Namespace and name."""
    owner: Manifest
    deployment: str
    """`namespace/name` of its deployment."""
    place: str
    """`cluster/pools`."""


def advise_one(world: World, starving: Planned, most: int) -> tuple[list[Advice], World]:
    """Advice for one deployment: again and again, until nothing is missing or nothing helps.

    Each advice is for one more replica, and the next is looked for on the fleet after it.
    """
    advices: list[Advice] = []
    while outcome(starving).short:
        by_cluster: dict[str, list[Resident]] = {cluster: [] for cluster in _crowded(starving)}
        for resident in movable(world):
            if resident.replica.cluster in by_cluster and resident.deployment != starving.title:
                by_cluster[resident.replica.cluster].append(resident)
        # Of one cluster each, the smallest sets first; within a size, those of the smallest replicas.
        sets = (
            moved
            for size in range(1, most + 1)
            for there in by_cluster.values()
            for moved in combinations(there, size)
        )
        watched = track(islice(sets, MAX_TRIES), f"Trying moves for {starving.manifest.name}")
        tried = (_try(world, starving, moved) for moved in watched)
        better = next((success for success in tried if success is not None), None)
        if better is None:
            break
        advice, world = better
        advices.append(advice)
        (starving,) = one_round(replace(world, deployments=[starving.manifest]))
    return advices, world


def upgrades_of(world: World) -> Iterator[Upgrade]:
    """Replicas on an alternative whose deployment would choose a better one today.

    Each is tried without the replica itself, which holds the room that it would need.
    """
    for resident in movable(world):
        current = resident.replica.alternative
        if not current:
            continue
        (planned,) = one_round(without(world, (resident,), [resident.owner]))
        if not planned.forecast.placed:
            continue
        order, new = planned.forecast.alternatives, planned.forecast.placed[0]
        better = new.alternative
        if current not in order or order.index(better) < order.index(current):
            target = new_places(planned)[0]
            name, wanted = resident.replica.name, better or "the primary engines"
            yield Upgrade(planned.title, name, resident.place, current, target, wanted)


def movable(world: World) -> list[Resident]:
    """Replicas that could move, the smallest first."""
    owners = {(manifest.namespace, manifest.name): manifest for manifest in world.deployments}
    residents = []
    for content in world.replicas:
        replica = world.memo.parsed(PlainDocument(content), parse_replica)
        owner = owners.get((replica.namespace, replica.deployment))
        if owner is not None and not replica.deleting and replica.nodes:
            title, place = "/".join(owner.identity), f"{replica.cluster}/{'+'.join(replica.nodes)}"
            residents.append(Resident(replica, identity_of(content), owner, title, place))
    return sorted(residents, key=lambda resident: (sum(resident.replica.nodes.values()), *resident.identity))


def _crowded(planned: Planned) -> list[str]:
    """Clusters where only room is missing for one more."""
    rejections = planned.forecast.rejections_of_another
    return [
        name
        for name, rejection in rejections.items()
        if rejection.reason.nature is Nature.CAPACITY and rejection.reason.level is not Level.CLUSTER
    ]


def _try(world: World, starving: Planned, moved: tuple[Resident, ...]) -> tuple[Advice, World] | None:
    """Try one set of moves: the starving deployment gains, and everybody who moves finds another place.

    A mover may not find its old place again: that is the one which the starving deployment is to have.
    """
    trial = without(world, moved, [starving.manifest])
    planned = one_round(trial)
    gained, *others = planned
    if outcome(gained).total <= outcome(starving).total:
        return None
    targets = {other.title: new_places(other) for other in others}
    moves = []
    for resident in moved:
        owner = resident.deployment
        free = [place for place in targets.get(owner, []) if place != resident.place]
        if not free:
            return None
        targets[owner].remove(free[0])
        moves.append(Move(owner, resident.replica.name, resident.place, free[0]))
    was = outcome(starving)
    advice = Advice(starving.title, tuple(moves), tuple(new_places(gained)), was.total, was.wanted)
    return advice, replace(after(trial, planned), deployments=world.deployments)


def without(world: World, moved: tuple[Resident, ...], first: list[Manifest]) -> World:
    """The world without some replicas, where these deployments plan first and the owners next."""
    gone = {resident.identity for resident in moved}
    planned = (*first, *(resident.owner for resident in moved))
    order = list({(manifest.namespace, manifest.name): manifest for manifest in planned}.values())
    left = [content for content in world.replicas if identity_of(content) not in gone]
    endpoints = [content for content in world.endpoints if identity_of(content) not in gone]
    return replace(world, replicas=left, endpoints=endpoints, deployments=order)


def new_places(planned: Planned) -> list[str]:
    """Places of the replicas that were placed just now, as `cluster/pools`."""
    return [f"{row.cluster}/{'+'.join(row.all_pools)}" for row in planned.forecast.placed]
