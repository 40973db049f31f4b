"""Hand out indices: the lowest free one on the cluster whose object name is free too."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from function.api.names import Identity, object_name

if TYPE_CHECKING:
    from function.api import ModelDeployment
    from function.scheduler.fleet import Fleet


class Indices:
    """Hands out identities and object names; none is used while an object or observed key has it."""

    def __init__(self, deployment: ModelDeployment, fleet: Fleet) -> None:
        """Note every identity and name in use."""
        self._deployment = deployment
        self._taken = fleet.taken
        self._fleet = fleet
        self._given: set[str] = set()
        self._lowest: dict[str, int] = {}
        self._own_names = {own_replica.replica.name for own_replica in fleet.own_replicas}

    def take(self, cluster: str) -> tuple[Identity, str]:
        """Take the lowest free index on a cluster, and its object name; neither is ever given back."""
        for index in count(self._lowest.get(cluster, 0)):
            identity = Identity(cluster, index)
            if identity in self._taken:
                continue
            name = object_name(self._deployment.name, identity)
            if name not in self._given and not self._clashes(cluster, name):
                self._given.add(name)
                self._lowest[cluster] = index + 1
                return identity, name
        raise AssertionError  # pragma: no cover - there are more indices than replicas

    def _clashes(self, cluster: str, name: str) -> bool:
        """Whether a replica of our namespace, one of our own, or one on the same cluster has the name."""
        namespace = self._deployment.namespace
        return name in self._own_names or any(
            replica.namespace == namespace or replica.cluster == cluster
            for replica in self._fleet.other_replicas.named(name)
        )
