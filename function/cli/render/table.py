"""Print the table of `plan`: a line per replica, then a line per cluster that could not take another.

Conditions, replicas that are not Ready and command lines are printed for `why`, `whatif` and `advise` too. So
one thing looks the same whichever command shows it, and what a reader learned to look for stays in its place.

On a terminal narrower than the table each replica becomes a paragraph; in a pipe no line is wrapped. Lists
are cut (`SHOWN`), for the answer to a question is the first screen; `-o json` has all of it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table

from function.api.text import joined
from function.cli.text import Screen, console, counted, escape, listed, short
from function.cli.worlds.settling import standing, unready_of
from function.deployment.forecast import Forecast, Price, ReplicaRow, rejection_phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.boundary import Condition
    from function.cli.worlds.adapters import AdapterDifference
    from function.cli.worlds.changes import Commands
    from function.cli.worlds.world import Planned, PlannedAdapter


def show_commands(out: Screen, commands: Commands, apply: str, revert: str) -> None:
    """Print commands and their reverse, each below its title.

    They are printed as they are typed: whole lines, which a terminal wraps and a copy does not.
    """
    for title, lines in ((apply, commands.apply), (revert, commands.revert)):
        if lines:
            out.print(f"\n{title}:", style="bold")
        for line in lines:
            out.print(f"  {escape(line)}", style="dim" if line.startswith("#") else "", soft_wrap=True)


SHOWN = 20
"""How many rejected clusters are listed before they are only counted."""
UNREADY_SHOWN = 5
"""How many reasons for which replicas are not Ready are printed."""

UNDER_WAY = {
    "Scheduling": "placement is done; waiting for the replicas to be created",
    "ModelStarting": "",
    "Configuring": "",
}
"""Reasons that ask nobody to do anything but wait, and for what, where the message does not say so."""

_ACTIONS = {
    "Placed": ("new", "green"),
    "Replaced": ("new", "green"),
    "Retained": ("retained", ""),
    "Held": ("held", "yellow"),
    "Dropped": ("dropped", "red"),
}
"""The word for a row's action, and its style."""
NARROW = 66
"""Columns of a terminal below which the table of replicas would lose some of its own."""
_COLUMNS = (("REPLICA", 7), ("CLUSTER", 7), ("INDEX", 5), ("POOLS", 10), ("ACTION", 8), ("WHY", 16))
"""Titles, and the least width."""


def show(results: list[Planned], words: str) -> None:
    """Print every deployment's plan. `words` of a command line read the same objects again."""
    out = console()
    for number, planned in enumerate(results):
        if number:
            out.print()
        _deployment(out, planned, words)
    together = Price.of(row.cents for planned in results for row in planned.forecast.standing)
    if len(results) > 1 and together.priced:
        out.print(f"\nTogether {together}", style="bold")


def _deployment(out: Screen, planned: Planned, words: str) -> None:
    """Print one deployment: conditions, what is amiss, replicas, price, clusters without room."""
    forecast = planned.forecast
    out.say(escape(planned.title), style="bold")
    for condition in planned.response.conditions:
        show_condition(out, condition)
    show_amiss(out, planned)
    if forecast.standing or forecast.leaving:
        _show_replicas(out, [*forecast.standing, *forecast.leaving])
    if forecast.price.priced:
        out.say(f"  costs {forecast.price}")
    for partly_held in forecast.partly_held:
        out.say(f"  ! {escape(str(partly_held))}", style="yellow")
    if forecast.rejections:
        _rejected(out, forecast)
        more = f"fleet-scheduler why {planned.title} {words}".rstrip()
        out.say(f"\n  More: {escape(more)}", style="dim")


def show_condition(out: Screen, condition: Condition) -> None:
    """Print a condition in one line: done, on its way, or in need of somebody."""
    mark, style = ("✓", "green") if condition.status else ("✗", "yellow")
    if condition.reason in UNDER_WAY:
        mark, style = "…", "cyan"
    message = message_of(condition.reason, condition.message)
    text = joined(condition.type, condition.reason, message, by=": ")
    out.say(f"  {mark} {escape(text)}", style=style)


def show_amiss(out: Screen, planned: Planned) -> None:
    """Print what keeps the control plane from acting, and what replicas say that are not Ready."""
    for text in standing(planned.manifest.content, ()).stalled:
        out.say(f"  ✗ {escape(text)}", style="yellow")
    by_text: dict[str, list[str]] = defaultdict(list)
    for name, cluster, why in unready_of(planned):
        by_text[why or "nothing was said of it yet"].append(f"{name} on {cluster}")
    for why, names in [*by_text.items()][:UNREADY_SHOWN]:
        out.say(f"    not Ready: {escape(f'{listed(names)}: {why}')}", style="yellow")
    if len(by_text) > UNREADY_SHOWN:
        out.print("    and others for other reasons (-o json lists all)", style="yellow")


def message_of(reason: str, message: str) -> str:
    """Return a condition's message, with what is waited for where its reason reads like a failure."""
    waiting = UNDER_WAY.get(reason)
    return f"{message} ({waiting})" if waiting else message


def _show_replicas(out: Screen, rows: list[ReplicaRow]) -> None:
    """Print a table; where a terminal is too narrow for its columns, a paragraph for each replica.

    In the table long names are cut in the middle; in a paragraph they are whole.
    """
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title, least in _COLUMNS:
        table.add_column(title, no_wrap=title not in ("POOLS", "WHY"), overflow="fold", min_width=least)
    for row in rows:
        action, style = _ACTIONS[row.action]
        index = "?" if row.index is None else str(row.index)
        if out.width >= NARROW:
            cells = (short(row.name), short(row.cluster), index, row.pools_phrase, action, row.phrase)
            table.add_row(*map(escape, cells), style=style)
            continue
        out.print(escape(f"{row.name} on {row.cluster}, index {index}: {action}"), style=style)
        for text in filter(None, (row.pools_phrase, row.phrase)):
            out.print(Padding(escape(text), (0, 0, 0, 4)), style=style)
    if out.width >= NARROW:
        out.print(table)


def _rejected(out: Screen, forecast: Forecast) -> None:
    """Print the clusters that take no other replica, the first `SHOWN` with their reason."""
    rejections = list(forecast.rejections.items())
    out.print("\nClusters that cannot host another:", style="bold")
    lines = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for name, rejection in rejections[:SHOWN]:
        cells = (short(name), rejection.reason.name, rejection_phrase(rejection))
        lines.add_row("", *map(escape, cells))
    out.show(lines, whole=3)
    if len(rejections) > SHOWN:
        out.print(f"  and {len(rejections) - SHOWN} more (-o json lists all)")


# Print adapters: where each goes, why it is on a replica or not, and what a change does to it.

_VERDICTS = {"Placed": "green", "Replaced": "yellow", "Dropped": "red", "Rejected": "dim", "Eligible": "cyan"}


def show_adapters(adapters: Iterable[PlannedAdapter]) -> None:
    """Print the replicas that every adapter is on, or why it is on fewer than are wanted."""
    out = console()
    for adapter in adapters:
        out.print()
        out.say(f"{escape(adapter.title)} (adapter)", style="bold")
        for condition in adapter.forecast.response.conditions:
            show_condition(out, condition)
        for replica, cluster, action in adapter.places:
            out.say(f"  {escape(replica)}  {escape(cluster)}  {action}")


def show_why_adapter(adapter: PlannedAdapter) -> None:
    """Print one adapter: how many places it has, what would help, and every replica of its base.

    A condition about what is loaded is shown only where something is placed: before that, it says nothing
    more than the headline.
    """
    out, forecast = console(), adapter.forecast
    scheduled, ready = adapter.forecast.response.conditions
    placed = f"Placed on {adapter.placed} of {counted(adapter.wanted, 'replica')}"
    headline = escape(scheduled.message or placed)
    out.say(f"[bold]{escape(adapter.title)}[/bold] (adapter): {headline}")
    if not ready.status and adapter.placed:
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
        table.add_row(*map(escape, cells), style=_VERDICTS.get(row.action, ""))
    out.print(table)


def difference_lines(difference: AdapterDifference) -> Iterator[tuple[str, str]]:
    """Return the lines about one adapter of `whatif`, each with its style."""
    (was, before), (total, wanted) = difference.counts
    mark, style = ("✗", "bold red") if difference.worse else ("✓", "bold green")
    yield f"{mark} {difference.name} (adapter)  {was} of {before} → {total} of {wanted} places", style
    for sign, places, colour in (("-", difference.leaving, "red"), ("+", difference.arriving, "green")):
        for replica, cluster in places:
            yield f"    {sign} {replica}  {cluster}", colour
    if difference.after is not None and total < wanted:
        scheduled = difference.after.forecast.response.conditions[0]
        yield f"    stuck: {scheduled.reason}: {scheduled.message}", "yellow"
