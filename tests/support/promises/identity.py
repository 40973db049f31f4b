"""P6: a retained replica keeps cluster, index and pools.

P7: identities and composed names are unique, valid, and never reused while an object or observed key with
them exists.

P8: all members of an engine share a pool (or a proven fabric); every engine resolves a DRA claim.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.oracle import facts as read_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.drive import Answer
    from tests.support.world import World

Plain = dict[str, Any]
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def pools(replica: Plain) -> dict[str, list[str]]:
    """Return the pool of each member, by engine."""
    return {
        engine["name"]: [one["nodePoolName"] for one in engine["members"]]
        for engine in replica["spec"]["engines"]
    }


def moved(world: World, answer: Answer) -> Iterator[str]:
    for replica in read_facts.read(world).own_replicas:
        desired = answer.desired.get(str(replica.key))
        if desired is None:
            continue
        if desired["spec"]["clusterName"] != replica.cluster or pools(desired) != pools(replica.plain):
            yield f"{replica.key} moved"
        if desired["metadata"]["name"] != replica.name:
            yield f"{replica.key} was renamed from {replica.name} to {desired['metadata']['name']}"


def new(world: World, answer: Answer) -> dict[str, Plain]:
    """Return the desired replicas that are new."""
    kept = {replica.key for replica in read_facts.read(world).own_replicas}
    return {key: replica for key, replica in answer.replicas.items() if key not in kept}


def reused(world: World, answer: Answer) -> Iterator[str]:
    for resources in (answer.replicas, answer.endpoints):
        names = [manifest["metadata"]["name"] for manifest in resources.values()]
        if len(set(names)) != len(names):
            yield f"two objects are called the same: {sorted(names)}"
        yield from (f"{name} is no valid name" for name in names if not LABEL.fullmatch(name))
    facts = read_facts.read(world)
    everybody = (*facts.own_replicas, *facts.others)
    mine = world.deployment["metadata"]["namespace"]
    for key, manifest in new(world, answer).items():
        on = manifest["spec"]["clusterName"]
        if {key, key.replace("replica-", "endpoint-", 1)} & world.observed.keys():
            yield f"{key} is new under a key that is observed"
        if key in {one.key for one in everybody}:
            yield f"{key} is new under an identity that exists"
        shared = {
            one.name for one in everybody if one.cluster == on or one.plain["metadata"]["namespace"] == mine
        }
        if manifest["metadata"]["name"] in shared:
            yield f"{key} takes the name {manifest['metadata']['name']}, which exists"


def split(world: World, answer: Answer) -> Iterator[str]:
    for key, manifest in new(world, answer).items():
        for engine in manifest["spec"]["engines"]:
            if len({one["nodePoolName"] for one in engine["members"]}) != 1:
                yield f"{key}: engine {engine['name']} is split"
            if not any(one.get("deviceRequests") for one in engine["members"]):
                yield f"{key}: engine {engine['name']} claims nothing"
