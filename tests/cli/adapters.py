"""Adapters and the replicas that they stand on, as files of the command line have them."""

from __future__ import annotations

from typing import Any

from tests.support import build

Plain = dict[str, Any]

OLDER, NEWER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
"""Times at which adapters were made: the older one comes first."""


def adapter(name: str, created: str, **spec: Any) -> Plain:
    """Return a ModelAdapter of the deployment `chat`."""
    metadata = {"name": name, "namespace": "ml-team", "creationTimestamp": created}
    return {
        "apiVersion": build.API,
        "kind": "ModelAdapter",
        "metadata": metadata,
        "spec": {"base": {"deploymentName": "chat"}, "source": f"acme/{name}", **spec},
    }


def placement(adapter_name: str, replica: str) -> Plain:
    """Return the placement of an adapter, as it stands."""
    return {
        "apiVersion": build.API,
        "kind": "ModelAdapterPlacement",
        "metadata": {"name": f"{adapter_name}-{replica}", "namespace": "ml-team"},
        "spec": {"adapter": adapter_name, "replica": replica, "source": f"acme/{adapter_name}"},
    }


def running(slots: int = 1) -> list[Plain]:
    """Return two replicas that run, each on a cluster of its own, and their deployment."""
    parent = build.deployment("chat", 2)
    parent["spec"]["template"]["spec"]["engines"][0]["adapters"] = {"slots": slots}
    replicas = [build.replica(parent, cluster, 0, ready=True) for cluster in ("east", "west")]
    for replica in replicas:
        replica["spec"]["engines"][0]["adapters"] = {"slots": slots}
    clusters = [build.cluster(name, [build.pool("h100", 1)]) for name in ("east", "west")]
    return [*clusters, parent, *replicas]


EAST, WEST = (build.composed_name("chat", cluster, 0) for cluster in ("east", "west"))
