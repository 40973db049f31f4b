"""Every way in which the deployment handler answers otherwise than v0.3: rows of docs/compatibility.md."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from function.deployment.requirements import BLOCK
from tests.support.deviation import Deviation

if TYPE_CHECKING:
    from tests.compat.difference import Difference
    from tests.compat.pair import Pair

Plain = dict[str, Any]


def _observed(pair: Pair, kind: str) -> set[str]:
    return {key for key in pair.world.observed if key.startswith(f"{kind}-")}


def _count(pair: Pair) -> int:
    return len(pair.ours.replicas)


def _empty_fleet(pair: Pair) -> bool:
    return pair.world.clusters is not None and not pair.world.clusters


def _fail_static(pair: Pair, difference: Difference) -> bool:
    """An empty fleet: v0.3 desires nothing and says nothing of status and readiness."""
    if not _empty_fleet(pair):
        return False
    if difference.what == "desired":
        return difference.key in pair.world.observed or _listed(pair, difference.key)
    return difference.what in ("status", "ready") or (
        difference.what == "readiness" and difference.ours and not difference.theirs
    )


def _listed(pair: Pair, key: str) -> bool:
    """Say whether a key is that of a replica that is only in the list."""
    mine = pair.world.deployment["metadata"]
    return any(
        key == f"replica-{replica['spec']['clusterName']}-{labels.get('modelplane.ai/replica-index')}"
        for replica in pair.world.replicas or ()
        if replica["metadata"]["namespace"] == mine["namespace"]
        and (labels := replica["metadata"].get("labels", {})).get("modelplane.ai/deployment") == mine["name"]
    )


def _every_condition(pair: Pair, difference: Difference) -> bool:
    return difference.what == "condition" and difference.theirs is None


def _held(pair: Pair, difference: Difference) -> bool:
    """A replica v0.3 drops is desired as it is, and counts: nothing is said of a shortfall."""
    if pair.ours.reason() != "ReplacementBlocked":
        return False
    if difference.what == "desired":
        return difference.theirs is None and difference.key in pair.world.observed
    return difference.what in ("status", "readiness", "condition")


def _unresolved(pair: Pair, difference: Difference) -> bool:
    missing = "modelCacheRef" in pair.inner and pair.world.cache is None
    missing = missing or pair.world.clusters is None or pair.world.replicas is None
    if difference.what == "readiness":
        return missing and difference.ours is True
    return missing and difference.what == "condition" and difference.ours == (False, "InputsUnresolved")


def _not_ready(pair: Pair, difference: Difference) -> bool:
    absent = "modelCacheRef" in pair.inner and not pair.world.cache
    short = _count(pair) < pair.wanted
    return difference.what == "readiness" and difference.ours is True and (short or absent)


def _partially(pair: Pair, difference: Difference) -> bool:
    return (
        difference.what == "condition"
        and difference.ours == (False, "PartiallyScheduled")
        and difference.theirs in ((True, "ReplicasCreated"), (False, "Scheduling"))
        and 0 < _count(pair) < pair.wanted
    )


def _one_call(pair: Pair, difference: Difference) -> bool:
    """Everything came unasked: an answer that states requirements would be called again."""
    if difference.what != "calls" or difference.ours:
        return False
    return {requirement["name"] for requirement in pair.theirs.requirements} <= pair.world.required.keys()


def _requirements(pair: Pair, difference: Difference) -> bool:
    """Under names of our own, of the same kinds, and less of them where nothing is placed."""
    if difference.what != "requirement":
        return False
    ours, theirs = ({item["kind"] for item in answer.requirements} for answer in (pair.later, pair.theirs))
    return ours == theirs and (difference.theirs is None or difference.key in BLOCK)


def _unreachable(pair: Pair) -> int:
    """Return how many desired replicas are Ready on a cluster without a gateway address."""
    gates = {
        cluster["metadata"]["name"]: cluster.get("status", {}).get("gateway", {}).get("address")
        for cluster in pair.world.clusters or ()
    }
    return sum(not gates.get(pair.ours.desired[key]["spec"]["clusterName"]) for key in _ready(pair))


def _ready(pair: Pair) -> list[str]:
    return [
        key
        for key, manifest in pair.world.observed.items()
        if key in pair.ours.replicas
        and any(
            one["type"] == "Ready" and one["status"] == "True"
            for one in manifest.get("status", {}).get("conditions", [])
        )
    ]


def _routable(pair: Pair, difference: Difference) -> bool:
    if difference.what == "condition":
        degraded = difference.ours == (False, "ClusterDegraded") or _unreachable(pair) > 0
        return difference.key == "ReplicasReady" and difference.ours[0] is False and degraded
    if difference.what != "status" or not difference.theirs:
        return False
    ours, theirs = difference.ours["replicas"], difference.theirs["replicas"]
    return bool(ours["total"] == theirs["total"] and theirs["ready"] - ours["ready"] == _unreachable(pair))


def _scale_down(pair: Pair, difference: Difference) -> bool:
    """As many leave on both sides, others are chosen; ours keeps no fewer that are Ready."""
    ours, theirs = pair.ours.replicas.keys(), pair.theirs.replicas.keys()
    observed = _observed(pair, "replica")
    as_many = len(observed) > pair.wanted and len(ours) == len(theirs)
    if not as_many or ours == theirs or not ours | theirs <= observed:
        return False
    if difference.what == "status":
        return bool(difference.ours["replicas"]["ready"] >= difference.theirs["replicas"]["ready"])
    if difference.what == "condition":
        return difference.key == "ReplicasReady"
    return difference.what == "desired" and _replica(difference.key) in ours ^ theirs


def _replica(key: str) -> str:
    return key.replace("endpoint-", "replica-", 1)


def _endpoints(pair: Pair, difference: Difference) -> bool:
    return (
        difference.what == "desired"
        and difference.key in _observed(pair, "endpoint")
        and difference.theirs is None
        and _replica(difference.key) in pair.theirs.desired
        and Counter(pair.theirs.replicas.keys()) == Counter(pair.ours.replicas.keys())
    )


DEVIATIONS: tuple[Deviation[Pair, Difference], ...] = (
    Deviation("EndpointsFollow", "an observed endpoint stays while its cluster has no gateway", _endpoints),
    Deviation("EveryConditionEveryTime", "every condition is returned on every path", _every_condition),
    Deviation("FailStatic", "an empty fleet list removes nothing", _fail_static),
    Deviation("HeldUntilReplaced", "a mismatched replica stays until its replacement has a place", _held),
    Deviation("InputsUnresolved", "what is not delivered yet is said", _unresolved),
    Deviation("NotReadyWhenShort", "fewer placed than wanted is not ready", _not_ready),
    Deviation("OneCall", "what came with the first call is not asked for again", _one_call),
    Deviation("PartiallyScheduled", "some but not all placed is not a success", _partially),
    Deviation(
        "Requirements",
        "asks for what the answer stands on, under other names; the fleet unfiltered",
        _requirements,
    ),
    Deviation("RoutableIsReady", "a replica counts as ready when traffic can reach it", _routable),
    Deviation("ScaleDownOrder", "unhealthy replicas leave before healthy ones", _scale_down),
)
