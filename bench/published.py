"""What `capacity: Published` saves, beside full lists: python -m bench.published [--sizes 2].

The same fleet in both modes, in this process: once with every replica, once with what the clusters publish of
them and the deployment's own. Processor time, so that what else runs on the machine does not count; cold and
warm are those of `python -m bench`, gRPC aside. The third size needs 6 GB.
"""

from __future__ import annotations

import random
import statistics
import time

import click
from rich.console import Console
from rich.table import Table

from bench.__main__ import CHURN, MEBI, Counting, Transform
from bench.encode import Requests
from bench.fleets import SIZES, Fleet, Size, by_charges, churn, fleet
from function.boundary.memory import Memory
from function.runner import Function
from function.server.intake import collect, collect_seldom

LARGEST = Size(10_000, 8, 100_000)
STARTS = 3
"""Fresh functions that a cold call is taken from."""


def as_it_is(fleet: Fleet) -> Fleet:
    """Return the fleet with every replica listed."""
    return fleet


MODES: dict[str, Transform] = {"Replicas": as_it_is, "Published": by_charges}


def spent(function: Function, content: bytes) -> float:
    """Return the milliseconds of processor time of a call."""
    started = time.process_time()
    function.answer(content)
    taken = (time.process_time() - started) * 1000
    collect()  # As a server does: after the call.
    return taken


def measure(size: Size, seed: int, calls: int, transform: Transform) -> list[str]:
    """Return request, cold and warm of one size in one mode."""
    draw = random.Random(seed)
    requests, small = Requests(transform(fleet(size, seed))), Requests(fleet(SIZES[0], seed + 1)).next()
    cold, warm = [], []
    for _ in range(STARTS):
        function = Function(log=Counting(), memory=Memory(512 * MEBI))
        function.answer(small)  # What a process does once in its life is not what is measured.
        collect_seldom()
        cold.append(spent(function, requests.next()))
    for _ in range(calls):
        requests.refresh(churn(draw, requests.fleet, CHURN))
        warm.append(spent(function, requests.next()))
    times = [f"{statistics.median(taken):,.0f} ms" for taken in (cold, warm)]
    return [f"{len(requests.next()) / 1e6:.1f} MB", *times]


@click.command(help=__doc__)
@click.option("--seed", default=1, show_default=True, help="Seed of the fleets.")
@click.option("--calls", default=5, show_default=True, help="Warm calls of each size and mode.")
@click.option("--sizes", default=2, show_default=True, help="How many of 1,000, 2,000 and 10,000 clusters.")
def main(*, seed: int, calls: int, sizes: int) -> None:
    """Measure, and print the table."""
    made = Table(title="medians of processor time")
    for head in ("clusters x pools, replicas", "capacity", "request", "cold", "warm"):
        made.add_column(head, justify="right", no_wrap=True)
    for size in (*SIZES[2:], LARGEST)[:sizes]:
        for mode, transform in MODES.items():
            made.add_row(str(size), mode, *measure(size, seed, calls, transform))
    Console(width=140).print(made)


if __name__ == "__main__":
    main()
