"""Time and work on large fleets, over real gRPC: python -m bench [--largest] [--misspelt] [--profile].

cold: the first large request of a fresh server. warm: the fleet unchanged but for a few objects. parse: the
protobuf parse in C of the same bytes, in this process, right after each call: the ratio to it is the figure
that means something on another machine. work: what the counters say of one cold and one warm call.
"""

from __future__ import annotations

import cProfile
import gc
import json
import platform
import pstats
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from crossplane.function.proto.v1 import run_function_pb2 as pb
from rich.console import Console
from rich.table import Table

from bench import fleets
from bench.encode import Requests
from bench.fleets import SIZES, Fleet, Size, churn, fleet
from bench.server import server
from function.boundary.memory import Memory
from function.runner import Function

Transform = Callable[[Fleet], Fleet]
"""What is asked of a fleet."""

MEBI = 1024 * 1024
STARTS = 5
"""Fresh servers that a cold call is taken from, for each size."""
CHURN = 10
"""Objects that change between two warm calls."""


@dataclass
class Row:
    """The figures of one size, times in milliseconds."""

    size: Size
    request: int = 0
    response: int = 0
    parse: list[float] = field(default_factory=list)
    """Of the parse right after each warm call."""
    cold: list[float] = field(default_factory=list)
    parse_cold: list[float] = field(default_factory=list)
    """Of the parse right after each cold call."""
    warm: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    """Of the server, for each warm call: what else runs on the machine disturbs it least."""
    peak: float = 0.0
    work: dict[str, dict[str, int]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return vars(self) | {"size": vars(self.size)}


class Counting:
    """A log that keeps what the latest call said of its work."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}

    def info(self, _: str, **said: Any) -> None:
        """Keep it."""
        self.said = said

    warning = error = info


def parsed(content: bytes) -> float:
    """Return the milliseconds the protobuf runtime takes to parse a request."""
    gc.disable()
    started = time.perf_counter()
    pb.RunFunctionRequest.FromString(content)
    spent = (time.perf_counter() - started) * 1000
    gc.enable()
    return spent


def counted(requests: Requests, draw: random.Random) -> dict[str, dict[str, int]]:
    """Return the work of a cold and of a warm call."""
    log = Counting()
    function = Function(log=log, memory=Memory(512 * MEBI))
    work = {}
    for name in ("cold", "warm"):
        function.answer(requests.next())
        work[name] = {**log.said["counts"], "parsed": log.said["parsed"], "reused": log.said["reused"]}
        requests.refresh(churn(draw, requests.fleet, CHURN))
    return work


def measure(size: Size, seed: int, calls: int, transform: Transform) -> Row:
    """Measure one size."""
    draw = random.Random(seed)
    requests, small = Requests(transform(fleet(size, seed))), Requests(fleet(SIZES[0], seed + 1)).next()
    row = Row(size)
    for _ in range(STARTS):
        with server() as running:
            running.call(small)  # What a process does once in its life is not what is measured.
            content = requests.next()
            spent, response = running.timed(content)
            row.cold.append(spent)
            row.parse_cold.append(parsed(content))
            row.peak = max(row.peak, running.peak)
    with server() as running:
        running.call(requests.next())
        for _ in range(calls):
            requests.refresh(churn(draw, requests.fleet, CHURN))
            content = requests.next()
            before = running.processor
            spent, response = running.timed(content)
            row.warm.append(spent)
            row.processor.append(running.processor - before)
            row.parse.append(parsed(content))
        row.peak = max(row.peak, running.peak)
    row.request, row.response = len(content), len(response)
    row.work = counted(requests, draw)
    return row


def table(rows: list[Row]) -> Table:
    """Return the figures as a table."""
    interpreter = f"Python {platform.python_version()}"
    made = Table(title=f"median (min - max) in ms; x: times the parse in C beside it; {interpreter}")
    heads = (
        "clusters x pools, replicas",
        "request",
        "response",
        "parse in C",
        "cold",
        "x",
        "warm",
        "x",
        "processor",
        "peak RSS",
    )
    for head in heads:
        made.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(
            str(row.size),
            f"{row.request / 1e6:.1f} MB",
            f"{row.response / 1e3:.0f} kB",
            _spread(row.parse),
            _spread(row.cold),
            _times(row.cold, row.parse_cold),
            _spread(row.warm),
            _times(row.warm, row.parse),
            f"{statistics.median(row.processor):.1f}",
            f"{row.peak:.0f} MB",
        )
    return made


def _times(spent: list[float], parse: list[float]) -> str:
    """How many times the parse beside it a call took, in the median: machines have their spells."""
    return f"{statistics.median(one / other for one, other in zip(spent, parse, strict=True)):.1f}"


def _spread(times: list[float]) -> str:
    return f"{statistics.median(times):.0f} ({min(times):.0f} - {max(times):.0f})"


def work_table(rows: list[Row]) -> Table:
    """Return the work counters as a table."""
    names = ("cel_evaluations", "cel_reused", "pool_matches", "parsed", "reused")
    made = Table(title="work of one call")
    for head in ("clusters x pools, replicas", "", *names):
        made.add_column(head, justify="right")
    for row in rows:
        for name, work in row.work.items():
            made.add_row(str(row.size), name, *(f"{work.get(counter, 0):,}" for counter in names))
    return made


def profile(size: Size, seed: int, transform: Transform) -> None:
    """Print where the time of a cold and of a warm call goes."""
    draw = random.Random(seed)
    requests = Requests(transform(fleet(size, seed)))
    function = Function(log=Counting(), memory=Memory(512 * MEBI))
    function.answer(Requests(fleet(SIZES[0], seed + 1)).next())
    for name in ("cold", "warm"):
        content = requests.next()
        profiler = cProfile.Profile()
        profiler.runcall(function.answer, content)
        print(f"== {name}: {size}")
        pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(25)
        requests.refresh(churn(draw, requests.fleet, CHURN))


@click.command(help=__doc__)
@click.option("--seed", default=1, show_default=True, help="Seed of the fleets.")
@click.option("--calls", default=7, show_default=True, help="Warm calls of each size.")
@click.option("--sizes", default=3, show_default=True, help="How many sizes, from the smallest.")
@click.option("--largest", is_flag=True, help="All sizes: the last takes minutes and 2 GB.")
@click.option("--profile", "profiled", is_flag=True, help="Print where the time goes instead.")
@click.option("--misspelt", is_flag=True, help="Ask about a deployment that has a mistake, so no place.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the figures to a file too.")
def main(  # noqa: PLR0913 - one for each option
    *, seed: int, calls: int, sizes: int, largest: bool, profiled: bool, misspelt: bool, path: Path | None
) -> None:
    """Measure, and print the table."""
    chosen = SIZES if largest else SIZES[:sizes]
    transform: Transform = fleets.misspelt if misspelt else lambda plain_fleet: plain_fleet
    if profiled:
        profile(chosen[-1], seed, transform)
        return
    rows = [measure(size, seed, calls, transform) for size in chosen]
    console = Console(width=160)
    console.print(table(rows))
    console.print(work_table(rows))
    if path is not None:
        path.write_text(json.dumps([row.plain() for row in rows], indent=1))


if __name__ == "__main__":
    main()
