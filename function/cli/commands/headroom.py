"""`headroom`: how many more replicas of each deployment fit on each cluster, and what runs out first."""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from function.cli.commands.completion import deployment_names
from function.cli.common import FILES, FINDINGS, FINE, OUTPUT, Command, console, deployments_named, emit, read
from function.cli.group import BAD_INPUT
from function.cli.progress import track
from function.cli.text import escape
from function.cli.worlds.compare import title
from function.cli.worlds.memory import Memory
from function.cli.worlds.simulate import Forecast, settle
from function.deployment.explain.line import rejection_line
from function.scheduler.fill import Placing, fill
from function.scheduler.indices import Indices
from function.scheduler.matching.matcher import Fits
from function.scheduler.placer import Places
from function.scheduler.schedule import may_place
from function.scheduler.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from function.api import InferenceCluster
    from function.api.reasons import Rejection
    from function.cli.worlds.world import Planned
    from function.scheduler.decision import Decision

LIMIT = 200
"""No deployment may want more replicas than this, so no headroom beyond it is looked for."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many more replicas one cluster takes, alone, and why not one more."""

    cluster: str
    more: int
    first: Rejection | None
    """What runs out first; None where the limit was reached."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """How many more replicas of one deployment fit, all together and on each cluster alone."""

    deployment: str
    wanted: int
    total: int
    more: int
    rooms: tuple[Room, ...]
    problem: str = ""
    """Why nothing new may be placed at all."""


def going_on(
    decision: Decision, clusters: Mapping[str, InferenceCluster], shared: Placing | None = None
) -> Placing:
    """Go on placing where a decision stopped, on these clusters.

    With `shared`, its ledger and indices are used on; what was placed there must have been undone.
    """
    inputs = replace(decision.inputs, fleet=replace(decision.inputs.fleet, clusters=clusters))
    kept = (each.own.cluster for each in decision.kept)
    tally = Tally([*kept, *(each.identity.cluster for each in decision.placed)])
    ledger = shared.ledger if shared else deepcopy(decision.ledger)
    indices = shared.indices if shared else Indices(inputs.deployment, inputs.fleet)
    return Placing(Places(inputs, Fits(inputs), ledger, tally), ledger, indices)


def _closed(cluster: InferenceCluster) -> InferenceCluster:
    """Return the cluster as it is, but not Ready: it takes nothing new."""
    status = cluster.status.model_copy(update={"conditions": ()}) if cluster.status else None
    return cluster.model_copy(update={"status": status})


def _rooms(decision: Decision) -> Iterator[Room]:
    """Each cluster's own room: the others take nothing meanwhile."""
    clusters = decision.inputs.fleet.clusters
    whole = going_on(decision, clusters)
    full = whole.places.rejections()
    # Spreading looks at all clusters, so the others must be there, closed; nothing else does.
    spread = bool(decision.inputs.policy.topology_spread)
    others = {name: _closed(cluster) for name, cluster in clusters.items()} if spread else {}
    for name, cluster in track(clusters.items(), "Looking for room", total=len(clusters)):
        if name in full:
            yield Room(name, 0, full[name])
            continue
        placing = going_on(decision, {**others, name: cluster}, whole)
        placed = fill(placing, LIMIT)
        yield Room(name, len(placed), placing.places.rejections().get(name))
        for each in reversed(placed):
            placing.undo(each)
    for name in decision.inputs.fleet.unreadable:
        yield Room(name, 0, full[name])


def of(planned: Planned) -> Headroom:
    """Find out how many more replicas of one planned deployment fit."""
    name, decision = title(planned), planned.decision
    if decision is None or not may_place(decision.inputs):
        why = next((each.message for each in planned.response.conditions if not each.status), "")
        return Headroom(
            name, decision.wanted if decision else 0, decision.total if decision else 0, 0, (), why
        )
    more = len(fill(going_on(decision, decision.inputs.fleet.clusters), LIMIT))
    rooms = sorted(_rooms(decision), key=lambda each: (-each.more, -_depth(each), each.cluster))
    return Headroom(name, decision.wanted, decision.total, more, tuple(rooms))


def _depth(room: Room) -> int:
    return room.first.reason.depth if room.first else 0


def headrooms(forecast: Forecast, names: list[str]) -> list[Headroom]:
    """Every deployment's headroom once the fleet has settled, each as if the others stayed as they are."""
    chosen = [each for each in forecast.last if not names or title(each) in names]
    return [of(each) for each in chosen]


def _data(found: Headroom) -> dict[str, Any]:
    clusters = [
        {
            "cluster": each.cluster,
            "more": each.more,
            "reason": each.first.reason.name if each.first else "",
            "detail": rejection_line(each.first) if each.first else f"{LIMIT} or more",
        }
        for each in found.rooms
    ]
    return {
        "deployment": found.deployment,
        "wanted": found.wanted,
        "placed": found.total,
        "more": found.more,
        **({"problem": found.problem} if found.problem else {}),
        "clusters": clusters,
    }


def _number(more: int) -> str:
    return f"{more}+" if more >= LIMIT else str(more)


def _show(out: Console, found: Headroom) -> None:
    known = found.wanted or found.total or not found.problem
    told = f": {found.total} of {found.wanted} placed, {_number(found.more)} more would fit" if known else ""
    out.print(escape(f"{found.deployment}{told}"), style="bold")
    if found.problem:
        out.print(f"  nothing new is placed: {escape(found.problem)}", style="yellow", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("  CLUSTER", no_wrap=True)
    table.add_column("MORE", justify="right")
    table.add_column("RUNS OUT FIRST", no_wrap=True)
    table.add_column("", overflow="fold")
    for each in found.rooms:
        reason = each.first.reason.name if each.first else ""
        line = rejection_line(each.first) if each.first else ""
        style = "green" if each.more else "dim"
        table.add_row(f"  {escape(each.cluster)}", _number(each.more), reason, escape(line), style=style)
    out.print(table)


@click.command(cls=Command)
@FILES
@click.option(
    "-d",
    "--deployment",
    "names",
    multiple=True,
    metavar="NS/NAME",
    shell_complete=deployment_names,
    help="Only this deployment; repeatable.",
)
@OUTPUT
def headroom(files: tuple[str, ...], names: tuple[str, ...], output: str) -> None:
    r"""Show how many more replicas of each ModelDeployment fit, per cluster, and what runs out first.

    First everything in FILEs is planned until nothing changes any more. Then, for one deployment after the
    other, as many more replicas are placed as fit (at most 200): on the whole fleet, which is the number in
    the heading, and on each cluster alone, which is the table. The numbers of several clusters or several
    deployments do not add up where they share nodes, or where a spreading rule ties them together.

    \b
    Exit codes: 0 one more of each fits somewhere, 2 there is no room for some, 1 bad input.

    \b
    Examples:
      fleet-scheduler headroom fleet.yaml
      fleet-scheduler headroom fleet.yaml -d ml/chat -o json
    """
    given = read(files)
    chosen = deployments_named(given.world, names)
    found = headrooms(settle(given.world, Memory()), chosen)
    if output == "table":
        out = console()
        for number, each in enumerate(found):
            if number:
                out.print()
            _show(out, each)
    else:
        emit(output, {"deployments": [_data(each) for each in found]})
    full = any(each.more == 0 for each in found)
    sys.exit(BAD_INPUT if given.faults else FINDINGS if full else FINE)
