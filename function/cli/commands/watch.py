"""`watch`: a line for each change of deployments' replicas and conditions, until they have settled.

The control plane is polled with `get` and `list`, as by every other verb; `changes` compares two looks. A
failure after the first look is said once and the watch goes on. The first one ends the command, as it is
most likely a wrong name or a missing right. Several deployments are read with two lists a namespace.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import TYPE_CHECKING, NoReturn

import click

from function.api.replica import DEPLOYMENT_LABEL
from function.cli.bad_input import BadInput
from function.cli.group import INTERRUPTED
from function.cli.live import DEPLOYMENTS, REPLICAS, ControlPlane
from function.cli.options import FINDINGS, FINE, Command, Names, output_option, reads_control_plane
from function.cli.text import answered, note, printable
from function.cli.worlds.inputs import chosen
from function.cli.worlds.settling import Standing, StateChange, changes, standing
from function.cli.worlds.source import Source, connect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from function.boundary import JsonObject


@click.command(cls=Command)
@click.argument("deployments", nargs=-1, metavar="[DEPLOYMENT...]", shell_complete=Names("ModelDeployment"))
@reads_control_plane
@click.option("--timeout", type=click.FloatRange(min=0), help="Seconds to wait. [default: no end]")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    help="Seconds from one look to the next.",
)
@output_option("text", "json", text="text for people; json: one object on a line for each change.")
def watch(
    deployments: tuple[str, ...], source: Source, timeout: float | None, interval: float, output: str
) -> None:
    r"""Show each DEPLOYMENT (NAMESPACE/NAME, or NAME) settle: a line for each change, until all have settled.

    Without any, all of them are watched, or with -n those of a namespace. A deployment has settled when every
    replica that it wants is Ready, none is leaving, it is Ready itself (its endpoints too), and no condition
    of ours is False for its spec as it is now. One that lacks capacity is watched on: it settles when there
    is some. The control plane is asked again and again, so that what comes and goes between two looks is not
    seen; when it cannot be reached for a while, that is said and the watch goes on.

    Exit codes: 0 settled, 2 not settled within --timeout or deleted, 1 bad input, 130 ended by ctrl-c.

    \b
    Examples:
      fleet-scheduler watch ml-chat/chat --timeout 600 && echo serving
      fleet-scheduler watch -n ml-chat --timeout 600
      kubectl fleet watch chat search -o json | jq -r .text
    """
    plane, titles = connect(source, lambda listed, origin: chosen(deployments, listed, origin))
    until = None if timeout is None else monotonic() + timeout
    last = dict.fromkeys(titles, Standing())
    deleted: list[str] = []
    try:
        for looks in _looks(plane, last, interval):
            for title, now in looks.items():
                if now is None:
                    deleted.append(title)
                    del last[title]
                    _say(StateChange("Deployment", "", "deleted"), title, titles, output)
                    continue
                for change in changes(last[title], now):
                    _say(change, title, titles, output)
                last[title] = now
            if all(now.is_settled for now in last.values()):
                if deleted:
                    _end(f"{', '.join(deleted)} {'was' if len(deleted) == 1 else 'were'} deleted", FINDINGS)
                _end(f"settled: {_summary(last)}", FINE)
            if until is not None and monotonic() >= until:
                _end(f"not settled after {timeout:g} s: {_unsettled(last, titles)}", FINDINGS)
    except KeyboardInterrupt:
        _end(f"not settled: {_unsettled(last, titles)}", INTERRUPTED)


def _summary(last: Mapping[str, Standing]) -> str:
    """How many replicas are ready: of the one deployment, or of all together."""
    if len(last) == 1:
        return next(iter(last.values())).summary
    ready = sum(replica.state == "ready" for now in last.values() for replica in now.replicas.values())
    wanted = sum(now.wanted for now in last.values())
    return f"{len(last)} deployments, {ready} of {wanted} replicas ready"


def _unsettled(last: Mapping[str, Standing], titles: Sequence[str]) -> str:
    """Return what is missing; where several are watched, of every deployment that has not settled."""
    missing = {title: now.unsettled for title, now in last.items() if not now.is_settled}
    if len(titles) == 1:
        return next(iter(missing.values()), "")
    return "".join(f"\n  {title}: {text}" for title, text in missing.items())


def _looks(
    plane: ControlPlane, watched: Mapping[str, Standing], interval: float
) -> Iterator[dict[str, Standing | None]]:
    """Yield the states of what is still watched, None of one that is gone. The first failure is raised."""
    silent = False
    first = True
    while True:
        try:
            yield dict(_look(plane, [*watched]))
            silent = False
        except BadInput as error:
            if first:
                raise
            if not silent:
                note(f"{error}; the watch goes on")
            silent = True
        first = False
        sleep(interval)


def _look(plane: ControlPlane, titles: Sequence[str]) -> Iterator[tuple[str, Standing | None]]:
    """Read each deployment with its replicas: one alone by its name, several by the lists of a namespace."""
    by_namespace: dict[str, list[str]] = defaultdict(list)
    for title in titles:
        namespace, _, name = title.partition("/")
        by_namespace[namespace].append(name)
    for namespace, names in by_namespace.items():
        if len(titles) == 1:
            content, replicas = plane.deployment(namespace, names[0])
            yield titles[0], None if content is None else standing(content, replicas)
            continue
        contents = {plain["metadata"]["name"]: plain for plain in plane.objects(DEPLOYMENTS, namespace)}
        of_deployment: dict[object, list[JsonObject]] = defaultdict(list)
        for plain in plane.objects(REPLICAS, namespace):
            of_deployment[(plain["metadata"].get("labels") or {}).get(DEPLOYMENT_LABEL)].append(plain)
        for name in names:
            content = contents.get(name)
            yield (
                f"{namespace}/{name}",
                None if content is None else standing(content, of_deployment[name]),
            )


def _say(change: StateChange, title: str, titles: Sequence[str], output: str) -> None:
    """One line, at once: a pipe is read while the watch goes on. Of several, it begins with whose it is."""
    now = datetime.now(tz=UTC)
    if output == "json":
        at = now.isoformat(timespec="milliseconds")
        facts = {"change": change.kind, "name": change.name, "text": change.text}
        data = {"at": at, "deployment": title, **facts}
        line = json.dumps(answered("Change", data))
    else:
        what = f"{change.name}: " if change.name else ""
        whose = f"{title}  " if len(titles) > 1 else ""
        line = printable(f"{now.astimezone():%H:%M:%S}  {whose}{change.kind.lower()}  {what}{change.text}")
    click.echo(line)


def _end(text: str, code: int) -> NoReturn:
    """Say how it ended, on standard error: on standard output there are only changes."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=True)
    sys.exit(code)
