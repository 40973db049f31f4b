"""How many more replicas Device accounting places than Node accounting, on fleets like real ones.

Deployments of one replica arrive in an order drawn from a seed, with sizes drawn from a mix, until none of
the mix fits any more; both fleets see the same arrivals. Run: python -m bench.accounting
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from typing import Any

from function.boundary import PlainDocument, Request
from function.deployment.handler import run

GPU = "gpu.nvidia.com"
Plain = dict[str, Any]


@dataclass(frozen=True)
class Fleet:
    """A pool of equal nodes and what is asked of it: GPUs per pod, pods per replica, weight."""

    name: str
    nodes: int
    gpus: int
    mix: tuple[tuple[int, int, int], ...]


FLEETS = (
    Fleet(
        "chat models, tensor parallel 1 to 8, on 16 x 8 H100",
        16,
        8,
        ((1, 1, 4), (2, 1, 3), (4, 1, 2), (8, 1, 1)),
    ),
    Fleet("small models only, 1 GPU each, on 16 x 8 H100", 16, 8, ((1, 1, 1),)),
    Fleet("tensor parallel 2 and 4, on 16 x 8 H100", 16, 8, ((2, 1, 2), (4, 1, 1))),
    Fleet("half nodes and gangs of 2 x 8, on 16 x 8 H200", 16, 8, ((4, 1, 2), (8, 2, 1))),
    Fleet("whole nodes and gangs only, on 16 x 8 H200", 16, 8, ((8, 1, 2), (8, 2, 1))),
    Fleet("3 of 8 GPUs each, on 16 x 8 A100", 16, 8, ((3, 1, 1),)),
    Fleet("embedding models on 24 x 4 L4", 24, 4, ((1, 1, 3), (2, 1, 1))),
    Fleet(
        "MIG slices, 1 to 3 of 7, on 12 nodes with 4 x 7",
        12,
        28,
        ((1, 1, 3), (2, 1, 2), (3, 1, 1), (14, 1, 1)),
    ),
)
SEEDS = range(3)


def cluster(fleet: Fleet, accounting: str) -> Plain:
    """One cluster with one pool."""
    device = {"name": "gpu", "driver": GPU, "deviceClassName": GPU, "count": fleet.gpus}
    pool = {"name": "pool", "nodes": fleet.nodes, "devices": [device], "accounting": accounting}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": "cluster"},
        "spec": {"nodePools": [{"name": "pool"}]},
        "status": {"conditions": ready, "gateway": {"address": "203.0.113.1"}, "gpuPools": [pool]},
    }


def deployment(number: int, gpus: int, pods: int) -> Plain:
    """A deployment of one replica of so many pods with so many GPUs each."""
    devices = [{"name": "gpu", "count": gpus, "selectors": [{"cel": f'device.driver == "{GPU}"'}]}]
    members: list[Plain] = [{"role": "Standalone", "nodeSelector": {"devices": devices}}]
    if pods > 1:
        leader = {"role": "Leader", "nodeSelector": {"devices": devices}}
        worker = {"role": "Worker", "worker": {"nodes": pods - 1}, "nodeSelector": {"devices": devices}}
        members = [leader, worker]
    return {
        "metadata": {"name": f"model-{number}", "namespace": "ml", "uid": f"uid-{number}"},
        "spec": {"replicas": 1, "template": {"spec": {"engines": [{"name": "main", "members": members}]}}},
    }


def placed(fleet: Fleet, accounting: str, seed: int) -> int:
    """How many replicas find a place before none of the mix does."""
    draw = random.Random(seed)
    held: list[PlainDocument] = []
    where = PlainDocument(cluster(fleet, accounting))
    open_to = list(fleet.mix)
    number = 0
    while open_to:
        chosen = draw.choices(open_to, weights=[weight for *_, weight in open_to])[0]
        number += 1
        request = Request(
            PlainDocument(deployment(number, chosen[0], chosen[1])),
            required={"clusters": (where,), "all-replicas": tuple(held)},
        )
        desired = run(request).desired
        held += [PlainDocument(resource.resource) for resource in desired.values()]
        if not desired:
            open_to.remove(chosen)
    return len(held)


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"| fleet and mix | Node | Device | factor |\n|{'---|' * 4}")
    for fleet in FLEETS:
        node = sum(placed(fleet, "Node", seed) for seed in SEEDS) / len(SEEDS)
        device = sum(placed(fleet, "Device", seed) for seed in SEEDS) / len(SEEDS)
        print(f"| {fleet.name} | {node:.1f} | {device:.1f} | {device / node:.2f} |")


if __name__ == "__main__":
    main()
