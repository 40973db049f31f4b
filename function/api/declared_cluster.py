"""InferenceCluster as its handler reads it: how it is reached, and which pools it declares."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from function.api.cluster import MAX_POOLS
from function.api.model import Model, Name, Whole
from function.api.pool import Fabric
from function.api.typed import Attributes

EXISTING = "Existing"
"""The source of a cluster that somebody else made: its kubeconfig is in a Secret."""
DEFAULT_NODES = 1
"""Nodes of a pool that states none, as the XRD defaults `spec.nodePools[].nodeCount`."""

NodeCount = Annotated[Whole, Field(ge=0, le=1_000_000)]


class SecretRef(Model):
    """A key of a Secret in the namespace modelplane-system."""

    name: Name
    key: Name


class IdentityRef(SecretRef):
    """The Secret of an identity with which the kubeconfig is used."""

    type: str = "GoogleApplicationCredentials"


class CacheStorage(Model):
    """Where model caches live."""

    storage_class_name: str = ""


class DeclaredGateway(Model):
    """Where the cluster's replicas are reached, said by hand."""

    address: str = ""


class Existing(Model):
    """A cluster that is there already."""

    secret_ref: SecretRef
    identity_secret_ref: IdentityRef | None = None
    cache: CacheStorage = CacheStorage()
    gateway: DeclaredGateway = DeclaredGateway()


class ClusterSource(Model):
    """Where the cluster comes from."""

    source: Name
    existing: Existing | None = None


class DeclaredPool(Model):
    """One node pool as the platform engineer declares it."""

    name: Name
    class_name: Name
    node_count: NodeCount | None = None
    max_node_count: NodeCount | None = None
    attributes: Attributes | None = None
    accounting: Literal["Node", "Device"] | None = None
    fabric: Fabric | None = None
    node_selector: dict[str, str] = {}
    """Labels that its nodes have; empty: the label modelplane.ai/pool."""

    @property
    def nodes(self) -> int:
        """What is published: the most it can grow to, else what it has."""
        stated = (self.max_node_count, self.node_count)
        return next((count for count in stated if count is not None), DEFAULT_NODES)


class DeclaredClusterSpec(Model):
    """What the platform engineer declares."""

    cluster: ClusterSource
    node_pools: Annotated[tuple[DeclaredPool, ...], Field(max_length=MAX_POOLS)] = ()


class ClusterName(Model):
    """Who it is."""

    name: Name
    uid: str = ""


class DeclaredCluster(Model):
    """One cluster, read for what it publishes."""

    metadata: ClusterName
    spec: DeclaredClusterSpec

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.metadata.name

    @property
    def is_existing(self) -> bool:
        """Whether the handler itself makes it reachable; another source is an earlier step's work."""
        return self.spec.cluster.source == EXISTING

    @property
    def existing(self) -> Existing | None:
        """How it is reached; None for another source."""
        return self.spec.cluster.existing if self.is_existing else None
