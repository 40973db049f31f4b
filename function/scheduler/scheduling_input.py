"""The input of one pass: the deployment, its policy and selectors, and the fleet.

A decision is a function of this value alone (Law 1). Everything that was read of a request is in it, parsed
and frozen, and a pass reads nothing else.

1. `Serving` says which own replicas are in service: every disruption and rollout budget counts those.
2. `OtherReplicas` are only charged. A server lists them for one deployment, a run over many shares them.
3. `Fleet` is what was delivered. Unresolved, absent and unreadable stay apart in it, because doubt deletes
   nothing (Law 2).
4. `scheduling_input` compiles the selectors and puts all of it together.
5. `evacuation` tells the time by the heartbeats of the clusters, since nothing here has a clock.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

from function.api import InferenceCluster, ModelCache, ModelDeployment, ModelReplica, SchedulerConfig
from function.api.deployment import PlacementPolicy
from function.api.model import mapping, mappings, number
from function.api.names import Identity
from function.api.ownership import OwnReplica
from function.api.priority import Priority
from function.api.text import latest, listed
from function.api.workload import SERVING, serving_digest
from function.boundary import Document, Resolution, Shape, Unreadable, frozen
from function.boundary.memory import Memo
from function.scheduler import selectors
from function.scheduler.ledger import Ledger, Yielding
from function.scheduler.selectors import Evaluations, Selectors, Share

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
# counts it as in service, and it is not taken for one that has nothing to lose. One that was Ready and says
# nothing any more is in doubt too, and so is one that is only listed. Crossplane observes what it composed,
# so this one may have been given up a moment ago, and the list is of before. If it is there it is adopted
# now, and observed from then on.
#
# Limit: where both the list and what is observed lack what the latest answer did, nothing that is read tells
# of it. Then as many again may be taken as the budget allows (docs/rollouts.md).


class Serving:
    """Says of own replicas whether they are in service, for one pass."""

    def __init__(self, *, by_template: bool) -> None:
        """Take whether a replica must be seen to run the template it has: where a rollout is staged."""
        self._by_template = by_template
        self._reports = Memo(_report)

    def __call__(self, own_replica: OwnReplica) -> bool:
        """Tell whether a replica is in service. One that is only listed is not known to be."""
        return own_replica.observed and self.seems_to(own_replica)

    def seems_to(self, own_replica: OwnReplica) -> bool:
        """Tell whether a replica reports that it is in service, wherever that was read: it may be gone."""
        return own_replica.replica.ready is True and self.runs_its_template(own_replica)

    def lost(self, own_replica: OwnReplica) -> bool:
        """Tell whether a replica takes no requests, as far as is reported: it has nothing to lose.

        One that was Ready and says nothing any more may take them.
        """
        replica = own_replica.replica
        return replica.ready is False or (replica.ready is None and not replica.was_ready)

    def half_updated(self, own_replica: OwnReplica) -> bool:
        """Tell whether a replica in doubt was seen to take requests with some of its pods updated.

        Then its pods are replaced while others serve: copy by copy, or with one on top.
        """
        in_doubt = not (self.seems_to(own_replica) or self.lost(own_replica))
        return in_doubt and self._reports.of(own_replica.key, own_replica).half_updated

    def runs_its_template(self, own_replica: OwnReplica) -> bool:
        """Tell whether its pods run what its spec says, as far as its platform says what they run."""
        return not self._by_template or self._reports.of(own_replica.key, own_replica).runs_its_template


class PodReport(NamedTuple):
    """The pods of a replica, as far as its status tells."""

    runs_its_template: bool = True
    half_updated: bool = False


def _report(own_replica: OwnReplica) -> PodReport:
    """Read a status. One that cannot be read says nothing, and then Ready counts."""
    try:
        plain = own_replica.document.project(SERVING)
    except ValueError:
        return PodReport()
    status = mapping(plain.get("status"))
    generation = mapping(plain.get("metadata")).get("generation")
    ready = (
        condition for condition in mappings(status.get("conditions")) if condition.get("type") == "Ready"
    )
    observed = next(ready, {}).get("observedGeneration")
    if isinstance(observed, int) and isinstance(generation, int) and 0 < observed < generation:
        return PodReport(runs_its_template=False)  # It is about the spec of before, and so are its counts.
    engines = mappings(status.get("engines"))
    counts = [number(engine.get(field), 0) for engine in engines for field in ("available", "updated")]
    digest = status.get("servingDigest")
    if isinstance(digest, str) and digest and digest != serving_digest(mapping(plain.get("spec"))):
        runs = False
    else:
        runs = bool(digest or not status.get("engines"))
    return PodReport(runs, min(counts, default=0) > 0)


# Other replicas: those of a fleet that are not a deployment's own, and are only charged.
#
# A server reads the list for the one deployment that it answers (`Unshared`). A run over many deployments
# reads and charges it once (`Listing`). Each of them sees it without its own (`OthersListed`), and opens its
# ledger from there. Sharing changes no answer: the same replicas are charged, and charges add up in any
# order.


class OtherReplicas(Iterable["ModelReplica"], Sized):
    """Every replica that exists, without those of one deployment."""

    @abstractmethod
    def named(self, name: str) -> Iterable[ModelReplica]:
        """Those that have an object name: none, or one in each of several namespaces."""

    @abstractmethod
    def charged(self, clusters: Mapping[str, InferenceCluster], touched: Collection[str]) -> Ledger:
        """Return a ledger to which they are charged; more may be opened on the touched clusters."""


class Unshared(tuple["ModelReplica", ...], OtherReplicas):  # noqa: SLOT001 - `_names` is computed once
    """Replicas that are read and charged for one deployment alone."""

    @cached_property
    def _names(self) -> frozenset[str]:
        """Their object names: nearly every name that a new replica could get is in none of them."""
        return frozenset([replica.name for replica in self])

    def named(self, name: str) -> Iterable[ModelReplica]:
        """Those that have an object name."""
        return [replica for replica in self if replica.name == name] if name in self._names else ()

    def charged(self, clusters: Mapping[str, InferenceCluster], touched: Collection[str]) -> Ledger:  # noqa: ARG002
        """Return a ledger of their own to which they are charged."""
        return _charged(Ledger(clusters.values()), self)


def _charged(ledger: Ledger, replicas: Iterable[ModelReplica]) -> Ledger:
    """Open replicas on a ledger, each on the cluster that it names. Returns the ledger."""
    for replica in replicas:
        ledger.open(replica, replica.cluster)
    return ledger


class Listing:
    """The listed replicas of one run over many deployments, which may go on at its end.

    Law: what is read of a document depends on the document, and what is charged on the replicas and the
    clusters. A list with another beginning is another listing; who asks about other clusters, or saw less of
    the list than is charged by now, charges for itself.
    Buys: 2,000 replicas are read and charged once, and not again for each of 100 deployments.
    """

    def __init__(self, clusters: Mapping[str, InferenceCluster]) -> None:
        """Start without replicas."""
        self._clusters = clusters
        self._documents: tuple[Document, ...] = ()
        self.replicas: list[ModelReplica] = []
        self._by_deployment: dict[str, list[int]] = defaultdict(list)
        self.by_name: dict[str, list[int]] = defaultdict(list)
        """Where the replicas of an object name stand."""
        self._ledger = Ledger(clusters.values())
        self._charged = 0

    def read(
        self,
        documents: tuple[Document, ...],
        clusters: Mapping[str, InferenceCluster],
        parse: Callable[[Document], ModelReplica],
    ) -> bool:
        """Read on in a list that begins as this one does, on the same clusters; False for any other list.

        `parse` never fails.
        """
        if documents[: len(self._documents)] != self._documents or clusters != self._clusters:
            return False
        for document in documents[len(self._documents) :]:
            replica = parse(document)
            self._by_deployment[replica.deployment].append(len(self.replicas))
            self.by_name[replica.name].append(len(self.replicas))
            self.replicas.append(replica)
        self._documents = documents
        return True

    def concerning(self, deployment: str, names: Iterable[str]) -> list[int]:
        """Where the replicas of a deployment's name stand, and those of some object names, in order."""
        places = set(self._by_deployment.get(deployment, ()))
        for name in names:
            places.update(self.by_name.get(name, ()))
        return sorted(places)

    def charged(self, clusters: Mapping[str, InferenceCluster], length: int) -> Ledger | None:
        """Return a ledger with the first replicas, to be forked; None where one has to be opened anew."""
        if length < self._charged or clusters != self._clusters:
            return None
        if length > self._charged:
            added = self.replicas[self._charged : length]
            # Those who forked the ledger before go on seeing it as it was.
            self._ledger = _charged(self._ledger.fork({replica.cluster for replica in added}), added)
            self._charged = length
        return self._ledger


@dataclass(frozen=True, eq=False)
class OthersListed(OtherReplicas):
    """A listing as one deployment sees it."""

    listing: Listing
    length: int
    """How far the list went when the deployment was asked about."""
    left_out: frozenset[int]
    """Where its own stand, and what is in `rest`."""
    rest: tuple[ModelReplica, ...]
    """Replicas that bear the deployment's name and are not its own."""

    def __iter__(self) -> Iterator[ModelReplica]:
        """Return all of them: those in the list in its order, then the rest."""
        for at, replica in enumerate(self.listing.replicas[: self.length]):
            if at not in self.left_out:
                yield replica
        yield from self.rest

    def __len__(self) -> int:
        """Return their number."""
        return self.length - len(self.left_out) + len(self.rest)

    def named(self, name: str) -> Iterable[ModelReplica]:
        """Those that have an object name."""
        for at in self.listing.by_name.get(name, ()):
            if at < self.length and at not in self.left_out:
                yield self.listing.replicas[at]
        yield from (replica for replica in self.rest if replica.name == name)

    def charged(self, clusters: Mapping[str, InferenceCluster], touched: Collection[str]) -> Ledger:
        """Fork the ledger of the listing, and take the deployment's own out of it."""
        shared = self.listing.charged(clusters, self.length)
        if shared is None:
            return _charged(Ledger(clusters.values()), self)
        left_out = [self.listing.replicas[at] for at in self.left_out]
        changed = (*left_out, *self.rest)
        ledger = shared.fork({*touched, *(replica.cluster for replica in changed)})
        ledger.close(left_out)
        return _charged(ledger, self.rest)


# The fleet of one pass: the clusters, the replicas, and what was not delivered.
#
# Unresolved (not delivered yet), absent (delivered: there is none) and empty are three different things,
# and so is a cluster that is there but cannot be read.


@frozen
class UnreadableCluster:
    """An object that is there and cannot be read."""

    name: str
    fault: str
    published: ClassVar[tuple[()]] = ()
    shared: ClassVar[tuple[()]] = ()
    """It has no pools, and shares no device list with a cluster that can be read."""


@frozen
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


@frozen
class Peer:
    """One other deployment, and the fleet as it sees it."""

    deployment: ModelDeployment
    fleet: Fleet
    room: int | None = None
    """How many new replicas its own answer can carry; None is no cap."""


@frozen
class Peers:
    """The deployments whose turn comes before ours, in order; empty where nothing is coordinated."""

    resolutions: Mapping[str, Resolution] = field(default_factory=dict)
    """How the requirements that coordination adds were resolved."""
    earlier: tuple[Peer, ...] = ()


NO_PEERS = Peers()
NO_PRIORITY = Priority()
NO_ROLLOUT = Serving(by_template=False)


@frozen
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
    """That the function's input is invalid, and how; then what runs stays as it is and nothing is placed."""
    peers: Peers = NO_PEERS
    """The deployments that place before this one, where placing is coordinated."""
    serving: Serving = NO_ROLLOUT
    """Which of the own replicas count as in service."""
    priority: Priority = NO_PRIORITY


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
    origin = selectors.OF_DEPLOYMENT if "preferences" in stated.model_fields_set else selectors.OF_INPUT
    clusters, preferences, release = fleet.clusters.values(), policy.preferences or (), config.cel_version
    bounds = share or selectors.WHOLE
    checked = selectors.check_selectors(
        deployment, preferences, release, origin, clusters=clusters, share=bounds
    )
    # For a deployment before ours no evaluation may take more units than its own (`selectors`, rule 4).
    count = partial(checked.evaluations, clusters) if share is None else None
    surges = policy.disruption is not None and policy.disruption.max_surge > 0
    return SchedulingInput(
        deployment,
        policy,
        checked,
        config,
        fleet,
        Evaluations(release, count),
        config_fault,
        peers,
        Serving(by_template=policy.rollout is not None or surges),
        Priority.of_deployment(config, deployment),
    )


# placement.evacuate: give up what has been lost or degraded for longer than asked, where there is a place.
#
# A pure function has no clock, so time is observed: every cluster publishes a heartbeat, the time on a
# lease that something on it renews. Three rules keep a wrong clock from moving anything that is well:
#
# 1. *Now* is the newest instant that more than half of the heartbeats have reached. Somebody honest is among
#    those, so as long as most clocks are right it is never later than it really is, whatever the others say:
#    one a year ahead changes nothing. Two heartbeats at least: a single one is confirmed by no other.
# 2. Fewer than half of the heartbeats within `afterSeconds` of the newest: nothing is evacuated. It may be
#    the
#    control plane that is cut off, or the newest that lies; the two look the same.
# 3. A cluster that the control plane says it reaches (ClusterReachable) is not lost: its clock is behind.
#
# A time that cannot be read is doubt, and doubt keeps. What evacuates is treated as a mismatch: it goes
# only when a place was found in the same pass, within the disruption budget (Law 2, reason 7).

QUORUM = 2
"""Heartbeats that make a clock."""
SHOWN = 3
"""How many clusters a message names."""

UNREADY: Shape = {
    "metadata": {"creationTimestamp": None},
    "status": {"conditions": {"type": None, "status": None, "lastTransitionTime": None}},
}
"""What is read of an own replica to know how long it has not been Ready."""


@frozen
class Evacuation:
    """The faults that have lasted too long. Switched off, nothing lasts too long."""

    after: int = 0
    """The seconds asked for."""
    before: int | None = None
    """What has been wrong since before this instant has been so for too long; None: nothing has."""
    paused: str = ""
    """Why nothing is evacuated although it is asked for."""

    def lost(self, cluster: InferenceCluster) -> bool:
        """Tell whether a cluster was not heard of for too long."""
        if self.before is None or cluster.reached:
            return False
        return cluster.heartbeat is not None and cluster.heartbeat < self.before


def unready_since(own_replica: OwnReplica) -> int | None:
    """Since when a replica is not Ready, and at most as long as it exists; None where that is not known."""
    if own_replica.replica.ready is not False:
        return None
    try:
        plain = own_replica.document.project(UNREADY)
    except Unreadable:
        return None
    readings = [
        condition.get("lastTransitionTime")
        for condition in mappings(mapping(plain, "status").get("conditions"))
        if condition.get("type") == "Ready"
    ]
    created = mapping(plain.get("metadata")).get("creationTimestamp")
    return latest([*readings, *([] if created is None else [created])])


def evacuation(inputs: SchedulingInput) -> Evacuation:
    """Read the clock of a fleet, and how far back too long is."""
    stated = inputs.policy.evacuate
    if stated is None:
        return Evacuation()
    after = stated.after_seconds
    beats = {
        name: cluster.heartbeat
        for name, cluster in inputs.fleet.clusters.items()
        if cluster.heartbeat is not None and not cluster.deleting  # What is going away has no say.
    }
    if len(beats) < QUORUM:
        publishers = "no cluster publishes" if not beats else "only one cluster publishes"
        return Evacuation(after, paused=f"NoClock: {publishers} a heartbeat, so nothing is evacuated")
    newest = max(beats.values())
    fresh = sorted(name for name, beat in beats.items() if beat >= newest - after)
    if 2 * len(fresh) < len(beats):
        few = f"{len(fresh)} of {len(beats)} heartbeats {'is' if len(fresh) == 1 else 'are'}"
        text = f"EvacuationPaused: only {few} within {after} s of the newest ({listed(fresh, SHOWN)})"
        return Evacuation(after, paused=f"{text}, so nothing is evacuated")
    now = sorted(beats.values(), reverse=True)[len(beats) // 2]
    return Evacuation(after, before=now - after)


def suspects(inputs: SchedulingInput) -> bool:
    """Tell whether something of ours may have been wrong for too long: what time it is would decide."""
    if inputs.policy.evacuate is None:
        return False
    for own_replica in inputs.fleet.own_replicas:
        if own_replica.terminating:
            continue
        if unready_since(own_replica) is not None:
            return True
        cluster = inputs.fleet.clusters.get(own_replica.cluster)
        if cluster is None:
            continue
        if cluster.unready_since is not None or (cluster.heartbeat is not None and not cluster.reached):
            return True
    return False
