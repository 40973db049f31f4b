"""What a server bears, over real gRPC on loopback: python -m bench.serving [--seconds 60] [--clusters 100].

Throughput: so many calls at a time, one after the other, on a warm server; every call has the same fleet in
other bytes. Health: what asking for it takes while large requests run. Start: how long a server that cannot
start takes to say so. Who asks is a process of its own, with its requests written beforehand. parse: the
protobuf parse in C of the same requests, in the same run: what a time is worth on another machine.
"""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import grpc
from crossplane.function.proto.v1 import run_function_pb2 as pb
from grpc_health.v1 import health_pb2, health_pb2_grpc
from rich.console import Console
from rich.table import Table

from bench.encode import Requests
from bench.fleets import Size, fleet
from bench.server import LIMIT, METHOD, server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BODIES = 12
"""Requests written beforehand: the same fleet, each in an order of its own."""
POOLS = 2
LARGE = Size(1_000, 4, 5_000)
LARGE_AT_ONCE = 4
PAUSE = 0.01
"""Seconds between two questions for health."""
PATIENCE = 60.0
OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", LIMIT << 20)]

AT_LEAST, HEALTH_AT_MOST, START_AT_MOST = 80.0, 0.5, 2.0
"""The bounds: requests a second, seconds of the 99th percentile, seconds until a failed start ends."""


@dataclass(frozen=True)
class Load:
    """What came of calling for a while. Times in seconds."""

    spent: float
    times: list[float]
    errors: int

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.times) / self.spent


def bodies(size: Size, number: int, seed: int) -> list[bytes]:
    """Return requests for one fleet, in as many orders."""
    requests = Requests(fleet(size, seed), seed)
    return [requests.next() for _ in range(number)]


def called(address: str, contents: Sequence[bytes], at_once: int, seconds: float) -> Load:
    """Call for so many seconds, so many at a time."""
    with grpc.insecure_channel(address, OPTIONS) as channel, ThreadPoolExecutor(at_once) as pool:
        call = channel.unary_unary(METHOD)  # type: ignore[call-arg]
        started = time.perf_counter()
        until = started + seconds

        def repeat(first: int) -> tuple[list[float], int]:
            times, errors, turn = [], 0, first
            while (begun := time.perf_counter()) < until:
                try:
                    call(contents[turn % len(contents)], timeout=PATIENCE)
                    times.append(time.perf_counter() - begun)
                except grpc.RpcError:
                    errors += 1
                turn += 1
            return times, errors

        results = list(pool.map(repeat, range(at_once)))
        spent = time.perf_counter() - started
    return Load(
        spent, [spell for times, _ in results for spell in times], sum(errors for _, errors in results)
    )


def health_times(address: str, seconds: float) -> list[float]:
    """Ask for health for so many seconds; return what each answer took."""
    times = []
    with grpc.insecure_channel(address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        until = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < until:
            answer = health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            times.append(time.perf_counter() - begun)
            time.sleep(PAUSE)
    return times


def parsed(contents: Sequence[bytes]) -> float:
    """Return the seconds the protobuf runtime takes to parse one of the requests."""
    times = []
    for content in contents:
        begun = time.perf_counter()
        pb.RunFunctionRequest.FromString(content)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def clients(number: int) -> ProcessPoolExecutor:
    """Return processes to ask from. They are new ones: gRPC does not live through a fork."""
    return ProcessPoolExecutor(number, multiprocessing.get_context("spawn"))


def throughput(table: Table, size: Size, seed: int, at_once: int, seconds: float) -> None:
    """Add what a warm server answers in a second."""
    contents = bodies(size, BODIES, seed)
    with server() as running, clients(1) as pool:
        pool.submit(called, running.address, contents, at_once, min(3.0, seconds)).result()  # To be warm.
        load = pool.submit(called, running.address, contents, at_once, seconds).result()
    what = f"{size.clusters:,} clusters, {size.replicas:,} replicas, {at_once} at a time, {seconds:.0f} s"
    _row(table, what, f">= {AT_LEAST:.0f}/s", load, load.times, contents)


def health(table: Table, seed: int, seconds: float) -> None:
    """Add what asking for health takes while large requests run."""
    contents = bodies(LARGE, LARGE_AT_ONCE, seed)
    with server() as running, clients(2) as pool:
        pool.submit(health_times, running.address, 1.0).result()  # Both processes are up before it counts.
        large = pool.submit(called, running.address, contents, LARGE_AT_ONCE, seconds)
        times = pool.submit(health_times, running.address, seconds).result()
        load = large.result()
    what = f"health, {len(times):,} times, while {LARGE_AT_ONCE} requests of {LARGE.clusters:,} clusters run"
    _row(table, what, f"p99 <= {HEALTH_AT_MOST * 1000:.0f} ms", load, times, contents)


def _row(
    table: Table, what: str, bound: str, load: Load, times: Sequence[float], contents: Sequence[bytes]
) -> None:
    """Add what came of a load, and of the `times` that are looked at."""
    parse = parsed(contents)
    table.add_row(
        what,
        f"{len(contents[0]) / 1e6:.2f} MB",
        f"{load.rate:.1f}/s",
        bound,
        str(load.errors),
        *_percentiles(times),
        f"{parse * 1000:.2f} ms",
        f"{1 / load.rate / parse:.1f}",
    )


def _percentiles(times: Sequence[float]) -> list[str]:
    """Return the median, the 99th percentile and the largest."""
    figures = (statistics.median(times), statistics.quantiles(times, n=100)[98], max(times))
    return [f"{figure * 1000:.0f} ms" for figure in figures]


def started() -> Table:
    """Return how long a server that cannot start takes to end, with what exit code and how many lines."""
    made = Table(title=f"cannot start: at most {START_AT_MOST:.0f} s, exit code not 0, one line")
    for head in ("why", "seconds", "exit code", "lines", "said"):
        made.add_column(head, overflow="fold")
    for why, flags in _impossible():
        begun = time.perf_counter()
        command = [sys.executable, "-c", "from function.main import main; main()", *flags]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
        spent = time.perf_counter() - begun
        lines = (ended.stdout + ended.stderr).splitlines()
        made.add_row(why, f"{spent:.2f}", str(ended.returncode), str(len(lines)), lines[-1])
    return made


def _impossible() -> Iterator[tuple[str, list[str]]]:
    """Yield flags with which no server can start, and why."""
    yield "neither certificates nor --insecure", []
    with tempfile.TemporaryDirectory() as name:
        yield "certificates missing", ["--tls-certs-dir", name]
        for file in ("tls.key", "tls.crt", "ca.crt"):
            (Path(name) / file).write_text("garbled")
        yield "certificates garbled", ["--tls-certs-dir", name]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        yield "port taken", ["--insecure", "--address", address]
        free = ["--insecure", "--address", "127.0.0.1:0"]
        yield "metrics port taken", [*free, "--metrics-address", address]


@click.command(help=__doc__)
@click.option("--seed", default=1, show_default=True, help="Seed of the fleets.")
@click.option("--seconds", default=60.0, show_default=True, help="How long each part is measured.")
@click.option("--concurrency", default=16, show_default=True, help="Calls at a time.")
@click.option("--clusters", default=100, show_default=True, help="Clusters of the fleet.")
def main(*, seed: int, seconds: float, concurrency: int, clusters: int) -> None:
    """Measure, and print the tables."""
    table = Table(title="x: seconds of one call at this rate, in parses in C of the same request")
    for head in ("", "request", "rate", "bound", "errors", "p50", "p99", "max", "parse in C", "x"):
        table.add_column(head, justify="right", overflow="fold")
    for replicas in (10, 10 * clusters):  # Ten in all, and ten on each.
        throughput(table, Size(clusters, POOLS, replicas), seed, concurrency, seconds)
    health(table, seed, min(seconds, 20.0))
    console = Console(width=150)
    console.print(table)
    console.print(started())


if __name__ == "__main__":
    main()
