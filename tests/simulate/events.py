"""What happens to a fleet: one function for each kind of event."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tests.support import build, existing, optins, parts, vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate.plane import Deployment, Plane

Plain = dict[str, Any]
Source = parts.Source


def _cluster(draw: Source, plane: Plane) -> Plain | None:
    whole = [cluster for cluster in plane.clusters.values() if isinstance(cluster.get("status"), dict)]
    return draw.choice(whole) if whole else None


def cluster_fails(draw: Source, plane: Plane) -> None:
    """Make a cluster NotReady, or take its gateway away; its replicas go unready."""
    if (manifest := _cluster(draw, plane)) is not None:
        manifest["status"]["conditions"] = [build.condition("Ready", status=False)]
        if draw.odds(0.5):
            manifest["status"].pop("gateway", None)


def cluster_heals(draw: Source, plane: Plane) -> None:
    """Make every cluster healthy and readable again."""
    for cluster in plane.clusters.values():
        if not isinstance(cluster.get("status"), dict):
            cluster["status"] = {"gpuPools": [build.pool("p0")]}
        cluster["status"]["conditions"] = [build.condition("Ready", status=True)]
        cluster["status"]["gateway"] = {"address": parts.address(cluster["metadata"]["name"])}


def cluster_drains(draw: Source, plane: Plane) -> None:
    """Taint a cluster."""
    if (manifest := _cluster(draw, plane)) is not None:
        manifest["spec"]["taints"] = [parts.taint(draw)]


def cluster_undrains(draw: Source, plane: Plane) -> None:
    """Take every taint away."""
    for cluster in plane.clusters.values():
        cluster["spec"].pop("taints", None)


def cluster_vanishes(draw: Source, plane: Plane) -> None:
    """Delete a cluster, sometimes the last one."""
    if plane.clusters:
        plane.clusters.pop(draw.choice(sorted(plane.clusters)))


def cluster_arrives(draw: Source, plane: Plane) -> None:
    """Add a cluster, or bring one back in another shape."""
    name = draw.choice(parts.CLUSTERS)
    plane.clusters.setdefault(name, parts.cluster(draw, name, parts.CALM))


def cluster_breaks(draw: Source, plane: Plane) -> None:
    """Make a cluster's status something nobody can read, or take it away."""
    if (manifest := _cluster(draw, plane)) is None:
        return
    broken: list[Any] = ["broken", {"gpuPools": [None]}, {"gpuPools": "none"}, None]
    manifest["status"] = draw.choice(broken)
    if manifest["status"] is None:
        del manifest["status"]


def pools_change(draw: Source, plane: Plane) -> None:
    """Give a pool other nodes, other devices, or no place in the cluster."""
    if (manifest := _cluster(draw, plane)) is None or not isinstance(
        manifest["status"].get("gpuPools"), list
    ):
        return
    pools = [one for one in manifest["status"]["gpuPools"] if isinstance(one, dict)]
    if not pools:
        return
    pool = draw.choice(pools)
    what = draw.choice(("nodes", "nodes", "devices", "gone"))
    if what == "nodes":
        pool["nodes"] = draw.choice((0, 1, 2, 4, 8))
    elif what == "devices":
        pool["devices"] = [parts.device(draw, 0)]
    else:
        manifest["status"]["gpuPools"] = [one for one in pools if one is not pool]
        kept = [one for one in manifest["spec"].get("nodePools", []) if one["name"] != pool["name"]]
        manifest["spec"]["nodePools"] = kept


def relabelled(draw: Source, plane: Plane) -> None:
    """Change a cluster's labels."""
    if (manifest := _cluster(draw, plane)) is not None:
        manifest["metadata"]["labels"] = {
            "tier": draw.choice(parts.TIERS),
            "region": draw.choice(("eu", "us")),
        }


def _deployment(draw: Source, plane: Plane) -> Deployment:
    return draw.choice(plane.deployments)


def scaled(draw: Source, plane: Plane) -> None:
    """Change how many replicas are wanted."""
    _deployment(draw, plane).plain["spec"]["replicas"] = draw.choice((0, 1, 2, 3, 4, 6))


def edited(draw: Source, plane: Plane) -> None:
    """Edit the deployment's engines; sometimes with a typo in a selector."""
    of = _deployment(draw, plane)
    of.plain = existing.edited(draw, of.plain)
    inner = of.plain["spec"]["template"]["spec"]
    if inner.get("modelCacheRef") is not None:
        del inner["modelCacheRef"]
    if draw.odds(0.2):
        requests = [one for item in parts.members_of(of.plain) for one in parts.ways_of(item)]
        draw.choice(requests)["selectors"][0]["cel"] = vocabulary.INVALID


def corrected(draw: Source, plane: Plane) -> None:
    """Take every typo back."""
    for of in plane.deployments:
        for item in parts.members_of(of.plain):
            for one in parts.ways_of(item):
                for selector in one["selectors"]:
                    if selector["cel"] == vocabulary.INVALID:
                        selector["cel"] = "true"


def starts(draw: Source, plane: Plane) -> bool:
    """Let replicas on healthy clusters become Ready. Says whether one did."""
    changed = False
    for of in plane.deployments:
        for manifest in of.observed.values():
            if not _ready(manifest):
                manifest["status"] = {"conditions": [build.condition("Ready", status=True)]}
                changed = True
    return changed


def _ready(manifest: Plain) -> bool:
    now = manifest["metadata"].get("generation", 0)
    return any(
        one["status"] == "True" and one.get("observedGeneration", now) >= now
        for one in manifest.get("status", {}).get("conditions", [])
    )


def dies(draw: Source, plane: Plane) -> None:
    """Make a replica unready, or have somebody delete it."""
    of = _deployment(draw, plane)
    mine = [manifest for manifest in of.observed.values() if manifest["kind"] == "ModelReplica"]
    if not mine:
        return
    manifest = draw.choice(mine)
    if draw.odds(0.7):
        manifest["status"] = {
            "conditions": [build.condition("Ready", status=draw.choice(("False", "Unknown")))]
        }
    else:
        manifest["metadata"]["deletionTimestamp"] = build.CREATED


def strangers_come(draw: Source, plane: Plane) -> None:
    """Have another team place a replica."""
    if not plane.clusters:
        return
    stranger = build.deployment("other", 1, [parts.engine(draw, "main")], namespace="research")
    on = draw.choice([plane.clusters[name] for name in sorted(plane.clusters)])
    pools = on["status"].get("gpuPools") if isinstance(on.get("status"), dict) else None
    if isinstance(pools, list) and all(isinstance(pool, dict) for pool in pools):
        plane.born += 1
        made = existing.existing(draw, stranger, on["metadata"]["name"], plane.born, on, parts.CALM)
        made["metadata"].pop("deletionTimestamp", None)
        plane.others[made["metadata"]["namespace"], made["metadata"]["name"]] = made


def strangers_go(draw: Source, plane: Plane) -> None:
    """Remove every replica of other teams."""
    plane.others.clear()


def reads_go_stale(draw: Source, plane: Plane) -> None:
    """Freeze what the cache says of replicas."""
    plane.cached = copy.deepcopy(plane.replicas())


def reads_catch_up(draw: Source, plane: Plane) -> None:
    """Let the cache catch up, and everything arrive."""
    plane.cached = None
    plane.withheld = frozenset()


def something_fails_to_arrive(draw: Source, plane: Plane) -> None:
    """Withhold a requirement."""
    plane.withheld = frozenset({draw.choice(("clusters", "all-replicas", "cache"))})


def another_policy(draw: Source, plane: Plane) -> None:
    """Give a deployment another policy, or none."""
    spec = _deployment(draw, plane).plain["spec"]
    for name in ("placement", "minReplicas"):
        spec.pop(name, None)
    if draw.odds(0.7):
        optins.policy(draw, {"spec": spec})


EVENTS: tuple[Callable[[Source, Plane], Any], ...] = (
    cluster_fails,
    cluster_heals,
    cluster_heals,
    cluster_drains,
    cluster_undrains,
    cluster_vanishes,
    cluster_arrives,
    cluster_arrives,
    cluster_breaks,
    pools_change,
    relabelled,
    scaled,
    scaled,
    edited,
    corrected,
    starts,
    starts,
    dies,
    strangers_come,
    strangers_go,
    reads_go_stale,
    reads_catch_up,
    reads_catch_up,
    something_fails_to_arrive,
)

OPTED = (*EVENTS, another_policy, another_policy)
"""Where opt-in fields are in use."""
