"""Tell whose a replica is, and in which order deployments take their turn.

Rules (docs/compatibility.md, NamespacedOwnership): a listed replica belongs to a deployment when it is in its
namespace, carries its label, and its controller ownerReference is absent or has the deployment's uid.

A deployment without a uid was never stored: it is a manifest in a dry run, beside replicas that perhaps are.
In its namespace no other deployment has its name, so label and namespace decide, or the forecast would place
again what runs. What an API server stores has a uid, so nothing is adopted that way: a controller that is
somebody else, or that has no uid, is not this deployment.

An observed composed resource needs no such rule: Crossplane says by handing it over whose it is, and its key
is its identity. The rule is for replicas in a list, which can be ahead of what is observed or behind it.
"""

from __future__ import annotations

from function.api.names import Identity
from function.api.replica import ModelReplica
from function.boundary import Document, frozen


@frozen
class OwnReplica:
    """One existing replica of this deployment."""

    key: str
    identity: Identity | None
    """None when its key cannot be read: it is kept as it is."""
    replica: ModelReplica
    document: Document
    observed: bool
    terminating: bool

    @property
    def cluster(self) -> str:
        """The cluster of its identity, else the one its spec names."""
        return self.identity.cluster if self.identity else self.replica.cluster

    @property
    def holds(self) -> str:
        """The cluster whose nodes it holds: where its spec says it runs."""
        return self.replica.cluster or self.cluster

    @property
    def readable(self) -> bool:
        """Tell whether identity and spec could be read and agree."""
        return (
            self.identity is not None and self.replica.whole and self.replica.cluster == self.identity.cluster
        )


@frozen
class Owner:
    """The identity of a deployment, as far as it decides which replicas it owns."""

    namespace: str
    name: str
    uid: str
    """Empty where it was never stored."""

    def owns(self, replica: ModelReplica) -> bool:
        """Tell whether a listed replica is this deployment's own."""
        return (
            replica.namespace == self.namespace
            and replica.deployment == self.name
            and (replica.owner is None or not self.uid or replica.owner == self.uid)
        )


def turn(created: str, namespace: str, name: str) -> tuple[str, str, str]:
    """Return the canonical order of deployments: creation, namespace, name. Without a creation time: last."""
    return (created or "~", namespace, name)
