"""What the very first call of a process costs beside a cold one: python -m bench.first [--rounds 10].

First: a small fleet, asked about as soon as a fresh server takes calls. Cold: the same request to another
fresh server, after it has answered one about another fleet. They take turns; the ratio in one round is the
figure.
"""

from __future__ import annotations

import statistics

import click

from bench.encode import Requests
from bench.fleets import SIZES, fleet
from bench.server import server

SEEDS = 1_000
"""Beyond them are the seeds of the other fleets."""


def measured(seed: int) -> tuple[float, float]:
    """Return the milliseconds of a first call and of a cold one about the same fleet."""
    content, other = (Requests(fleet(SIZES[0], number)).next() for number in (seed, SEEDS + seed))
    with server() as fresh:
        first, _ = fresh.timed(content)
    with server() as started:
        started.call(other)
        cold, _ = started.timed(content)
    return first, cold


@click.command()
@click.option("--rounds", default=10, show_default=True, help="Fresh servers of each sort.")
def main(rounds: int) -> None:
    """Print the medians."""
    rows = [measured(seed) for seed in range(1, rounds + 1)]
    first, cold = (statistics.median(times) for times in zip(*rows, strict=True))
    ratio = statistics.median(one / other for one, other in rows)
    print(f"first {first:.0f} ms, cold {cold:.0f} ms, {ratio:.1f} x")


if __name__ == "__main__":
    main()
