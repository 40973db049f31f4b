"""`whatif`: what a change of the fleet would do to everybody, before anybody does it.

The files are settled twice, with and without the changes, and the two ends are compared for each deployment
(`worlds.simulate`). Between them stands the way: how few endpoints serve at worst, and for an edited
template what each pass does. The kubectl commands that make the changes are printed with their reverse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from function.cli.bad_input import BadInput
from function.cli.options import OUTPUT, Command, Names, end, reads_fleet
from function.cli.render.table import difference_lines, show_commands
from function.cli.text import Screen, answered, console, counted, emit, escape
from function.cli.worlds.changes import AddNodes, Apply, Change, Delete, Drain, Replicas, SetTaint
from function.cli.worlds.inputs import Source, gather
from function.cli.worlds.manifests import load
from function.cli.worlds.simulate import Difference, WhatIf, forecast_both
from function.deployment.forecast import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_TAINT = re.compile(
    r"(?P<cluster>[^=]+)=(?P<key>[^=:]+)(=(?P<value>[^:]*))?:(?P<effect>NoSchedule|NoExecute)(?P<remove>-?)"
)
_NODES = re.compile(r"(?P<cluster>[^/=]+)/(?P<pool>[^/=]+)=(?P<nodes>[+-]?\d{1,9})")
_REPLICAS = re.compile(r"(?P<namespace>[^/=]+)/(?P<name>[^/=]+)=(?P<replicas>\d{1,9})")


@dataclass(frozen=True)
class _Pattern(click.ParamType[re.Match[str]]):
    """An option's value of a certain form."""

    name: str
    """The form as people write it."""
    pattern: re.Pattern[str]

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - as click has it
        """Show the form as it is: click would write all of it in capitals, and effects have small letters."""
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Match[str]:
        """Match the value, or say which form is expected."""
        match = self.pattern.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            self.fail(f'expected {self.name}, found "{value}"', param, ctx)
        return match


_CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--apply",
        {
            "metavar": "FILE|DIR",
            "type": click.Path(),
            "help": "Apply manifests: replace or add what is in them.",
        },
    ),
    (
        "--replicas",
        {
            "type": _Pattern("NS/NAME=N", _REPLICAS),
            "shell_complete": Names("ModelDeployment", "="),
            "help": "Want N replicas of a deployment.",
        },
    ),
    (
        "--add-nodes",
        {"type": _Pattern("CLUSTER/POOL=N", _NODES), "help": "Add N nodes to a pool; -N takes some away."},
    ),
    (
        "--taint",
        {
            "type": _Pattern("CLUSTER=KEY[=VALUE]:NoSchedule|NoExecute[-]", _TAINT),
            "help": "Taint a cluster; a '-' at the end takes the taint off.",
        },
    ),
    (
        "--drain",
        {
            "metavar": "CLUSTER",
            "shell_complete": Names("InferenceCluster"),
            "help": "Drain a cluster: everything leaves it.",
        },
    ),
    (
        "--delete",
        {"metavar": "CLUSTER", "shell_complete": Names("InferenceCluster"), "help": "Delete a cluster."},
    ),
)


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each kind of change, listed in the order of the table."""
    for flag, more in reversed(_CHANGES):
        command = click.option(flag, multiple=True, **more)(command)
    return command


def _changes(options: dict[str, tuple[Any, ...]]) -> Iterator[Change]:
    """The changes in the order in which they are made, whatever the order of the options.

    Files come first, as the other changes may be about what they add; a cluster is drained and deleted
    last.

    Raises:
        BadInput: where the files to apply hold no object.
    """
    if options["apply"]:
        given = load(options["apply"])
        if not (any(given.by_kind.values()) or given.issues):
            raise BadInput(f"--apply: there is no object to apply in {', '.join(options['apply'])}")
        yield Apply(given, options["apply"])
    for match in options["replicas"]:
        yield Replicas(match["namespace"], match["name"], int(match["replicas"]))
    for match in options["add_nodes"]:
        yield AddNodes(match["cluster"], match["pool"], int(match["nodes"]))
    for match in options["taint"]:
        where, key, value = match["cluster"], match["key"], match["value"] or ""
        yield SetTaint(where, key, value, match["effect"], remove=bool(match["remove"]))
    yield from map(Drain, options["drain"])
    yield from map(Delete, options["delete"])


def _lines(difference: Difference) -> Iterator[tuple[str, str]]:
    """Return the lines about one deployment, each with its style.

    The first line is the verdict; the others say what moves, what is stuck, and how the way there goes.
    """
    before, after = difference.before, difference.after
    mark, style = ("✗", "bold red") if difference.worse else ("✓", "bold green")
    counts = f"{before.total} of {before.wanted} → {after.total} of {after.wanted}"
    yield f"{mark} {difference.name}  {counts} replicas{_price([difference])}", style
    for name, why in difference.leaving.items():
        cluster, pools = before.placements[name]
        yield f"    - {name}  {cluster} ({pools})  {why}", "red"
    for name in difference.arriving:
        cluster, pools = after.placements[name]
        yield f"    + {name}  {cluster} ({pools})", "green"
    if difference.steps:
        yield "    its template, step by step, each when what the one before started is in service:", ""
    for number, step in enumerate(difference.steps, 1):
        yield f"    {number:3}. {step}", ""
    if difference.paused:
        yield f"    and no further: {difference.paused}", "yellow"
    if after.short or after.held:
        yield f"    stuck: {after.reason}: {after.message}", "yellow"
    for url in difference.lost_endpoints:
        yield f"    endpoint gone: {url}", ""
    if difference.edit:
        yield f"    its spec is edited: {difference.edit}", ""
    yield from _serving(difference)


def _serving(difference: Difference) -> Iterator[tuple[str, str]]:
    """Say how few endpoints serve at worst, where those are fewer than without the change."""
    without, least = difference.serving
    if least < without:
        style = "bold red" if difference.interrupted else ""
        yield f"    in service at worst: {least} (without the change {without})", style
    if difference.interrupted and difference.steps:
        yield "    placement.rollout updates replica by replica instead of all at once", "yellow"


def _show(answer: WhatIf) -> None:
    """Print the summary, then whoever is concerned, then the commands that make the change."""
    out = console()
    concerned = [difference for difference in answer.differences if difference.changed]
    out.print(escape("What if: " + "; ".join(map(str, answer.changes))), style="bold")
    _summary(out, answer)
    for difference in concerned:
        out.print()
        for text, style in _lines(difference):
            out.say(escape(text), style=style)
    for adapter in answer.adapters:
        if adapter.changed:
            out.print()
        for text, style in difference_lines(adapter) if adapter.changed else ():
            out.say(escape(text), style=style)
    rest = len(answer.differences) - len(concerned)
    if rest:
        out.print(f"\n{rest} {'deployment is' if rest == 1 else 'deployments are'} not concerned.")
    if still := sum(not adapter.changed for adapter in answer.adapters):
        out.print(f"{still} {'adapter is' if still == 1 else 'adapters are'} not concerned.")
    for text in answer.bystanders:
        out.print(escape(f"note: {text} is not forecast: its deployment is not in the files"), style="dim")
    show_commands(out, answer.commands, "To make the change", "To take it back")


def _summary(out: Screen, answer: WhatIf) -> None:
    """Print one line about the whole fleet: replicas, moves, who is worse off, and the price."""
    differences = answer.differences
    moved = sum(min(len(difference.leaving), len(difference.arriving)) for difference in differences)
    worse = sum(difference.worse for difference in differences)
    was = sum(difference.before.total for difference in differences)
    now = sum(difference.after.total for difference in differences)
    rounds = len(answer.after.rounds)
    passes = f"{rounds} {'pass' if rounds == 1 else 'passes'}"
    settles = f"settles in {passes}" if answer.after.settled else f"does not settle in {passes}"
    out.print(
        f"{counted(was, 'replica')} placed → {now}; {moved} {'moves' if moved == 1 else 'move'}; {worse} "
        f"{'deployment is' if worse == 1 else 'deployments are'} worse off; {settles}{_price(differences)}."
    )


def _price(differences: Sequence[Difference]) -> str:
    """`; +31.20 an hour`, of the replicas whose price is known; "" where none is."""
    ends = [end for difference in differences for end in (difference.before, difference.after)]
    if not any(end.price.priced for end in ends):
        return ""
    more = sum(difference.after.price.cents - difference.before.price.cents for difference in differences)
    unknown = sum(difference.after.price.unknown for difference in differences)
    return f"; {'+' if more >= 0 else ''}{amount(more)} an hour" + (
        f" and {unknown} without a price" if unknown else ""
    )


@click.command(cls=Command)
@reads_fleet
@_options
@OUTPUT
def whatif(source: Source, output: str, **options: tuple[Any, ...]) -> None:
    r"""Show what a change would do to every ModelDeployment in FILEs, before anybody makes it.

    Any number of changes can be combined. They are made as edits of the files, in this order: apply,
    replicas, add-nodes, taint, drain, delete. Then all deployments are planned, pass after pass, until
    nothing changes any more, once with and once without the changes: replicas that are dropped are gone in
    the next pass, new ones become Ready. What differs in the end is shown per deployment: what moves, what
    gets stuck and why, which endpoints disappear, how few are in service on the way. An edit that restarts
    pods is shown step by step. ModelAdapters settle on the fleet as it is then: which places each loses and
    gets.

    Nothing is executed. The files need the ModelDeployments and the existing ModelReplicas: see
    `fleet-scheduler snapshot`.

    Exit codes: 0 nobody is worse off, 2 somebody is, 1 bad input.

    \b
    Examples:
      fleet-scheduler whatif fleet.yaml --drain use1
      fleet-scheduler whatif fleet.yaml --add-nodes use1/frontier=4 --replicas ml/chat=6
      fleet-scheduler whatif fleet.yaml --taint use1=maintenance:NoSchedule --apply new-class.yaml
      fleet-scheduler whatif fleet.yaml --apply chat-with-another-image.yaml
    """
    changes = tuple(_changes(options))
    if not changes:
        flags = ", ".join(flag for flag, _ in _CHANGES)
        raise BadInput(f"nothing to change: give at least one of {flags}")
    manifests, origin = gather(source)
    answer, faults = forecast_both(manifests, changes, origin)
    if output == "table":
        _show(answer)
    else:
        emit(output, answered("WhatIf", answer.as_data))
    worse = any(one.worse for one in answer.differences) or any(one.worse for one in answer.adapters)
    end(faults, findings=worse or not answer.after.settled)
