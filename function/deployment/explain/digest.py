"""Digests of what a decision was made from, and of the decision.

Only what scheduling reads is in them, in an order of its own: neither the order in which objects are listed
nor a resource version, a condition's time or the status this function writes changes a digest.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from function.scheduler.filters.stack import StackExpresses
from function.scheduler.policy.evacuation import evacuation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api import ModelDeployment, ModelReplica
    from function.scheduler.decision import Decision
    from function.scheduler.scheduling_input import SchedulingInput

LENGTH = 32
"""Hex digits of a digest: enough to tell two apart, short enough to read out."""


def digest(parts: Iterable[str]) -> str:
    """The digest of texts in their order."""
    running = sha256()
    for part in parts:
        running.update(part.encode())
        running.update(b"\n")
    return running.hexdigest()[:LENGTH]


def input_digest(inputs: SchedulingInput) -> str:
    """Digest of everything a decision depends on."""
    fleet = inputs.fleet
    return digest(
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


def _cache(inputs: SchedulingInput) -> str:
    """What is read of the referenced cache: its phases only where the policy looks at them."""
    cache = inputs.fleet.cache
    if cache is None:
        return ""
    looked_at = inputs.policy.cache in ("Prefer", "Require")
    return _text([cache.metadata.name, cache.footprint, *([cache.phases] if looked_at else ())])


def _evacuation(inputs: SchedulingInput) -> Iterable[str]:
    """What heartbeats mean, where they are looked at: they move on, and it stays the same."""
    if inputs.policy.evacuate is not None:
        evacuating, fleet = evacuation(inputs), inputs.fleet
        yield evacuating.paused
        for replica in fleet.own_replicas:
            yield f"{replica.key} {evacuating.mismatch(replica, fleet.clusters.get(replica.cluster))}"
        yield _text(sorted(name for name, cluster in fleet.clusters.items() if evacuating.lost(cluster)))


def _stacks(inputs: SchedulingInput) -> tuple[str, ...]:
    """What templates mean for the stacks of the fleet: they themselves are in no digest."""
    stacks = StackExpresses.of(inputs)
    return stacks.facts if stacks is not None else ()


def _text(plain: Any) -> str:
    """One text for one content: map entries arrive in another order on every call."""
    return json.dumps(plain, sort_keys=True)


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
    """What is read of a deployment. The order of its tolerations means nothing."""
    plain = deployment.model_dump(mode="json", by_alias=True, exclude=_UNREAD)
    plain["spec"]["template"]["spec"]["tolerations"].sort(key=_text)
    return _text(plain)


def _charge(replica: ModelReplica) -> str:
    """What is read of a replica that is only charged: who it is, where it is, what it holds."""
    who = f"{replica.namespace}/{replica.name} {replica.deployment} {replica.cluster} {replica.index}"
    return f"{who} {replica.deleting} {sorted(replica.nodes.items())}"


def _replica(replica: ModelReplica) -> str:
    stamped = [(engine.name, engine.copies, engine.members) for engine in replica.engines]
    return f"{_charge(replica)} {replica.ready} {replica.alternative} {replica.cache} {stamped}"


def decision_digest(decision: Decision) -> str:
    """Digest of who is kept, placed and dropped, with the pools of each."""
    return digest(
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
