"""`headroom`: how many more replicas of each deployment fit, and what runs out first.

Replicas are placed one after the other on the settled fleet, up to `LIMIT`, by the scheduler itself: on the
whole fleet, and on each cluster alone. All other deployments stay as they are meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from function.boundary import frozen
from function.cli.options import DEPLOYMENTS, OUTPUT, Command, end, reads_fleet
from function.cli.text import Screen, answered, console, emit, escape, track
from function.cli.worlds.inputs import Source, read
from function.cli.worlds.simulate import settle
from function.deployment.forecast import Room, amount, rejection_phrase

if TYPE_CHECKING:
    from function.cli.worlds.world import Planned

LIMIT = 200
"""No deployment may want more replicas than this, so no headroom beyond it is looked for."""


@frozen
class Headroom:
    """How many more replicas of one deployment fit, all together and on each cluster alone."""

    deployment: str
    wanted: int
    total: int
    more: int = 0
    rooms: tuple[Room, ...] = ()
    problem: str = ""
    """Why nothing new may be placed at all."""

    @property
    def as_data(self) -> dict[str, Any]:
        """The headroom as plain data."""
        clusters = [
            {
                "cluster": room.cluster,
                "more": room.more,
                "reason": room.first.reason.name if room.first else "",
                "detail": rejection_phrase(room.first) if room.first else f"{LIMIT} or more",
                **({} if room.cents is None else {"centsPerHour": room.cents}),
            }
            for room in self.rooms
        ]
        return {
            "deployment": self.deployment,
            "wanted": self.wanted,
            "placed": self.total,
            "more": self.more,
            **({"problem": self.problem} if self.problem else {}),
            "clusters": clusters,
        }


def headroom_of(planned: Planned) -> Headroom:
    """Find out how many more replicas of one planned deployment fit, as if all others stayed as they are.

    Where nothing new may be placed at all, the first condition that is False says why.
    """
    forecast = planned.forecast
    if not forecast.open:
        problems = (condition.message for condition in planned.response.conditions if not condition.status)
        return Headroom(planned.title, forecast.wanted, forecast.total, problem=next(problems, ""))
    clusters = len(forecast.clusters)
    rooms = track(forecast.rooms(LIMIT), "Looking for room", total=clusters)

    def order(room: Room) -> tuple[int, int, str]:
        # Where equally many fit, the cluster comes first whose obstacle is the nearest to fitting.
        depth = room.first.reason.depth if room.first else 0
        return -room.more, -depth, room.cluster

    ordered = sorted(rooms, key=order)
    more = forecast.more(LIMIT)
    return Headroom(planned.title, forecast.wanted, forecast.total, more, tuple(ordered))


def _show(out: Screen, result: Headroom) -> None:
    """Print how many more fit on the whole fleet, then a row for each cluster with its obstacle."""
    # The search stops at its limit: there may be more.
    total, *numbers = (
        f"{more}+" if more >= LIMIT else str(more)
        for more in (result.more, *(room.more for room in result.rooms))
    )
    is_known = result.wanted or result.total or not result.problem
    counts = f": {result.total} of {result.wanted} placed, {total} more would fit" if is_known else ""
    out.print(escape(f"{result.deployment}{counts}"), style="bold")
    if result.problem:
        out.say(f"  nothing new is placed: {escape(result.problem)}", style="yellow")
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("  CLUSTER", no_wrap=True)
    table.add_column("MORE", justify="right", no_wrap=True, min_width=4)
    priced = any(room.cents is not None for room in result.rooms)
    if priced:
        table.add_column("EACH AN HOUR", justify="right", no_wrap=True)
    table.add_column("RUNS OUT FIRST", no_wrap=True)
    table.add_column("", overflow="fold")
    for room, number in zip(result.rooms, numbers, strict=True):
        reason = room.first.reason.name if room.first else ""
        line = rejection_phrase(room.first) if room.first else ""
        style = "green" if room.more else "dim"
        price = [] if not priced else ["" if room.cents is None else amount(room.cents)]
        cells = (f"  {escape(room.cluster)}", number, *price, reason, escape(line))
        table.add_row(*cells, style=style)
    out.show(table, whole=3 if priced else 2)


@click.command(cls=Command)
@reads_fleet
@DEPLOYMENTS
@OUTPUT
def headroom(source: Source, names: tuple[str, ...], output: str) -> None:
    r"""Show how many more replicas of each ModelDeployment fit, per cluster, and what runs out first.

    First everything in FILEs is planned until nothing changes any more. Then, for one deployment after the
    other, as many more replicas are placed as fit (at most 200): on the whole fleet, which is the number in
    the heading, and on each cluster alone, which is the table. The numbers of several clusters or several
    deployments do not add up where they share nodes, or where a spreading rule ties them together.

    Exit codes: 0 one more of each fits somewhere, 2 there is no room for some, 1 bad input.

    \b
    Examples:
      fleet-scheduler headroom fleet.yaml
      fleet-scheduler headroom fleet.yaml -d ml/chat -o json
    """
    inputs = read(source)
    chosen = inputs.titles(names)
    settled = settle(inputs.world).last
    results = [headroom_of(planned) for planned in settled if not chosen or planned.title in chosen]
    if output == "table":
        out = console()
        for number, result in enumerate(results):
            if number:
                out.print()
            _show(out, result)
    else:
        emit(output, answered("Headroom", {"deployments": [result.as_data for result in results]}))
    end(inputs.faults, findings=any(result.more == 0 for result in results))
