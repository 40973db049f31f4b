"""Find what takes overcommitted pools back to what they have: who gives way, who could move, what is left.

With `overcommit: Yield`, what never was Ready gives way by itself: the settled fleet shows it. Where that is
not enough, replicas are tried out one after the other, those that are not Ready first, then the youngest:
each must find another place. It cannot take its old one again: an overcommitted pool has nothing free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from function.cli.progress import track
from function.cli.worlds.kubectl import Commands, delete_replica
from function.cli.worlds.moves import Move, movable, new_places, without
from function.cli.worlds.simulate import after, one_round

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from function.cli.worlds.memo import ParseMemo
    from function.cli.worlds.moves import Resident
    from function.cli.worlds.simulate import Simulation
    from function.cli.worlds.world import World
    from function.deployment.forecast import Forecast, Overcommitted

YIELDED = "Yielded"
"""The reason on record of a replica that gives way."""


@dataclass(frozen=True, slots=True)
class Relief:
    """One overcommitted pool, and what would help."""

    pool: Overcommitted
    holders: Mapping[str, int]
    """Nodes by `namespace/deployment`, most first."""
    yielding: tuple[str, ...]
    """Replicas that give way by themselves, as `namespace/name`."""
    moves: tuple[Move, ...]
    rest: Overcommitted | None
    """What is still held of it after all that, where it is still too much."""

    @property
    def commands(self) -> Commands:
        """What makes the moves: what is deleted is placed anew by its deployment; nothing takes it back."""
        return Commands(tuple(delete_replica(move.namespace, move.replica) for move in self.moves))


def relieve(world: World, settled: Simulation, reuse: ParseMemo) -> tuple[list[Relief], World]:
    """Look for relief of every pool that is overcommitted in a world. Returns the world after the moves."""
    now, latest = (
        _readable(plan.forecast for plan in round_) for round_ in (settled.rounds[0], settled.last)
    )
    if now is None or latest is None:
        return [], settled.world
    residents, left, reliefs = movable(world), settled.world, []
    for pool in now.overcommitted:
        moves, latest, left = _moved(left, pool, latest, reuse)
        yields = tuple(_yielding(settled, residents, pool))
        holders = now.holders(pool.cluster, pool.pool)
        reliefs.append(Relief(pool, holders, yields, tuple(moves), _still(latest, pool)))
    return reliefs, left


def _readable(forecasts: Iterable[Forecast]) -> Forecast | None:
    return next((forecast for forecast in forecasts if forecast.readable), None)


def _still(forecast: Forecast, pool: Overcommitted) -> Overcommitted | None:
    """The pool as it stands in another forecast; None where it holds no more than it has."""
    same = (
        entry for entry in forecast.overcommitted if (entry.cluster, entry.pool) == (pool.cluster, pool.pool)
    )
    return next(same, None)


def _yielding(settled: Simulation, residents: list[Resident], pool: Overcommitted) -> Iterator[str]:
    """Replicas on a pool that gave way until the fleet had settled."""
    on_pool = {resident.identity for resident in _on(residents, pool)}
    for plan in settled.plans:
        for row in plan.forecast.leaving:
            if row.cause == YIELDED and (plan.manifest.namespace, row.name) in on_pool:
                yield f"{plan.manifest.namespace}/{row.name}"


def _on(residents: Iterable[Resident], pool: Overcommitted) -> list[Resident]:
    """Those on a pool, in the order in which they would go: not Ready, then the youngest."""
    there = [
        resident
        for resident in residents
        if resident.replica.cluster == pool.cluster and pool.pool in resident.replica.nodes
    ]
    youngest = sorted(
        there, key=lambda resident: (resident.replica.created, *resident.identity), reverse=True
    )
    return sorted(youngest, key=lambda resident: resident.replica.ready is True)


def _moved(
    world: World, pool: Overcommitted, latest: Forecast, reuse: ParseMemo
) -> tuple[list[Move], Forecast, World]:
    """Make moves off a pool until it holds no more than it has, or nobody is left who finds another place."""
    moves: list[Move] = []
    candidates = _on(movable(world), pool) if _still(latest, pool) else []
    for resident in track(candidates, f"Trying moves off {pool.cluster}/{pool.pool}", len(candidates)):
        if not _still(latest, pool):
            break
        trial = without(world, (resident,), [resident.owner])
        (planned,) = one_round(trial, reuse)
        places = new_places(planned)
        if places:
            moves.append(Move(resident.deployment, resident.replica.name, resident.place, places[0]))
            world, latest = replace(after(trial, (planned,)), deployments=world.deployments), planned.forecast
    return moves, latest, world
