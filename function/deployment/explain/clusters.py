"""The verdict on every cluster, as plain data: what its pools need, have and hold, what is in the way.

Why. A decision is a choice among clusters, and is only understood beside those that were not chosen. Each has
one verdict: it hosts replicas, could host another, is full, does not qualify, or cannot be told.

Theory of operation
1. `Survey` holds the rejections of a decision once for all who ask. A cluster without one could host another.
2. The clusters that are listed are those of the deployment and the nearest misses; the rest is a number.
3. Headroom is counted by placing and taking back (`placer.headroom`): the only count that never promises more
   than the algorithm would give.
4. Digests identify input and decision. Only what scheduling reads goes into them. So an input with the same
   digest and another decision would be a breach of Law 1.

Doubt: where not the whole fleet was read, what is free is not known, and no entry says anything of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import partial
from typing import Any

from function.api import InferenceCluster, ModelDeployment, ModelReplica, Pool
from function.api.charge import is_anonymous
from function.api.reasons import Nature, Reason, Rejection
from function.api.text import digest
from function.boundary import JsonObject, frozen
from function.deployment.explain.message import rejection_phrase
from function.scheduler import filters, mismatch, search
from function.scheduler.decision import Decision
from function.scheduler.placer import barred
from function.scheduler.scheduling_input import SchedulingInput, evacuation

# Digests of what a decision was made from, and of the decision.
#
# Only what scheduling reads is in them, in an order of its own: neither the order in which objects are
# listed nor a resource version, a condition's time or the status this function writes changes a digest.


def digests(decision: Decision) -> dict[str, str]:
    """Digest everything that a decision depends on; and who is kept, placed and dropped, on which pools."""
    inputs, fleet = decision.inputs, decision.inputs.fleet
    read = digest(
        (
            _deployment(inputs.deployment),
            _text(inputs.config.model_dump(mode="json", by_alias=True, exclude={"metadata"})),
            inputs.config_fault,
            f"{fleet.clusters_resolution} {fleet.replicas_resolution} {fleet.cache_resolution}",
            _cache(inputs),
            *_evacuation(inputs),
            *_stacks(inputs),
            *(fleet.clusters[name].canonical for name in sorted(fleet.clusters)),
            *(f"{cluster.name}: {cluster.fault}" for _, cluster in sorted(fleet.unreadable.items())),
            *sorted(_charge(replica) for replica in fleet.other_replicas),
            *(
                f"{own_replica.key} {own_replica.terminating} {_replica(own_replica.replica)}"
                for own_replica in fleet.own_replicas
            ),
        )
    )
    decided = digest(
        (
            *(f"kept {kept.own_replica.key} {kept.mismatch} {kept.shape is None}" for kept in decision.kept),
            *(
                f"placed {placed.identity} {placed.name} {placed.candidate.shape.name} "
                f"{[option.pools for option in placed.candidate.options]}"
                for placed in decision.placed
            ),
            *(f"dropped {dropped.own_replica.key} {dropped.cause}" for dropped in decision.dropped),
        )
    )
    return {"inputDigest": read, "decisionDigest": decided}


def _cache(inputs: SchedulingInput) -> str:
    """Digest the referenced cache: its phases only where the policy looks at them."""
    cache = inputs.fleet.cache
    if cache is None:
        return ""
    looked_at = inputs.policy.cache in ("Prefer", "Require")
    return _text([cache.metadata.name, cache.footprint, *([cache.phases] if looked_at else ())])


def _evacuation(inputs: SchedulingInput) -> Iterable[str]:
    """Digest the meaning of heartbeats: they move on, and it stays the same."""
    if inputs.policy.evacuate is not None:
        evacuating, fleet = evacuation(inputs), inputs.fleet
        yield evacuating.paused
        for replica in fleet.own_replicas:
            cluster = fleet.clusters.get(replica.cluster)
            yield f"{replica.key} {mismatch.lasting_fault(evacuating, replica, cluster)}"
        yield _text(sorted(name for name, cluster in fleet.clusters.items() if evacuating.lost(cluster)))


def _stacks(inputs: SchedulingInput) -> tuple[str, ...]:
    """Digest the meaning of templates for the fleet's stacks: the templates themselves are in no digest."""
    stacks = filters.StackExpresses.of(inputs)
    return stacks.facts if stacks is not None else ()


_text = partial(json.dumps, sort_keys=True)
"""One text for one content: map entries arrive in another order on every call."""
_ENGINES: Any = {"__all__": {"members": {"__all__": {"template"}}}}
_UNREAD: Any = {
    "metadata": {"labels"},
    "spec": {
        "template": {
            "metadata": True,
            "spec": {
                "serving": True,
                "engines": _ENGINES,
                "alternatives": {"__all__": {"engines": _ENGINES}},
            },
        }
    },
}
"""What is passed on without being read: recordings and snapshots do not have it, so no digest may."""


def _deployment(deployment: ModelDeployment) -> str:
    """Digest a deployment. The order of its tolerations means nothing."""
    plain = deployment.model_dump(mode="json", by_alias=True, exclude=_UNREAD)
    plain["spec"]["template"]["spec"]["tolerations"].sort(key=_text)
    return _text(plain)


def _charge(replica: ModelReplica) -> str:
    """Digest a replica that is only charged: its identity, its place, its holding."""
    who = f"{replica.namespace}/{replica.name} {replica.deployment} {replica.cluster} {replica.index}"
    return f"{who} {replica.deleting} {sorted(replica.nodes.items())}"


def _replica(replica: ModelReplica) -> str:
    """Digest an own replica: besides its charge, what mismatch and readiness are decided by."""
    stamped = [(engine.name, engine.copies, engine.members) for engine in replica.engines]
    return f"{_charge(replica)} {replica.ready} {replica.alternative} {replica.cache} {stamped}"


OTHERS = 20
"""How many clusters that host no replica are listed."""
HOLDERS = 5
"""How many holders of a pool are named."""
HEADROOM = 10
"""Up to how many more replicas are counted."""


class ClusterVerdict(Enum):
    """The verdict about a cluster for one deployment."""

    Chosen = "hosts replicas of this deployment"
    Eligible = "could host another replica"
    Full = "would do, but has no capacity left"
    Rejected = "does not qualify"
    Unknown = "cannot be told"


def resolvable(rejection: Rejection) -> bool:
    """Tell whether the rejection may pass by itself: as the cluster recovers or as replicas leave it."""
    if not rejection.reason.passes:
        return False
    short = rejection.reason in (Reason.InsufficientNodes, Reason.InsufficientDevices)
    return not short or (rejection.needs or 0) <= (rejection.total or 0)


@frozen
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
        inputs = decision.inputs
        rejections = decision.survey() if inputs.fleet.whole else barred(inputs, filters.standing(inputs))
        return cls(decision, rejections, frozenset(kept | placed))

    def verdict(self, name: str) -> ClusterVerdict:
        """Return the verdict about a cluster for the deployment, after this pass."""
        rejection = self.rejections.get(name)
        if name in self.hosting:
            return ClusterVerdict.Chosen
        if name in self.decision.inputs.fleet.unreadable or self.decision.placer is None:
            return ClusterVerdict.Unknown
        if rejection is None:
            return ClusterVerdict.Eligible
        return ClusterVerdict.Full if rejection.reason.nature is Nature.CAPACITY else ClusterVerdict.Rejected

    def names(self) -> list[str]:
        """Every cluster, those that host replicas first, then those that could, then the nearest misses."""
        fleet = self.decision.inputs.fleet
        listed = {*fleet.clusters, *fleet.unreadable, *self.hosting}
        return sorted(listed, key=self._nearness)

    def _nearness(self, name: str) -> tuple[bool, int, int, int, str]:
        """Sort key: hosts, then those that could host, then deeper reasons, fewer nodes missing, the name."""
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
        if cluster is None or not self.decision.inputs.fleet.whole:  # What is free there is not known.
            return entry
        if placer is not None and verdict is not ClusterVerdict.Unknown:
            entry["headroom"] = 0 if rejection else placer.headroom(cluster, HEADROOM)
        if pools:
            below_gates = rejection is None or not rejection.reason.is_standing
            entry["pools"] = pools_of(self.decision, cluster, below_gates=below_gates)
        return entry


def pools_of(decision: Decision, cluster: InferenceCluster, *, below_gates: bool = True) -> list[JsonObject]:
    """The pools of a cluster, in the order they are published: what is free, who holds the rest, who fits."""
    verdicts = list(decision.placer.on_pools(cluster)) if decision.placer and below_gates else []
    entries = []
    for pool in cluster.pools:
        entry: JsonObject = {
            "name": pool.name,
            "free": max(0, decision.ledger.capacity(cluster.name, pool.name).free_nodes),
            "total": pool.nodes,
            **({"unusable": pool.unusable} if pool.unusable else {}),
            **({"toCome": pool.to_come} if pool.to_come else {}),
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


def _engine(verdict: search.OnPools, *, alternative: str) -> JsonObject:
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
