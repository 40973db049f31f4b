"""The input of one pass: the deployment, its policy and selectors, and the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from function.api import InferenceCluster, ModelCache, ModelDeployment, SchedulerConfig
from function.api.deployment import PlacementPolicy
from function.api.model import conditions_of, mapping, mappings, number
from function.api.names import Identity
from function.api.ownership import OwnReplica
from function.api.workload import SERVING, serving_digest
from function.boundary import Document, Resolution
from function.boundary.memo import Memo
from function.scheduler.ledger import Yielding
from function.scheduler.other_replicas import OtherReplicas
from function.scheduler.selectors import (
    OF_DEPLOYMENT,
    OF_INPUT,
    WHOLE,
    Evaluations,
    HeldPrograms,
    Selectors,
    Share,
    check_selectors,
)

# Say which replicas are in service: what every disruption and rollout budget counts.
#
# A replica is in service when it is Ready. That is not enough after an edit of the template: a replica is
# still Ready while its old pods serve, or until its controller has looked at it. So where a rollout is
# staged
#
# - its `status.servingDigest`, if it is published, must be that of its own spec (its pods run what it says);
# - its Ready, if both say of which generation they are, must be of the generation it has.
#
# Neither is there on a platform that does not publish it; then Ready counts. A platform that publishes
# `status.engines` and no digest does not know what the pods run.
#
# A replica that is Ready and not in service is *in doubt*: what was reported last may be over. No budget
# counts it as in service, and nobody takes it for one that has nothing to lose.


class Serving:
    """Says of own replicas whether they are in service, for one pass."""

    def __init__(self, *, by_template: bool) -> None:
        """Take whether a replica must be seen to run the template it has: where a rollout is staged."""
        self._by_template = by_template
        self._running = Memo(_runs_its_template)
        self._mixed = Memo(_is_half_updated)

    def __call__(self, own_replica: OwnReplica) -> bool:
        """Tell whether a replica is in service."""
        return own_replica.replica.ready is True and self.runs_its_template(own_replica)

    def lost(self, own_replica: OwnReplica) -> bool:
        """Tell whether a replica takes no requests, as far as is reported: it has nothing to lose."""
        return own_replica.replica.ready is not True

    def half_updated(self, own_replica: OwnReplica) -> bool:
        """Tell whether a replica in doubt was seen to take requests with some of its pods updated.

        Then its pods are replaced while others serve: copy by copy, or with one on top.
        """
        return not (self(own_replica) or self.lost(own_replica)) and self._mixed.of(
            own_replica.key, own_replica
        )

    def runs_its_template(self, own_replica: OwnReplica) -> bool:
        """Tell whether its pods run what its spec says, as far as its platform says what they run."""
        return not self._by_template or self._running.of(own_replica.key, own_replica)


def _runs_its_template(own_replica: OwnReplica) -> bool:
    try:
        plain = own_replica.document.project(SERVING)
    except ValueError:
        return True
    status = mapping(plain.get("status"))
    digest = status.get("servingDigest")
    if isinstance(digest, str) and digest and digest != serving_digest(mapping(plain.get("spec"))):
        return False
    if _is_older(_ready_of(status), mapping(plain.get("metadata")).get("generation")):
        return False
    return bool(digest or not status.get("engines"))


def _is_half_updated(own_replica: OwnReplica) -> bool:
    try:
        plain = own_replica.document.project(SERVING)
    except ValueError:
        return False
    status = mapping(plain.get("status"))
    if _is_older(_ready_of(status), mapping(plain.get("metadata")).get("generation")):
        return False  # What was counted is about the spec of before.
    engines = mappings(status.get("engines"))
    counts = [number(engine.get(field), 0) for engine in engines for field in ("available", "updated")]
    return min(counts, default=0) > 0


def _ready_of(status: dict[str, Any]) -> object:
    """The generation that the condition Ready is about; None where it does not say."""
    ready = (condition for condition in conditions_of(status) if condition.get("type") == "Ready")
    return next(ready, {}).get("observedGeneration")


def _is_older(observed: object, generation: object) -> bool:
    return isinstance(observed, int) and isinstance(generation, int) and 0 < observed < generation


# The fleet of one pass: the clusters, the replicas, and what was not delivered.
#
# Unresolved (not delivered yet), absent (delivered: there is none) and empty are three different things,
# and so is a cluster that is there but cannot be read.


@dataclass(frozen=True, slots=True)
class UnreadableCluster:
    """An object that is there and cannot be read."""

    name: str
    fault: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """Everything one pass knows."""

    clusters: Mapping[str, InferenceCluster]
    unreadable: Mapping[str, UnreadableCluster]
    nameless: bool
    """Whether some cluster's name could not be read: then no cluster is known to be gone."""
    clusters_resolution: Resolution
    replicas_resolution: Resolution
    cache_resolution: Resolution | None
    """None without a modelCacheRef."""
    cache: ModelCache | None
    cache_fault: str
    """Why the referenced cache cannot be read, though it was delivered; it then counts as unresolved."""
    own_replicas: tuple[OwnReplica, ...]
    """Own replicas with an identity of their own, in the order of cluster and index."""
    other_replicas: OtherReplicas
    """Every other replica that exists: foreign ones, and own objects whose identity another one has."""
    endpoints: Mapping[str, Document]
    """Observed endpoints by key."""
    taken: frozenset[Identity] = field(default_factory=frozenset)
    """Identities that an own object, an observed key or a key of an earlier step has."""
    theirs: frozenset[str] = frozenset()
    """Keys that earlier steps of the pipeline desire."""
    uncharged: Mapping[str, str] = field(default_factory=dict)
    """Clusters that do not say what is charged to them where they are asked to, and why."""
    gives_way: tuple[Yielding, ...] | None = None
    """Who gives way as the clusters tell it, by seniority; None where it is computed from all replicas."""
    whole: bool = True
    """Whether every cluster and every replica is in it; else those that the own replicas stand on.

    Then nothing is placed, a cluster that is missing may exist, and what is free is not known."""
    undelivered: tuple[str, ...] = ()
    """The requirements that were not delivered, by name."""

    @property
    def inputs_delivered(self) -> bool:
        """Tell whether the clusters and the replicas were both delivered (perhaps as an empty list)."""
        return Resolution.UNRESOLVED not in (self.clusters_resolution, self.replicas_resolution)

    def gone(self, cluster: str) -> bool:
        """Tell whether the cluster is known not to exist: the list was delivered, is not empty, lacks it."""
        listed = cluster in self.clusters or cluster in self.unreadable
        complete = self.whole and self.clusters_resolution is Resolution.DELIVERED
        return complete and not self.nameless and not listed


@dataclass(frozen=True, slots=True)
class Peer:
    """One other deployment, and the fleet as it sees it."""

    deployment: ModelDeployment
    fleet: Fleet


@dataclass(frozen=True, slots=True)
class Peers:
    """The deployments whose turn comes before ours, in order; nobody where nothing is coordinated."""

    resolutions: Mapping[str, Resolution] = field(default_factory=dict)
    """How the requirements that coordination adds were resolved."""
    earlier: tuple[Peer, ...] = ()

    @property
    def resolved(self) -> bool:
        """Tell whether everything was delivered that coordination needs."""
        return Resolution.UNRESOLVED not in self.resolutions.values()


NO_PEERS = Peers()
NO_ROLLOUT = Serving(by_template=False)


@dataclass(frozen=True, slots=True)
class SchedulingInput:
    """Everything a decision depends on."""

    deployment: ModelDeployment
    policy: PlacementPolicy
    selectors: Selectors
    config: SchedulerConfig
    fleet: Fleet
    evaluations: Evaluations
    """What selectors say in this pass."""
    config_fault: str = ""
    """That the function's input is invalid, and how; then the defaults apply and nothing new is placed."""
    peers: Peers = NO_PEERS
    """The deployments that place before this one, where placing is coordinated."""
    serving: Serving = NO_ROLLOUT
    """Which of the own replicas count as in service."""


def scheduling_input(
    deployment: ModelDeployment,
    fleet: Fleet,
    config: SchedulerConfig,
    config_fault: str = "",
    peers: Peers = NO_PEERS,
    *,
    share: Share | None = None,
) -> SchedulingInput:
    """Put the input of one pass together; selectors are gone through here.

    `share` is given for a deployment that places before ours: what its selectors may cost.
    """
    stated = deployment.spec.placement or PlacementPolicy()
    policy = stated.over(config.defaults.placement)
    origin = OF_DEPLOYMENT if "preferences" in stated.model_fields_set else OF_INPUT
    clusters = fleet.clusters.values()
    selectors = check_selectors(
        deployment,
        policy.preferences or (),
        config.cel_version,
        origin,
        clusters=clusters,
        share=share or WHOLE,
    )
    deployment.memo_of(HeldPrograms).programs = selectors.programs
    count = partial(selectors.evaluations, clusters) if share is None else None
    evaluations = Evaluations(config.cel_version, count)
    surges = policy.disruption is not None and policy.disruption.max_surge > 0
    serving = Serving(by_template=policy.rollout is not None or surges)
    return SchedulingInput(
        deployment, policy, selectors, config, fleet, evaluations, config_fault, peers, serving
    )
