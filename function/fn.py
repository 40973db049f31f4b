"""RunFunction: bytes in, bytes out, one log line. An error of our own never leaves it and removes nothing."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from function import metrics, pipeline, wire
from function.compose.response import requirements
from function.compose.untouched import referenced
from function.exchange import text_at
from function.metrics import Metrics
from function.reuse import Memory, Session

if TYPE_CHECKING:
    from function.exchange import Request, Requirement, Response, Reuse
    from function.record import Recorder

SORRY = "The fleet scheduler failed on this request; nothing was changed. Its log has the details."
"""All that a client learns of an unexpected error: an exception's text may quote what it was given."""

_CHAIN = 10  # Causes of an exception to name; they can go round in circles.
_FRAMES = 30


class Run(Protocol):
    """What decides: `pipeline.run`."""

    def __call__(self, request: Request, *, reuse: Reuse) -> Response:
        """Answer a request."""


@dataclass(frozen=True, slots=True)
class Function:
    """The function with all it needs. Safe to call from many threads."""

    log: Any
    run: Run = pipeline.run
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
        session = Session(self.memory, pipeline.ROOM)
        try:
            response = self.run(call.request, reuse=session)
            answer = wire.encode(call, response, self.ttl)
        except Exception as error:  # noqa: BLE001 - the guard: whatever it is, nothing may be removed
            return self._failed(call, error)
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
            parsed=session.parses,
            reused=session.reuses,
            counts=dict(response.counts),
            rejections=dict(response.rejections),
        )
        if self.recorder is not None:
            self.recorder.record(content, answer, self.ttl)
        return answer

    def _failed(self, call: wire.Call, error: Exception) -> bytes:
        """Return the answer when there is none, and tell the operator where it broke."""
        self.metrics.ended(metrics.FAILED)
        self.log.error("failed", **_names(call), error=_kinds(error), frames=_frames(error))
        return wire.encode_keeping(call, _requirements(call.request), SORRY, self.ttl)


def _names(call: wire.Call) -> dict[str, Any]:
    """Return whose request this is."""
    composite = call.request.composite
    named = {key: text_at(composite, "metadata", key) for key in ("namespace", "name")}
    return {"tag": call.tag, **named}


def _requirements(request: Request) -> tuple[Requirement, ...]:
    """Return what `run` declares, without running it."""
    return requirements(*referenced(request), coordinated=pipeline.coordinated(request))


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
