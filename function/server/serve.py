"""Rehearse, start, serve, drain.

In this order: the port is bound, so that a mistake ends the process at once; the function is built; a made-up
request is answered, which warms the process up; garbage is collected; only then the port is served. At the
end health says NOT_SERVING first, calls in flight get the grace, and what outlasts it ends with the process.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import grpc
from prometheus_client import start_http_server

from function.api.model import build_validators
from function.api.names import API_VERSION
from function.deployment.requirements import CLUSTERS, REPLICAS
from function.runner import Function
from function.server.certificates import Certificates
from function.server.intake import WINDOW, collect_seldom
from function.server.metrics import Metrics
from function.server.services import Runner, add_health, add_reflection
from function.server.settings import MEBI, CannotStart, Settings, host_and_port
from function.wire import messages, write

# Answer a made-up request, some times over, before the first real one arrives.
#
# A process's first call builds what every later call uses: the parser of selectors, the validators of the
# API, modules that are imported when they are needed. That takes a quarter of a second, which the first
# deployment after a restart would wait for. The request below goes the common ways. It leaves nothing behind:
# it is answered by a function without a memory, a recorder or metrics of its own, and is not logged.

INPUT = {
    "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
    "kind": "SchedulerConfig",
    "explain": "Status",
}
SELECTORS = (
    'device.driver == "gpu.nvidia.com"',
    'device.attributes["gpu.nvidia.com"].architecture in ["Hopper", "Blackwell"]',
    'device.attributes["gpu.nvidia.com"].productName.lowerAscii().matches("^.*h[12]00.*$")',
    'device.attributes["gpu.nvidia.com"].cudaComputeCapability.compareTo(semver("9.0.0")) >= 0',
    'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0 && has(device.driver)',
)


TIMES = 10
"""How often: the interpreter specialises code that has run about so many times. Each takes 4 ms."""


class Silence:
    """A log that nobody reads."""

    def info(self, *_: Any, **__: Any) -> None:
        """Say nothing."""

    warning = error = info


def rehearse(answer: Callable[[bytes], bytes]) -> None:
    """Have the made-up request answered: three replicas wanted, one there; a full and a tainted cluster."""
    clusters = [_cluster("first", 1), _cluster("second", 8), _cluster("third", 0, taints=[_TAINT])]
    request = messages.Request()
    request.observed.composite.resource = write.struct(_deployment())
    request.observed.resources["replica-first-0"].resource = write.struct(_replica())
    request.input = write.struct(INPUT)
    for name, items in {CLUSTERS: clusters, REPLICAS: [_replica()]}.items():
        for item in items:
            request.required_resources[name].items.add(resource=write.struct(item))
    content = request.SerializeToString()
    for _ in range(TIMES):
        answer(content)


_TAINT = {"key": "maintenance", "effect": "NoSchedule"}


def _deployment() -> dict[str, Any]:
    """Return a made-up deployment of three replicas, whose selectors run most of the evaluator once."""
    selectors = [{"cel": selector} for selector in SELECTORS]
    member = {
        "role": "Standalone",
        "nodeSelector": {"devices": [{"name": "gpu", "count": 8, "selectors": selectors}]},
        "template": {"spec": {"containers": [{"name": "engine", "image": "rehearsal"}]}},
    }
    template = {
        "clusterSelector": {"matchLabels": {"rehearsal": "true"}},
        "engines": [{"name": "main", "members": [member]}],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ModelDeployment",
        "metadata": {"name": "rehearsal", "namespace": "rehearsal", "uid": "rehearsal"},
        "spec": {"replicas": 3, "template": {"spec": template}},
    }


def _cluster(name: str, nodes: int, taints: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    """Return a made-up cluster with one pool of so many nodes, in an address range for documentation."""
    gpu = {
        "name": "gpu",
        "driver": "gpu.nvidia.com",
        "deviceClassName": "gpu.nvidia.com",
        "count": 8,
        "attributes": {
            "architecture": {"string": "Hopper"},
            "productName": {"string": "NVIDIA H200"},
            "cudaComputeCapability": {"version": "9.0.0"},
        },
        "capacity": {"memory": {"value": "143771Mi"}},
    }
    pools = [{"name": "pool", "className": "rehearsal", "nodeCount": nodes}]
    return {
        "apiVersion": API_VERSION,
        "kind": "InferenceCluster",
        "metadata": {"name": name, "labels": {"rehearsal": "true"}},
        "spec": {"cluster": {"source": "Existing"}, "nodePools": pools, "taints": list(taints)},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "gateway": {"address": "192.0.2.1"},
            "gpuPools": [{"name": "pool", "nodes": nodes, "devices": [gpu]}],
        },
    }


def _replica() -> dict[str, Any]:
    """Return the made-up replica that is there: the pass has something to retain."""
    request = {"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 8}
    member = {"role": "Standalone", "nodePoolName": "pool", "deviceRequests": [request]}
    labels = {
        "modelplane.ai/deployment": "rehearsal",
        "modelplane.ai/cluster": "first",
        "modelplane.ai/replica-index": "0",
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ModelReplica",
        "metadata": {"name": "rehearsal-0", "namespace": "rehearsal", "labels": labels},
        "spec": {
            "clusterName": "first",
            "engines": [{"name": "main", "copies": 1, "members": [member]}],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


# Keep the C allocator from giving memory back between large requests, only to ask for it again.
#
# A large request passes through gRPC as one block of its size several times over. By default glibc returns
# such blocks to the kernel at once, so the next request faults in every page anew, which takes longer than
# reading it; and each thread has a heap of its own, so that the peaks add up. One heap that keeps what it
# has is faster and its peak is smaller: after a large request the process stays as large as that request
# made it.

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""
_ALWAYS = 1 << 30
_MAX_MMAP_THRESHOLD = 32 << 20
"""The largest mmap threshold that every glibc takes."""


def keep_memory() -> bool:
    """Tell the allocator, where it is glibc's; return whether it listened. Call it before threads start."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mapped = mallopt(_MMAP_THRESHOLD, _ALWAYS) or mallopt(_MMAP_THRESHOLD, _MAX_MMAP_THRESHOLD)
        return bool(mapped and mallopt(_TRIM_THRESHOLD, _ALWAYS) and mallopt(_ARENA_MAX, 1))
    return False


NOTICE = 0.5
"""Seconds between saying NOT_SERVING and refusing calls, so that whoever asks can hear it."""

# Seconds of silence on a connection until its client is asked for a sign of life, and until it is given up.
_PING, _PONG = 30, 10

# Seconds a thread may keep the interpreter while others wait for it: the loop must get its turn.
_TURN = 0.001


def serve(settings: Settings, build: Callable[[Metrics], Function], log: Any) -> int:
    """Serve what `build` makes until a signal says to stop; return 0.

    When calls outlast the grace, the process ends with 1.

    Raises:
        CannotStart: when it cannot listen; `build`, which takes longer, is not called then.
    """
    keep_memory()
    sys.setswitchinterval(_TURN)
    code = asyncio.run(_serve(settings, build, log))
    if code:  # A thread cannot be interrupted, and a normal exit would wait for it.
        os._exit(code)
    return code


async def _serve(settings: Settings, build: Callable[[Metrics], Function], log: Any) -> int:
    """Serve on a loop: bind, build, rehearse, serve; then NOT_SERVING, and the grace for calls in flight."""
    stop = _stop_signals()
    # A client looks the Service's addresses up when a connection ends. Ending each one after a while, once
    # its calls are answered (GOAWAY), lets clients find copies that were added since. Pings find out clients
    # that are gone without a word; clients may ping as often as they like for the same reason.
    options = [
        ("grpc.max_receive_message_length", settings.max_recv_message_size * MEBI),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),  # The port is ours alone, or not ours.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", WINDOW),
        ("grpc.max_connection_age_ms", round(settings.max_connection_age * 1000)),
        ("grpc.keepalive_time_ms", _PING * 1000),
        ("grpc.keepalive_timeout_ms", _PONG * 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),
        ("grpc.http2.max_ping_strikes", 0),
    ]
    server = grpc.aio.server(options=options)
    port = _listen(server, settings, log)
    metrics = Metrics()
    function = build(metrics)
    runner = Runner(function, settings, metrics)
    runner.register(server)
    health = await add_health(server, settings)
    add_reflection(server, settings)
    metrics.watch_intake(runner.intake)
    if function.memory is not None:
        metrics.watch(function.memory)
    metrics_port = _serve_metrics(settings, metrics)
    build_validators()  # Those of the other kinds too, which no rehearsal parses.
    rehearse(type(function)(Silence()).answer)
    collect_seldom()  # Before it is served: the first call would wait for it.
    await server.start()
    if settings.max_held_size < 2 * settings.max_recv_message_size:
        log.warning("requests are received one by one", reason="max-held-size < 2 x max-recv-message-size")
    reuse_size = 0 if function.memory is None else settings.reuse_bytes // MEBI
    log.info(
        "serving",
        port=port,
        insecure=settings.insecure,
        metrics_port=metrics_port,
        reuse_size=reuse_size,
    )
    await stop.wait()
    log.info("stopping", calls=runner.calls)
    await health.enter_graceful_shutdown()
    await notice_given(settings)
    await server.stop(settings.grace)
    log.info("stopped", unfinished=runner.unfinished)
    return 1 if runner.unfinished else 0


async def notice_given(settings: Settings) -> None:
    """Wait until whoever asks has heard that the server stops."""
    await asyncio.sleep(min(NOTICE, settings.grace))


def _stop_signals() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets. A second signal kills, as it would without us."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def received(number: signal.Signals) -> None:
        """Stop at the first signal, and leave a second one to its default: it ends the process."""
        loop.remove_signal_handler(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, received, number)
    return stop


def _listen(server: Any, settings: Settings, log: Any) -> int:
    """Open the one listener: plaintext when told so, whatever certificates there are; mTLS otherwise."""
    host_and_port(settings.address)
    try:
        if settings.insecure:
            return int(server.add_insecure_port(settings.address))
        if settings.certificates is None:
            raise CannotStart("neither --tls-certs-dir nor --insecure was given")
        credentials = Certificates(settings.certificates, log).credentials()
        return int(server.add_secure_port(settings.address, credentials))
    except RuntimeError:
        raise CannotStart(f"cannot listen on {settings.address}: is the port taken?") from None


def _serve_metrics(settings: Settings, metrics: Metrics) -> int | None:
    """Open the metrics port, if one was asked for; return it."""
    if settings.metrics_address is None:
        return None
    host, port = host_and_port(settings.metrics_address)
    try:
        server, _ = start_http_server(port, addr=host, registry=metrics.registry)
    except OSError as error:
        raise CannotStart(f"cannot serve metrics on {settings.metrics_address}: {error.strerror}") from None
    return int(server.server_port)
