"""The table `plan` prints: a line per replica, then a line per cluster that could not take another."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import click
from rich.table import Table

from function.cli.text import Screen, escape, short
from function.deployment.explain.line import because_line, dropped_line, kept_line, rejection_line

if TYPE_CHECKING:
    from rich.console import Console

    from function.boundary import Condition
    from function.cli.worlds.world import Planned, World
    from function.scheduler.decision import Decision, Dropped, Kept, Placed

WIDTH = 120
"""Columns when the output is no terminal."""
SHOWN = 20
"""How many rejected clusters are listed before they are only counted."""

UNDER_WAY = {
    "Scheduling": "placement is done; waiting for the replicas to be created",
    "ModelStarting": "",
}
"""Reasons that ask nobody to do anything but wait, and for what, where the message does not say so."""

_STYLES = {"new": "green", "retained": "", "held": "yellow", "dropped": "red"}


def _pools_of_kept(kept: Kept) -> str:
    pools: dict[str, list[str]] = defaultdict(list)
    for engine in kept.own.replica.engines:
        for member in engine.members:
            if member.pool not in pools[engine.name]:
                pools[engine.name].append(member.pool)
    return ", ".join(f"{engine}: {'+'.join(names)}" for engine, names in pools.items())


def _pools_of_placed(placed: Placed) -> str:
    candidate = placed.candidate
    pools = {
        engine.name: dict.fromkeys(candidate.pool(option, at) for at in range(len(engine.members)))
        for engine, option in candidate.engines
    }
    return ", ".join(f"{engine}: {'+'.join(names)}" for engine, names in pools.items())


def _kept_row(kept: Kept) -> tuple[str, ...]:
    own = kept.own
    index = str(own.identity.index) if own.identity else "?"
    action = "held" if kept.mismatch else "retained"
    return (own.replica.name, own.cluster, index, _pools_of_kept(kept), action, kept_line(kept))


def _placed_row(placed: Placed) -> tuple[str, ...]:
    identity = placed.identity
    pools = _pools_of_placed(placed)
    return (placed.name, identity.cluster, str(identity.index), pools, "new", because_line(placed))


def _dropped_row(dropped: Dropped) -> tuple[str, ...]:
    own = dropped.own
    index = str(own.identity.index) if own.identity else "?"
    return (own.replica.name, own.cluster, index, "", "dropped", dropped_line(dropped))


def _rows(decision: Decision) -> list[tuple[str, ...]]:
    rows = [*map(_kept_row, decision.kept), *map(_placed_row, decision.placed)]
    rows.sort(key=lambda row: (row[1], int(row[2]) if row[2].isdigit() else -1))
    return [*rows, *map(_dropped_row, decision.dropped)]


def _table(decision: Decision) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title, least in (
        ("REPLICA", 7),
        ("CLUSTER", 7),
        ("INDEX", 5),
        ("POOLS", 10),
        ("ACTION", 8),
        ("WHY", 16),
    ):
        table.add_column(title, no_wrap=title not in ("POOLS", "WHY"), overflow="fold", min_width=least)
    for name, cluster, *others in _rows(decision):
        cells = (short(name), short(cluster), *others)
        table.add_row(*map(escape, cells), style=_STYLES[others[2]])
    return table


def _rejected(console: Console, decision: Decision) -> None:
    found = list(decision.rejections.items())
    if not found:
        return
    console.print("\nClusters that cannot host another:", style="bold")
    lines = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for name, rejection in found[:SHOWN]:
        cells = (short(name), rejection.reason.name, rejection_line(rejection))
        lines.add_row("", *map(escape, cells))
    console.print(lines)
    if len(found) > SHOWN:
        console.print(f"  and {len(found) - SHOWN} more (-o json lists all)")


def _console() -> Console:
    console = Screen()
    return console if console.is_terminal else Screen(width=WIDTH)


def _condition(console: Console, condition: Condition) -> None:
    """A line per condition: done, on its way, or in need of somebody."""
    mark, style = ("✓", "green") if condition.status else ("✗", "yellow")
    if condition.reason in UNDER_WAY:
        mark, style = "…", "cyan"
    parts = (condition.type, condition.reason, said(condition.reason, condition.message))
    text = ": ".join(part for part in parts if part)
    console.print(f"  {mark} {escape(text)}", style=style, soft_wrap=True)


def said(reason: str, message: str) -> str:
    """A condition's message, with what is waited for where its reason reads like a failure."""
    waiting = UNDER_WAY.get(reason)
    return f"{message} ({waiting})" if waiting else message


def _deployment(console: Console, planned: Planned) -> None:
    decision = planned.decision
    name = f"{planned.manifest.namespace}/{planned.manifest.name}"
    console.print(escape(name), style="bold", soft_wrap=True)
    for each in planned.response.conditions:
        _condition(console, each)
    if decision is None:
        return
    if decision.kept or decision.placed or decision.dropped:
        console.print(_table(decision))
    _rejected(console, decision)
    if decision.rejections:
        console.print(f"\n  More: fleet-scheduler why {escape(name)} FILE...", style="dim", soft_wrap=True)


def show(results: list[Planned], world: World) -> None:
    """Print every deployment's plan."""
    console = _console()
    with console.capture() as captured:
        for number, planned in enumerate(results):
            if number:
                console.print()
            _deployment(console, planned)
        for note in world.notes:
            console.print(f"note: {escape(note)}", style="dim", soft_wrap=True)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())
