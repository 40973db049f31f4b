"""Indices: the lowest one that nobody has, and whose object name nobody has."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from function.api.names import Identity, object_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.api import ModelDeployment, ModelReplica
    from function.fleet import Fleet


class Indices:
    """Hands out identities and object names; none is used while an object or observed key has it."""

    def __init__(self, deployment: ModelDeployment, fleet: Fleet) -> None:
        """Note every identity and name in use."""
        self._deployment = deployment
        self._taken = set(fleet.taken)
        self._names = {each.name for each in _replicas(fleet) if each.namespace == deployment.namespace}
        self._names |= {own.replica.name for own in fleet.own}
        self._on_cluster = {(each.cluster, each.name) for each in _replicas(fleet)}

    def take(self, cluster: str) -> tuple[Identity, str]:
        """Take the lowest free index on a cluster, and its object name."""
        for index in count():
            identity = Identity(cluster, index)
            name = object_name(self._deployment.name, identity)
            if (
                identity not in self._taken
                and name not in self._names
                and (cluster, name) not in self._on_cluster
            ):
                self._taken.add(identity)
                self._names.add(name)
                return identity, name
        raise AssertionError  # pragma: no cover - there are more indices than replicas


def _replicas(fleet: Fleet) -> Iterator[ModelReplica]:
    yield from fleet.charged
    yield from _own(fleet)


def _own(fleet: Fleet) -> Iterable[ModelReplica]:
    return (own.replica for own in fleet.own)
