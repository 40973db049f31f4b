"""Cut a call down to what its decision reads: the request, and the response that is the answer to that.

Both are put together anew from the allow-lists (`allowed`): whatever else a request carries (context,
credentials, extra resources, connection details, objects of other steps, fields of a later version) never
gets there. The response to the redacted request is the redacted response, byte for byte. What cannot be
decoded is replaced by something that cannot be decoded in the same way. Only calls about ModelDeployments are
recorded.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from function import wire
from function.api import cluster, replica
from function.api.names import read_key
from function.boundary import Desired, Unreadable
from function.deployment.requirements import kind_of
from function.operations.state import WATCHED
from function.recording.allowed import (
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
    from function.boundary import Plain, Response, Shape


# The file of a recorded call, and a response as plain values to be compared.

FORMAT = 1


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


def dumped(recording: Recording) -> bytes:
    """A recording as the bytes of its file."""
    document = {
        "format": FORMAT,
        "version": recording.version,
        "ttl": [recording.ttl.pending, recording.ttl.settled, recording.ttl.watched],
        "request": base64.b64encode(recording.request).decode(),
        "response": base64.b64encode(recording.response).decode(),
    }
    return json.dumps(document).encode()


def loaded(content: bytes) -> Recording:
    """Read a file back. Raises NoRecording."""
    try:
        document = json.loads(content)
        if document["format"] != FORMAT:
            raise NoRecording(f"format {document['format']} is not known here, only {FORMAT}")
        ttl = wire.Ttl(*map(float, document["ttl"]))  # Earlier ones have no third number.
        request, response = (
            base64.b64decode(document[key], validate=True) for key in ("request", "response")
        )
        return Recording(str(document["version"]), ttl, request, response)
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
            key: {"resource": _plain(desired.resource), "ready": desired.ready}
            for key, desired in sorted(message.desired.resources.items())
        },
        "requirements": sorted(message.requirements.resources),
        "conditions": {
            condition.type: {
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
            }
            for condition in message.conditions
        },
        "results": [f"{result.severity} {result.reason}: {result.message}" for result in message.results],
    }


def _plain(content: bytes) -> Any:
    try:
        return read.plain(content) if content else {}
    except Unreadable:
        return "(unreadable)"


RECORDED = "ModelDeployment"

REQUIRED: Mapping[str, tuple[Mapping[str, Allowed], tuple[Shape, ...]]] = {
    "InferenceCluster": (INFERENCE_CLUSTER, (cluster.SHAPE,)),
    "ModelReplica": (MODEL_REPLICA, (replica.CHARGE_SHAPE, replica.SHAPE)),
    "ModelCache": (MODEL_CACHE, ()),
    "ModelDeployment": (MODEL_DEPLOYMENT, ()),
}
"""What is kept of the required objects of each kind, and the parts that a decision reads of them, the smaller
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
    stated = wire.decode(content).request.stated
    if stated:
        kept.context = write.struct({REQUIREMENTS_STATED: list(stated)})
    for name in filter(kind_of, message.required_resources):
        kept.required_resources[name].SetInParent()
        allowed_parts = REQUIRED[kind_of(name) or ""]
        for item in message.required_resources[name].items:
            kept.required_resources[name].items.add().resource = _kept(item.resource, *allowed_parts)
    return bytes(kept.SerializeToString(deterministic=True))


def redacted_response(request: bytes, response: Response, ttl: wire.Ttl) -> bytes:
    """Return the RunFunctionResponse that a response is to a redacted request, itself redacted."""
    desired = {}
    for key, resource in response.desired.items():
        allowed = composed(key, resource.resource.get("kind")) or {}
        desired[key] = Desired(redacted_object(resource.resource, allowed), resource.ready)
    return wire.encode(wire.decode(request), replace(response, desired=desired), ttl)
