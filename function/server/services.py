"""What the port answers: RunFunction (v1 and v1beta1), health and reflection."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
from crossplane.function.proto.v1 import run_function_pb2 as v1
from crossplane.function.proto.v1beta1 import run_function_pb2 as v1beta1
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection

from function import metrics, wire
from function.server.settings import MEBI

if TYPE_CHECKING:
    from function.runner import Function
    from function.server.settings import Settings

RUNNERS = tuple(each.DESCRIPTOR.services_by_name["FunctionRunnerService"].full_name for each in (v1, v1beta1))

_MUCH = MEBI
"""Bytes of a refused request that are worth collecting at once."""


class Runner:
    """RunFunction on a pool of worker threads, with a bounded queue before it.

    Requests and responses are bytes here: v1 and v1beta1 are the same on the wire, and decoding is the
    worker's business.
    """

    def __init__(self, function: Function, settings: Settings) -> None:
        """Start no thread yet."""
        self._function = function
        self._pool = ThreadPoolExecutor(settings.max_concurrency, thread_name_prefix="run")
        self._room = settings.max_concurrency + settings.max_waiting
        self._most = settings.max_held * MEBI
        self._jobs: set[Future[bytes]] = set()
        self._held = 0
        self.calls = 0

    async def run_function(self, content: bytes, context: Any) -> bytes:
        """Answer one call."""
        size = len(content)
        if self.calls >= self._room or (self.calls and self._held + size > self._most):
            self._function.metrics.ended(metrics.REFUSED)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many requests are waiting")
        self.calls += 1
        self._held += size
        try:
            job = self._pool.submit(self._function.answer, content)
            self._jobs.add(job)
            job.add_done_callback(self._jobs.discard)
            return await asyncio.wrap_future(job)
        except wire.Malformed as error:
            if size > _MUCH:  # What gRPC keeps of a call that is aborted is freed by the collector only.
                asyncio.get_running_loop().call_soon(gc.collect)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise  # Not reached: abort raises.
        finally:
            self.calls -= 1
            self._held -= size

    @property
    def unfinished(self) -> int:
        """Calls still worked on, those that nobody waits for any more included."""
        return len(self._jobs)

    def register(self, server: Any) -> None:
        """Answer under both names."""
        handler = grpc.unary_unary_rpc_method_handler(self.run_function)
        for name in RUNNERS:
            generic = grpc.method_handlers_generic_handler(name, {"RunFunction": handler})
            server.add_generic_rpc_handlers((generic,))


async def add_health(server: Any) -> Any:
    """Say that every service is serving, until told otherwise; return what to tell."""
    servicer: Any = health.aio.HealthServicer()  # type: ignore[attr-defined] # grpcio-health hides it
    for name in ("", *RUNNERS):
        await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    service = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
    handlers = {
        "Check": grpc.unary_unary_rpc_method_handler(
            servicer.Check,
            request_deserializer=health_pb2.HealthCheckRequest.FromString,
            response_serializer=health_pb2.HealthCheckResponse.SerializeToString,
        ),
        "Watch": grpc.unary_stream_rpc_method_handler(
            servicer.Watch,
            request_deserializer=health_pb2.HealthCheckRequest.FromString,
            response_serializer=health_pb2.HealthCheckResponse.SerializeToString,
        ),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    return servicer


def add_reflection(server: Any) -> None:
    """Let a client ask what is served."""
    reflection.enable_server_reflection((*RUNNERS, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
