"""The gRPC services of the port: RunFunction (v1 and v1beta1), health and reflection.

The event loop only moves bytes and decides who may wait. A call goes through three bounds: the number of
calls (`Runner`), the bytes of all messages (`intake`), and the worker threads. A call that finds no room is
refused at once with RESOURCE_EXHAUSTED, and Crossplane makes it again later.

Recording stands here too, as the last thing that happens to an answer; it never fails a call.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
from crossplane.function.proto.v1 import run_function_pb2 as v1
from crossplane.function.proto.v1beta1 import run_function_pb2 as v1beta1
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from function import wire
from function.boundary import Response
from function.recording import Recording, dumped, redacted_request, redacted_response
from function.runner import REFUSED, CallMetrics, Function
from function.server.intake import Collector, Intake, Message
from function.server.settings import MEBI, Settings
from function.wire import Ttl

# Record calls into a folder, for `fleet-scheduler replay`: of each, what a decision reads and nothing else.
#
# The folder is a ring: at most so many files, none larger than its share of the bytes, the oldest
# overwritten.

MAX_FILES = 200
MAX_BYTES = 256 * 1024 * 1024


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

    def record(self, request: bytes, response: Response, ttl: Ttl) -> None:
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


RUNNERS = tuple(
    proto.DESCRIPTOR.services_by_name["FunctionRunnerService"].full_name for proto in (v1, v1beta1)
)

_MUCH = MEBI
"""Bytes of a refused request that are worth collecting at once."""
_CONTROL_SECONDS = 1.0
"""Time for a message to health or reflection to arrive: they have no more than a name in them."""


class Runner:
    """RunFunction on a pool of worker threads, with a bounded queue before it.

    Requests and responses are bytes here: v1 and v1beta1 are the same on the wire, and decoding is the
    worker's business. A call is served as a stream of one message, which is the same on the wire too, because
    only then it is up to us when the message is received (see `intake`).
    """

    def __init__(self, function: Function, settings: Settings, metrics: CallMetrics) -> None:
        """Start no thread yet."""
        self._function, self._metrics = function, metrics
        self._pool = ThreadPoolExecutor(settings.max_concurrency, thread_name_prefix="run")
        self._room = settings.max_concurrency + settings.max_waiting
        self._jobs: set[Future[bytes]] = set()
        self._collector = Collector(busy=lambda: self.calls > 0)
        self.intake = Intake(settings.max_held_size * MEBI, settings.max_recv_message_size * MEBI)
        self.calls = 0

    async def run_function(self, _messages: Any, context: Any) -> bytes:
        """Answer one call."""
        if self.calls >= self._room:
            self._metrics.ended(REFUSED)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many requests are waiting")
        self.calls += 1
        message = None
        try:
            message = await self.intake.receive(context)
            return await self._submitted(message or Message(b""))
        except wire.MalformedRequest as error:
            if message and message.size > _MUCH:  # gRPC keeps what an aborted call had until it is collected.
                asyncio.get_running_loop().call_soon(gc.collect)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise  # Not reached: abort raises.
        finally:
            self.calls -= 1
            self._collector.call_ended()

    def _submitted(self, message: Message) -> asyncio.Future[bytes]:
        """Queue the work on a message. When its caller gives up, it leaves the queue and its bytes go.

        The queue itself holds a job until a worker comes to it, given up or not; so the job only knows where
        the bytes are. Work under way cannot be given up: its bytes count until it ends.

        The loop is woken once when work has ended, for the answer and for the bytes: a thread that wakes
        another takes as long as recognising ten objects.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()

        def ended(job: Future[bytes]) -> None:
            """Hand over to the loop; where it is closed already, nobody waits."""
            self._jobs.discard(job)
            if not loop.is_closed():
                loop.call_soon_threadsafe(concluded, job)

        def concluded(job: Future[bytes]) -> None:
            """Give the bytes of the request back, and answer whoever still waits."""
            message.release()
            if answer.done():  # Its caller has given up.
                return
            error = job.exception()
            if error is None:
                answer.set_result(job.result())
            else:
                answer.set_exception(error)

        def given_up(answer: asyncio.Future[bytes]) -> None:
            """Take a call whose caller left out of the queue; one that runs already runs on."""
            if answer.cancelled():
                job.cancel()

        job = self._pool.submit(lambda: self._function.answer(message.take()))
        self._jobs.add(job)
        job.add_done_callback(ended)
        answer.add_done_callback(given_up)
        return answer

    @property
    def unfinished(self) -> int:
        """Calls still worked on, those that nobody waits for any more included."""
        return len(self._jobs)

    def register(self, server: Any) -> None:
        """Answer under both names."""
        handler = grpc.stream_unary_rpc_method_handler(self.run_function)
        for name in RUNNERS:
            generic = grpc.method_handlers_generic_handler(name, {"RunFunction": handler})
            server.add_generic_rpc_handlers((generic,))


async def add_health(server: Any, settings: Settings) -> Any:
    """Say that every service is serving, until told otherwise; return what to tell."""
    servicer: Any = health.aio.HealthServicer()  # type: ignore[attr-defined] # grpcio-health hides it
    for name in ("", *RUNNERS):
        await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    intake = Intake(0, settings.max_recv_message_size * MEBI, seconds=_CONTROL_SECONDS)

    def reading(answer: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
        """Read a probe through the intake, so that its bytes count as those of any call."""

        async def call(_messages: Any, context: Any) -> Any:
            message = await intake.receive(context)
            content = b"" if message is None else message.take()
            if message is not None:
                message.release()
            try:
                probe = health_pb2.HealthCheckRequest.FromString(content)
            except DecodeError:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a HealthCheckRequest")
            return await answer(probe, context)

        return call

    service = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
    written = health_pb2.HealthCheckResponse.SerializeToString
    handlers = {
        "Check": grpc.stream_unary_rpc_method_handler(reading(servicer.Check), response_serializer=written),
        "Watch": grpc.stream_stream_rpc_method_handler(reading(servicer.Watch), response_serializer=written),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    return servicer


def add_reflection(server: Any, settings: Settings) -> None:
    """Let a client ask what is served; one at a time, and not for ever."""
    names = (*RUNNERS, health.SERVICE_NAME, reflection.SERVICE_NAME)
    servicer: Any = reflection.aio.ReflectionServicer(names)  # type: ignore[attr-defined] # as above
    intake = Intake(0, settings.max_recv_message_size * MEBI, seconds=_CONTROL_SECONDS)

    async def questions(context: Any) -> AsyncIterator[Any]:
        """Yield the questions of a stream, each read through the intake."""
        while (message := await intake.receive(context)) is not None:
            content = message.take()
            message.release()
            try:
                yield reflection_pb2.ServerReflectionRequest.FromString(content)
            except DecodeError:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a ServerReflectionRequest")

    async def info(_messages: Any, context: Any) -> AsyncIterator[Any]:
        async for answer in servicer.ServerReflectionInfo(questions(context), context):
            yield answer

    written = reflection_pb2.ServerReflectionResponse.SerializeToString
    handlers = {
        "ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(info, response_serializer=written)
    }
    generic = grpc.method_handlers_generic_handler(reflection.SERVICE_NAME, handlers)
    server.add_generic_rpc_handlers((generic,))
