"""`advise`: moves that would free space for what does not fit, fewest first. Nothing is ever executed.

The fleet is settled first. Then, in order: relief of pools that hold more than they have, moves for every
deployment that is still short (`worlds.moves`), and replicas on an alternative that a better one would
take now. Each finding is tried on the fleet that the earlier ones leave behind, so all of them can be done.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from function.boundary import frozen
from function.cli.options import DEPLOYMENTS, OUTPUT, Command, end, reads_fleet
from function.cli.render.table import show_commands
from function.cli.text import Screen, answered, console, counted, emit, escape, listed, reassure, track
from function.cli.worlds import moves as search
from function.cli.worlds.changes import Commands, resource
from function.cli.worlds.inputs import Inputs, Source, read
from function.cli.worlds.moves import Advice, Move, Resident, Stuck, Upgrade, movable, new_places, without
from function.cli.worlds.simulate import after, one_round, outcome, settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from function.cli.worlds.world import Simulation, World
    from function.deployment.forecast import Overcommitted


# Find what takes overcommitted pools back to what they have: who gives way, who could move, what is left.
#
# With `overcommit: Yield`, what never was Ready gives way by itself: the settled fleet shows it. Where that
# is not enough, replicas are tried out one after the other, those that are not Ready first, then the
# youngest: each must find another place. It cannot take its old one again: an overcommitted pool has
# nothing free.

YIELDED = "Yielded"
"""The reason on record of a replica that gives way."""


@frozen
class Relief:
    """One overcommitted pool, and what would help."""

    pool: Overcommitted
    holders: Mapping[str, int]
    """Nodes by `namespace/deployment`, most first."""
    yielding: tuple[str, ...]
    """Replicas that give way by themselves, as `namespace/name`."""
    moves: tuple[Move, ...]
    rest: Overcommitted | None
    """The pool as it stands after all that, where it still holds too much."""

    @property
    def commands(self) -> Commands:
        """The commands of the moves: a deleted replica is placed anew; nothing takes it back."""
        replicas = [(move.replica, move.deployment.partition("/")[0]) for move in self.moves]
        return Commands(tuple(f"kubectl delete {resource('ModelReplica', *one)}" for one in replicas))


def relieve(world: World, settled: Simulation) -> tuple[list[Relief], World]:
    """Look for relief of every pool that is overcommitted in a world. Returns the world after the moves.

    Moves are tried one after the other on the settled fleet, each on what the earlier ones leave behind, so
    that all of them can be made.
    """
    now, latest = (
        next((plan.forecast for plan in round_ if plan.forecast.readable), None)
        for round_ in (settled.rounds[0], settled.last)
    )
    if now is None or latest is None:
        return [], settled.world
    residents, left, reliefs = movable(world), settled.world, []
    after_moves, still = movable(left), latest.overcommitted
    for key, pool in now.overcommitted.items():
        moves: list[Move] = []
        if key in still:
            moves, still, left = _moved(left, pool, still, _on(after_moves, pool))
        if moves:
            after_moves = movable(left)
        yields = tuple(_yielding(settled, residents, pool))
        reliefs.append(Relief(pool, now.holders(*key), yields, tuple(moves), still.get(key)))
    return reliefs, left


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
    world: World,
    pool: Overcommitted,
    still: Mapping[tuple[str, str], Overcommitted],
    candidates: list[Resident],
) -> tuple[list[Move], Mapping[tuple[str, str], Overcommitted], World]:
    """Make moves off a pool until it holds no more than it has, or nobody is left who finds another place.

    A replica that finds no other place stays, and the next one is tried: it would only wait where it goes.
    """
    moves: list[Move] = []
    for resident in track(candidates, f"Trying moves off {pool.cluster}/{pool.pool}", len(candidates)):
        if (pool.cluster, pool.pool) not in still:
            break
        trial = without(world, (resident,), [resident.owner])
        (planned,) = one_round(trial)
        places = new_places(planned)
        if places:
            moves.append(Move(resident.deployment, resident.replica.name, resident.place, places[0]))
            world = replace(after(trial, (planned,)), deployments=world.deployments)
            still = planned.forecast.overcommitted
    return moves, still, world


CAVEAT = (
    "Nothing was moved. A move is a delete and a new placement, which takes the best place of its "
    "moment: its deployment is paused until the other one has taken the room. What was deleted does not "
    "come back: its deployment places another."
)


@dataclass(slots=True)
class Advised:
    """The advice for every deployment that is short, and for replicas on an alternative."""

    reliefs: list[Relief] = field(default_factory=list)
    advices: list[Advice] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)
    upgrades: list[Upgrade] = field(default_factory=list)
    kubectl: str = "kubectl"
    """How the command lines begin."""

    @property
    def as_data(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "overcommitted": [_relief(relief, self.kubectl) for relief in self.reliefs],
            "advice": [_advice(advice, self.kubectl) for advice in self.advices],
            "stuck": [
                {
                    "deployment": stuck.deployment,
                    "short": stuck.short,
                    "message": stuck.message,
                    "hints": list(stuck.hints),
                }
                for stuck in self.stuck
            ],
            "upgrades": [
                {
                    "deployment": upgrade.deployment,
                    "replica": upgrade.replica,
                    "from": upgrade.origin,
                    "alternative": upgrade.alternative,
                    "to": upgrade.target,
                    "better": upgrade.better,
                }
                for upgrade in self.upgrades
            ],
        }


def _moves(moves: Iterable[Move]) -> list[dict[str, Any]]:
    """Moves as plain data."""
    return [
        {"deployment": move.deployment, "replica": move.replica, "from": move.origin, "to": move.target}
        for move in moves
    ]


def _relief(relief: Relief, kubectl: str) -> dict[str, Any]:
    """A relief as plain data, with the commands for the control plane that was read."""
    pool = relief.pool
    return {
        "cluster": pool.cluster,
        "pool": pool.pool,
        "held": pool.nodes,
        "nodes": pool.total,
        "holders": dict(relief.holders),
        "givesWay": list(relief.yielding),
        "moves": _moves(relief.moves),
        "heldAfter": relief.rest.nodes if relief.rest else None,
        "commands": relief.commands.on(kubectl).as_data,
    }


def _advice(advice: Advice, kubectl: str) -> dict[str, Any]:
    """An advice as plain data, likewise."""
    moves = _moves(advice.moves)
    counts = {"before": advice.before, "after": advice.after, "wanted": advice.wanted}
    gains, commands = list(advice.gains), advice.commands.on(kubectl).as_data
    return {"deployment": advice.deployment, **counts, "gains": gains, "moves": moves, "commands": commands}


def _last_resort(rest: Overcommitted, *, moved: bool) -> str:
    """Return the last resort for a pool whose holders find no other place."""
    missing = "nodes" if rest.by_devices else counted(rest.nodes - rest.total, "node")
    nobody = f"nobody {'else ' if moved else ''}on it finds another place"
    return f"{nobody}: add {missing}, or scale one of its holders down"


def _show_relief(out: Screen, relief: Relief, kubectl: str) -> None:
    """Print one overcommitted pool: who holds it, who gives way, who could move, what is left."""
    holders = listed([f"{who} ({nodes})" for who, nodes in relief.holders.items()])
    out.print(escape(f"Overcommitted: {relief.pool}: {holders}"), style="bold yellow")
    for name in relief.yielding:
        out.print(escape(f"    {name} gives way by itself: it never was Ready"))
    for move in relief.moves:
        out.print(escape(f"    {move.deployment} {move.replica}: {move.origin} → {move.target}"))
    if relief.rest is not None:
        out.say(escape(f"    {_last_resort(relief.rest, moved=bool(relief.moves))}"))
    show_commands(out, relief.commands.on(kubectl), "To relieve it", "")
    out.print()


def _show(answer: Advised, faults: tuple[str, ...]) -> None:
    """Print all that was found, the most urgent first: overcommitted pools, then what is missing."""
    out = console()
    for relief in answer.reliefs:
        _show_relief(out, relief, answer.kubectl)
    for advice in answer.advices:
        moves = "one move" if len(advice.moves) == 1 else f"{len(advice.moves)} moves"
        line = f"{advice.deployment}: {advice.before} to {advice.after} of {advice.wanted} with {moves}"
        out.print(escape(f"{line}: {', '.join(advice.gains)}"), style="bold green")
        for move in advice.moves:
            out.print(escape(f"    {move.deployment} {move.replica}: {move.origin} → {move.target}"))
        noun = "move" if len(advice.moves) == 1 else "moves"
        commands = advice.commands.on(answer.kubectl)
        show_commands(out, commands, f"To make the {noun}", "To stop half way")
        out.print()
    for stuck in answer.stuck:
        line = f"{stuck.deployment}: {stuck.short} missing, and no moves were found"
        out.print(escape(line), style="bold yellow")
        out.say(escape(f"    {stuck.message}"))
        for hint in stuck.hints:
            out.say(f"    [green]•[/green] {escape(hint)}")
    for upgrade in answer.upgrades:
        text = f"{upgrade.deployment} {upgrade.replica}: runs as {upgrade.alternative} on {upgrade.origin}"
        out.print(escape(f"{text}; {upgrade.better} would fit on {upgrade.target}"), style="green")
    if answer.advices:
        if answer.stuck or answer.upgrades:
            out.print()
        out.print(CAVEAT, style="dim")
    if not (answer.reliefs or answer.advices or answer.stuck or answer.upgrades):
        reassure(out, "Nothing is missing, and nothing could be upgraded", faults)


def _advise(inputs: Inputs, chosen: list[str], max_moves: int) -> Advised:
    """Look for relief of overcommitted pools, then for moves for every deployment that stays short.

    Every part goes on from the world that the one before leaves, so no room is given away twice.
    """
    answer = Advised(kubectl=inputs.origin.kubectl)
    settled = settle(inputs.world)
    reliefs, world = relieve(inputs.world, settled)
    answer.reliefs += [relief for relief in reliefs if not chosen or {*chosen} & {*relief.holders}]
    for planned in settled.last:
        if not outcome(planned).short or (chosen and planned.title not in chosen):
            continue
        advices, world = search.advise_one(world, planned, max_moves)
        answer.advices += advices
        (now,) = one_round(replace(world, deployments=[planned.manifest]))
        if outcome(now).short:
            answer.stuck.append(Stuck.of(now))
    upgrades = search.upgrades_of(world)
    answer.upgrades += [upgrade for upgrade in upgrades if not chosen or upgrade.deployment in chosen]
    return answer


@click.command(cls=Command)
@reads_fleet
@DEPLOYMENTS
@click.option(
    "--max-moves", type=click.IntRange(1, 4), default=2, show_default=True, help="Moves per replica gained."
)
@OUTPUT
def advise(source: Source, names: tuple[str, ...], max_moves: int, output: str) -> None:
    r"""Advise which replicas could move so that what does not fit now would fit, fewest moves first.

    Pools that hold more than they have come first: who gives way by itself (`overcommit: Yield`), who
    could move, and what only more nodes would mend.

    Everything in FILEs is planned until nothing changes any more. For every deployment that is then short,
    sets of replicas on a crowded cluster are tried, the smallest sets first: without them the deployment
    must get a place it has not now, and every replica of the set must find another one. Each advice is
    verified by planning it. Replicas on one of their deployment's alternatives are listed where a better
    one would fit now.

    Nothing is executed: the scheduler itself never moves a healthy replica.

    Exit codes: 0 nothing is missing or overcommitted, 2 something is (with advice or without), 1 bad input.

    \b
    Example:
      fleet-scheduler advise fleet.yaml -d ml/kimi
    """
    inputs = read(source)
    answer = _advise(inputs, inputs.titles(names), max_moves)
    if output == "table":
        _show(answer, inputs.faults)
    else:
        emit(output, answered("Advice", answer.as_data))
    end(inputs.faults, findings=bool(answer.reliefs or answer.advices or answer.stuck))
