"""What `capacity: Published` saves, beside full lists: python -m bench.published [--sizes 3].

The same fleet in both modes, over real gRPC: once with every replica, once with what the clusters publish of
them and the deployment's own. Cold and warm are those of `python -m bench`.
"""

from __future__ import annotations

import statistics

import click
from rich.console import Console
from rich.table import Table

from bench.__main__ import Row, Transform, measure
from bench.fleets import SIZES, Fleet, Size, by_charges

LARGEST = Size(10_000, 8, 100_000)
STARTS = 2
"""Fresh servers that a cold call is taken from."""


def as_it_is(found: Fleet) -> Fleet:
    """Return the fleet with every replica listed."""
    return found


MODES: dict[str, Transform] = {"Replicas": as_it_is, "Published": by_charges}


def row_of(mode: str, row: Row) -> list[str]:
    """Return one line of the table."""
    cold, warm, parse = (statistics.median(times) for times in (row.cold, row.warm, row.parse))
    times = [f"{parse:,.0f} ms", f"{cold:,.0f} ms", f"{warm:,.0f} ms"]
    return [str(row.size), mode, f"{row.request / 1e6:.1f} MB", *times, f"{row.peak:,.0f} MB"]


@click.command(help=__doc__)
@click.option("--seed", default=1, show_default=True, help="Seed of the fleets.")
@click.option("--calls", default=3, show_default=True, help="Warm calls of each size and mode.")
@click.option("--sizes", default=2, show_default=True, help="How many of 1,000, 2,000 and 10,000 clusters.")
def main(*, seed: int, calls: int, sizes: int) -> None:
    """Measure, and print the table."""
    made = Table(title="medians")
    heads = ("clusters x pools, replicas", "capacity", "request", "parse in C", "cold", "warm", "peak RSS")
    for head in heads:
        made.add_column(head, justify="right", no_wrap=True)
    for size in (*SIZES[2:], LARGEST)[:sizes]:
        for mode, transform in MODES.items():
            made.add_row(*row_of(mode, measure(size, seed, calls, transform, STARTS)))
    Console(width=140).print(made)


if __name__ == "__main__":
    main()
