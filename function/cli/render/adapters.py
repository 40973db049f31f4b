"""Print adapters: where each goes, why it is on a replica or not, and what a change does to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from function.cli.render.table import show_condition
from function.cli.text import console, counted, escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.cli.worlds.adapters import AdapterDifference, PlannedAdapter

STYLES = {"Placed": "green", "Replaced": "yellow", "Dropped": "red", "Rejected": "dim", "Eligible": "cyan"}


def show_adapters(adapters: Iterable[PlannedAdapter]) -> None:
    """Print the replicas that every adapter is on, or why it is on fewer than are wanted."""
    out = console()
    for adapter in adapters:
        out.print()
        out.say(f"{escape(adapter.title)} (adapter)", style="bold")
        for condition in adapter.response.conditions:
            show_condition(out, condition)
        for replica, cluster, action in adapter.places:
            out.say(f"  {escape(replica)}  {escape(cluster)}  {action}")


def show_why_adapter(adapter: PlannedAdapter) -> None:
    """Print one adapter: how many places it has, what would help, and every replica of its base."""
    out, forecast = console(), adapter.forecast
    scheduled, ready = adapter.response.conditions
    placed = f"Placed on {adapter.total} of {counted(adapter.wanted, 'replica')}"
    headline = escape(scheduled.message or placed)
    out.say(f"[bold]{escape(adapter.title)}[/bold] (adapter): {headline}")
    if not ready.status and adapter.total:
        show_condition(out, ready)
    if forecast.hints:
        out.print("\n[bold]What would help[/bold] (each was tried out)")
    for text, more in forecast.hints:
        out.say(f"  [green]•[/green] {escape(text)}, and {more} more {'places' if more > 1 else 'place'}")
    if not forecast.verdicts:
        return
    out.print("\n[bold]Replicas of the base[/bold]")
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for wraps in (False, False, False, False, False, True):  # On a narrow terminal names stay whole.
        table.add_column(no_wrap=not wraps, overflow="fold")
    for row in forecast.verdicts:
        taken = "no room" if row.slots is None else f"{len(row.adapters)} of {row.slots} slots"
        cells = ("", row.replica, row.cluster, taken, row.action, row.why)
        table.add_row(*map(escape, cells), style=STYLES.get(row.action, ""))
    out.print(table)


def why_data(adapter: PlannedAdapter) -> dict[str, Any]:
    """Return the explanation of one adapter as plain data."""
    return {
        "namespace": adapter.manifest.namespace,
        "name": adapter.manifest.name,
        "wanted": adapter.wanted,
        "placed": adapter.total,
        "conditions": [condition.plain for condition in adapter.response.conditions],
        "replicas": [row.plain for row in adapter.forecast.verdicts],
        "hints": [{"change": text, "unlocks": more} for text, more in adapter.forecast.hints],
    }


def difference_lines(difference: AdapterDifference) -> Iterator[tuple[str, str]]:
    """Return the lines about one adapter of `whatif`, each with its style."""
    (was, before), (total, wanted) = difference.counts
    mark, style = ("✗", "bold red") if difference.worse else ("✓", "bold green")
    yield f"{mark} {difference.name} (adapter)  {was} of {before} → {total} of {wanted} places", style
    for sign, places, colour in (("-", difference.leaving, "red"), ("+", difference.arriving, "green")):
        for replica, cluster in places:
            yield f"    {sign} {replica}  {cluster}", colour
    if difference.after is not None and total < wanted:
        scheduled = difference.after.response.conditions[0]
        yield f"    stuck: {scheduled.reason}: {scheduled.message}", "yellow"
