"""What a request weighs, by kind of object: python -m bench.paper."""

from __future__ import annotations

import argparse
import random

from bench.encode import struct_of
from bench.fleets import SIZES, Size, by_charges, fleet

SAMPLE = 40
"""Objects weighed of each kind."""
PAPER = (*SIZES[2:], Size(5000, 8, 50_000), Size(10_000, 8, 100_000))


def weights(size: Size) -> tuple[float, float, float]:
    """Return the MB of a fleet's clusters and replicas, and of clusters that publish what is charged to them.

    They are weighed on a few, with as many replicas for each cluster as the fleet has.
    """
    draw = random.Random(1)
    few = fleet(Size(SAMPLE, size.pools, SAMPLE * size.replicas // size.clusters, size.gangs))
    cluster, replica, charged = (
        sum(len(struct_of(draw, document)) for document in kind) / len(kind)
        for kind in (few.clusters, few.replicas, by_charges(few).clusters)
    )
    return size.clusters * cluster / 1e6, size.replicas * replica / 1e6, size.clusters * charged / 1e6


def main() -> None:
    """Print one line for each size."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for size in PAPER:
        clusters, replicas, charged = weights(size)
        every = f"clusters {clusters:.0f} MB, replicas {replicas:.0f} MB, all {clusters + replicas:.0f} MB"
        print(f"{size}: {every}; published {charged:.0f} MB ({charged / (clusters + replicas):.0%})")


if __name__ == "__main__":
    main()
