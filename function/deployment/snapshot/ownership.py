"""Sort listed replicas into a deployment's own and others that are only charged.

Why it is not trivial. A deployment learns of its replicas twice: Crossplane hands over those that it observed
for this composite, and the required list has all of them. The two are read at different moments, so one may
know of a replica that the other does not, or that it is being deleted.

Rules
1. An observed replica is our own: its key is its identity (`api.ownership`).
2. A listed replica that is an observed one again is counted once, as it was read later: by its
   resourceVersion, which Kubernetes compares as numbers. Either may say first that it is terminating.
   Doubt (Law 2): two objects of one name without equal uids are not known to be the same.
3. A listed replica that we own and do not observe may be newer than what is observed. It is emitted again,
   or it would be placed a second time. One object has an identity; others of it are only charged.
4. Every other replica is charged, whoever it names.

The second half reads the deployments that place before ours, for `coordination: GlobalOrder`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from function.api import ModelCache, ModelDeployment, ModelReplica, SchedulerConfig, replica as replica_api
from function.api.model import condition_of, mapping
from function.api.names import NOT_COMPOSED, PAUSED_ANNOTATION, Identity, NamespacedName, desired_key
from function.api.ownership import Owner, OwnReplica
from function.api.priority import turn_of
from function.boundary import Cost, Costs, Document, Request, Resolution, Reuse, frozen, text_at
from function.deployment.requirements import CACHES, DEPLOYMENTS, REPLICAS, delivered, resolution
from function.scheduler.memo import parts_of
from function.scheduler.scheduling_input import Fleet, Peer, Peers, Unshared

REVISION = re.compile(r"[0-9]{1,20}\Z", re.ASCII)
"""A resourceVersion of Kubernetes: a number of 64 bits."""


@dataclass(slots=True)
class Sorting:
    """Listed replicas on their way to being own, or charged."""

    deployment: ModelDeployment
    observed: dict[str, OwnReplica]
    """Observed own replicas by object name."""
    shadowed: set[Identity]
    """Identities of observed replicas: an unobserved object with one of them is charged, not emitted."""
    unmatched: tuple[OwnReplica, ...] = ()
    """Observed own replicas whose object name is missing, or another's too: nothing listed is one of them."""
    candidates: dict[Identity, list[tuple[ModelReplica, Document]]] = field(default_factory=dict)
    others: list[ModelReplica] = field(default_factory=list)
    name: str = field(init=False)
    """The deployment's, which every replica of a fleet is compared with."""
    owner: Owner = field(init=False)

    def __post_init__(self) -> None:
        """Take the name, and what decides which listed replicas are its own."""
        self.name = self.deployment.name
        self.owner = Owner(self.deployment.namespace, self.name, self.deployment.metadata.uid)

    @classmethod
    def beside(
        cls, deployment: ModelDeployment, observed: Sequence[OwnReplica], taken: set[Identity]
    ) -> Sorting:
        """Begin with the observed ones. `taken`: identities that earlier steps of the pipeline have."""
        by_object = {
            own_replica.replica.name: own_replica
            for own_replica in reversed(observed)
            if own_replica.replica.name
        }
        unmatched = tuple(
            own_replica
            for own_replica in observed
            if by_object.get(own_replica.replica.name) is not own_replica
        )
        identities = {own_replica.identity for own_replica in observed if own_replica.identity}
        return cls(deployment, by_object, identities | taken, unmatched)

    def concerns(self, replica: ModelReplica) -> bool:
        """Tell whether a replica may be ours. Most of a large fleet are somebody else's, and only charged."""
        return replica.deployment == self.name or replica.name in self.observed

    def add(self, replica: ModelReplica, document: Document) -> None:
        """Sort one listed replica that may be ours."""
        own_replica = self.observed.get(replica.name)
        if own_replica is not None and replica.namespace == self.deployment.namespace:
            # It is an observed one again; the list may know first that it is being deleted.
            goes = replica.deleting and replica.deployment == self.name  # As its own list has it.
            # Law 2: without a uid it is not known that both are the same object, and doubt keeps.
            same = bool(replica.uid) and own_replica.replica.uid == replica.uid
            if goes and same and not own_replica.terminating:
                self.observed[replica.name] = replace(own_replica, terminating=True)
            if same and _revision(document) > _revision(own_replica.document) >= 0:
                # Crossplane reads both from caches. What it applied a moment ago may be in this one only.
                later = self.observed[replica.name]
                self.observed[replica.name] = replace(later, replica=replica, document=document)
            return
        identity = (
            Identity(replica.cluster, replica.index)
            if replica.cluster and replica.index is not None
            else None
        )
        if identity is None or not self.owner.owns(replica) or identity in self.shadowed:
            self.others.append(replica)
        else:
            self.candidates.setdefault(identity, []).append((replica, document))

    def finish(self) -> tuple[OwnReplica, ...]:
        """Return the own replicas in their order.

        Of several unobserved objects a living one has an identity, then the oldest.
        """
        own_replicas = list(self.observed.values())
        for identity, pairs in self.candidates.items():
            pairs.sort(key=lambda pair: (pair[0].deleting, pair[0].created, pair[0].name))
            (replica, document), *rest = pairs
            key = desired_key("replica", identity)
            own_replicas.append(
                OwnReplica(key, identity, replica, document, observed=False, terminating=replica.deleting)
            )
            self.others.extend(other for other, _ in rest)
        own_replicas += self.unmatched
        own_replicas.sort(
            key=lambda ours: (ours.cluster, ours.identity.index if ours.identity else -1, ours.key)
        )
        return tuple(own_replicas)


def _revision(document: Document) -> int:
    """Return when an object was written last, as Kubernetes counts; -1 where that is no number."""
    version = text_at(document, "metadata", "resourceVersion")
    return int(version) if REVISION.match(version) else -1


def listed_own(
    deployment: ModelDeployment, listed: Iterable[tuple[ModelReplica, Document]]
) -> tuple[OwnReplica, ...]:
    """A deployment's own replicas as far as they are listed, in their order."""
    sorting = Sorting(deployment, {}, set())
    for replica, document in listed:
        if sorting.concerns(replica):
            sorting.add(replica, document)
    return sorting.finish()


# Read the other deployments of the fleet, for placing in one common order (`coordination: GlobalOrder`).
#
# Of another deployment only what is in the required lists is known: its object, its cache, and those of its
# replicas that are listed. One that cannot be read, is being deleted, or that Crossplane composes nothing
# for, places nothing.

Parsed = TypeVar("Parsed")
NOBODY = Unshared()


def _deployment(document: Document) -> ModelDeployment | None:
    """Read a deployment that may place something.

    One that is paused, or whose Composition Crossplane does not find, holds no node back from the others: no
    function is run for it, and that may last for ever.
    """
    try:
        plain = document.plain()
        deployment = ModelDeployment.parse(plain)
    except ValueError:
        return None
    annotations = plain["metadata"].get("annotations")
    paused = isinstance(annotations, dict) and annotations.get(PAUSED_ANNOTATION) == "true"
    synced, message = condition_of(mapping(plain.get("status")), "Synced")
    return None if paused or (synced is False and message.startswith(NOT_COMPOSED)) else deployment


COSTS: Costs = {
    _deployment: Cost(factor=10, parts=lambda read: () if read is None else parts_of(read), grows=True)
}
"""What it takes to remember what is read of other deployments; of one that may place nothing, nothing is."""


def _cache(document: Document) -> ModelCache | None:
    """Read a cache; None where it cannot be read, which is an absent one to the deployment that names it."""
    try:
        return ModelCache.parse(document.plain())
    except ValueError:
        return None


def _read(
    request: Request, name: str, reuse: Reuse, read: Callable[[Document], Parsed | None]
) -> Iterator[Parsed]:
    """Read what was delivered for a requirement, but for what cannot be read."""
    for document in delivered(request, name) or ():
        parsed = reuse.parsed(document, read)
        if parsed is not None:
            yield parsed


def _listed(request: Request, reuse: Reuse) -> dict[NamespacedName, list[tuple[ModelReplica, Document]]]:
    """The listed replicas by the deployment they name. One that cannot be read names none."""
    by_deployment: dict[NamespacedName, list[tuple[ModelReplica, Document]]] = defaultdict(list)
    for document in delivered(request, REPLICAS) or ():
        try:
            replica = reuse.parsed(document, replica_api.parse)
        except ValueError:
            continue
        by_deployment[replica.namespace, replica.deployment].append((replica, document))
    return by_deployment


def _seen_by(
    deployment: ModelDeployment,
    fleet: Fleet,
    listed: Mapping[NamespacedName, Sequence[tuple[ModelReplica, Document]]],
    caches: Mapping[NamespacedName, ModelCache],
) -> Fleet:
    """The fleet as another deployment sees it: its own replicas, its cache.

    What it observes is not delivered to us: its listed replicas are taken for those that it observes.
    """
    own_replicas = tuple(
        replace(own_replica, observed=True)
        for own_replica in listed_own(deployment, listed.get((deployment.namespace, deployment.name), ()))
    )
    cache = caches.get((deployment.namespace, deployment.cache)) if deployment.cache else None
    resolution = None if not deployment.cache else Resolution.DELIVERED if cache else Resolution.ABSENT
    taken = frozenset(own_replica.identity for own_replica in own_replicas if own_replica.identity)
    return replace(
        fleet,
        own_replicas=own_replicas,
        other_replicas=NOBODY,
        endpoints={},
        taken=taken,
        cache=cache,
        cache_resolution=resolution,
    )


@frozen
class ListedPeers:
    """Listed objects of the deployments that come before ours, in their order."""

    resolutions: Mapping[str, Resolution] = field(default_factory=dict)
    earlier: tuple[ModelDeployment, ...] = ()
    replicas: Mapping[NamespacedName, Sequence[tuple[ModelReplica, Document]]] = field(default_factory=dict)
    """All listed replicas by the deployment they name."""
    caches: Mapping[NamespacedName, ModelCache] = field(default_factory=dict)

    def on(self, fleet: Fleet, room_for: Callable[[ModelDeployment, Fleet], int]) -> Peers:
        """Return the deployments, each with the fleet as it sees it, and the room of its answer."""
        peers = []
        for deployment in self.earlier:
            seen = _seen_by(deployment, fleet, self.replicas, self.caches)
            peers.append(Peer(deployment, seen, room_for(deployment, seen)))
        return Peers(self.resolutions, tuple(peers))


def read_peers(request: Request, ours: ModelDeployment, reuse: Reuse, config: SchedulerConfig) -> ListedPeers:
    """Read the deployments that come before ours in the canonical order."""
    requirements = {name: resolution(request, name) for name in (DEPLOYMENTS, CACHES)}
    if Resolution.UNRESOLVED in requirements.values():
        return ListedPeers(requirements)
    turns = {
        turn_of(config, deployment): deployment
        for deployment in _read(request, DEPLOYMENTS, reuse, _deployment)
        if _may_place_before(deployment, ours)
    }
    earlier = [turns[turn] for turn in sorted(turns) if turn < turn_of(config, ours)]
    caches = {
        (cache.metadata.namespace, cache.metadata.name): cache
        for cache in _read(request, CACHES, reuse, _cache)
    }
    return ListedPeers(requirements, tuple(earlier), _listed(request, reuse) if earlier else {}, caches)


def _may_place_before(deployment: ModelDeployment, ours: ModelDeployment) -> bool:
    """Tell whether another deployment may place anything. One that is being deleted places nothing."""
    same = (deployment.namespace, deployment.name) == (ours.namespace, ours.name)
    return not same and not deployment.metadata.deletion_timestamp
