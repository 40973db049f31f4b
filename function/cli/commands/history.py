"""`history`: what happened to a deployment or an adapter, as far as objects, events and recordings keep it.

Nothing keeps a history as such. Objects have the times at which they were made and at which their conditions
last changed; events say what was done, for about an hour; a recorded call holds a whole decision. Each is a
moment with a time, a source and a text, and `_chronicle` puts them in order. Events need a right of their
own, so without it the rest is shown, with a note.

Limits: a condition has only its last change, and a replica that is gone left at most events and recordings.
The place of an adapter that is gone left nothing, as only calls about deployments are recorded.
The time of a recording is that of its file.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from function import wire
from function.api.adapter import PLACEMENT_KIND
from function.api.model import mapping, mappings, string
from function.api.replica import DEPLOYMENT_LABEL
from function.cli.bad_input import BadInput
from function.cli.live import EVENTS
from function.cli.options import DEPLOYMENT, OUTPUT, Command, end, reads_fleet
from function.cli.text import answered, console, emit, escape, note
from function.cli.worlds.inputs import Origin, Source, gather, title_of
from function.recording import NoRecording, loaded, readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.boundary import JsonObject
    from function.cli.worlds.manifest import Manifest, Manifests

PARTS = {"ModelDeployment": "ModelReplica", "ModelAdapter": PLACEMENT_KIND}
"""The kind of what is composed for each kind that has a history; with an endpoint of the same name."""


@click.command(cls=Command)
@DEPLOYMENT
@reads_fleet
@click.option(
    "--recordings",
    multiple=True,
    type=click.Path(exists=True),
    metavar="FILE|DIR",
    help="Recorded calls of a server with --record; repeatable.",
)
@click.option("--adapter", is_flag=True, help="The name is that of a ModelAdapter.")
@OUTPUT
def history(
    deployment: str, source: Source, recordings: tuple[str, ...], output: str, *, adapter: bool
) -> None:
    r"""Show what happened to DEPLOYMENT (NAMESPACE/NAME, or NAME), the oldest first.

    Objects keep when they were made and when their conditions last changed; a control plane keeps events for
    about an hour; a recorded call holds a whole decision, at the time of its file. Events may stand in files
    too (kubectl get events -A -o yaml). What none of them keeps is not shown: a condition has only its last
    change. A name that only a ModelAdapter has, or any with --adapter, is that of an adapter.

    Exit codes: 0 shown, 1 bad input.

    \b
    Examples:
      fleet-scheduler history ml-chat/chat
      fleet-scheduler history chat fleet.yaml events.yaml --recordings recordings/
    """
    manifests, origin = gather(source)
    chosen = _subject(deployment, manifests, origin, is_adapter=adapter)
    title = f"{chosen.namespace}/{chosen.name}"
    parts = [one.content for one in manifests[PARTS[chosen.kind]]]
    events = _events(manifests, origin, chosen.namespace)
    moments = _chronicle(chosen.content, parts, events, _files(recordings))
    if not moments:
        note(f"nothing is kept of {chosen.short_title}: its objects state no times, and there are no events")
    if output == "table":
        out = console()
        for moment in moments:
            at = f"{moment.at:%Y-%m-%dT%H:%M:%SZ}"
            out.say(escape(f"{at}  {moment.source.lower():9}  {moment.name}: {moment.text}"))
    else:
        key = "adapter" if chosen.kind == "ModelAdapter" else "deployment"
        data = [{**moment._asdict(), "at": moment.at.isoformat()} for moment in moments]
        emit(output, answered("History", {key: title, "moments": data}))
    end((), findings=False)


def _subject(name: str, manifests: Manifests, origin: Origin, *, is_adapter: bool) -> Manifest:
    """The deployment that a name means, or the adapter where only one of those has it. Raises BadInput."""
    named: dict[str, dict[str, Manifest]] = {
        kind: {"/".join(one.identity): one for one in manifests[kind] if origin.only in ("", one.namespace)}
        for kind in PARTS
    }
    having = [
        kind for kind in PARTS if any(name in (title, title.partition("/")[2]) for title in named[kind])
    ]
    kind = "ModelAdapter" if is_adapter else (having or [*PARTS])[0]
    return named[kind][title_of(name, sorted(named[kind]), origin, kind)]


def _events(manifests: Manifests, origin: Origin, namespace: str) -> list[JsonObject]:
    """The events in the files, lists of them included; without any, those that the control plane keeps.

    A role may not allow events to be read: then there are none, with a note.
    """
    unread = (manifest.content for manifest in manifests.unread)
    objects = (plain for content in unread for plain in (content, *mappings(content.get("items"))))
    events = [plain for plain in objects if plain.get("kind") == "Event"]
    if origin.plane is None or any(manifest.kind == "Event" for manifest in manifests.unread):
        return events
    try:
        return [*events, *origin.plane.objects(EVENTS, namespace)]
    except BadInput as error:
        note(f"events are not shown: {error}")
        return events


def _files(recordings: tuple[str, ...]) -> list[Path]:
    """The recordings that are named; of a folder, all of them by their names."""
    paths = map(Path, recordings)
    return [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]


class Moment(NamedTuple):
    """One thing that happened."""

    at: datetime
    source: str
    """`Object`, `Condition`, `Event` or `Recording`."""
    name: str
    """`ModelReplica chat-93a4f`."""
    text: str


def _chronicle(
    subject: JsonObject,
    parts: Iterable[JsonObject],
    events: Iterable[JsonObject],
    recordings: Iterable[Path],
) -> list[Moment]:
    """Everything that is kept of an object and its parts, the oldest first.

    Raises BadInput for a damaged recording.
    """
    kind, metadata = string(subject.get("kind")), mapping(subject.get("metadata"))
    namespace, name = string(metadata.get("namespace")), string(metadata.get("name"))
    kept = [plain for plain in parts if _is_of(plain, namespace, name)]
    named = {(kind, name), ("ModelEndpoint", name)}
    names = {string(mapping(plain.get("metadata")).get("name")) for plain in kept}
    named |= {(of, part) for part in names for of in (PARTS[kind], "ModelEndpoint")}
    moments = [
        *(moment for plain in (subject, *kept) for moment in _of_object(plain)),
        *(moment for event in events for moment in _of_event(event, (kind, namespace, name), named)),
        *(moment for path in recordings for moment in _of_recording(path, (kind, namespace, name))),
    ]
    return sorted(dict.fromkeys(moments))


def _is_of(plain: JsonObject, namespace: str, name: str) -> bool:
    """Tell whether a replica is one of the deployment, or a placement one of the adapter, by its own word."""
    metadata = mapping(plain.get("metadata"))
    if plain.get("kind") == PLACEMENT_KIND:
        whose = mapping(plain.get("spec")).get("adapter")
    else:
        whose = mapping(metadata.get("labels")).get(DEPLOYMENT_LABEL)
    return metadata.get("namespace") == namespace and whose == name


def _time(text: object) -> datetime | None:
    """A time of Kubernetes; None for what is none.

    One without a zone is taken for UTC, as Kubernetes has it.
    """
    try:
        time = datetime.fromisoformat(string(text))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _of_object(plain: JsonObject) -> Iterator[Moment]:
    """Yield when an object was made and deleted, and when each of its conditions last changed."""
    kind, metadata = string(plain.get("kind")), mapping(plain.get("metadata"))
    title = f"{kind} {string(metadata.get('name'))}"
    spec = mapping(plain.get("spec"))
    where = string(spec.get("clusterName")) or string(spec.get("replica"))
    on = f" on {where}" if where else ""
    for field, text in (("creationTimestamp", "created"), ("deletionTimestamp", "deletion asked for")):
        if at := _time(metadata.get(field)):
            yield Moment(at, "Object", title, f"{text}{on}")
    for condition in mappings(mapping(plain, "status").get("conditions")):
        if at := _time(condition.get("lastTransitionTime")):
            words = (string(condition.get(key)) for key in ("status", "reason", "message"))
            text = f"{string(condition.get('type'))}: {': '.join(filter(None, words))}"
            yield Moment(at, "Condition", title, text)


def _of_event(
    event: JsonObject, subject: tuple[str, str, str], named: set[tuple[str, str]]
) -> Iterator[Moment]:
    """Read an event of events.k8s.io or of the core group.

    `subject` is kind, namespace and name of what the history is about, and `named` has kind and name of its
    parts. An event that was repeated stands at its last time, with its count.
    """
    about = mapping(event.get("regarding")) or mapping(event.get("involvedObject"))
    kind, name = string(about.get("kind")), string(about.get("name"))
    whose, namespace, base = subject
    # A replica that is gone is named in the events of its deployment's namespace alone.
    is_replica = whose == "ModelDeployment" and kind in (PARTS[whose], "ModelEndpoint")
    was_part = is_replica and _was_of(name, base)
    if about.get("namespace") != namespace or not (was_part or (kind, name) in named):
        return
    series = mapping(event.get("series"))
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("deprecatedLastTimestamp"))
    made = (event.get("eventTime"), mapping(event.get("metadata")).get("creationTimestamp"))
    at = next(filter(None, map(_time, (*times, *made))), None)
    if at:
        count = series.get("count") or event.get("count") or event.get("deprecatedCount") or 1
        often = f" ({count} times)" if count != 1 else ""
        text = string(event.get("note")) or string(event.get("message"))
        yield Moment(at, "Event", f"{kind} {name}", f"{string(event.get('reason'))}: {text}{often}")


def _was_of(name: str, deployment: str) -> bool:
    """Tell whether a replica of the deployment would have this name: that of it, and five characters."""
    base, _, tail = name.rpartition("-")
    return base == deployment and len(tail) == 5  # noqa: PLR2004 - of a digest


def _of_recording(path: Path, subject: tuple[str, str, str]) -> Iterator[Moment]:
    """Yield the conditions and the clusters that a recorded call answered about the subject.

    Raises:
        BadInput: where the file is no recording.
    """
    try:
        content = path.read_bytes()
        at = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
        recording = loaded(content)
        composite = wire.decode(recording.request).request.composite.plain()
    except (OSError, NoRecording, wire.MalformedRequest) as error:
        raise BadInput(f"{path}: {error}") from None
    metadata = mapping(composite.get("metadata"))
    if (composite.get("kind"), metadata.get("namespace"), metadata.get("name")) != subject:
        return
    answer = readable(recording.response)
    for kind, condition in answer["conditions"].items():
        text = f"{kind}: {condition['reason']}: {condition['message']}"
        yield Moment(at, "Recording", path.name, text)
    desired = (entry["resource"] for entry in answer["desired"].values())
    replicas = [plain for plain in desired if isinstance(plain, dict) and plain.get("kind") == "ModelReplica"]
    clusters = sorted(string(mapping(plain.get("spec")).get("clusterName")) for plain in replicas)
    yield Moment(at, "Recording", path.name, f"replicas on {', '.join(clusters) or 'no cluster'}")
