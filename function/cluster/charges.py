"""What the replicas on a cluster hold of a pool, summed for deployments that do not read all replicas.

Each deployment's share is told apart: a reader takes its own share out and adds its own replicas, which it
knows better, so each of them counts exactly once however old the sum is.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api import ModelReplica


def charged(pool: str, replicas: Iterable[ModelReplica]) -> dict[str, Any]:
    """Return `{nodes, by: [{deployment, replicas, nodes}]}` of one pool, sorted by deployment."""
    shares: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for replica in replicas:
        nodes = replica.nodes.get(pool, 0)
        if nodes:
            share = shares[f"{replica.namespace}/{replica.deployment}"]
            share[0] += 1
            share[1] += nodes
    by = [
        {"deployment": name, "replicas": count, "nodes": nodes}
        for name, (count, nodes) in sorted(shares.items())
    ]
    return {"nodes": sum(share["nodes"] for share in by), **({"by": by} if by else {})}
