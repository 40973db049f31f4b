"""Sum up what the replicas on a cluster hold of its pools, for deployments that do not read all replicas.

The form of it is in `function.api.charge`. Who gives way in an overcommitted pool is published here too, by
the scheduler's own rule: that takes every replica on the pool, and a deployment has only its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from function.api import InferenceCluster
from function.api.charge import digest, holder, stray
from function.scheduler.capacity.ledger import Ledger
from function.scheduler.capacity.overcommit import yielding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from function.api import ModelReplica
    from function.boundary import JsonObject
    from function.scheduler.capacity.overcommit import Yielding

NAMED = 8
"""Holders of a pool that are named; explanations show five besides the deployment's own."""
NAMED_SHARES = 32
"""Shares that are named at most: a holder whose replicas all differ has as many as replicas."""
YIELDING = 100
"""Replicas of a pool that are asked to give way at a time, the last created."""

MemberClaims = tuple[int, tuple[tuple[str, int], ...]]
"""Pods, and device class and count of each claimed request."""
EngineClaims = tuple[tuple[int, tuple[MemberClaims, ...]], ...]
"""Copies and members of each engine; empty where the pool charges nodes."""


class ReplicaHolding(NamedTuple):
    """What one replica holds of a pool. Equal ones hold the same."""

    nodes: int
    leaving: bool
    claims: EngineClaims


class HolderShare(NamedTuple):
    """What equal replicas of one holder hold, each."""

    holder: str
    held: ReplicaHolding


def charge(
    cluster: str, pools: Sequence[Mapping[str, Any]], replicas: Iterable[ModelReplica]
) -> list[dict[str, Any]]:
    """Return published pools with what the replicas on the cluster hold of each."""
    here = [replica for replica in replicas if replica.cluster == cluster]
    made = [{**pool, "charged": charged(pool, here)} for pool in pools]
    for pool, leaving in _giving_way(cluster, pools, here).items():
        for entry in made:
            if entry.get("name") == pool:
                entry["charged"]["givesWay"] = leaving
    return made


def charged(pool: Mapping[str, Any], replicas: Iterable[ModelReplica]) -> JsonObject:
    """Return the charge of one pool, the largest holders first, then by name."""
    name, by_devices = str(pool.get("name")), pool.get("accounting") == "Device"
    shares: Counter[HolderShare] = Counter()
    for replica in replicas:
        if replica.nodes.get(name):
            claims = _claims(replica, name) if by_devices else ()
            shares[
                HolderShare(holder(replica), ReplicaHolding(replica.nodes[name], replica.deleting, claims))
            ] += 1
    totals: Counter[str] = Counter()
    for share, number in shares.items():
        totals[share.holder] += share.held.nodes * number
    rank = {key: at for at, key in enumerate(sorted(totals, key=lambda key: (-totals[key], key)))}
    ordered = sorted(shares.items(), key=lambda entry: (rank[entry[0].holder], entry[0].held))
    named = [entry for entry in ordered if rank[entry[0].holder] < NAMED][:NAMED_SHARES]
    by = [{**_who(share.holder), **_holding(number, share.held)} for share, number in named]
    others = list(_others(ordered[len(named) :]))
    return {
        "nodes": sum(totals.values()),
        **({"by": by} if by else {}),
        **({"others": others} if others else {}),
    }


def _who(key: str) -> JsonObject:
    unnamed = key.removeprefix(stray(""))
    return {"deployment": key} if unnamed == key else {"replica": unnamed}


def _holding(number: int, held: ReplicaHolding) -> JsonObject:
    return {
        "replicas": number,
        "nodes": held.nodes * number,
        **({"leaving": True} if held.leaving else {}),
        **({"engines": [_engine(*engine) for engine in held.claims]} if held.claims else {}),
    }


def _engine(copies: int, members: Iterable[MemberClaims]) -> JsonObject:
    entries = [
        {"pods": pods, "requests": [{"deviceClassName": name, "count": count} for name, count in requests]}
        for pods, requests in members
    ]
    return {"copies": copies, "members": entries}


def _claims(replica: ModelReplica, pool: str) -> EngineClaims:
    """What one replica claims of a pool, sorted: equal values claim the same."""
    engines = []
    for engine in replica.engines:
        members = [
            (member.pods, tuple(sorted((claim.device_class, claim.count) for claim in member.requests)))
            for member in engine.members
            if member.pool == pool and member.requests
        ]
        if members:
            engines.append((engine.copies, tuple(sorted(members))))
    return tuple(sorted(engines))


def _others(shares: Iterable[tuple[HolderShare, int]]) -> Iterator[JsonObject]:
    """The shares of holders that are not named, equal ones together."""
    groups: dict[tuple[int, ReplicaHolding], list[str]] = defaultdict(list)
    for share, number in shares:
        groups[number, share.held].append(digest(share.holder))
    for (number, held), digests in sorted(groups.items(), reverse=True):
        yield {**_holding(number, held), "digests": " ".join(sorted(digests))}


def _giving_way(
    cluster: str, pools: Sequence[Mapping[str, Any]], replicas: Iterable[ModelReplica]
) -> dict[str, list[JsonObject]]:
    """Who gives way on each pool that holds more than it has, the most senior first."""
    try:
        published = InferenceCluster.parse(
            {"metadata": {"name": cluster}, "status": {"gpuPools": list(pools)}}
        )
    except ValueError:
        return {}
    ledger = Ledger([published])
    for replica in replicas:
        ledger.open(replica, cluster)
    entries: dict[str, list[JsonObject]] = defaultdict(list)
    for yielding_replica in yielding(ledger):
        entries[yielding_replica.pool].append(_gives_way(yielding_replica))
    return {pool: leaving[-YIELDING:] for pool, leaving in entries.items()}


def _gives_way(yielding_replica: Yielding) -> JsonObject:
    replica = yielding_replica.replica
    entries = {"deployment": replica.deployment, "uid": replica.uid, "created": replica.created}
    return {
        "replica": f"{replica.namespace}/{replica.name}",
        **{key: value for key, value in entries.items() if value},
    }
