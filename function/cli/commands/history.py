"""`history`: what happened to a deployment, as far as objects, events and recordings keep it.

The verb reads the sources; `worlds.chronicle` puts them in order. Events need a right of their own, so
without it the rest is shown, with a note.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from function.cli.bad_input import BadInput
from function.cli.live import EVENTS
from function.cli.options import OUTPUT, Command, Names, end, reads_fleet
from function.cli.text import answered, console, emit, escape, note
from function.cli.worlds.chronicle import chronicle, events_of
from function.cli.worlds.inputs import title_of
from function.cli.worlds.source import Origin, Source, gather

if TYPE_CHECKING:
    from function.boundary import JsonObject
    from function.cli.worlds.manifest import Manifests


@click.command(cls=Command)
@click.argument("deployment", shell_complete=Names("ModelDeployment"))
@reads_fleet
@click.option(
    "--recordings",
    multiple=True,
    type=click.Path(exists=True),
    metavar="FILE|DIR",
    help="Recorded calls of a server with --record; repeatable.",
)
@OUTPUT
def history(deployment: str, source: Source, recordings: tuple[str, ...], output: str) -> None:
    r"""Show what happened to DEPLOYMENT (NAMESPACE/NAME, or NAME), the oldest first.

    Objects keep when they were made and when their conditions last changed; a control plane keeps events for
    about an hour; a recorded call holds a whole decision, at the time of its file. Events may stand in files
    too (kubectl get events -A -o yaml). What none of them keeps is not shown: a condition has only its last
    change.

    Exit codes: 0 shown, 1 bad input.

    \b
    Examples:
      fleet-scheduler history ml-chat/chat
      fleet-scheduler history chat fleet.yaml events.yaml --recordings recordings/
    """
    manifests, origin = gather(source)
    by_title = {f"{one.namespace}/{one.name}": one for one in manifests["ModelDeployment"]}
    listed = [title for title in by_title if origin.only in ("", title.partition("/")[0])]
    if not listed:
        raise BadInput(f"there is no ModelDeployment in {origin.where}")
    title = title_of(deployment, sorted(listed), origin)
    chosen = by_title[title]
    replicas = [one.content for one in manifests["ModelReplica"]]
    events = [*events_of(one.content for one in manifests.unread), *_live_events(manifests, origin, title)]
    moments = chronicle(chosen.content, replicas, events, _files(recordings))
    if output == "table":
        out = console()
        for moment in moments:
            at = f"{moment.at:%Y-%m-%dT%H:%M:%SZ}"
            out.say(escape(f"{at}  {moment.source.lower():9}  {moment.name}: {moment.text}"))
    else:
        data = [{**moment._asdict(), "at": moment.at.isoformat()} for moment in moments]
        emit(output, answered("History", {"deployment": title, "moments": data}))
    end((), findings=False)


def _live_events(manifests: Manifests, origin: Origin, title: str) -> list[JsonObject]:
    """The events of the deployment's namespace; none with a note where that is not allowed."""
    if origin.plane is None or any(one.kind == "Event" for one in manifests.unread):
        return []
    try:
        return origin.plane.objects(EVENTS, title.partition("/")[0])
    except BadInput as error:
        note(f"events are not shown: {error}")
        return []


def _files(recordings: tuple[str, ...]) -> list[Path]:
    paths = map(Path, recordings)
    return [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
