"""The table `plan` prints: a line per replica, then a line per cluster that could not take another."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from function.explain.line import because_line, rejection_line

if TYPE_CHECKING:
    from function.cli.worlds import Planned, World
    from function.scheduler.decision import Decision, Dropped, Kept, Placed

WIDTH = 120
"""Columns when the output is no terminal."""
SHOWN = 20
"""How many rejected clusters are listed before they are only counted."""

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
    if kept.mismatch:
        detail = f" ({kept.detail})" if kept.detail else ""
        why = f"no place for its replacement: {kept.mismatch.value}{detail}"
        return (own.replica.name, own.cluster, index, _pools_of_kept(kept), "held", why)
    why = f"kept in doubt: {kept.doubt}" if kept.doubt else "a running replica is never moved"
    return (own.replica.name, own.cluster, index, _pools_of_kept(kept), "retained", why)


def _placed_row(placed: Placed) -> tuple[str, ...]:
    identity = placed.identity
    pools = _pools_of_placed(placed)
    return (placed.name, identity.cluster, str(identity.index), pools, "new", because_line(placed))


def _dropped_row(dropped: Dropped) -> tuple[str, ...]:
    own = dropped.own
    index = str(own.identity.index) if own.identity else "?"
    why = f"{dropped.cause.value}: {dropped.detail}" if dropped.detail else dropped.cause.value
    return (own.replica.name, own.cluster, index, "", "dropped", why)


def _rows(decision: Decision) -> list[tuple[str, ...]]:
    rows = [*map(_kept_row, decision.kept), *map(_placed_row, decision.placed)]
    rows.sort(key=lambda row: (row[1], int(row[2]) if row[2].isdigit() else -1))
    return [*rows, *map(_dropped_row, decision.dropped)]


def _table(decision: Decision) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("REPLICA", "CLUSTER", "INDEX", "POOLS", "ACTION", "WHY"):
        table.add_column(title, no_wrap=title in ("REPLICA", "CLUSTER"), overflow="fold")
    for row in _rows(decision):
        table.add_row(*(escape(cell) for cell in row), style=_STYLES[row[4]])
    return table


def _rejected(console: Console, decision: Decision) -> None:
    found = list(decision.rejections.items())
    if not found:
        return
    console.print("\nClusters that cannot host another:", style="bold")
    lines = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for name, rejection in found[:SHOWN]:
        lines.add_row("", escape(name), escape(rejection.reason.name), escape(rejection_line(rejection)))
    console.print(lines)
    if len(found) > SHOWN:
        console.print(f"  and {len(found) - SHOWN} more (-o json lists all)")


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDTH)


def show(results: list[Planned], world: World) -> None:
    """Print every deployment's plan."""
    console = _console()
    for number, planned in enumerate(results):
        if number:
            console.print()
        manifest, decision = planned.manifest, planned.response.decision
        console.print(f"{escape(manifest.namespace)}/{escape(manifest.name)}", style="bold")
        for each in planned.response.conditions:
            mark, style = ("✓", "green") if each.status else ("✗", "yellow")
            text = f"{mark} {each.type}: {each.reason}" + (f": {each.message}" if each.message else "")
            console.print(f"  {escape(text)}", style=style, soft_wrap=True)
        if decision is not None:
            if decision.kept or decision.placed or decision.dropped:
                console.print(_table(decision))
            _rejected(console, decision)
            if decision.rejections:
                console.print(
                    f"\n  More: fleet-scheduler why {manifest.namespace}/{manifest.name} FILE...", style="dim"
                )
    for note in world.notes:
        console.print(f"note: {escape(note)}", style="dim", soft_wrap=True)
