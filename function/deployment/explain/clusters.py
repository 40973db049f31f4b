"""The verdict on every cluster, as plain data: what its pools need, have and hold, what is in the way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from function.api.charge import is_anonymous
from function.api.reasons import Reason
from function.deployment.explain.phrases import rejection_phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from function.api import InferenceCluster, Pool
    from function.api.reasons import Rejection
    from function.boundary import JsonObject
    from function.scheduler.decision import Decision
    from function.scheduler.diagnosis import OnPools


OTHERS = 20
"""How many clusters that host no replica are listed."""
HOLDERS = 5
"""How many holders of a pool are named."""
HEADROOM = 10
"""Up to how many more replicas are counted."""


class ClusterVerdict(Enum):
    """What a cluster is to a deployment."""

    Chosen = "hosts replicas of this deployment"
    Eligible = "could host another replica"
    Full = "would do, but has no capacity left"
    Rejected = "does not qualify"
    Unknown = "cannot be told"


def resolvable(rejection: Rejection) -> bool:
    """Whether the rejection may pass by itself: as the cluster recovers or as replicas leave it."""
    if not rejection.reason.passes:
        return False
    short = rejection.reason in (Reason.InsufficientNodes, Reason.InsufficientDevices)
    return not short or (rejection.needs or 0) <= (rejection.total or 0)


@dataclass(frozen=True, slots=True)
class Survey:
    """A decision from the point of view of its clusters."""

    decision: Decision
    rejections: Mapping[str, Rejection]
    hosting: frozenset[str]

    @classmethod
    def of(cls, decision: Decision) -> Survey:
        """Look at every cluster once."""
        kept = {kept.own_replica.cluster for kept in decision.kept}
        placed = {placed.identity.cluster for placed in decision.placed}
        return cls(decision, decision.survey(), frozenset(kept | placed))

    def verdict(self, name: str) -> ClusterVerdict:
        """What a cluster is to the deployment, after this pass."""
        rejection = self.rejections.get(name)
        if name in self.hosting:
            return ClusterVerdict.Chosen
        if name in self.decision.inputs.fleet.unreadable or self.decision.placer is None:
            return ClusterVerdict.Unknown
        if rejection is None:
            return ClusterVerdict.Eligible
        return ClusterVerdict.Full if rejection.reason.capacity else ClusterVerdict.Rejected

    def names(self) -> list[str]:
        """Every cluster, those that host replicas first, then those that could, then the nearest misses."""
        fleet = self.decision.inputs.fleet
        listed = {*fleet.clusters, *fleet.unreadable, *self.hosting}
        return sorted(listed, key=self._nearness)

    def _nearness(self, name: str) -> tuple[bool, int, int, int, str]:
        rejection = self.rejections.get(name)
        if rejection is None:
            return (name not in self.hosting, -len(Reason), 0, 0, name)
        selector = rejection.selector or 0
        return (name not in self.hosting, -rejection.reason.depth, rejection.missing, -selector, name)

    def shown(self, others: int) -> list[str]:
        """The clusters worth listing, by name: the hosts and the nearest of the others."""
        names = self.names()
        return sorted(names[: len(self.hosting) + others])

    def entry(self, name: str, *, pools: bool = True) -> JsonObject:
        """One cluster as plain data."""
        rejection, verdict = self.rejections.get(name), self.verdict(name)
        entry: JsonObject = {"name": name, "verdict": verdict.name}
        if rejection is not None:
            entry |= {"reason": rejection.reason.name, "resolvable": resolvable(rejection)}
            phrase = rejection_phrase(rejection)
            entry |= {"message": phrase} if phrase else {}
        cluster, placer = self.decision.inputs.fleet.clusters.get(name), self.decision.placer
        if cluster is None:
            return entry
        if placer is not None and verdict is not ClusterVerdict.Unknown:
            entry["headroom"] = 0 if rejection else placer.headroom(cluster, HEADROOM)
        if pools:
            entry["pools"] = pools_of(self.decision, cluster, below_gates=_below_gates(rejection))
        return entry


def _below_gates(rejection: Rejection | None) -> bool:
    return rejection is None or not rejection.reason.is_standing


def pools_of(decision: Decision, cluster: InferenceCluster, *, below_gates: bool = True) -> list[JsonObject]:
    """The pools of a cluster, in the order they are published: what is free, who holds the rest, who fits."""
    verdicts = list(decision.placer.on_pools(cluster)) if decision.placer and below_gates else []
    entries = []
    for pool in cluster.pools:
        entry: JsonObject = {
            "name": pool.name,
            "free": max(0, decision.ledger.free(cluster.name, pool.name)),
            "total": pool.nodes,
        }
        holders = held_by(decision, cluster.name, pool)
        if holders:
            entry["heldBy"] = holders
        engines = [
            _engine(verdict, alternative=shape.name)
            for shape, verdict in verdicts
            if verdict.pools == (pool.name,)
        ]
        entries.append(entry | ({"engines": engines} if engines else {}))
    return entries


def held_by(decision: Decision, cluster: str, pool: Pool) -> list[JsonObject]:
    """Who holds a pool, most first: what exists, and what this pass places.

    In nodes; in pods where the pool charges devices.
    """
    held = dict(decision.ledger.holders(cluster, pool.name))
    deployment_name = f"{decision.inputs.deployment.namespace}/{decision.inputs.deployment.name}"
    for placed in decision.placed:
        if placed.identity.cluster == cluster and pool.name in placed.candidate.nodes:
            held[deployment_name] = held.get(deployment_name, 0) + placed.candidate.nodes[pool.name]
    unit = "pods" if pool.accounting == "Device" else "nodes"
    ordered = sorted(held.items(), key=lambda item: (is_anonymous(item[0]), -item[1], item[0]))
    shown = sum(not is_anonymous(name) for name, _ in ordered[:HOLDERS])
    named = [{"deployment": name, unit: count} for name, count in ordered[:shown]]
    others = sum(count for _, count in ordered[shown:])
    return [*named, {"deployment": f"{len(ordered) - shown} others", unit: others}] if others else named


def _engine(verdict: OnPools, *, alternative: str) -> JsonObject:
    """One engine on one pool: the nodes it needs, or everything that keeps it off."""
    entry: JsonObject = {"engine": verdict.engine, **({"alternative": alternative} if alternative else {})}
    if verdict.nodes is not None:
        entry["needs"] = verdict.nodes
    if verdict.rejection is None:
        return entry
    entry["reason"] = verdict.rejection.reason.name
    if verdict.nodes is None:
        entry["rejections"] = [leaf_of(leaf) for leaf in verdict.rejection.leaves]
    return entry


def leaf_of(rejection: Rejection) -> JsonObject:
    """One rejection at the bottom of the tree; what does not apply is left out."""
    leaf = {
        "reason": rejection.reason.name,
        "member": rejection.member,
        "request": rejection.request,
        "selector": rejection.selector,
        "device": rejection.device,
        "needs": rejection.needs,
        "has": rejection.free,
        "actual": rejection.has,
        "wanted": rejection.wants,
    }
    return {key: value for key, value in leaf.items() if value not in ("", None)}


def entries(survey: Survey, names: Iterable[str], *, pools: bool = True) -> list[JsonObject]:
    """Several clusters as plain data."""
    return [survey.entry(name, pools=pools) for name in names]
