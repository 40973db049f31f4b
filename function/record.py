"""Record calls, secrets left out, so that a decision can be looked at again: `fleet-scheduler replay`.

A recording holds a request and the response to it. Both are put together anew from what a decision reads
(`function.redact`): whatever else a request carries (context, credentials, extra resources, connection
details, objects of other steps, fields of a later version) never gets there. The response to the redacted
request is the redacted response, byte for byte. What cannot be decoded is recorded as something that cannot
be decoded. Only ModelDeployments are recorded.

The folder is a ring: at most so many files, none larger than its share of the bytes, the oldest overwritten.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from function import wire
from function.api import cluster, replica
from function.api.names import read_key
from function.boundary import Desired, Unreadable
from function.deployment.requirements import CACHE, CACHES, CLUSTERS, DEPLOYMENTS, REPLICAS
from function.operations.state import WATCHED
from function.redact import (
    INFERENCE_CLUSTER,
    MODEL_CACHE,
    MODEL_DEPLOYMENT,
    MODEL_ENDPOINT,
    MODEL_REPLICA,
    SCHEDULER_CONFIG,
    Allowed,
    redacted_object,
)
from function.wire import messages, write
from function.wire.fast import read
from function.wire.request import REQUIREMENTS_STATED

if TYPE_CHECKING:
    from pathlib import Path

    from function.boundary import Plain, Response, Shape

FORMAT = 1
MAX_FILES = 200
MAX_BYTES = 256 * 1024 * 1024
RECORDED = "ModelDeployment"

REQUIRED: Mapping[str, tuple[Mapping[str, Allowed], tuple[Shape, ...]]] = {
    CLUSTERS: (INFERENCE_CLUSTER, (cluster.SHAPE,)),
    REPLICAS: (MODEL_REPLICA, (replica.CHARGE_SHAPE, replica.SHAPE)),
    CACHE: (MODEL_CACHE, ()),
    DEPLOYMENTS: (MODEL_DEPLOYMENT, ()),
    CACHES: (MODEL_CACHE, ()),
}
"""What is kept of the objects of each requirement, and the parts that a decision reads of them, the smaller
first. Of a requirement that is not ours, not even its name is kept."""
COMPOSED: Mapping[str, Mapping[str, Allowed]] = {
    "ModelReplica": MODEL_REPLICA,
    "ModelEndpoint": MODEL_ENDPOINT,
}
BY_KEY = {"replica": MODEL_REPLICA, "endpoint": MODEL_ENDPOINT}

UNREADABLE = b"\xff"
"""Stands for an object that could not be decoded: nothing in it is known to be harmless."""
UNREADABLE_FIELD = "(unreadable)"


def _too_deep() -> bytes:
    nested: Plain = {}
    for _ in range(read.MAX_DEPTH + 1):
        nested = {"": nested}
    return write.value(nested)


BROKEN, TOO_DEEP = write.Verbatim(UNREADABLE), write.Verbatim(_too_deep())
"""Stand for a value that could not be decoded, and for one that nests too deep."""
NAME: Shape = {"metadata": {"name": None}}


class NoRecording(ValueError):
    """The bytes are not a recording of ours."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One call."""

    version: str
    """Version of the function that answered."""
    ttl: wire.Ttl
    request: bytes
    response: bytes


def _shape(allowed: Mapping[str, Allowed]) -> Shape:
    """Return the paths of an allow-list."""
    return {key: _shape(rule) if isinstance(rule, Mapping) else None for key, rule in allowed.items()}


def _damaged(too_deep: bool) -> write.Verbatim:  # noqa: FBT001 - see `read.salvage`
    return TOO_DEEP if too_deep else BROKEN


def _struct(content: bytes, allowed: Mapping[str, Allowed]) -> bytes:
    """Return an object cut down to what is allowed, and unreadable where it was."""
    if not content:
        return content
    try:
        cut = redacted_object(read.salvage(content, _shape(allowed), _damaged) or {"": None}, allowed)
    except Unreadable:
        return UNREADABLE
    try:
        read.plain(content)
    except Unreadable as error:
        cut[UNREADABLE_FIELD] = _damaged("deeper" in str(error))
    return write.struct(cut)


def _kept(content: bytes, allowed: Mapping[str, Allowed], parts: tuple[Shape, ...]) -> bytes:
    """Return an object cut down to what is allowed.

    Where one of its parts cannot be read, the smaller ones before it are kept (before the first: its name),
    with something in the place of the rest that fails in the same way.
    """
    readable, damage = NAME, _object_damage
    for part in parts if content else ():
        try:
            read.project(content, part)
        except Unreadable as error:
            return write.struct({**_part(content, readable, allowed), **damage(str(error))})
        readable, damage = part, _status_damage
    return _struct(content, allowed)


def _part(content: bytes, part: Shape, allowed: Mapping[str, Allowed]) -> dict[str, Plain]:
    with suppress(Unreadable):
        return redacted_object(read.project(content, part), allowed)
    return {}


def _object_damage(error: str) -> dict[str, Plain]:
    """Return fields that raise an error to whoever reads a cluster or a replica."""
    if "or nested" in error:  # What is compared by content is decoded at once.
        return {"status": {"gpuPools": [{"devices": BROKEN}]}}
    return {"spec": {"attributes": TOO_DEEP, "clusterName": TOO_DEEP} if "deeper" in error else BROKEN}


def _status_damage(error: str) -> dict[str, Plain]:
    """Return fields that raise an error to whoever reads the status of a replica."""
    return {"status": {"conditions": [{"type": TOO_DEEP}]} if "deeper" in error else BROKEN}


def composed(key: str, kind: object) -> Mapping[str, Allowed] | None:
    """Return what is kept of a composed resource: by its key where that is ours, else by its kind.

    None for what belongs to other steps of the pipeline.
    """
    ours = read_key(key)
    return BY_KEY[ours[0]] if ours else COMPOSED.get(str(kind))


def _kind(content: bytes) -> object:
    with suppress(Unreadable):
        return read.project(content, {"kind": None}).get("kind")
    return None


def redacted_request(content: bytes) -> bytes | None:
    """Return a RunFunctionRequest that holds what a decision reads, and nothing else.

    None for a request that asks for no placement: one about another kind, or a step of an Operation.
    """
    message, kept = messages.Request.FromString(content), messages.Request()
    observed = message.observed
    if _kind(observed.composite.resource) not in (RECORDED, None) or WATCHED in message.required_resources:
        return None
    kept.observed.composite.resource = _struct(observed.composite.resource, MODEL_DEPLOYMENT)
    for key in sorted(observed.resources):
        resource = observed.resources[key].resource
        allowed = composed(key, _kind(resource))
        if allowed is not None:
            parts = (replica.SHAPE,) if allowed is MODEL_REPLICA else ()
            kept.observed.resources[key].resource = _kept(resource, allowed, parts)
    for key in message.desired.resources:
        if read_key(key) or key in kept.observed.resources:  # Whose key it is decides; the object does not.
            kept.desired.resources[key].SetInParent()
    if message.HasField("input"):
        kept.input = _struct(message.input, SCHEDULER_CONFIG)
    if wire.decode(content).requirements_stated:
        kept.context = write.struct({REQUIREMENTS_STATED: True})
    for name in REQUIRED.keys() & set(message.required_resources):
        items = kept.required_resources[name].items
        for item in message.required_resources[name].items:
            items.add().resource = _kept(item.resource, *REQUIRED[name])
    return bytes(kept.SerializeToString(deterministic=True))


def redacted_response(request: bytes, response: Response, ttl: wire.Ttl) -> bytes:
    """Return the RunFunctionResponse that a response is to a redacted request, itself redacted."""
    desired = {}
    for key, each in response.desired.items():
        allowed = composed(key, each.resource.get("kind")) or {}
        desired[key] = Desired(redacted_object(each.resource, allowed), each.ready)
    return wire.encode(wire.decode(request), replace(response, desired=desired), ttl)


def dumped(recording: Recording) -> bytes:
    """A recording as the bytes of its file."""
    told = {
        "format": FORMAT,
        "version": recording.version,
        "ttl": [recording.ttl.pending, recording.ttl.settled],
        "request": base64.b64encode(recording.request).decode(),
        "response": base64.b64encode(recording.response).decode(),
    }
    return json.dumps(told).encode()


def loaded(content: bytes) -> Recording:
    """Read a file back. Raises NoRecording."""
    try:
        told = json.loads(content)
        if told["format"] != FORMAT:
            raise NoRecording(f"format {told['format']} is not known here, only {FORMAT}")
        pending, settled = told["ttl"]
        request, response = (base64.b64decode(told[key], validate=True) for key in ("request", "response"))
        return Recording(str(told["version"]), wire.Ttl(float(pending), float(settled)), request, response)
    except (KeyError, TypeError, ValueError, binascii.Error, RecursionError) as error:
        if isinstance(error, NoRecording):
            raise
        raise NoRecording("not a recording of this function") from None


def readable(response: bytes) -> dict[str, Any]:
    """A response as plain values, to be compared and shown."""
    message = messages.Response.FromString(response)
    return {
        "ttl": message.meta.ttl.seconds + message.meta.ttl.nanos / 1e9,
        "ready": message.desired.composite.ready,
        "composite": _plain(message.desired.composite.resource),
        "desired": {
            key: {"resource": _plain(each.resource), "ready": each.ready}
            for key, each in sorted(message.desired.resources.items())
        },
        "requirements": sorted(message.requirements.resources),
        "conditions": {
            each.type: {"status": each.status, "reason": each.reason, "message": each.message}
            for each in message.conditions
        },
        "results": [f"{each.severity} {each.reason}: {each.message}" for each in message.results],
    }


def _plain(content: bytes) -> Any:
    try:
        return read.plain(content) if content else {}
    except Unreadable:
        return "(unreadable)"


class Recorder:
    """Writes recordings into a folder. Safe to call from many threads; it never fails a call."""

    def __init__(
        self, folder: Path, log: Any, version: str, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
    ) -> None:
        """Make the folder if it is not there. Raises OSError when that cannot be done."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._log, self._version = folder, log, version
        self._files, self._share = max_files, max_bytes // max_files
        self._next, self._lock = 0, threading.Lock()

    def record(self, request: bytes, response: Response, ttl: wire.Ttl) -> None:
        """Write one call; what cannot be written is said in the log and left out."""
        try:
            kept = redacted_request(request)
            if kept is None:
                return
            content = dumped(Recording(self._version, ttl, kept, redacted_response(kept, response, ttl)))
            if len(content) > self._share:
                self._log.warning("not recorded", reason="too large", bytes=len(content))
                return
            self._write(content)
        except Exception as error:  # noqa: BLE001 - a recording is never worth a failed call
            self._log.warning("not recorded", reason=type(error).__name__)

    def _write(self, content: bytes) -> None:
        """Write one file whole or not at all: a disk that is full leaves nothing behind."""
        with self._lock:
            slot, self._next = self._next, (self._next + 1) % self._files
            target = self._folder / f"call-{slot:04}.json"
            partial = target.with_suffix(".partial")
            try:
                partial.write_bytes(content)
                partial.replace(target)
            except OSError:
                with suppress(OSError):
                    partial.unlink()
                raise
