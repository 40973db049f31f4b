"""Placement by brute force: every choice is written down, and the best one taken. Slow, short, obvious.

Imports nothing of the function. It covers new replicas only, with alternatives, prioritized lists,
constraints, and engines on pools of one fabric; what is retained is the matter of other tests.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import perm
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
    suits = wants["driver"] == device["driver"] and wants.get("kind", kind) == kind
    tolerated = {tolerance["key"] for tolerance in way.get("tolerations", ())}
    return suits and {taint["key"] for taint in device.get("taints", ())} <= tolerated


def values(device: Plain, attribute: str) -> set[str]:
    """The values a device has of a qualified attribute."""
    for name, holder in device["attributes"].items():
        if attribute == (name if "/" in name else f"{device['driver']}/{name}"):
            if "string" in holder:
                return {holder["string"]}
            return set(holder.get("strings") or holder["list"]["string"])
    return set()


def holds(member: Plain, devices: list[list[Plain]]) -> bool:
    """Whether all constraints hold for these devices of each request."""
    selector = member.get("nodeSelector", {})
    for constraint in selector.get("constraints", ()):
        named = constraint.get("requests") or [request["name"] for request in selector["devices"]]
        chosen = [
            values(device, constraint["matchAttribute"])
            for request, taken in zip(selector["devices"], devices, strict=True)
            if request["name"] in named
            for device in taken
        ]
        if not set.intersection(*chosen):
            return False
    return True


def claims(device: Plain) -> bool:
    return device.get("claim", "DRA") == "DRA"


def dealt(number: int, most: list[int]) -> Iterator[tuple[int, ...]]:
    """Every way to take so many devices from entries that have so many."""
    if not most:
        if not number:
            yield ()
        return
    for taken in range(min(number, most[0]) + 1):
        for rest in dealt(number - taken, most[1:]):
            yield (taken, *rest)


def taken_by(way: Plain, pool: Plain) -> Iterator[tuple[int, ...]]:
    """Every way to take the devices of a request: of one entry, or of several of one driver to be claimed."""
    count = way.get("count", 1)
    for at, device in enumerate(pool["devices"]):
        if matches(way, device) and count <= device["count"]:
            yield tuple(count * (at == entry) for entry in range(len(pool["devices"])))
    for driver in dict.fromkeys(device["driver"] for device in pool["devices"]):
        most = [
            device["count"] * (device["driver"] == driver and binds(way, device))
            for device in pool["devices"]
        ]
        yield from (taken for taken in dealt(count, most) if sum(map(bool, taken)) > 1)


def binds(way: Plain, device: Plain) -> bool:
    return claims(device) and matches(way, device)


Choice = tuple[int, Plain, Plain, int]
"""Rank, way, device, and how many devices of the node a claim may bind."""


def resolved(member: Plain, pool: Plain) -> list[Choice] | None:
    """The first assignment that claims a device, else the first; those of one entry for each come first."""
    requests = member.get("nodeSelector", {}).get("devices", [])
    listed, every = pool["devices"], []
    choices = [[(w, taken) for w in enumerate(ways(r)) for taken in taken_by(w[1], pool)] for r in requests]
    for chosen in product(*choices):
        used = [sum(numbers) for numbers in zip(*(taken for _, taken in chosen), strict=True)]
        devices = [
            [device for number, device in zip(taken, listed, strict=True) if number] for _, taken in chosen
        ]
        enough = all(number <= device["count"] for number, device in zip(used, listed, strict=False))
        if enough and holds(member, devices):
            combined = any(len(several) > 1 for several in devices)
            every.append(
                (
                    combined,
                    [
                        (rank, way, d[0], bindable(way, d[0], pool))
                        for ((rank, way), _), d in zip(chosen, devices, strict=True)
                    ],
                )
            )
    every.sort(key=lambda pair: pair[0])
    claiming = [item for _, item in every if any(claims(device) for _, _, device, _ in item)]
    return next(iter(claiming or [item for _, item in every]), None)


def bindable(way: Plain, device: Plain, pool: Plain) -> int:
    return sum(
        other["count"]
        for other in pool["devices"]
        if other["driver"] == device["driver"] and binds(way, other)
    )


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


Option = tuple[tuple[object, ...], int, tuple[int, ...], list[list[Choice]], Counter[int]]
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
        claiming = [any(claims(device) for _, _, device, _ in one or ()) for one in per_member]
        elsewhere = [
            any(claims(device) for row in table for _, _, device, _ in row[at] or ())
            for at in range(len(members))
        ]
        if not any(claiming) or any(b and not a for a, b in zip(claiming, elsewhere, strict=True)):
            continue
        nodes: Counter[int] = Counter()
        for member, pool, binds in zip(members, item, claiming, strict=True):
            pods = member.get("worker", {}).get("nodes", 1) if member["role"] == "Worker" else 1
            if binds:
                nodes[pool] += pods * engine.get("copies", 1)
        ranks = tuple(rank for one in per_member for rank, *_ in one or ())
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
        for request, (rank, *_) in zip(member.get("nodeSelector", {}).get("devices", []), one, strict=True)
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
                for r, (_, w, d, _) in sorted(
                    requested(member, one), key=lambda pair: perm(pair[1][3], pair[1][1].get("count", 1))
                )
                if claims(d)
            ],
            carried(member, {r["name"] for r, (_, _, d, _) in requested(member, one) if claims(d)}),
        )
        for engine, (_, _, pools, per_member, _) in zip(engines, chosen, strict=True)
        for member, pool, one in zip(engine["members"], pools, per_member, strict=True)
    ]
    split = any(preference[0] for preference, *_ in chosen)
    later = bool(listed_ranks(engines, chosen))
    return {"alternative": shape, "members": members, HOW: {"split": split, "later": later}}


def requested(member: Plain, one: list[Choice]) -> list[tuple[Plain, Choice]]:
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
