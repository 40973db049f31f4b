"""`why`: one deployment, and for every cluster the reason why it takes another replica or none.

The core is asked for its own explanation (`Forecast.outline`, `hints`, `findings`); this file arranges it as
a tree, the line that matters first. With the Objects of the replicas it goes on below the cluster.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click
from rich.table import Table
from rich.tree import Tree

from function.boundary import frozen
from function.cli.bad_input import BadInput, closest
from function.cli.group import BAD_INPUT
from function.cli.options import DEPLOYMENT, Command, end, output_option, reads_fleet
from function.cli.render.table import show_amiss, show_condition, show_why_adapter
from function.cli.render.workloads import below, show_below
from function.cli.text import Screen, answered, complain, console, emit, escape
from function.cli.worlds.inputs import Inputs, Source, add_workloads, read, title_of
from function.cli.worlds.settling import explained, worst_code
from function.cli.worlds.world import Planned, plan_all
from function.deployment.forecast import ClusterOutline, ClusterVerdict, EngineOutline, Forecast, Hint

if TYPE_CHECKING:
    from function.cli.worlds.world import PlannedAdapter


# Print the tree of `why`: the summary, what would help, lint, replicas, clusters down to the selector.

SHOWN = 20
"""How many clusters are printed in full; the rest only in one line."""
STYLES = {
    ClusterVerdict.Chosen: "green",
    ClusterVerdict.Eligible: "cyan",
    ClusterVerdict.Full: "yellow",
    ClusterVerdict.Rejected: "red",
    ClusterVerdict.Unknown: "magenta",
}
ACTIONS = {"Placed": "green", "Replaced": "green", "Held": "yellow", "Retained": ""}


@frozen
class View:
    """The requested view: one cluster or pool, or all of them (None)."""

    cluster: str | None = None
    pool: str | None = None


def show_why(planned: Planned, view: View) -> None:
    """Print why a deployment, which must be readable, is placed as it is."""
    out, forecast = console(), planned.forecast
    hints = forecast.hints(view.cluster)
    headline = _headline(forecast, hints) if view.cluster is None else forecast.outline.phrase(view.cluster)
    out.say(f"[bold]{escape(planned.title)}[/bold]: {escape(headline)}")
    if view.cluster is None:
        _amiss(out, forecast, headline)
        show_amiss(out, planned)
    _hints(out, hints)
    _findings(out, forecast)
    if view.cluster is None:
        _replicas(out, forecast)
    _clusters(out, forecast, view)


def _headline(forecast: Forecast, hints: list[Hint]) -> str:
    """The one line that matters: how many have a place, and the first thing that would help."""
    message = forecast.scheduled.message if forecast.scheduled else ""
    if forecast.complete:
        return message
    if hints and forecast.total >= forecast.wanted:
        held = f"{forecast.held} of them held, as their replacements have no place"
        return f"{forecast.summary}, {held}. Nearest way to one: {_promise(hints[0])}"
    if hints:
        return f"{forecast.summary}. Nearest way to more: {_promise(hints[0])}"
    if not forecast.findings:
        return message
    first = forecast.findings[0].message
    return f"{forecast.summary}. {first[:1].upper()}{first[1:]}"


def _amiss(out: Screen, forecast: Forecast, headline: str) -> None:
    """Yield further problems of existing replicas: not Ready, cut off, not updated."""
    if all(row.is_new for row in forecast.standing):
        return
    for condition in forecast.amiss:
        if condition.message not in headline:
            show_condition(out, condition)


def _promise(hint: Hint) -> str:
    """A hint in words: the change, and how many more replicas fit with it."""
    noun = "replica fits" if hint.unlocks == 1 else "replicas fit"
    return f"{hint.change.message}, and {hint.unlocks} more {noun}"


def _hints(out: Screen, hints: list[Hint]) -> None:
    """Print the changes that would let one more replica in, the cheapest first."""
    if hints:
        out.print("\n[bold]What would help[/bold] (each was tried out)")
    for hint in hints:
        out.say(f"  [green]•[/green] {escape(_promise(hint))}")


def _replicas(out: Screen, forecast: Forecast) -> None:
    """Print a row for each replica that stays or is new, then for those that leave."""
    if not (forecast.standing or forecast.leaving):
        return
    out.print("\n[bold]Replicas[/bold]")
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for wraps in (False, False, False, False, True, True):
        table.add_column(no_wrap=not wraps, overflow="fold")
    for row in forecast.standing:
        place = f"{row.cluster}/{'?' if row.index is None else row.index}"
        cells = ("", row.name, place, row.action, row.pools_phrase, row.phrase)
        table.add_row(*map(escape, cells), style=ACTIONS[row.action])
    for row in sorted(forecast.leaving, key=lambda row: (row.cluster, row.name)):
        cells = ("", row.name, row.cluster, row.action, "", row.phrase)
        table.add_row(*map(escape, cells), style="red")
    out.show(table, whole=4)


def _clusters(out: Screen, forecast: Forecast, view: View) -> None:
    """Print the clusters as a tree, the nearest miss first.

    The pools of a cluster are shown where that is the one asked about; else only where they matter. Beyond
    `SHOWN` clusters there is a line for each.
    """
    outline = forecast.outline
    names = outline.names(view.pool)
    if view.cluster is not None:
        names = [name for name in names if name == view.cluster]
    if not names:
        return
    out.print("\n[bold]Clusters[/bold]")
    pools = None if view.cluster is None else True
    for name in names[:SHOWN]:
        out.print(_cluster(outline.cluster(name, pool=view.pool, pools=pools)))
    for name in names[SHOWN:]:
        cluster = outline.cluster(name, pools=False)
        out.print(f"{escape(name)}  {cluster.reason or cluster.verdict.name}", style="dim")


def _cluster(cluster: ClusterOutline) -> Tree:
    """One cluster: its verdict, and its pools where they matter."""
    style = STYLES[cluster.verdict]
    label = f"[bold]{escape(cluster.name)}[/bold]  [{style}]{cluster.verdict.name}[/{style}]"
    if cluster.reason:
        label += f"  {cluster.reason}"
        label += f": {escape(cluster.phrase)}" if cluster.phrase else ""
    tree = Tree(label, guide_style="dim")
    for pool in cluster.pools:
        branch = tree.add(escape(pool.phrase))
        for engine in pool.engines:
            _engine(branch, engine)
    return tree


def _engine(branch: Tree, engine: EngineOutline) -> None:
    """One engine on one pool, with everything that keeps it off."""
    mark = "[green]✓[/green]" if engine.fits else "[red]✗[/red]"
    below = branch.add(f"{mark} {escape(engine.phrase)}")
    for failure in engine.failures:
        below.add(escape(failure))


def _findings(out: Screen, forecast: Forecast) -> None:
    """Print what is allowed and was hardly meant: selectors that match nothing, pools held in part."""
    findings = [f"{finding.path}: {finding.message}" for finding in forecast.findings]
    findings += map(str, forecast.partly_held)
    if findings:
        out.print("\n[bold]Worth a look[/bold]")
    for text in findings:
        out.say(f"  [yellow]![/yellow] {escape(text)}")


def _planned(inputs: Inputs, deployment: str) -> Planned:
    """The plan of one deployment, after those that are older took theirs. Raises BadInput."""
    [title] = inputs.titles([deployment])
    planning = plan_all(inputs.world)
    return next(planned for planned in planning if planned.title == title)


def _adapter(inputs: Inputs, name: str, *, is_adapter: bool) -> PlannedAdapter | None:
    """The adapter that a name means, planned; None where it means a deployment. Raises BadInput.

    A deployment comes before an adapter of the same name, unless --adapter is given: most names are those
    of deployments.
    """
    only, origin = inputs.origin.only, inputs.origin
    identities = (manifest.identity for manifest in inputs.manifests["ModelAdapter"])
    titles = ["/".join(identity) for identity in identities if only in ("", identity[0])]
    named = [title for title in titles if name in (title, title.partition("/")[2])]
    deployments = (manifest for manifest in inputs.world.deployments if only in ("", manifest.namespace))
    is_deployment = any(name in ("/".join(one.identity), one.name) for one in deployments)
    if not is_adapter and (is_deployment or not named):
        return None
    from function.cli.worlds.adapters import adapters_of  # noqa: PLC0415 - all handlers are needed

    title = title_of(name, sorted(titles), origin, "ModelAdapter")
    planned = adapters_of(
        inputs.manifests, inputs.world.endpoints, plan_all(inputs.world), inputs.origin.only
    )
    return next(adapter for adapter in planned if adapter.title == title)


def _show_adapter(adapter: PlannedAdapter, inputs: Inputs, output: str) -> NoReturn:
    """Print one adapter, for people or as data, and end."""
    if output == "tree":
        show_why_adapter(adapter)
    else:
        emit(output, answered("WhyAdapter", adapter.explained))
    end(inputs.faults, findings=not adapter.forecast.response.conditions[0].status)


def _check(forecast: Forecast, view: View, where: str) -> None:
    """Refuse a cluster or a pool that is not there. Raises BadInput."""
    clusters, cluster, pool = forecast.clusters, view.cluster, view.pool
    if cluster is not None and cluster not in {*clusters, *forecast.unreadable_clusters}:
        raise BadInput(f'no InferenceCluster "{cluster}" in {where}; {closest(cluster, clusters)}')
    pools = {pool for name, pools in clusters.items() if cluster in (None, name) for pool in pools}
    if pool is not None and pool not in pools:
        raise BadInput(f'no node pool "{pool}"; {closest(pool, pools)}')


@click.command(cls=Command)
@DEPLOYMENT
@reads_fleet
@click.option("--cluster", metavar="NAME", help="Only this cluster: why not there?")
@click.option("--pool", metavar="NAME", help="Only node pools of this name.")
@click.option("--adapter", is_flag=True, help="The name is that of a ModelAdapter.")
@output_option("tree", "yaml", "json", text="tree for people; yaml and json hold the same answer as data.")
def why(
    deployment: str, source: Source, cluster: str | None, pool: str | None, output: str, *, adapter: bool
) -> None:
    r"""Explain the placement of DEPLOYMENT (NAMESPACE/NAME, or NAME where it is the only one).

    The line that matters comes first; then what would help (each hint was tried out on the
    scheduler), selectors that could never match, the replicas, and the clusters with their pools,
    the nearest miss first. With the Objects of its replicas (kubectl get
    objects,observedobjectcollections -A) it goes on below the cluster: which workload is not
    serving, and what its first pending pod waits for.

    A name that only a ModelAdapter has, or any with --adapter, is that of an adapter: how many places it
    has, what would help, and for every replica of its base why it is there or not, with who has the slots.

    Exit codes: 0 everything is placed, 2 something has no place, 1 bad input.

    \b
    Examples:
      kubectl fleet why llama
      kubectl fleet why support --adapter
      kubectl get icl,ic,md,mr,mc -A -o yaml | fleet-scheduler why ml-team/llama --cluster use1 -
    """
    inputs, view = read(source), View(cluster, pool)
    explained_adapter = _adapter(inputs, deployment, is_adapter=adapter)
    if explained_adapter is not None:
        if cluster is not None or pool is not None:
            raise BadInput("--cluster and --pool are about deployments: an adapter is shown on all replicas")
        _show_adapter(explained_adapter, inputs, output)
    planned = _planned(inputs, deployment)
    add_workloads(inputs.manifests, inputs.origin, planned.manifest.namespace)
    if not planned.forecast.readable:
        complain([] if inputs.faults else [planned.response.conditions[0].message])
        sys.exit(BAD_INPUT)
    _check(planned.forecast, view, inputs.origin.where)
    if output == "tree":
        show_why(planned, view)
        show_below(inputs, planned)
    else:
        emit(
            output, answered("Why", {**explained(planned, view.cluster, view.pool), **below(inputs, planned)})
        )
    sys.exit(worst_code([planned], inputs.faults))
