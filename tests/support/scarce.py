"""Random worlds in which something is missing, and the remedies a person would apply to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.deployment import handler
from tests.support import generate
from tests.support.parts import requests_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.scheduler.decision import Decision
    from tests.support.world import World

Plain = dict[str, Any]

TASTE = generate.Taste(doubt=0.0, oddity=0.3, own_replicas=0.5)
MANY = 12


def world(seed: int) -> World:
    """Return a world that wants more than it can have, mostly."""
    made = generate.world(seed, TASTE).copy()
    made.deployment["spec"]["replicas"] = MANY
    return made


def decide(made: World) -> Decision:
    """Return the decision on a world."""
    decision = handler.answer(made.request()).decision
    assert decision is not None
    return decision


def reach(decision: Decision) -> int:
    """Return how many replicas are where they should be."""
    return decision.total + decision.withheld - len(decision.held)


def cluster_of(made: World, name: str) -> Plain:
    """Return a cluster of a world."""
    named: Plain = next(cluster for cluster in made.clusters or () if cluster["metadata"]["name"] == name)
    return named


def all_requests(made: World) -> list[Plain]:
    """Return every device request of a world's deployment."""
    engines = made.deployment["spec"]["template"]["spec"]["engines"]
    return [asked for engine in engines for one in engine["members"] for asked in requests_of(one)]


def tolerate(made: World, key: str, value: str, effect: str) -> None:
    """Add a toleration."""
    spec = made.deployment["spec"]["template"]["spec"]
    spec.setdefault("tolerations", [])
    spec["tolerations"] = [*spec["tolerations"], {"key": key, "value": value, "effect": effect}]


def tolerate_devices(made: World, request: str, taints: list[Plain]) -> None:
    """Add tolerations of device taints to a request."""
    for engine in made.deployment["spec"]["template"]["spec"]["engines"]:
        for member in engine["members"]:
            for asked in member.get("nodeSelector", {}).get("devices", ()):
                if asked["name"] == request:
                    asked["tolerations"] = [*asked.get("tolerations", ()), *taints]


def add_nodes(made: World, name: str, pool: str, nodes: int) -> None:
    """Add nodes to a pool as it is published."""
    for manifest in cluster_of(made, name)["status"]["gpuPools"]:
        if manifest["name"] == pool:
            manifest["nodes"] = max(0, manifest.get("nodes", 0)) + nodes


def relax(made: World, old: str, new: str) -> None:
    """Exchange a selector."""
    for asked in all_requests(made):
        asked["selectors"] = [
            {"cel": new if selector["cel"] == old else selector["cel"]} for selector in asked["selectors"]
        ]


def lower(made: World, request: str, old: int, new: int) -> None:
    """Ask for fewer devices."""
    for asked in all_requests(made):
        if asked["name"] == request and asked.get("count", 1) == old:
            asked["count"] = new


def recover(made: World, name: str) -> None:
    """Make a cluster Ready."""
    cluster_of(made, name)["status"]["conditions"] = [{"type": "Ready", "status": "True"}]


def free(made: World, hint: Plain) -> None:
    """Delete replicas of a holder, the smallest first, until enough nodes are free."""
    left = hint["nodes"]
    holding = []
    for replica in made.replicas or ():
        head = replica["metadata"]
        who = f"{head.get('namespace')}/{head.get('labels', {}).get('modelplane.ai/deployment')}"
        if who == hint["heldBy"] and replica["spec"].get("clusterName") == hint["cluster"]:
            held = nodes_of(replica, hint["pool"])
            holding.append((held, replica["metadata"]["name"], replica))
    for held, _, entry in sorted(holding, key=lambda item: item[:2]):
        if held and left > 0:
            left -= held
            made.replicas.remove(entry)


def nodes_of(replica: Plain, pool: str) -> int:
    """Return the nodes of a pool that a replica holds."""
    return sum(
        engine.get("copies", 1)
        * (one.get("worker", {}).get("nodes", 1) if one.get("role") == "Worker" else 1)
        for engine in replica["spec"]["engines"]
        for one in engine["members"]
        if one.get("nodePoolName") == pool and one.get("deviceRequests")
    )


APPLY: dict[str, Callable[[World, Plain], None]] = {
    "AddNodes": lambda made, hint: add_nodes(made, hint["cluster"], hint["pool"], hint["nodes"]),
    "FreeNodes": free,
    "TolerateTaint": lambda made, hint: tolerate(made, hint["key"], hint["value"], hint["effect"]),
    "TolerateDeviceTaint": lambda made, hint: tolerate_devices(made, hint["request"], hint["taints"]),
    "CorrectSelector": lambda made, hint: relax(made, hint["selector"], hint["instead"]),
    "RelaxSelector": lambda made, hint: relax(made, hint["selector"], hint["instead"]),
    "LowerCount": lambda made, hint: lower(made, hint["request"], hint["from"], hint["to"]),
    "ClusterGateway": lambda made, hint: cluster_of(made, hint["cluster"])["status"].update(
        gateway={"address": "203.0.113.9"}
    ),
    "WidenCache": lambda made, hint: made.cache[0]["spec"]["clusterSelector"]["matchLabels"].pop(
        hint["label"]
    ),
    "ClusterReady": lambda made, hint: recover(made, hint["cluster"]),
    "SelectLabel": lambda made, hint: made.deployment["spec"]["template"]["spec"]["clusterSelector"][
        "matchLabels"
    ].update({hint["label"]: hint["to"]}),
}
"""How a person follows a hint of each kind, on the plain objects."""
