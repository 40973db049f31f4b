"""What was decided for one deployment, as the checker sees it: replicas before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.api import ModelDeployment, ModelReplica


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided for one deployment."""

    deployment: ModelDeployment
    existing: tuple[ModelReplica, ...]
    """Its own replicas as they are observed, without those being deleted."""
    desired: tuple[ModelReplica, ...]
    """Its replicas as they are desired."""

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.deployment.namespace}/{self.deployment.name}"

    @property
    def new(self) -> tuple[ModelReplica, ...]:
        """Desired replicas that do not exist."""
        names = {replica.name for replica in self.existing}
        return tuple(replica for replica in self.desired if replica.name not in names)

    @property
    def lost(self) -> tuple[ModelReplica, ...]:
        """Existing replicas that are not desired."""
        names = {replica.name for replica in self.desired}
        return tuple(replica for replica in self.existing if replica.name not in names)

    @property
    def kept(self) -> tuple[tuple[ModelReplica, ModelReplica], ...]:
        """Replicas that stay: as observed and as desired."""
        desired = {replica.name: replica for replica in self.desired}
        return tuple((replica, desired[replica.name]) for replica in self.existing if replica.name in desired)
