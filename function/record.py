"""Record calls, secrets left out, so that a decision can be looked at again: `fleet-scheduler replay`.

A recording holds a request and the response to it, both redacted alike (`function.redact`): what decides a
placement is whole, so the response to the redacted request is the redacted response, byte for byte. What
cannot be decoded is recorded as something that cannot be decoded. Connection details and the pipeline's
context are left out.

The folder is a ring: at most so many files, none larger than its share of the bytes, the oldest overwritten.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function import wire
from function.boundary import Unreadable
from function.redact import redacted
from function.wire import messages, write
from function.wire.fast import read

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
UNREADABLE = b"\xff"
"""Stands for an object that could not be decoded: nothing in it is known to be harmless."""
MAX_FILES = 200
MAX_BYTES = 256 * 1024 * 1024


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


def _struct(content: bytes) -> bytes:
    if not content:
        return content
    try:
        return write.struct(redacted(read.plain(content)))
    except Unreadable:
        return UNREADABLE


def _resource(resource: Any) -> None:
    resource.ClearField("connection_details")
    resource.resource = _struct(resource.resource)


def _state(state: Any) -> None:
    _resource(state.composite)
    for key in sorted(state.resources):
        _resource(state.resources[key])


def redacted_request(content: bytes) -> bytes:
    """A RunFunctionRequest without what may be secret."""
    message = messages.Request.FromString(content)
    message.ClearField("context")
    for state in ("observed", "desired"):
        if message.HasField(state):
            _state(getattr(message, state))
    if message.HasField("input"):
        message.input = _struct(message.input)
    for name in sorted(message.required_resources):
        for item in message.required_resources[name].items:
            _resource(item)
    return bytes(message.SerializeToString(deterministic=True))


def redacted_response(content: bytes) -> bytes:
    """A RunFunctionResponse without what may be secret."""
    message = messages.Response.FromString(content)
    message.ClearField("context")
    if message.HasField("desired"):
        _state(message.desired)
    return bytes(message.SerializeToString(deterministic=True))


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

    def record(self, request: bytes, response: bytes, ttl: wire.Ttl) -> None:
        """Write one call; what cannot be written is said in the log and left out."""
        try:
            both = redacted_request(request), redacted_response(response)
            content = dumped(Recording(self._version, ttl, *both))
            if len(content) > self._share:
                self._log.warning("not recorded", reason="too large", bytes=len(content))
                return
            self._write(content)
        except Exception as error:  # noqa: BLE001 - a recording is never worth a failed call
            self._log.warning("not recorded", reason=type(error).__name__)

    def _write(self, content: bytes) -> None:
        with self._lock:
            slot, self._next = self._next, (self._next + 1) % self._files
            target = self._folder / f"call-{slot:04}.json"
            half = target.with_suffix(".partial")
            half.write_bytes(content)
            half.replace(target)
