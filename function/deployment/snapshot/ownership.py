"""Sort listed replicas into a deployment's own and others that are only charged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from function.api.names import Identity, replica_key
from function.api.ownership import Owner, OwnReplica, order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from function.api import ModelDeployment, ModelReplica
    from function.boundary import Document


def _same(observed: ModelReplica, listed: ModelReplica) -> bool:
    """Whether two objects of one name are the same one. Law 2: a uid that is not known is doubt."""
    return bool(observed.uid) and observed.uid == listed.uid


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

    def __post_init__(self) -> None:
        """Take the name."""
        self.name = self.deployment.name

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
        """Whether a replica may be ours. Most of a large fleet are somebody else's, and only charged."""
        return replica.deployment == self.name or replica.name in self.observed

    def add(self, replica: ModelReplica, document: Document) -> None:
        """Sort one listed replica that may be ours."""
        if not self._is_observed(replica):
            self._sort_unobserved(replica, document)

    def _is_observed(self, replica: ModelReplica) -> bool:
        """Whether it is an observed one again; the list may know first that it is being deleted."""
        own_replica = self.observed.get(replica.name)
        if own_replica is None or replica.namespace != self.deployment.namespace:
            return False
        if replica.deleting and not own_replica.terminating and _same(own_replica.replica, replica):
            self.observed[replica.name] = OwnReplica(
                own_replica.key,
                own_replica.identity,
                own_replica.replica,
                own_replica.document,
                observed=True,
                terminating=True,
            )
        return True

    def _sort_unobserved(self, replica: ModelReplica, document: Document) -> None:
        identity = (
            Identity(replica.cluster, replica.index)
            if replica.cluster and replica.index is not None
            else None
        )
        if identity is None or not Owner.of(self.deployment).owns(replica) or identity in self.shadowed:
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
            key = replica_key(identity)
            own_replicas.append(
                OwnReplica(key, identity, replica, document, observed=False, terminating=replica.deleting)
            )
            self.others.extend(other for other, _ in rest)
        return tuple(sorted((*own_replicas, *self.unmatched), key=order))


def listed_own(
    deployment: ModelDeployment, listed: Iterable[tuple[ModelReplica, Document]]
) -> tuple[OwnReplica, ...]:
    """A deployment's own replicas as far as they are listed, in their order."""
    sorting = Sorting(deployment, {}, set())
    for replica, document in listed:
        if sorting.concerns(replica):
            sorting.add(replica, document)
    return sorting.finish()
