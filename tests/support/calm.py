"""A calm world: nothing is missing and nothing changes, until a test spoils one thing."""

from __future__ import annotations

from tests.support import build
from tests.support.world import World

LABELS = {"modelplane.ai/tier": "production"}
FRAGMENT = 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'


def settled(*, cache: bool = False) -> World:
    """Two Ready replicas with endpoints on clusters a and b, and a foreign replica on c."""
    deployment = build.deployment(
        "my-model",
        2,
        [build.engine("main", [build.member(devices=[build.request("gpu", 8, FRAGMENT)])])],
        match=LABELS,
        cache="weights" if cache else None,
        conditions=[build.condition("ReplicasScheduled", status=True, reason="ReplicasCreated")],
    )
    own_replicas = [build.replica(deployment, on, 0, ready=True) for on in "ab"]
    foreign = build.deployment("other", 1, namespace="other-team")
    return World(
        deployment,
        clusters=[build.cluster(on, [build.pool("h100", 4)], labels=LABELS) for on in "abc"],
        replicas=[*own_replicas, build.replica(foreign, "c", 0, ready=True)],
        observed=build.observed(
            *own_replicas, endpoints=[build.endpoint(replica) for replica in own_replicas]
        ),
        cache=[build.cache("weights", LABELS)] if cache else None,
    )


def calm_and_busy() -> list[World]:
    """A settled world, and one in which everything happens at once."""
    busy = settled()
    busy.deployment["spec"]["replicas"] = 7
    busy.clusters[0]["spec"]["taints"] = [
        {"key": key, "effect": effect} for key in "xyz" for effect in ("NoSchedule", "NoExecute")
    ]
    busy.clusters[1]["spec"]["nodePools"] = [{"name": "renamed"}]
    calm = settled()
    calm.clusters[0]["spec"]["taints"] = []
    return [calm, busy]
