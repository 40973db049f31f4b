"""Put together what happened to a deployment from what is kept: objects, events, and recorded calls.

Nothing keeps a history as such. Objects have the times at which they were made and at which their conditions
last changed; events say what was done, for about an hour; a recorded call holds a whole decision. Each is a
moment with a time, a source and a text, and `chronicle` puts them in order.

Limits: a condition has only its last change, and a replica that is gone left at most events and recordings.
The time of a recording is that of its file.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from function import wire
from function.api.model import conditions_of, mapping, mappings, string
from function.api.replica import DEPLOYMENT_LABEL
from function.cli.bad_input import BadInput
from function.recording.request import NoRecording, loaded, readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from function.boundary import JsonObject

OURS = frozenset({"ModelDeployment", "ModelReplica", "ModelEndpoint"})
"""Kinds whose events belong to a deployment."""


class Moment(NamedTuple):
    """One thing that happened."""

    at: datetime
    source: str
    """`Object`, `Condition`, `Event` or `Recording`."""
    name: str
    """`ModelReplica chat-93a4f`."""
    text: str


def chronicle(
    deployment: JsonObject,
    replicas: Iterable[JsonObject],
    events: Iterable[JsonObject],
    recordings: Iterable[Path],
) -> list[Moment]:
    """Everything that is kept of a deployment, the oldest first. Raises BadInput for a damaged recording."""
    metadata = mapping(deployment.get("metadata"))
    namespace, name = string(metadata.get("namespace")), string(metadata.get("name"))
    kept = [plain for plain in replicas if _is_of(plain, namespace, name)]
    named = {(kind, name) for kind in ("ModelDeployment", "ModelEndpoint")}
    named |= {(kind, _name(plain)) for plain in kept for kind in ("ModelReplica", "ModelEndpoint")}
    moments = [
        *(moment for plain in (deployment, *kept) for moment in _of_object(plain)),
        *(moment for event in events for moment in _of_event(event, namespace, named)),
        *(moment for path in recordings for moment in _of_recording(path, namespace, name)),
    ]
    return sorted(dict.fromkeys(moments))


def _is_of(plain: JsonObject, namespace: str, name: str) -> bool:
    metadata = mapping(plain.get("metadata"))
    label = mapping(metadata.get("labels")).get(DEPLOYMENT_LABEL)
    return metadata.get("namespace") == namespace and label == name


def _name(plain: JsonObject) -> str:
    return string(mapping(plain.get("metadata")).get("name"))


def _time(text: object) -> datetime | None:
    """A time of Kubernetes; None for what is none."""
    try:
        time = datetime.fromisoformat(string(text))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _of_object(plain: JsonObject) -> Iterator[Moment]:
    kind, metadata = string(plain.get("kind")), mapping(plain.get("metadata"))
    title = f"{kind} {_name(plain)}"
    where = string(mapping(plain.get("spec")).get("clusterName"))
    on = f" on {where}" if where else ""
    for field, text in (("creationTimestamp", "created"), ("deletionTimestamp", "deletion asked for")):
        if at := _time(metadata.get(field)):
            yield Moment(at, "Object", title, f"{text}{on}")
    for condition in conditions_of(mapping(plain.get("status"))):
        if at := _time(condition.get("lastTransitionTime")):
            words = (string(condition.get(key)) for key in ("status", "reason", "message"))
            text = f"{string(condition.get('type'))}: {': '.join(filter(None, words))}"
            yield Moment(at, "Condition", title, text)


def _of_event(event: JsonObject, namespace: str, named: set[tuple[str, str]]) -> Iterator[Moment]:
    """Read an event of events.k8s.io or of the core group."""
    about = mapping(event.get("regarding")) or mapping(event.get("involvedObject"))
    kind, name = string(about.get("kind")), string(about.get("name"))
    # A replica that is gone is named in the events of its deployment's namespace alone.
    mine = (kind, name) in named or (kind in OURS and _was_of(name, named))
    if about.get("namespace") != namespace or not mine:
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


def _was_of(name: str, named: set[tuple[str, str]]) -> bool:
    """Tell whether a replica of the deployment would have this name: that of it, and five characters."""
    base, _, tail = name.rpartition("-")
    return ("ModelDeployment", base) in named and len(tail) == 5  # noqa: PLR2004 - of a digest


def _of_recording(path: Path, namespace: str, name: str) -> Iterator[Moment]:
    try:
        content = path.read_bytes()
        at = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
        recording = loaded(content)
        composite = wire.decode(recording.request).request.composite.plain()
    except (OSError, NoRecording, wire.MalformedRequest) as error:
        raise BadInput(f"{path}: {error}") from None
    metadata = mapping(composite.get("metadata"))
    if (composite.get("kind"), metadata.get("namespace"), metadata.get("name")) != (
        "ModelDeployment",
        namespace,
        name,
    ):
        return
    answer = readable(recording.response)
    for kind, condition in answer["conditions"].items():
        text = f"{kind}: {condition['reason']}: {condition['message']}"
        yield Moment(at, "Recording", path.name, text)
    desired = (entry["resource"] for entry in answer["desired"].values())
    replicas = [plain for plain in desired if isinstance(plain, dict) and plain.get("kind") == "ModelReplica"]
    clusters = sorted(string(mapping(plain.get("spec")).get("clusterName")) for plain in replicas)
    yield Moment(at, "Recording", path.name, f"replicas on {', '.join(clusters) or 'no cluster'}")


def events_of(unread: Iterable[JsonObject]) -> list[JsonObject]:
    """The events among objects of kinds that no decision reads, lists of them included."""
    return [
        plain
        for content in unread
        for plain in ([content, *mappings(content.get("items"))])
        if plain.get("kind") == "Event"
    ]
