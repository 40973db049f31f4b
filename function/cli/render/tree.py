"""The tree `why` prints: the line that matters, what would help, replicas, clusters down to the selector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.tree import Tree

from function.cli.common import console
from function.cli.text import escape
from function.deployment.explain.clusters import Survey, Verdict, held_by
from function.deployment.explain.hints import hints
from function.deployment.explain.line import numbers, rejection_line
from function.deployment.explain.lint import lint
from function.deployment.explain.message import placed_of
from function.deployment.explain.remedies.requests import source_of
from function.deployment.explain.report import dropped, replicas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from function.api import InferenceCluster, Pool
    from function.api.reasons import Rejection
    from function.cli.worlds.world import Planned
    from function.deployment.explain.hints import Hint
    from function.scheduler.decision import Decision
    from function.scheduler.diagnosis import OnPools

SHOWN = 20
"""How many clusters are printed in full; the rest only in one line."""
STYLES = {
    Verdict.Chosen: "green",
    Verdict.Eligible: "cyan",
    Verdict.Full: "yellow",
    Verdict.Rejected: "red",
    Verdict.Unknown: "magenta",
}
ACTIONS = {"Placed": "green", "Replaced": "green", "Held": "yellow", "Retained": ""}


@dataclass(frozen=True, slots=True)
class View:
    """What was asked to be shown: one cluster or pool, or (None) all of them."""

    cluster: str | None = None
    pool: str | None = None


def show_why(planned: Planned, decision: Decision, view: View) -> None:
    """Print why a deployment is placed as it is."""
    out, survey = console(), Survey.of(decision)
    looked_at = {name: each for name, each in survey.rejections.items() if view.cluster in (None, name)}
    found = hints(decision, looked_at)
    name = f"{planned.manifest.namespace}/{planned.manifest.name}"
    headline = (
        _headline(planned, decision, found) if view.cluster is None else _of_cluster(survey, view.cluster)
    )
    out.print(f"[bold]{escape(name)}[/bold]: {escape(headline)}", soft_wrap=True)
    _hints(out, found)
    if view.cluster is None:
        _replicas(out, decision)
    _clusters(out, survey, view)
    _lint(out, decision)


def _headline(planned: Planned, decision: Decision, found: list[Hint]) -> str:
    """The one line that matters: how many have a place, and the first thing that would help."""
    scheduled = next(each for each in planned.response.conditions if each.type == "ReplicasScheduled")
    if decision.total >= decision.wanted and not decision.held:
        return scheduled.message
    told = lint(decision.inputs)
    if not found:
        return f"{placed_of(decision)}. {_capitalised(told[0].message)}" if told else scheduled.message
    return f"{placed_of(decision)}. Nearest way to more: {_told(found[0])}"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _told(hint: Hint) -> str:
    noun = "replica fits" if hint.unlocks == 1 else "replicas fit"
    return f"{hint.change.message}, and {hint.unlocks} more {noun}"


def _of_cluster(survey: Survey, name: str) -> str:
    """The one line that matters about one cluster."""
    verdict, rejection = survey.verdict(name), survey.rejections.get(name)
    if rejection is None:
        return f"cluster {name}: {verdict.name}, {verdict.value}"
    line = rejection_line(rejection)
    return f"cluster {name} takes no other replica: {rejection.reason.value}{f', {line}' if line else ''}"


def _hints(out: Console, found: list[Hint]) -> None:
    if found:
        out.print("\n[bold]What would help[/bold] (each was tried out)")
    for each in found:
        out.print(f"  [green]•[/green] {escape(_told(each))}", soft_wrap=True)


def _replicas(out: Console, decision: Decision) -> None:
    if not (decision.kept or decision.placed or decision.dropped):
        return
    out.print("\n[bold]Replicas[/bold]")
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for each in replicas(decision):
        pools = ", ".join(f"{engine}: {pool}" for engine, pool in each["pools"].items())
        cells = ("", each["name"], f"{each['cluster']}/{each.get('index', '?')}", each["action"], pools)
        table.add_row(*map(escape, cells), escape(each["because"]), style=ACTIONS[each["action"]])
    for each in dropped(decision):
        leaving = ("", each["name"], each["cluster"], "Dropped", "", each["message"])
        table.add_row(*map(escape, leaving), style="red")
    out.print(table)


def _clusters(out: Console, survey: Survey, view: View) -> None:
    names = [view.cluster] if view.cluster is not None else survey.names()
    names = [name for name in names if view.pool is None or _has_pool(survey, name, view.pool)]
    if not names:
        return
    out.print("\n[bold]Clusters[/bold]")
    for name in names[:SHOWN]:
        out.print(_cluster(survey, name, view))
    for name in names[SHOWN:]:
        rejection = survey.rejections.get(name)
        reason = rejection.reason.name if rejection else survey.verdict(name).name
        out.print(f"{escape(name)}  {reason}", style="dim")


def _has_pool(survey: Survey, name: str, pool: str) -> bool:
    cluster = survey.decision.inputs.fleet.clusters.get(name)
    return cluster is not None and pool in cluster.by_name


def _cluster(survey: Survey, name: str, view: View) -> Tree:
    """One cluster: its verdict, and its pools where they matter."""
    verdict, rejection = survey.verdict(name), survey.rejections.get(name)
    style = STYLES[verdict]
    label = f"[bold]{escape(name)}[/bold]  [{style}]{verdict.name}[/{style}]"
    if rejection is not None:
        label += f"  {rejection.reason.name}"
        line = rejection_line(rejection)
        label += f": {escape(line)}" if line else ""
    tree = Tree(label, guide_style="dim")
    cluster = survey.decision.inputs.fleet.clusters.get(name)
    gated = rejection is not None and not rejection.parts
    if cluster is not None and (not gated or view.cluster is not None):
        _pools(tree, survey.decision, cluster, view)
    return tree


def _pools(tree: Tree, decision: Decision, cluster: InferenceCluster, view: View) -> None:
    fitted = list(decision.places.on_pools(cluster)) if decision.places else []
    for pool in cluster.pools:
        if view.pool not in (None, pool.name):
            continue
        branch = tree.add(escape(_pool_line(decision, cluster, pool)))
        for shape, each in fitted:
            if each.pools == (pool.name,):
                _engine(branch, decision, each, shape.name)


def _pool_line(decision: Decision, cluster: InferenceCluster, pool: Pool) -> str:
    free = max(0, decision.ledger.free(cluster.name, pool.name))
    holders = held_by(decision, cluster.name, pool)
    held = ", ".join(f"{each['deployment']} ({_held(each)})" for each in holders)
    return f"pool {pool.name}: {free} free of {pool.nodes} nodes" + (f", held by {held}" if held else "")


def _held(holder: dict[str, Any]) -> str:
    return f"{holder['pods']} pods" if "pods" in holder else str(holder["nodes"])


def _engine(branch: Tree, decision: Decision, each: OnPools, alternative: str) -> None:
    """One engine on one pool, with everything that keeps it off."""
    name = f"{each.engine} ({alternative})" if alternative else each.engine
    if each.rejection is None:
        branch.add(f"[green]✓[/green] engine {escape(name)}: needs {each.nodes}")
        return
    told = numbers(each.rejection) if each.nodes is not None else ""
    label = f"[red]✗[/red] engine {escape(name)}: {each.rejection.reason.value}"
    below = branch.add(f"{label}, {told}" if told else label)
    if each.nodes is None:
        for line in dict.fromkeys(_leaves(decision, each.rejection.leaves)):
            below.add(escape(line))


def _leaves(decision: Decision, leaves: Iterable[Rejection]) -> Iterator[str]:
    """What keeps members off, members with the same trouble together."""
    roles: dict[str, list[str]] = {}
    for leaf in leaves:
        roles.setdefault(_leaf(decision, leaf), []).append(leaf.member)
    for line, members in roles.items():
        named = [member for member in members if member not in ("", "Standalone")]
        yield f"{', '.join(dict.fromkeys(named))}: {line}" if named else line


def _leaf(decision: Decision, leaf: Rejection) -> str:
    """`request gpu: selector 1 fails on device gpu (architecture Ada Lovelace): device.attributes...`."""
    asked = f"request {leaf.request}: " if leaf.request else ""
    failed = leaf.reason.value if leaf.selector is None else f"selector {leaf.selector} fails"
    compared = f"has {leaf.detail}" if leaf.detail else ""  # What it wants is the selector that follows.
    told = (compared if leaf.wants else leaf.detail) or numbers(leaf)
    on = f" on device {leaf.device}" if leaf.device and leaf.selector is not None else ""
    source = source_of(decision.inputs, leaf)
    return f"{asked}{failed}{on}{f' ({told})' if told else ''}{f': {source}' if source else ''}"


def _lint(out: Console, decision: Decision) -> None:
    found = lint(decision.inputs)
    if found:
        out.print("\n[bold]Worth a look[/bold]")
    for each in found:
        out.print(f"  [yellow]![/yellow] {escape(each.path)}: {escape(each.message)}", soft_wrap=True)
