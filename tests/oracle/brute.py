"""Placement by brute force: every choice is written down, and the best one taken. Slow, short, obvious.

Imports nothing of the function. It covers new replicas only, with alternatives, prioritized lists,
constraints, and engines on pools of one fabric; what is retained is the matter of other tests.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

from tests.oracle.shapes import WANTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.world import World

Plain = dict[str, Any]
HOW = "how"
"""What was special about a placement: an engine split over pools, a later way of a prioritized list."""
Free = tuple[int, ...]


def ways(request: Plain) -> list[Plain]:
    return request.get("firstAvailable") or [request]


def matches(way: Plain, device: Plain) -> bool:
    wants = way[WANTS]
    kind = device["attributes"]["kind"]["string"]
    return wants["driver"] == device["driver"] and wants.get("kind", kind) == kind


def values(device: Plain, attribute: str) -> set[str]:
    """The values a device has of a qualified attribute."""
    for name, holder in device["attributes"].items():
        if attribute == (name if "/" in name else f"{device['driver']}/{name}"):
            if "string" in holder:
                return {holder["string"]}
            return set(holder.get("strings") or holder["list"]["string"])
    return set()


def holds(member: Plain, devices: list[Plain]) -> bool:
    """Whether all constraints hold for these devices, one per request."""
    selector = member.get("nodeSelector", {})
    for constraint in selector.get("constraints", ()):
        named = constraint.get("requests") or [request["name"] for request in selector["devices"]]
        chosen = [
            values(device, constraint["matchAttribute"])
            for request, device in zip(selector["devices"], devices, strict=True)
            if request["name"] in named
        ]
        if not set.intersection(*chosen):
            return False
    return True


def claims(device: Plain) -> bool:
    return device.get("claim", "DRA") == "DRA"


def resolved(member: Plain, pool: Plain) -> list[tuple[int, Plain, Plain]] | None:
    """The first assignment that claims a device, else the first: rank, way and device of every request."""
    requests = member.get("nodeSelector", {}).get("devices", [])
    every = []
    for chosen in product(
        *([(w, d) for w in enumerate(ways(r)) for d in enumerate(pool["devices"])] for r in requests)
    ):
        used: Counter[int] = Counter()
        for (_, way), (at, _) in chosen:
            used[at] += way.get("count", 1)
        devices = [device for _, (_, device) in chosen]
        if (
            all(matches(way, device) for (_, way), (_, device) in chosen)
            and all(number <= pool["devices"][at]["count"] for at, number in used.items())
            and holds(member, devices)
        ):
            every.append([(rank, way, device) for (rank, way), (_, device) in chosen])
    claiming = [item for item in every if any(claims(device) for _, _, device in item)]
    return next(iter(claiming or every), None)


def fabric_proofs(pool: Plain, cluster: Plain) -> list[str | None]:
    """What proves the fabric of a pool: its InfiniBand id, its attribute."""
    declared = next(entry for entry in cluster["spec"]["nodePools"] if entry["name"] == pool["name"])
    fabric = pool.get("fabric") or declared.get("fabric") or {}
    attributes = declared.get("attributes", {}) | pool.get("attributes", {})
    return [
        fabric.get("infiniband", {}).get("fabric"),
        attributes.get("modelplane.ai/fabric", {}).get("string"),
    ]


def same_fabric(pools: list[Plain], cluster: Plain) -> bool:
    proofs = [fabric_proofs(pool, cluster) for pool in pools]
    return all(
        any(one and one == other for one, other in zip(left, right, strict=True))
        for left in proofs
        for right in proofs
    )


Option = tuple[tuple[object, ...], int, tuple[int, ...], list[list[tuple[int, Plain, Plain]]], Counter[int]]
"""Preference, position in declaration order, pools, what each member resolved to, nodes per pool."""


def options(engine: Plain, cluster: Plain) -> list[Option]:
    """Every way to put an engine on a cluster, nodes aside."""
    pools, members = cluster["status"]["gpuPools"], engine["members"]
    table = [[resolved(member, pool) for member in members] for pool in pools]
    chosen = [(at,) * len(members) for at in range(len(pools))]
    if engine.get("poolPolicy") == "SameFabric":
        for several in product(range(len(pools)), repeat=len(members)):
            if len(set(several)) > 1 and same_fabric([pools[at] for at in set(several)], cluster):
                chosen.append(several)  # noqa: PERF401 - the condition is the rule, and reads better so
    options_found: list[Option] = []
    for item in chosen:
        per_member = [table[pool][at] for at, pool in enumerate(item)]
        if any(one is None for one in per_member):
            continue
        claiming = [any(claims(device) for _, _, device in one or ()) for one in per_member]
        elsewhere = [
            any(claims(device) for row in table for _, _, device in row[at] or ())
            for at in range(len(members))
        ]
        if not any(claiming) or any(b and not a for a, b in zip(claiming, elsewhere, strict=True)):
            continue
        nodes: Counter[int] = Counter()
        for member, pool, binds in zip(members, item, claiming, strict=True):
            pods = member.get("worker", {}).get("nodes", 1) if member["role"] == "Worker" else 1
            if binds:
                nodes[pool] += pods * engine.get("copies", 1)
        ranks = tuple(rank for one in per_member for rank, _, _ in one or ())
        options_found.append(
            ((len(set(item)) > 1, ranks), len(options_found), item, [one or [] for one in per_member], nodes)
        )
    return options_found


def complete(engines: list[Plain], cluster: Plain, free: Free, *, pack: bool) -> Iterator[tuple[Any, Any]]:
    """Every choice of one option per engine that the free nodes allow, with its place in the order."""
    for chosen in product(*(options(engine, cluster) for engine in engines)):
        left, order = list(free), []
        for _, position, _, _, nodes in chosen:
            for pool, number in nodes.items():
                left[pool] -= number
            order.append((sum(left[pool] for pool in nodes) if pack else 0, position))
        if all(left[pool] >= 0 for _, _, _, _, nodes in chosen for pool in nodes):
            yield (tuple(pair[0] for pair in chosen), tuple(order)), (chosen, tuple(left))


def best(engines: list[Plain], cluster: Plain, free: Free, *, pack: bool) -> tuple[Any, Free] | None:
    complete_choice = min(complete(engines, cluster, free, pack=pack), key=lambda pair: pair[0], default=None)
    return complete_choice[1] if complete_choice else None


def listed_ranks(engines: list[Plain], chosen: Any) -> tuple[int, ...]:
    """Ranks of the prioritized lists, without zeros at the end."""
    ranks = [
        rank
        for engine, (_, _, _, per_member, _) in zip(engines, chosen, strict=True)
        for member, one in zip(engine["members"], per_member, strict=True)
        for request, (rank, _, _) in zip(member.get("nodeSelector", {}).get("devices", []), one, strict=True)
        if "firstAvailable" in request
    ]
    while ranks and ranks[-1] == 0:
        ranks.pop()
    return tuple(ranks)


def place(world: World) -> dict[str, Plain]:
    """The replicas to be desired, by key: only what alternatives, lists, constraints and fabrics decide."""
    spec = world.deployment["spec"]
    inner, policy = spec["template"]["spec"], spec.get("placement", {})
    shapes = [("", inner["engines"]), *((e["name"], e["engines"]) for e in inner.get("alternatives", ()))]
    pack = policy.get("strategy") == "BinPack"
    clusters = {manifest["metadata"]["name"]: manifest for manifest in world.clusters or ()}
    free = {name: start(name, one_cluster, world) for name, one_cluster in clusters.items()}
    counts: Counter[str] = Counter()
    placed: dict[str, Plain] = {}

    def candidates(among: list[tuple[str, list[Plain]]]) -> Iterator[tuple[Any, Any]]:
        for name, cluster in sorted(clusters.items()):
            for shape, engines in among:
                choice = best(engines, cluster, free[name], pack=pack)
                if choice is None:
                    continue
                chosen, left = choice
                used = {pool for pair in chosen for pool in pair[4]}
                packing = (sum(left[pool] for pool in used), -counts[name]) if pack else (counts[name],)
                yield (listed_ranks(engines, chosen), packing, name), (shape, engines, chosen, left)
                break

    rounds = [shapes] if policy.get("alternativePolicy") == "ClusterFirst" else [[item] for item in shapes]
    while len(placed) < spec["replicas"]:
        winner = next(
            (won for among in rounds if (won := min(candidates(among), key=lambda c: c[0], default=None))),
            None,
        )
        if winner is None:
            break
        (_, _, name), (shape, engines, chosen, left) = winner
        placed[f"replica-{name}-{counts[name]}"] = emitted(shape, engines, chosen, clusters[name])
        free[name], counts[name] = left, counts[name] + 1
    return placed


def start(name: str, cluster: Plain, world: World) -> Free:
    """Free nodes of every pool: each of the strangers holds one."""
    held = Counter(
        replica["spec"]["engines"][0]["members"][0]["nodePoolName"]
        for replica in world.replicas or ()
        if replica["spec"]["clusterName"] == name
    )
    return tuple(pool["nodes"] - held[pool["name"]] for pool in cluster["status"]["gpuPools"])


def emitted(shape: str, engines: list[Plain], chosen: Any, cluster: Plain) -> Plain:
    """What is decided about a replica: its alternative, and of every member pool, requests, constraints."""
    members = [
        (
            cluster["status"]["gpuPools"][pool]["name"],
            [
                (r["name"], d["deviceClassName"], w.get("count", 1))
                for r, (_, w, d) in requested(member, one)
                if claims(d)
            ],
            carried(member, {r["name"] for r, (_, _, d) in requested(member, one) if claims(d)}),
        )
        for engine, (_, _, pools, per_member, _) in zip(engines, chosen, strict=True)
        for member, pool, one in zip(engine["members"], pools, per_member, strict=True)
    ]
    split = any(preference[0] for preference, *_ in chosen)
    later = bool(listed_ranks(engines, chosen))
    return {"alternative": shape, "members": members, HOW: {"split": split, "later": later}}


def requested(
    member: Plain, one: list[tuple[int, Plain, Plain]]
) -> list[tuple[Plain, tuple[int, Plain, Plain]]]:
    return list(zip(member.get("nodeSelector", {}).get("devices", []), one, strict=True))


def carried(member: Plain, claimed: set[str]) -> list[Plain]:
    """The constraints that the claim can carry: those about something it claims."""
    claims = []
    for constraint in member.get("nodeSelector", {}).get("constraints", ()):
        named = [name for name in constraint.get("requests", ()) if name in claimed]
        if named:
            claims.append({"requests": named, "matchAttribute": constraint["matchAttribute"]})
        elif claimed and "requests" not in constraint:
            claims.append({"matchAttribute": constraint["matchAttribute"]})
    return claims
