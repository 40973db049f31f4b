"""`watch`: a line for each change of a deployment's replicas and conditions, until it has settled.

The control plane is polled with `get` and `list`, as by every other verb; `changes` compares two looks. A
failure after the first look is said once and the watch goes on. The first one ends the command, as it is
most likely a wrong name or a missing right.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import TYPE_CHECKING, NoReturn

import click

from function.cli.bad_input import BadInput
from function.cli.group import INTERRUPTED
from function.cli.options import FINDINGS, FINE, Command, Names, output_option, reads_control_plane
from function.cli.text import answered, note, printable
from function.cli.worlds.inputs import title_of
from function.cli.worlds.settling import Standing, StateChange, changes, standing
from function.cli.worlds.source import connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.cli.live import ControlPlane
    from function.cli.worlds.source import Source


@click.command(cls=Command)
@click.argument("deployment", shell_complete=Names("ModelDeployment"))
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
def watch(deployment: str, source: Source, timeout: float | None, interval: float, output: str) -> None:
    r"""Show DEPLOYMENT (NAMESPACE/NAME, or NAME) settle: one line for each change, until it has settled.

    A deployment has settled when every replica that it wants is Ready, none is leaving, it is Ready itself
    (its endpoints too), and no condition of ours is False for its spec as it is now. One that lacks capacity
    is watched on: it settles when there is some. The control plane is asked again and again, so that what
    comes and goes between two looks is not seen; when it cannot be reached for a while, that is said and the
    watch goes on.

    \b
    Exit codes: 0 settled, 2 not settled within --timeout or deleted, 1 bad input, 130 ended by ctrl-c.

    \b
    Examples:
      fleet-scheduler watch ml-chat/chat --timeout 600 && echo serving
      kubectl fleet watch chat -o json | jq -r .text
    """
    plane, namespace, name = connect(source, lambda titles, origin: title_of(deployment, titles, origin))
    until = None if timeout is None else monotonic() + timeout
    last = Standing()
    try:
        for now in _looks(plane, namespace, name, interval):
            if now is None:
                _end(f"{namespace}/{name} was deleted", FINDINGS)
            for change in changes(last, now):
                _say(change, output)
            last = now
            if now.is_settled:
                _end(f"settled: {now.summary}", FINE)
            if until is not None and monotonic() >= until:
                _end(f"not settled after {timeout:g} s: {now.unsettled}", FINDINGS)
    except KeyboardInterrupt:
        _end(f"not settled: {last.unsettled}", INTERRUPTED)


def _looks(plane: ControlPlane, namespace: str, name: str, interval: float) -> Iterator[Standing | None]:
    """Yield state after state; None once the deployment is gone. The first failure is raised."""
    silent = False
    first = True
    while True:
        try:
            content, replicas = plane.deployment(namespace, name)
            yield None if content is None else standing(content, replicas)
            silent = False
        except BadInput as error:
            if first:
                raise
            if not silent:
                note(f"{error}; the watch goes on")
            silent = True
        first = False
        sleep(interval)


def _say(change: StateChange, output: str) -> None:
    """One line, at once: a pipe is read while the watch goes on."""
    now = datetime.now(tz=UTC)
    if output == "json":
        at = now.isoformat(timespec="milliseconds")
        data = {"at": at, "change": change.kind, "name": change.name, "text": change.text}
        line = json.dumps(answered("Change", data))
    else:
        what = f"{change.name}: " if change.name else ""
        line = printable(f"{now.astimezone():%H:%M:%S}  {change.kind.lower()}  {what}{change.text}")
    click.echo(line)


def _end(text: str, code: int) -> NoReturn:
    """Say how it ended, on standard error: on standard output there are only changes."""
    click.echo(printable(text), err=True)
    sys.exit(code)
