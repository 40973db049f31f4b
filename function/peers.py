"""The other deployments of the fleet, for placing in one common order (`coordination: GlobalOrder`).

Of another deployment only what is in the required lists is known: its object, its cache, and those of its
replicas that are listed. One that cannot be read, or is being deleted, places nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from function.api import ModelCache, ModelDeployment
from function.api import replica as replica_api
from function.fleet import CACHES, DEPLOYMENTS, REPLICAS, Told, told
from function.own import listed_own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from function.api import ModelReplica
    from function.exchange import Document, Request, Reuse
    from function.fleet import Fleet

Found = TypeVar("Found")
Named = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One other deployment, and the fleet as it sees it."""

    deployment: ModelDeployment
    fleet: Fleet


@dataclass(frozen=True, slots=True)
class Peers:
    """The deployments whose turn comes before ours, in order; nobody where nothing is coordinated."""

    told: Mapping[str, Told] = field(default_factory=dict)
    """What was told about the requirements that coordination adds."""
    earlier: tuple[Peer, ...] = ()

    @property
    def resolved(self) -> bool:
        """Whether everything was delivered that coordination needs."""
        return Told.UNRESOLVED not in self.told.values()


def turn(deployment: ModelDeployment) -> tuple[str, str, str]:
    """The canonical order: creation, namespace, name. One without a creation time (a dry run) comes last."""
    created = deployment.metadata.creation_timestamp
    return (created or "~", deployment.namespace, deployment.name)


def _deployment(document: Document) -> ModelDeployment | None:
    try:
        return ModelDeployment.parse(document.plain())
    except ValueError:
        return None


def _cache(document: Document) -> ModelCache | None:
    try:
        return ModelCache.parse(document.plain())
    except ValueError:
        return None


def _read(
    request: Request, name: str, reuse: Reuse, read: Callable[[Document], Found | None]
) -> Iterator[Found]:
    """Read what was delivered for a requirement, but for what cannot be read."""
    for document in request.required.get(name, ()):
        found = reuse.parsed(document, read)
        if found is not None:
            yield found


def _replica(document: Document, reuse: Reuse) -> ModelReplica | None:
    try:
        return reuse.parsed(document, replica_api.parse)
    except ValueError:
        return None


def _listed(request: Request, reuse: Reuse) -> dict[Named, list[tuple[ModelReplica, Document]]]:
    """The listed replicas by the deployment they name."""
    found: dict[Named, list[tuple[ModelReplica, Document]]] = defaultdict(list)
    for document in request.required.get(REPLICAS, ()):
        replica = _replica(document, reuse)
        if replica is not None:
            found[replica.namespace, replica.deployment].append((replica, document))
    return found


def _seen_by(
    deployment: ModelDeployment,
    fleet: Fleet,
    listed: Mapping[Named, Sequence[tuple[ModelReplica, Document]]],
    caches: Mapping[Named, ModelCache],
) -> Fleet:
    """The fleet as another deployment sees it: its own replicas, its cache."""
    own = listed_own(deployment, listed.get((deployment.namespace, deployment.name), ()))
    cache = caches.get((deployment.namespace, deployment.cache)) if deployment.cache else None
    known = None if not deployment.cache else Told.DELIVERED if cache else Told.ABSENT
    taken = frozenset(each.identity for each in own if each.identity)
    return replace(fleet, own=own, charged=(), endpoints={}, taken=taken, cache=cache, told_cache=known)


def read_peers(request: Request, ours: ModelDeployment, fleet: Fleet, reuse: Reuse) -> Peers:
    """Read the deployments that come before ours in the canonical order."""
    requirements = {name: told(request, name) for name in (DEPLOYMENTS, CACHES)}
    if Told.UNRESOLVED in requirements.values():
        return Peers(requirements)
    earlier = sorted(
        (each for each in _read(request, DEPLOYMENTS, reuse, _deployment) if _before(each, ours)), key=turn
    )
    caches = {
        (each.metadata.namespace, each.metadata.name): each for each in _read(request, CACHES, reuse, _cache)
    }
    listed = _listed(request, reuse) if earlier else {}
    return Peers(requirements, tuple(Peer(each, _seen_by(each, fleet, listed, caches)) for each in earlier))


def _before(deployment: ModelDeployment, ours: ModelDeployment) -> bool:
    """Whether another deployment places before ours. One that is being deleted places nothing."""
    same = (deployment.namespace, deployment.name) == (ours.namespace, ours.name)
    return not same and not deployment.metadata.deletion_timestamp and turn(deployment) < turn(ours)
