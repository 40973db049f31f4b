"""RunFunction: bytes in, bytes out, one log line. An error of our own never leaves it and removes nothing.

A call ends in one of three ways, which the metrics count:

- answered: by its handler, or again with the answer that the call before left in the context
  (`wire.request`);
- failed: an exception that is a fault of ours. The answer desires everything that is observed (Law 2), and
  the log says where it came from, by types and places only: a message could hold what a user wrote;
- malformed: the bytes are no request. That is the only error that the client sees.

The log line has numbers and names of the composite, no contents of objects. Recording comes last, and cannot
fail a call.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from function import dispatch, wire
from function.boundary import Requirement, Response, frozen, text_at
from function.boundary.memory import Memory, Session
from function.dispatch import HandlerRun
from function.fail_static import internal_error

_CHAIN = 10  # Causes of an exception to name; they can go round in circles.
_FRAMES = 30

ANSWERED, FAILED, MALFORMED, REFUSED = "answered", "failed", "malformed", "refused"
"""How a call may end. One that is refused never comes here."""


class CallMetrics:
    """A counter of calls; this one counts nothing."""

    def ended(self, outcome: str) -> None:
        """Count a call by how it ended."""

    def measured(self, *, seconds: float, received: int, sent: int) -> None:
        """Record how long a call took and how large it was."""

    def decided(self, counts: Mapping[str, int], rejections: Mapping[str, int], session: Session) -> None:
        """Add what one answer counted."""


class CallRecorder(Protocol):
    """A recorder of calls. It never fails a call."""

    def record(self, request: bytes, response: Response, ttl: wire.Ttl) -> None:
        """Write one call, or say in the log why not."""


@frozen
class Function:
    """The function with all it needs. Safe to call from many threads."""

    log: Any
    run: HandlerRun = dispatch.run
    metrics: CallMetrics = field(default_factory=CallMetrics)
    memory: Memory | None = None
    ttl: wire.Ttl = field(default_factory=wire.Ttl)
    recorder: CallRecorder | None = None

    def answer(self, content: bytes) -> bytes:
        """Return the response to a request, both as bytes.

        Raises:
            wire.MalformedRequest: when the bytes are no request. Nothing else is raised.
        """
        started = perf_counter()
        try:
            call = wire.decode(content)
        except wire.MalformedRequest:
            self.metrics.ended(MALFORMED)
            self.log.warning("refused", reason="not a RunFunctionRequest", bytes=len(content))
            raise
        if (carried := call.carried) is not None:
            # The call before only stated less than the one before that, and left its answer to be given
            # again.
            self._answered(call, started, received=len(content), sent=len(carried), repeated=True)
            return carried
        session = Session(self.memory, dispatch.COSTS)
        try:
            response = self.run(call.request, reuse=session)
            answer = wire.encode(call, response, self.ttl)
            session.settle()
        except Exception as error:  # noqa: BLE001 - the guard: whatever it is, nothing may be removed
            return self._failed(call, error)
        self.metrics.decided(response.counts, response.rejections, session)
        self._answered(
            call,
            started,
            received=len(content),
            sent=len(answer),
            settled=response.at_rest,
            repeated=bool(call.request.stated),
            parsed=session.parses,
            reused=session.reuses,
            counts=dict(response.counts),
            rejections=dict(response.rejections),
        )
        if self.recorder is not None:
            self.recorder.record(content, response, self.ttl)
        return answer

    def _answered(
        self, call: wire.ReceivedCall, started: float, *, received: int, sent: int, **more: Any
    ) -> None:
        """Count and log an answer. `more`: what else the log says of it."""
        seconds = perf_counter() - started
        self.metrics.ended(ANSWERED)
        self.metrics.measured(seconds=seconds, received=received, sent=sent)
        milliseconds = round(seconds * 1000, 1)
        fields = {"milliseconds": milliseconds, "received": received, "sent": sent, **more}
        self.log.info("answered", **_names(call), **fields)

    def _failed(self, call: wire.ReceivedCall, error: Exception) -> bytes:
        """Return the answer when there is none, and tell the operator where it broke."""
        self.metrics.ended(FAILED)
        self._report(call, error)
        requirements: tuple[Requirement, ...] = ()
        conditions: tuple[str, ...] = ()
        try:
            handler = dispatch.handler_of(call.request)
            if handler is not None:
                requirements, conditions = (
                    handler.declared(call.request),
                    handler.condition_types(call.request),
                )
        except Exception as second:  # noqa: BLE001 - what failed may well fail again here
            self._report(call, second)
        return wire.encode_internal_error(
            call, internal_error(call.request, requirements, conditions), self.ttl
        )

    def _report(self, call: wire.ReceivedCall, error: Exception) -> None:
        """Log where an error of our own came from."""
        self.log.error("failed", **_names(call), error=_kinds(error), frames=_frames(error))


def _names(call: wire.ReceivedCall) -> dict[str, Any]:
    """Return whose request this is: a service and its model may have one name."""
    composite = call.request.composite
    named = {key: text_at(composite, "metadata", key) for key in ("namespace", "name")}
    return {"tag": call.tag, "kind": text_at(composite, "kind"), **named}


def _kinds(error: BaseException) -> list[str]:
    """Return the types of an exception and of what caused it, never their text."""
    kinds: list[str] = []
    current: BaseException | None = error
    while current is not None and len(kinds) < _CHAIN:
        kinds.append(f"{type(current).__module__}.{type(current).__qualname__}")
        current = current.__cause__ or current.__context__
    return kinds


def _frames(error: BaseException) -> list[str]:
    """Return where an exception came from, innermost last: files, lines, functions; no source, no values."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return [f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno} {frame.name}" for frame in frames]
