"""`advise`: moves that would free space for what does not fit, fewest first. Nothing is ever executed."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import click

from function.cli.commands.completion import deployment_names
from function.cli.common import (
    FILES,
    FINDINGS,
    FINE,
    OUTPUT,
    Command,
    console,
    deployments_named,
    emit,
    read,
    reassure,
)
from function.cli.group import BAD_INPUT
from function.cli.text import escape
from function.cli.worlds.compare import outcome, title
from function.cli.worlds.memory import Memory
from function.cli.worlds.moves import Advice, Stuck, Upgrade, for_one, upgrades_of
from function.cli.worlds.simulate import one_round, settle


def _data(advices: list[Advice], stuck: list[Stuck], upgrades: list[Upgrade]) -> dict[str, Any]:
    return {
        "advice": [
            {
                "deployment": each.deployment,
                "gains": list(each.gains),
                "moves": [
                    {"deployment": m.deployment, "replica": m.replica, "from": m.origin, "to": m.target}
                    for m in each.moves
                ],
            }
            for each in advices
        ],
        "stuck": [
            {"deployment": each.deployment, "short": each.short, "message": each.message} for each in stuck
        ],
        "upgrades": [
            {
                "deployment": each.deployment,
                "replica": each.replica,
                "from": each.origin,
                "alternative": each.alternative,
                "to": each.target,
                "better": each.better,
            }
            for each in upgrades
        ],
    }


def _show(
    advices: list[Advice], stuck: list[Stuck], upgrades: list[Upgrade], faults: tuple[str, ...]
) -> None:
    out = console()
    for each in advices:
        count = f"{len(each.moves)} {'move' if len(each.moves) == 1 else 'moves'}"
        out.print(
            escape(f"{each.deployment}: {count} would place {', '.join(each.gains)}"), style="bold green"
        )
        for move in each.moves:
            out.print(escape(f"    {move.deployment} {move.replica}: {move.origin} → {move.target}"))
    for short in stuck:
        out.print(
            escape(f"{short.deployment}: {short.short} missing, and no moves were found"), style="bold yellow"
        )
        out.print(escape(f"    {short.message}"), soft_wrap=True)
    for up in upgrades:
        text = f"{up.deployment} {up.replica}: runs as {up.alternative} on {up.origin}"
        out.print(escape(f"{text}; {up.better} would fit on {up.target}"), style="green")
    if advices:
        out.print(
            "\nNothing was moved. A move is a delete and a new placement, which takes the best place of its "
            "moment: keep the old one from being it (a NoSchedule taint will do), delete the replica, and "
            "take the taint off once the other deployment has its place.",
            style="dim",
        )
    if not (advices or stuck or upgrades):
        reassure(out, "Nothing is missing, and nothing could be upgraded", faults)


@click.command(cls=Command)
@FILES
@click.option(
    "-d",
    "--deployment",
    "names",
    multiple=True,
    metavar="NS/NAME",
    shell_complete=deployment_names,
    help="Only for this one; repeatable.",
)
@click.option(
    "--max-moves", type=click.IntRange(1, 4), default=2, show_default=True, help="Moves per replica gained."
)
@OUTPUT
def advise(files: tuple[str, ...], names: tuple[str, ...], max_moves: int, output: str) -> None:
    r"""Advise which replicas could move so that what does not fit now would fit, fewest moves first.

    Everything in FILEs is planned until nothing changes any more. For every deployment that is then short,
    sets of replicas on a crowded cluster are tried, the smallest sets first: without them the deployment
    must get a place it has not now, and every replica of the set must find another one. Each advice is
    verified by planning it. Replicas on one of their deployment's alternatives are listed where a better
    one would fit now.

    Nothing is executed: the scheduler itself never moves a healthy replica.

    \b
    Exit codes: 0 nothing is missing, 2 something is (with advice or without), 1 bad input.

    \b
    Example:
      fleet-scheduler advise fleet.yaml -d ml/kimi
    """
    given = read(files)
    chosen = deployments_named(given.world, names)
    reuse = Memory()
    forecast = settle(given.world, reuse)
    world, advices, stuck = forecast.world, [], []
    for planned in forecast.last:
        if outcome(planned).short and (not chosen or title(planned) in chosen):
            found, world = for_one(world, planned, max_moves, reuse)
            advices += found
            (now,) = one_round(replace(world, deployments=[planned.manifest]), reuse)
            if outcome(now).short:
                stuck.append(Stuck(title(now), outcome(now).short, outcome(now).message))
    upgrades = [each for each in upgrades_of(world, reuse) if not chosen or each.deployment in chosen]
    if output == "table":
        _show(advices, stuck, upgrades, given.faults)
    else:
        emit(output, _data(advices, stuck, upgrades))
    sys.exit(BAD_INPUT if given.faults else FINDINGS if advices or stuck else FINE)
