"""The file of a recorded call, and a response as plain values to be compared."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from function import wire
from function.boundary import Unreadable
from function.wire import messages
from function.wire.fast import read

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
        "ttl": [recording.ttl.pending, recording.ttl.settled],
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
        pending, settled = document["ttl"]
        request, response = (
            base64.b64decode(document[key], validate=True) for key in ("request", "response")
        )
        return Recording(
            str(document["version"]), wire.Ttl(float(pending), float(settled)), request, response
        )
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
