"""`whatif`: what a change of the fleet would do to everybody, before anybody does it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from function.cli.commands.completion import names
from function.cli.common import FILES, FINDINGS, FINE, OUTPUT, Command, console, emit, taken
from function.cli.group import BAD_INPUT
from function.cli.text import escape
from function.cli.worlds.changes import AddNodes, Apply, Change, Delete, Drain, Replicas, Taint
from function.cli.worlds.compare import Difference, as_data, compare
from function.cli.worlds.manifests import Manifests, load
from function.cli.worlds.memory import Memory
from function.cli.worlds.parsing import BadInput
from function.cli.worlds.simulate import Forecast, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

_TAINT = re.compile(
    r"(?P<cluster>[^=]+)=(?P<key>[^=:]+)(=(?P<value>[^:]*))?:(?P<effect>NoSchedule|NoExecute)(?P<remove>-?)"
)
_NODES = re.compile(r"(?P<cluster>[^/=]+)/(?P<pool>[^/=]+)=(?P<nodes>[+-]?\d{1,9})")
_REPLICAS = re.compile(r"(?P<namespace>[^/=]+)/(?P<name>[^/=]+)=(?P<replicas>\d{1,9})")


class _Pattern(click.ParamType[re.Match[str]]):
    """An option's value of a certain form."""

    def __init__(self, pattern: re.Pattern[str], form: str) -> None:
        """Take the pattern and how to write it for people."""
        self.name, self._pattern = form, pattern

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Match[str]:
        """Match the value, or say which form is expected."""
        found = self._pattern.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            self.fail(f'expected {self.name}, found "{value}"', param, ctx)
        return found


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
            "type": _Pattern(_REPLICAS, "NS/NAME=N"),
            "shell_complete": names("ModelDeployment", "="),
            "help": "Want N replicas of a deployment.",
        },
    ),
    (
        "--add-nodes",
        {"type": _Pattern(_NODES, "CLUSTER/POOL=N"), "help": "Add N nodes to a pool; -N takes some away."},
    ),
    (
        "--taint",
        {
            "type": _Pattern(_TAINT, "CLUSTER=KEY[=VALUE]:EFFECT"),
            "help": "Taint a cluster, NoSchedule or NoExecute; a '-' at the end takes the taint off.",
        },
    ),
    (
        "--drain",
        {
            "metavar": "CLUSTER",
            "shell_complete": names("InferenceCluster"),
            "help": "Drain a cluster: everything leaves it.",
        },
    ),
    (
        "--delete",
        {"metavar": "CLUSTER", "shell_complete": names("InferenceCluster"), "help": "Delete a cluster."},
    ),
)


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for flag, more in reversed(_CHANGES):
        command = click.option(flag, multiple=True, **more)(command)
    return command


def _changes(told: dict[str, tuple[Any, ...]]) -> Iterator[Change]:
    """The changes in the order in which they are made, whatever the order of the options."""
    if told["apply"]:
        yield Apply(load(told["apply"]), told["apply"])
    for found in told["replicas"]:
        yield Replicas(found["namespace"], found["name"], int(found["replicas"]))
    for found in told["add_nodes"]:
        yield AddNodes(found["cluster"], found["pool"], int(found["nodes"]))
    for found in told["taint"]:
        where, key, value = found["cluster"], found["key"], found["value"] or ""
        yield Taint(where, key, value, found["effect"], remove=bool(found["remove"]))
    yield from map(Drain, told["drain"])
    yield from map(Delete, told["delete"])


@dataclass(frozen=True, slots=True)
class Answer:
    """Both forecasts and their difference."""

    changes: tuple[Change, ...]
    before: Forecast
    after: Forecast
    differences: list[Difference]
    bystanders: list[str]
    """Replicas on a drained or deleted cluster whose deployment is not in the files."""


def changed_by(manifests: Manifests, changes: tuple[Change, ...]) -> Manifests:
    """Make the changes, one after the other. Raises BadInput."""
    for each in changes:
        manifests = each.apply(manifests)
    return manifests


def ask(manifests: Manifests, changes: tuple[Change, ...]) -> tuple[Answer, tuple[str, ...]]:
    """Forecast with and without the changes. Returns the answer and what cannot be read. Raises BadInput."""
    reuse, changed = Memory(), taken(changed_by(manifests, changes))
    before = settle(taken(manifests).world, reuse) if not changed.faults else settle(changed.world, reuse)
    after = settle(changed.world, reuse)
    emptied = {each.cluster for each in changes if isinstance(each, Drain | Delete)}
    bystanders = list(_bystanders(manifests, emptied))
    return Answer(changes, before, after, compare(before, after), bystanders), changed.faults


def _bystanders(manifests: Manifests, emptied: set[str]) -> Iterator[str]:
    known = {(each.namespace, each.name) for each in manifests["ModelDeployment"]}
    for each in manifests["ModelReplica"]:
        spec = each.content.get("spec")
        cluster = spec.get("clusterName") if isinstance(spec, dict) else None
        labels = each.metadata.get("labels")
        owner = labels.get("modelplane.ai/deployment") if isinstance(labels, dict) else None
        if cluster in emptied and (each.namespace, str(owner)) not in known:
            yield f"{each.namespace}/{each.name} on {cluster}"


def _told(answer: Answer) -> dict[str, Any]:
    return {
        "changes": [str(each) for each in answer.changes],
        "settles": answer.after.settled,
        "rounds": len(answer.after.rounds),
        "deployments": [as_data(each) for each in answer.differences],
        "notForecast": answer.bystanders,
        "assumptions": answer.after.world.notes,
    }


def _lines(each: Difference) -> Iterator[tuple[str, str]]:
    """What there is to say about one deployment, with the style it is said in."""
    before, after = each.before, each.after
    mark = "✗" if each.worse else "✓"
    counts = f"{before.total} of {before.wanted} → {after.total} of {after.wanted}"
    yield f"{mark} {each.name}  {counts} replicas", "bold red" if each.worse else "bold green"
    for name in each.leaving:
        cluster, pools = before.places[name]
        yield f"    - {name}  {cluster} ({pools})  {each.why(name)}", "red"
    for name in each.arriving:
        cluster, pools = after.places[name]
        yield f"    + {name}  {cluster} ({pools})", "green"
    if after.short or after.held:
        yield f"    stuck: {after.reason}: {after.message}", "yellow"
    for url in each.lost_endpoints:
        yield f"    endpoint gone: {url}", ""
    without, least = each.serving
    if least < without:
        yield f"    in service at worst: {least} (without the change {without})", ""


def _show(answer: Answer) -> None:
    out = console()
    concerned = [each for each in answer.differences if each.changed]
    out.print(escape("What if: " + "; ".join(str(each) for each in answer.changes)), style="bold")
    _summary(out, answer)
    for each in concerned:
        out.print()
        for text, style in _lines(each):
            out.print(escape(text), style=style, soft_wrap=True)
    rest = len(answer.differences) - len(concerned)
    if rest:
        out.print(f"\n{rest} {'deployment is' if rest == 1 else 'deployments are'} not concerned.")
    for text in answer.bystanders:
        out.print(escape(f"note: {text} is not forecast: its deployment is not in the files"), style="dim")
    for note in answer.after.world.notes:
        out.print(escape(f"note: {note}"), style="dim", soft_wrap=True)


def _summary(out: Console, answer: Answer) -> None:
    found = answer.differences
    moved, worse = sum(each.moves for each in found), sum(each.worse for each in found)
    was, now = sum(each.before.total for each in found), sum(each.after.total for each in found)
    rounds = len(answer.after.rounds)
    passes = f"{rounds} {'pass' if rounds == 1 else 'passes'}"
    settles = f"settles in {passes}" if answer.after.settled else f"does not settle in {passes}"
    out.print(
        f"{was} replicas placed → {now}; {moved} move; {worse} "
        f"{'deployment is' if worse == 1 else 'deployments are'} worse off; {settles}."
    )


@click.command(cls=Command)
@FILES
@_options
@OUTPUT
def whatif(files: tuple[str, ...], output: str, **told: tuple[Any, ...]) -> None:
    r"""Show what a change would do to every ModelDeployment in FILEs, before anybody makes it.

    Any number of changes can be combined. They are made as edits of the files, in this order: apply,
    replicas, add-nodes, taint, drain, delete. Then all deployments are planned, pass after pass, until
    nothing changes any more, once with and once without the changes: replicas that are dropped are gone in
    the next pass, new ones become Ready. What differs in the end is shown per deployment: what moves, what
    gets stuck and why, which endpoints disappear, how few are in service on the way.

    Nothing is executed. The files need the ModelDeployments and the existing ModelReplicas: see
    `fleet-scheduler snapshot`.

    \b
    Exit codes: 0 nobody is worse off, 2 somebody is, 1 bad input.

    \b
    Examples:
      fleet-scheduler whatif fleet.yaml --drain use1
      fleet-scheduler whatif fleet.yaml --add-nodes use1/frontier=4 --replicas ml/chat=6
      fleet-scheduler whatif fleet.yaml --taint use1=maintenance:NoSchedule --apply new-class.yaml
    """
    manifests, changes = load(files), tuple(_changes(told))
    if not changes:
        options = ", ".join(flag for flag, _ in _CHANGES)
        raise BadInput(f"nothing to change: give at least one of {options}")
    answer, faults = ask(manifests, changes)
    if output == "table":
        _show(answer)
    else:
        emit(output, _told(answer))
    worse = any(each.worse for each in answer.differences) or not answer.after.settled
    sys.exit(BAD_INPUT if faults else FINDINGS if worse else FINE)
