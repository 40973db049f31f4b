"""Random worlds whose deployments look at more than room and labels: at how far a cache is staged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.oracle.staged import digest
from tests.support import build, generate
from tests.support.optins import DISRUPTIONS, aged, staged
from tests.support.parts import Source

if TYPE_CHECKING:
    from tests.support.world import World

STAGING = generate.Taste(doubt=0.0, oddity=0.05, own_replicas=1.0, edits=0.5)
DOUBTFUL = generate.Taste(doubt=0.3, oddity=0.25, own_replicas=1.0, edits=0.5)
BROKEN: tuple[Any, ...] = ("broken", {"gpuPools": [None]}, {"gpuPools": "none"})
"""Statuses of a cluster that nobody can read."""


def world(seed: int) -> World:
    """Return the world of a seed: one of `generate`, with a policy."""
    made, draw = generate.world(seed).copy(), Source(f"changes {seed}")
    staged(draw, made)
    if made.cache is not None and draw.odds(0.8):
        made.deployment["spec"].setdefault("placement", {})["cache"] = draw.choice(("Prefer", "Require"))
    if draw.odds(0.6):
        made.deployment["spec"].setdefault("placement", {})["evacuate"] = {"afterSeconds": 3600}
        aged(draw, made)
        _struck(draw, made)
    return made


def lost_nodes(seed: int) -> World:
    """Return a world in which clusters know of nodes that cannot be used, rightly or not."""
    made, draw = generate.world(seed).copy(), Source(f"lost nodes {seed}")
    for cluster in made.clusters or ():
        status = cluster.get("status")
        pools = status.get("gpuPools") if isinstance(status, dict) else None
        for pool in pools if isinstance(pools, list) else ():
            if isinstance(pool, dict) and draw.odds(0.6):
                nodes = min(pool.get("nodes", 0), draw.choice((0, 1, 2, 3)))
                pool["usable"] = {"nodes": nodes, "exceeded": draw.odds(0.3)}
                if nodes > 0 and draw.odds(0.4):
                    pool["usable"] |= {"toCome": draw.choice(range(1, nodes + 1)), "awaiting": draw.odds(0.3)}
    return made


def _struck(draw: Source, made: World) -> None:
    """Let something happen to a cluster that hosts replicas: nothing was heard of it, or it is not Ready."""
    hosts = {manifest["spec"].get("clusterName") for manifest in made.observed.values()}
    struck = [
        cluster
        for cluster in made.clusters or ()
        if cluster["metadata"]["name"] in hosts and "status" in cluster
    ]
    if not struck or draw.odds(0.3):
        return
    status = draw.choice(struck)["status"]
    if draw.odds(0.5):
        status["heartbeat"] = "2026-03-01T09:00:00Z"
    else:
        sick = build.condition("Ready", status=False)
        others = [condition for condition in status.get("conditions", ()) if condition["type"] != "Ready"]
        status["conditions"] = [*others, sick]


def staging_in_doubt(seed: int) -> World:
    """Return such a world in which something is undelivered, unreadable, invalid or terminating."""
    made, draw = staging(seed, DOUBTFUL), Source(f"staging in doubt {seed}")
    for cluster in made.clusters or ():
        if draw.odds(0.15):
            cluster["status"] = draw.choice(BROKEN)
    return made


def staging(seed: int, taste: generate.Taste = STAGING) -> World:
    """Return a world in the middle of a rollout, a drain, or both, with budgets and perhaps surge."""
    draw = Source(f"staging {seed}")
    made = generate.world(seed, taste).copy()
    chosen: dict[str, Any] = {}
    if draw.odds(0.7):
        chosen["disruption"] = dict(draw.choice(DISRUPTIONS))
    surges = chosen.get("disruption", {}).get("maxSurge")
    if draw.odds(0.8) or not chosen:
        chosen["rollout"] = {"maxUnavailable": draw.choice((0, 0, 1) if surges else (1, 1, 2))}
    made.deployment["spec"]["placement"] = chosen
    if draw.odds(0.35):
        made.deployment["spec"]["replicas"] = draw.choice((1, 1, 2, 3))
    for replica in made.observed.values():
        if replica["kind"] == "ModelReplica":
            _in_the_middle(draw, replica)
    for cluster in made.clusters or ():
        if draw.odds(0.25):
            cluster["spec"]["taints"] = [build.taint("maintenance", draw.choice(("NoExecute", "NoSchedule")))]
    return made


def _in_the_middle(draw: Source, replica: dict[str, Any]) -> None:
    """Give a replica another image, perhaps, and say what its pods run."""
    if draw.odds(0.4):
        for engine in replica["spec"]["engines"]:
            for member in engine["members"]:
                member["template"] = build.template("vllm/vllm-openai:v0.19.0")
    if "status" not in replica or not draw.odds(0.5):
        return
    if draw.odds(0.5):
        runs = digest(replica["spec"]) if draw.odds(0.6) else "another"
        replica["status"]["servingDigest"] = runs
        if draw.odds(0.5):  # As our own handler publishes it: without a digest nothing is known of the pods.
            replica["status"]["engines"] = [
                {"name": "main", "copies": 1, "available": draw.choice((0, 1)), "updated": 1}
            ]
            if draw.odds(0.6):
                del replica["status"]["servingDigest"]
        return
    replica["metadata"]["generation"] = 3
    replica["status"]["conditions"][0]["observedGeneration"] = draw.choice((2, 3, 3))
