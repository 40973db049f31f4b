"""What a request weighs, by kind of object: python -m bench.paper."""

from __future__ import annotations

import random

from bench.encode import struct_of
from bench.fleets import SIZES, Size, fleet

SAMPLE = 40
"""Objects weighed of each kind."""
PAPER = (*SIZES[2:], Size(5000, 8, 50_000), Size(10_000, 8, 100_000))


def weights(size: Size) -> tuple[float, float]:
    """Return the MB of the clusters and of the replicas of a fleet, weighed on a few of them."""
    draw = random.Random(1)
    few = fleet(Size(SAMPLE, size.pools, SAMPLE * 4, size.gangs))
    cluster, replica = (
        sum(len(struct_of(draw, document)) for document in kind) / len(kind)
        for kind in (few.clusters, few.replicas)
    )
    return size.clusters * cluster / 1e6, size.replicas * replica / 1e6


if __name__ == "__main__":
    for size in PAPER:
        clusters, replicas = weights(size)
        total = clusters + replicas
        print(f"{size}: clusters {clusters:.0f} MB, replicas {replicas:.0f} MB, all {total:.0f} MB")
