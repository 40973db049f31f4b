"""What happens to a fleet: one function for each kind of event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulate.driven import CACHE, CLUSTER, DEPLOYMENT, REPLICA, requirements_of
from tests.support import build, existing, optins, parts, vocabulary
from tests.support.crossplane import DYING, Store, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.simulate.driven import Driven
    from tests.support.crossplane import Name

Plain = dict[str, Any]
Source = parts.Source


STRANGERS = "research"
"""The namespace of another team, whose replicas no deployment of ours has."""


def _clusters(plane: Driven) -> list[Plain]:
    return list(plane.living(CLUSTER).values())


def _cluster(draw: Source, plane: Driven) -> Plain | None:
    whole = [cluster for cluster in _clusters(plane) if isinstance(cluster.get("status"), dict)]
    return draw.choice(whole) if whole else None


def _remove(draw: Source, plane: Driven, names: Iterable[Name]) -> None:
    """Delete objects by hand; mostly they are gone before anybody looks."""
    for name in names:
        plane.delete(name, by_hand=True)
    if draw.odds(0.8):
        plane.run(DYING)


def cluster_fails(draw: Source, plane: Driven) -> None:
    """Make a cluster NotReady, or take its gateway away; its replicas go unready."""
    if (manifest := _cluster(draw, plane)) is not None:
        manifest["status"]["conditions"] = [build.condition("Ready", status=False)]
        if draw.odds(0.5):
            manifest["status"].pop("gateway", None)
        plane.write(manifest)


def cluster_heals(draw: Source, plane: Driven) -> None:
    """Make every cluster healthy and readable again."""
    for cluster in _clusters(plane):
        if not isinstance(cluster.get("status"), dict):
            cluster["status"] = {"gpuPools": [build.pool("p0")]}
        cluster["status"]["conditions"] = [build.condition("Ready", status=True)]
        cluster["status"]["gateway"] = {"address": parts.address(cluster["metadata"]["name"])}
        plane.write(cluster)


def cluster_drains(draw: Source, plane: Driven) -> None:
    """Taint a cluster."""
    if (manifest := _cluster(draw, plane)) is not None:
        manifest["spec"]["taints"] = [parts.taint(draw)]
        plane.write(manifest)


def cluster_undrains(draw: Source, plane: Driven) -> None:
    """Take every taint away."""
    for cluster in _clusters(plane):
        cluster["spec"].pop("taints", None)
        plane.write(cluster)


def cluster_vanishes(draw: Source, plane: Driven) -> None:
    """Delete a cluster, now and then all of them."""
    if names := sorted(plane.living(CLUSTER)):
        _remove(draw, plane, names if draw.odds(0.2) else [draw.choice(names)])


def cluster_arrives(draw: Source, plane: Driven) -> None:
    """Add a cluster, or bring one back in another shape."""
    made = parts.cluster(draw, draw.choice(parts.CLUSTERS), parts.CALM)
    if name_of(made) not in plane.objects:
        plane.write(made)


def cluster_breaks(draw: Source, plane: Driven) -> None:
    """Make a cluster's status something nobody can read, or take it away."""
    if (manifest := _cluster(draw, plane)) is None:
        return
    broken: list[Any] = ["broken", {"gpuPools": [None]}, {"gpuPools": "none"}, None]
    manifest["status"] = draw.choice(broken)
    if manifest["status"] is None:
        del manifest["status"]
    plane.write(manifest)


def pools_change(draw: Source, plane: Driven) -> None:
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
    plane.write(manifest)


def relabelled(draw: Source, plane: Driven) -> None:
    """Change a cluster's labels."""
    if (manifest := _cluster(draw, plane)) is not None:
        manifest["metadata"]["labels"] = {
            "tier": draw.choice(parts.TIERS),
            "region": draw.choice(("eu", "us")),
        }
        plane.write(manifest)


def _deployment(draw: Source, plane: Driven) -> Plain:
    return draw.choice(list(plane.living(DEPLOYMENT).values()))


def scaled(draw: Source, plane: Driven) -> None:
    """Change how many replicas are wanted."""
    of = _deployment(draw, plane)
    of["spec"]["replicas"] = draw.choice((0, 1, 2, 3, 4, 6))
    plane.write(of)


def edited(draw: Source, plane: Driven) -> None:
    """Edit the deployment's engines; sometimes with a typo in a selector."""
    of = existing.edited(draw, _deployment(draw, plane))
    of["spec"]["template"]["spec"].pop("modelCacheRef", None)
    if draw.odds(0.2):
        requests = [one for item in parts.members_of(of) for one in parts.ways_of(item)]
        draw.choice(requests)["selectors"][0]["cel"] = vocabulary.INVALID
    plane.write(of)


def corrected(draw: Source, plane: Driven) -> None:
    """Take every typo back."""
    for of in plane.living(DEPLOYMENT).values():
        for item in parts.members_of(of):
            for one in parts.ways_of(item):
                for selector in one["selectors"]:
                    if selector["cel"] == vocabulary.INVALID:
                        selector["cel"] = "true"
        plane.write(of)


def starts(draw: Source, plane: Driven) -> bool:
    """Let replicas on healthy clusters become Ready. Says whether one did."""
    waiting = [
        manifest
        for of in plane.living(DEPLOYMENT)
        for manifest in plane.composed(of).values()
        if not _ready(manifest)
    ]
    for manifest in waiting:
        _report(plane, manifest, status=True)
    return bool(waiting)


def _ready(manifest: Plain) -> bool:
    now = manifest["metadata"]["generation"]
    return any(
        one["status"] == "True" and one["observedGeneration"] >= now
        for one in manifest.get("status", {}).get("conditions", [])
    )


def _report(plane: Driven, manifest: Plain, *, status: bool | str) -> None:
    """Say of what is composed whether it is Ready, as it is now."""
    ready = build.condition("Ready", status=status)
    about = {"observedGeneration": manifest["metadata"]["generation"]}
    plane.patch(name_of(manifest), status={"conditions": [ready | about]})


def dies(draw: Source, plane: Driven) -> None:
    """Make a replica unready, or have somebody delete it."""
    of = name_of(_deployment(draw, plane))
    mine = [manifest for manifest in plane.composed(of).values() if manifest["kind"] == REPLICA]
    if not mine:
        return
    manifest = draw.choice(mine)
    if draw.odds(0.7):
        _report(plane, manifest, status=draw.choice(("False", "Unknown")))
    else:
        plane.delete(name_of(manifest), by_hand=True)


def strangers_come(draw: Source, plane: Driven) -> None:
    """Have another team place a replica."""
    clusters = [plain for _, plain in sorted(plane.living(CLUSTER).items())]
    if not clusters:
        return
    stranger = build.deployment("other", 1, [parts.engine(draw, "main")], namespace=STRANGERS)
    on = draw.choice(clusters)
    pools = on["status"].get("gpuPools") if isinstance(on.get("status"), dict) else None
    if isinstance(pools, list) and all(isinstance(pool, dict) for pool in pools):
        number = draw.randrange(1_000_000)
        made = existing.existing(draw, stranger, on["metadata"]["name"], number, on, parts.CALM)
        made["metadata"].pop("deletionTimestamp", None)
        plane.write(made)


def strangers_go(draw: Source, plane: Driven) -> None:
    """Remove every replica of other teams."""
    _remove(draw, plane, [name for name in plane.living(REPLICA) if name.namespace == STRANGERS])


def reads_go_stale(draw: Source, plane: Driven) -> None:
    """Freeze what lists say of replicas."""
    plane.listed = Store(plane.objects.of_kind(REPLICA))


def reads_catch_up(draw: Source, plane: Driven) -> None:
    """Let the lists catch up, and everything arrive."""
    plane.listed = None
    plane.withheld = ()


def something_fails_to_arrive(draw: Source, plane: Driven) -> None:
    """Withhold a kind."""
    plane.withheld = requirements_of(draw.choice((CLUSTER, REPLICA, CACHE)))


def another_policy(draw: Source, plane: Driven) -> None:
    """Give a deployment another policy, or none."""
    of = _deployment(draw, plane)
    for name in ("placement", "minReplicas"):
        of["spec"].pop(name, None)
    if draw.odds(0.7):
        optins.policy(draw, of)
    plane.write(of)


EVENTS: tuple[Callable[[Source, Driven], Any], ...] = (
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
