"""RunFunction: bytes in, bytes out, one log line. An error of our own never leaves it and removes nothing."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from function import dispatch, metrics, wire
from function.boundary import text_at
from function.boundary.parse_cache import Memory, Session
from function.fail_static import internal_error
from function.metrics import Metrics

if TYPE_CHECKING:
    from function.dispatch import Run
    from function.record import Recorder

_CHAIN = 10  # Causes of an exception to name; they can go round in circles.
_FRAMES = 30


@dataclass(frozen=True, slots=True)
class Function:
    """The function with all it needs. Safe to call from many threads."""

    log: Any
    run: Run = dispatch.run
    metrics: Metrics = field(default_factory=Metrics)
    memory: Memory | None = None
    ttl: wire.Ttl = field(default_factory=wire.Ttl)
    recorder: Recorder | None = None

    def answer(self, content: bytes) -> bytes:
        """Return the response to a request, both as bytes.

        Raises:
            wire.Malformed: when the bytes are no request. Nothing else is raised.
        """
        started = perf_counter()
        try:
            call = wire.decode(content)
        except wire.Malformed:
            self.metrics.ended(metrics.MALFORMED)
            self.log.warning("refused", reason="not a RunFunctionRequest", bytes=len(content))
            raise
        session = Session(self.memory, dispatch.COSTS)
        try:
            response = self.run(call.request, reuse=session)
            answer = wire.encode(call, response, self.ttl)
        except Exception as error:  # noqa: BLE001 - the guard: whatever it is, nothing may be removed
            return self._failed(call, error)
        finally:
            session.settle()
        seconds = perf_counter() - started
        self.metrics.ended(metrics.ANSWERED)
        self.metrics.measured(seconds=seconds, received=len(content), sent=len(answer))
        self.metrics.decided(response.counts, response.rejections, session)
        self.log.info(
            "answered",
            **_names(call),
            milliseconds=round(seconds * 1000, 1),
            received=len(content),
            sent=len(answer),
            settled=response.settled,
            repeated=call.requirements_stated,
            parsed=session.parses,
            reused=session.reuses,
            counts=dict(response.counts),
            rejections=dict(response.rejections),
        )
        if self.recorder is not None:
            self.recorder.record(content, response, self.ttl)
        return answer

    def _failed(self, call: wire.Call, error: Exception) -> bytes:
        """Return the answer when there is none, and tell the operator where it broke."""
        self.metrics.ended(metrics.FAILED)
        self.log.error("failed", **_names(call), error=_kinds(error), frames=_frames(error))
        handler = dispatch.handler_of(call.request)
        requirements = handler.declared(call.request) if handler else ()
        conditions = handler.condition_types(call.request) if handler else ()
        return wire.encode_internal_error(
            call, internal_error(call.request, requirements, conditions), self.ttl
        )


def _names(call: wire.Call) -> dict[str, Any]:
    """Return whose request this is."""
    composite = call.request.composite
    named = {key: text_at(composite, "metadata", key) for key in ("namespace", "name")}
    return {"tag": call.tag, **named}


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
    return [f"{'/'.join(Path(each.filename).parts[-3:])}:{each.lineno} {each.name}" for each in frames]
