"""Filters: the gates that keep a new replica off a cluster, in their order.

What one condition of a cluster decides is a `StateGate`; every other filter is a class.

A filter is built once per pass by a line of `STANDING` or `COUNTING` (None where it does not apply) and asked
about one cluster at a time. The order of the lines is the order of evaluation; the first rejection is the
cluster's headline. CONTRIBUTING has what a new filter needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter, itemgetter
from typing import Protocol

from function.api import InferenceCluster, ModelDeployment
from function.api.cache import READY
from function.api.deployment import ClusterSelector, Engine, LabelRequirement, ReplicaShape, TopologySpread
from function.api.expressible import ReplicaPods, StackEngine, obstacle
from function.api.fault import Fault, Malformed
from function.api.model import STANDARD
from function.api.reasons import DeferredGap, Reason, Rejection
from function.api.taints import Toleration, untolerated
from function.api.workload import PodTemplate, ServingSpec
from function.boundary import frozen
from function.boundary.memory import Memo
from function.cel import bind_cluster
from function.scheduler.ledger import ReplicaCounts
from function.scheduler.scheduling_input import SchedulingInput, evacuation
from function.scheduler.selectors import Evaluations

# The gates that one condition of a cluster opens or closes. These four ask it whatever a deployment says.


def _readiness(cluster: InferenceCluster) -> str:
    """Describe the obstacle of a cluster that is not Ready."""
    if cluster.status is None:
        return "no status"
    return "" if cluster.ready is False else "Ready is unknown"


@frozen
class StateGate:
    """One condition that a cluster must meet to take new replicas."""

    reason: Reason
    """Why a cluster is rejected that does not meet it."""
    meets: Callable[[InferenceCluster], object]
    detail: Callable[[InferenceCluster], str] = lambda _: ""

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster that does not meet it."""
        return None if self.meets(cluster) else Rejection(self.reason, detail=self.detail(cluster))


NOT_DELETING = StateGate(Reason.ClusterDeleting, lambda cluster: not cluster.deleting)
IS_READY = StateGate(Reason.ClusterNotReady, lambda cluster: cluster.ready, _readiness)
HAS_GATEWAY = StateGate(Reason.NoGatewayAddress, lambda cluster: cluster.gateway)
PUBLISHES_POOLS = StateGate(Reason.NoPoolsPublished, lambda cluster: cluster.pools)


# clusterSelector: labels by equality and expression, and CEL over the cluster. All of it must match.


@frozen
class ClusterSelectorFilter:
    """Rejects clusters that the deployment's clusterSelector does not match."""

    selector: ClusterSelector
    evaluations: Evaluations

    @classmethod
    def of(cls, inputs: SchedulingInput) -> ClusterSelectorFilter | None:
        """Build it where something is selected; unset matches every cluster."""
        selector = inputs.deployment.template.cluster_selector
        if not (selector.match_labels or selector.match_expressions or selector.cel):
            return None
        return cls(selector, inputs.evaluations)

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster whose labels or attributes do not match."""
        labels = cluster.labels
        for key, value in sorted(self.selector.match_labels.items()):
            if labels.get(key) != value:
                return _mismatch(f"{key}={value}", labels, key)
        for expression in self.selector.match_expressions:
            if not expression.matches(labels):
                return _mismatch(_written(expression), labels, expression.key)
        return self._reject_by_cel(cluster)

    def _reject_by_cel(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster by the first expression that does not hold. One that errs rejects, and says so."""
        if not self.selector.cel:
            return None
        subject = bind_cluster(name=cluster.name, labels=cluster.labels, attributes=cluster.attributes)
        for index, expression in enumerate(self.selector.expressions):
            program = self.evaluations.program(expression)
            outcome = self.evaluations.outcome(program, subject)
            if outcome.kind == "nomatch":
                gap = DeferredGap(partial(self.evaluations.gap, program, subject))
                return Rejection(Reason.ClusterSelectorMismatch, gap=gap, selector=index)
            if outcome.kind != "match":
                return Rejection(Reason.ClusterSelectorError, detail=outcome.message, selector=index)
        return None


def _mismatch(wanted: str, labels: dict[str, str], key: str) -> Rejection:
    """Reject for a label: what is wanted, and what the cluster has under the key, so that a slip shows."""
    has = f"has {key}={labels[key]}" if key in labels else f"has no {key}"
    return Rejection(Reason.ClusterSelectorMismatch, detail=f"wants {wanted}, {has}")


def _written(requirement: LabelRequirement) -> str:
    """Write an expression as kubectl does: `tier in (gold, silver)`, `!spot`."""
    if requirement.operator == "Exists":
        return requirement.key
    if requirement.operator == "DoesNotExist":
        return f"!{requirement.key}"
    word = "in" if requirement.operator == "In" else "notin"
    return f"{requirement.key} {word} ({', '.join(requirement.values)})"


# The referenced ModelCache must be staged on the cluster: its labels narrow new placements.


@frozen
class CacheFootprint:
    """Rejects clusters outside the footprint of the referenced cache."""

    name: str
    labels: tuple[tuple[str, str], ...]
    """Those that the cache wants, in the order in which one that is missing is named."""

    @classmethod
    def of(cls, inputs: SchedulingInput) -> CacheFootprint | None:
        """Build it where a cache is referenced and found."""
        cache = inputs.fleet.cache
        if cache is None or not cache.footprint:
            return None
        return cls(cache.metadata.name, tuple(sorted(cache.footprint.items())))

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster that lacks one of the cache's labels."""
        for key, value in self.labels:
            if cluster.labels.get(key) != value:
                return Rejection(
                    Reason.OutsideCacheFootprint, detail=f"cache {self.name} wants {key}={value}"
                )
        return None


# placement.cache Require: the referenced ModelCache must have its weights on the cluster already.


def cache_ready(inputs: SchedulingInput) -> StateGate | None:
    """Reject clusters where the referenced cache is not Ready. A phase that is not known is not Ready."""
    cache = inputs.fleet.cache
    if cache is None or inputs.policy.cache != "Require":
        return None
    name, phases = cache.metadata.name, cache.phases

    def detail(cluster: InferenceCluster) -> str:
        phase = phases.get(cluster.name)
        return f"cache {name} is {phase}" if phase else f"cache {name} has no phase there"

    return StateGate(Reason.CacheNotReady, lambda cluster: phases.get(cluster.name) == READY, detail)


# An untolerated taint keeps new replicas away, whatever its effect.


@frozen
class Taints:
    """Rejects clusters with a taint the deployment does not tolerate."""

    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, inputs: SchedulingInput) -> Taints:
        """Build it, always."""
        return cls(inputs.deployment.template.tolerations)

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster by its first untolerated taint."""
        left = untolerated(cluster.spec.taints, self.tolerations) if cluster.spec.taints else ()
        if not left:
            return None
        return Rejection(Reason.UntoleratedTaint, detail=f"{{{left[0].key}: {left[0].effect}}}")


# The stack of a cluster must be able to express a replica: KServe says less than pods do.
#
# A shape that it cannot express is not tried there (`placer`); a cluster that can express none of the
# shapes takes no new replica. Replicas that run there are not looked at: they stay.


class StackExpresses:
    """Rejects clusters whose stack cannot express any shape of the deployment."""

    def __init__(self, deployment: ModelDeployment, stacks: frozenset[str]) -> None:
        """Say once for every shape (by name) and stack of the fleet what is in the way: a text, or none."""
        self.obstacles = {
            (shape.name, stack): _obstacle(deployment, shape, stack)
            for shape in deployment.shapes
            for stack in stacks
        }
        self._first = deployment.shapes[0].name
        self._closed = {
            stack for stack in stacks if all(self.obstacles[shape.name, stack] for shape in deployment.shapes)
        }

    @classmethod
    def of(cls, inputs: SchedulingInput) -> StackExpresses | None:
        """Build it where some cluster has another stack, or the deployment brings a model."""
        stacks = frozenset(map(attrgetter("spec.dialect"), inputs.fleet.clusters.values()))
        brings_model = "model" in (inputs.deployment.template.serving or {})
        return cls(inputs.deployment, stacks) if brings_model or stacks - {STANDARD} else None

    @property
    def facts(self) -> tuple[str, ...]:
        """Obstacles by stack, for the digest of the input; empty where there are none."""
        obstacles = sorted(self.obstacles.items())
        return tuple(f"{shape} {text}" for (shape, _), text in obstacles if text)

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster that can express no shape, with what is in the way of the first."""
        if cluster.spec.dialect not in self._closed:
            return None
        detail = self.obstacles[self._first, cluster.spec.dialect]
        return Rejection(Reason.StackCannotExpress, detail=detail)

    def reject_shape(self, shape: ReplicaShape, cluster: InferenceCluster) -> Rejection | None:
        """Reject one shape on a cluster that may express others."""
        detail = self.obstacles.get((shape.name, cluster.spec.dialect))
        return Rejection(Reason.StackCannotExpress, detail=detail) if detail else None


def _obstacle(deployment: ModelDeployment, shape: ReplicaShape, stack: str) -> str:
    """Return what is in the way of a shape. Pods that cannot be read are the handler of replicas' to name."""
    try:
        serving = ServingSpec.parse(deployment.template.serving or {})
        engines = tuple(map(_pods, shape.engines))
    except Malformed:
        return ""
    return obstacle(stack, ReplicaPods(serving, deployment.cache, engines))


def _pods(engine: Engine) -> StackEngine:
    """Read the pods of an engine. Raises Malformed."""
    templates = {member.role: PodTemplate.parse(member.template or {}) for member in engine.members}
    follower = templates.pop("Worker", None)
    if len(templates) != 1:
        raise Malformed([Fault("members", "expected one Standalone, or a Leader and a Worker")])
    [serving] = templates.values()
    followers = sum(member.pods for member in engine.members if member.role == "Worker")
    return StackEngine(
        engine.name, engine.phase, 1 + followers, serving, follower, engine.adapters is not None
    )


# placement.evacuate: what is given up as lost takes no new replica, or it would be given up again.


def cluster_heard(inputs: SchedulingInput) -> StateGate | None:
    """Reject clusters that were not heard of for longer than asked, where there is a clock."""
    evacuating = evacuation(inputs)
    if evacuating.before is None:
        return None
    detail = f"no heartbeat for over {evacuating.after} s"
    return StateGate(Reason.ClusterLost, lambda cluster: not evacuating.lost(cluster), lambda _: detail)


# Where charges are read from the clusters, one that does not say them takes nothing new: that is doubt.


def charge_published(inputs: SchedulingInput) -> StateGate | None:
    """Reject clusters whose charges are not known, and say why they are not."""
    why = inputs.fleet.uncharged
    if not why:
        return None
    reason = Reason.ChargeNotPublished
    return StateGate(reason, lambda cluster: cluster.name not in why, lambda cluster: why[cluster.name])


# placement.maxReplicasPerCluster: so many of this deployment on one cluster and no more.


@frozen
class MaxReplicasPerCluster:
    """Rejects clusters that have as many replicas of the deployment as allowed."""

    limit: int
    elsewhere: bool = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> MaxReplicasPerCluster | None:
        """Build it where a limit is set."""
        limit = inputs.policy.max_replicas_per_cluster
        return cls(limit) if limit is not None else None

    def reject(self, cluster: InferenceCluster, counts: ReplicaCounts) -> Rejection | None:
        """Reject a cluster at the limit."""
        if counts[cluster.name] < self.limit:
            return None
        return Rejection(Reason.MaxReplicasPerCluster, needs=counts[cluster.name] + 1, total=self.limit)


# placement.topologySpread: the PodTopologySpread rule over clusters.
#
# Domains are the values of a label over the clusters that pass selectors and taints; the skew of a
# placement is the domain's count + 1 - the least count of any domain, where the least counts as 0 while
# there are fewer domains than minDomains. Clusters that lack the label of any binding constraint are
# excluded, from the counts of all of them too: no replica can go there. It binds new placements only.


class Domains:
    """The domains of one topology key and the clusters in each."""

    def __init__(self, clusters: Iterable[InferenceCluster], constraint: TopologySpread) -> None:
        """Take the clusters that count, with their value of the key."""
        self.constraint = constraint
        key = constraint.topology_key
        self._domain_of = {cluster.name: cluster.labels[key] for cluster in clusters if key in cluster.labels}
        self.names = frozenset(self._domain_of.values())
        self._enough = len(self.names) >= (constraint.min_domains or 1)
        self._loads = Memo(self._load, most=1)

    def skews(self, counts: ReplicaCounts) -> tuple[dict[str, int], int]:
        """The skews after one more replica in each domain that has some, and that in one that has none."""
        replicas, least = self._loads.of(counts.version, counts)
        return {domain: number + 1 - least for domain, number in replicas.items()}, 1 - least

    def phrase(self, there: str, counts: ReplicaCounts, skew: int) -> str:
        """Say what one more replica is too far ahead of: the domain that has the fewest, by its name."""
        replicas, least = self._loads.of(counts.version, counts)
        key = self.constraint.topology_key
        if self._enough:
            behind = min(domain for domain in self.names if replicas[domain] == least)
            text = f"{there} would be {skew} ahead of {behind} ({least})"
        else:
            wanted = f"{len(self.names)} of minDomains {self.constraint.min_domains} are there"
            text = f"{there} would have {skew}, and {wanted}, so the least counts as 0"
        return f"{key}: {text}; maxSkew {self.constraint.max_skew}"

    def _load(self, counts: ReplicaCounts) -> tuple[Counter[str], int]:
        """Count the replicas of each domain, and the least of them."""
        replicas = counts.by(self._domain_of)
        least = min((replicas[domain] for domain in self.names), default=0) if self._enough else 0
        return replicas, least


def _binding_keys(inputs: SchedulingInput) -> set[str]:
    """The keys whose labels a cluster must have: without one, no binding constraint lets a replica there."""
    stated = inputs.policy.topology_spread or ()
    return {
        constraint.topology_key for constraint in stated if constraint.when_unsatisfiable == "DoNotSchedule"
    }


NO_DOMAIN_SKEW = 1_000_000
"""The skew of a cluster in no domain: behind every cluster in one."""


class Spread:
    """The constraints of a mode, DoNotSchedule or ScheduleAnyway, and the skews on each cluster."""

    def __init__(self, inputs: SchedulingInput, mode: str) -> None:
        """Gather the clusters that pass selectors and taints."""
        stated = inputs.policy.topology_spread or ()
        ours = [constraint for constraint in stated if constraint.when_unsatisfiable == mode]
        gates = [filter_class.of(inputs) for filter_class in (ClusterSelectorFilter, CacheFootprint, Taints)]
        binding, fleet = _binding_keys(inputs), inputs.fleet.clusters
        clusters = [
            cluster
            for cluster in fleet.values()
            if ours and binding <= cluster.labels.keys()
            if not any(gate and gate.reject(cluster) for gate in gates)
        ]
        self.constraints = tuple(Domains(clusters, constraint) for constraint in ours)
        self._numbers: dict[tuple[int, str | None], int] = {}
        self._excess_of = {
            name: itemgetter(*self._numbered(cluster)) for name, cluster in fleet.items() if ours
        }
        self._excesses = Memo(self._tabulate, most=1)

    def _numbered(self, cluster: InferenceCluster) -> list[int]:
        """Number the domains of a cluster, one for each constraint."""
        domains = enumerate(
            cluster.labels.get(domains.constraint.topology_key) for domains in self.constraints
        )
        return [self._numbers.setdefault(domain, len(self._numbers)) for domain in domains]

    def _tabulate(self, counts: ReplicaCounts) -> list[int]:
        """Tabulate by number how far one more replica would be beyond maxSkew in each domain."""
        skews = [domains.skews(counts) for domains in self.constraints]
        most = [domains.constraint.max_skew for domains in self.constraints]
        return [
            NO_DOMAIN_SKEW if domain is None else max(0, skews[at][0].get(domain, skews[at][1]) - most[at])
            for at, domain in self._numbers
        ]

    def excess(self, cluster: InferenceCluster, counts: ReplicaCounts) -> tuple[int, ...]:
        """How far one more replica there would be beyond the maxSkew of each constraint.

        Asked for every cluster and every replica that is placed: the table is one for all clusters.
        """
        excess = self._excess_of[cluster.name](self._excesses.of(counts.version, counts))
        return excess if len(self.constraints) > 1 else (excess,)


class TopologySpreadFilter:
    """Rejects clusters where one more replica would exceed maxSkew."""

    elsewhere = True

    def __init__(self, spread: Spread) -> None:
        """Take the binding constraints."""
        self._spread = spread
        self._rejections: Memo[None, dict[tuple[int, str], Rejection]] = Memo(lambda _: {}, most=1)

    @classmethod
    def of(cls, inputs: SchedulingInput) -> TopologySpreadFilter | None:
        """Build it where a constraint says DoNotSchedule."""
        spread = Spread(inputs, "DoNotSchedule")
        return cls(spread) if spread.constraints else None

    def reject(self, cluster: InferenceCluster, counts: ReplicaCounts) -> Rejection | None:
        """Reject a cluster in no domain, or in one that would be too far ahead."""
        excess = self._spread.excess(cluster, counts)
        if not any(excess):
            return None
        at = 0
        while not excess[at]:
            at += 1
        key = self._spread.constraints[at].constraint.topology_key
        domain = cluster.labels.get(key)
        if domain is None:
            return Rejection(Reason.TopologySpread, detail=f"has no label {key}")
        return self._too_far(at, domain, counts, excess[at])

    def _too_far(self, at: int, domain: str, counts: ReplicaCounts, beyond: int) -> Rejection:
        """The rejection of every cluster in a domain: written once, since clusters x replicas ask for it."""
        written = self._rejections.of(counts.version, None)
        rejection = written.get((at, domain))
        if rejection is None:
            constraint = self._spread.constraints[at]
            most = constraint.constraint.max_skew
            detail = constraint.phrase(domain, counts, most + beyond)
            rejection = Rejection(Reason.TopologySpread, detail=detail, needs=most + beyond, total=most)
            written[at, domain] = rejection
        return rejection


class StandingFilter(Protocol):
    """Says the same about a cluster for the whole pass."""

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Say why the cluster takes no new replica, or None."""


class CountingFilter(Protocol):
    """Depends on where the replicas are, so it is asked again for every placement."""

    @property
    def elsewhere(self) -> bool:
        """Tell whether a placement on another cluster can change what it says."""

    def reject(self, cluster: InferenceCluster, counts: ReplicaCounts) -> Rejection | None:
        """Say why the cluster takes no other replica now, or None."""


STANDING: tuple[Callable[[SchedulingInput], StandingFilter | None], ...] = (
    lambda _: NOT_DELETING,
    ClusterSelectorFilter.of,
    CacheFootprint.of,
    cache_ready,
    Taints.of,
    StackExpresses.of,
    lambda _: IS_READY,
    cluster_heard,
    lambda _: HAS_GATEWAY,
    lambda _: PUBLISHES_POOLS,
    charge_published,
)
COUNTING: tuple[Callable[[SchedulingInput], CountingFilter | None], ...] = (
    MaxReplicasPerCluster.of,
    TopologySpreadFilter.of,
)


def standing(inputs: SchedulingInput) -> tuple[StandingFilter, ...]:
    """Build the standing filters that apply."""
    built = (build(inputs) for build in STANDING)
    return tuple(gate for gate in built if gate is not None)


def counting(inputs: SchedulingInput) -> tuple[CountingFilter, ...]:
    """Build the counting filters that apply."""
    built = (build(inputs) for build in COUNTING)
    return tuple(gate for gate in built if gate is not None)
