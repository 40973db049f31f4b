"""InferenceCluster as its handler and its workloads read it, and the InferenceClass.

Each reader has a model of its own, with the fields that it stands on: the handler of clusters wants how the
cluster is reached and which pools are declared, the handler of replicas wants what the nodes ask of pods.
A fault in a field that a reader does not need costs that reader nothing. The scheduler's model is
`api.cluster`.
"""

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from function.api.cluster import MAX_POOLS, Fabric
from function.api.devices import MAX_DEVICES, Attributes, Device
from function.api.model import Metadata, Model, Name, StackSpec, Whole, number, reader_of, shape_of
from function.boundary import Shape

# InferenceClass: the devices a node of a pool has. Read by the command line, to derive published pools.


class MachineTypeRef(Model):
    """An entry of the catalogue of machine types, at one revision: what it says never changes."""

    machine_type: Name
    revision: Annotated[Whole, Field(ge=1)]


class ClassSpec(Model):
    """The devices of one node: its own, over those of a machine type.

    With `from`, a device may state only what it overrides; the whole is checked once it is put together.
    """

    description: str = ""
    origin: Annotated[MachineTypeRef | None, Field(alias="from")] = None
    devices: Annotated[tuple[Device, ...], Field(max_length=MAX_DEVICES)] = ()
    attributes: Attributes | None = None
    """Typed facts about its nodes, published with every pool of the class under those of the pool."""

    @model_validator(mode="before")
    @classmethod
    def _overrides_are_partial(cls, data: Any) -> Any:
        """Leave devices out beside `from`: they override those of a class, and are partial."""
        partial = isinstance(data, dict) and data.get("from") is not None
        return {key: value for key, value in data.items() if key != "devices"} if partial else data


class InferenceClass(Model):
    """A kind of node."""

    metadata: Metadata
    spec: ClassSpec = ClassSpec.model_construct()


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

    @field_validator("address")
    @classmethod
    def _is_no_url(cls, address: str) -> str:
        """Refuse a URL: endpoints put a scheme before the address, and a path behind it."""
        if "/" in address:
            raise ValueError("expected a host, with or without a port, and no scheme or path")
        return address


class ObserverConfig(Model):
    """A ClusterProviderConfig that its platform engineer made."""

    name: Name


class Existing(Model):
    """A cluster that is there already."""

    secret_ref: SecretRef
    identity_secret_ref: IdentityRef | None = None
    cache: CacheStorage = CacheStorage.model_construct()
    gateway: DeclaredGateway = DeclaredGateway.model_construct()
    observer_config_ref: ObserverConfig | None = None
    """The config that nodes are looked at through: the users counted in the composed one wake the cluster."""


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
    min_node_count: Any = None
    node_selector: dict[str, str] = {}
    """Labels that its nodes have; empty: the label modelplane.ai/pool."""
    tolerations: Any = None
    """Taints of its nodes that pods tolerate; whatever stands there is no fault of what is published."""

    @property
    def grows(self) -> bool:
        """Tell whether nodes are added to it when they are needed."""
        stated = DEFAULT_NODES if self.node_count is None else self.node_count
        return self.max_node_count is not None and number(self.min_node_count, stated) < self.max_node_count

    @property
    def nodes(self) -> int:
        """The number of nodes to publish: the most that the pool can grow to, else its present number."""
        stated = (self.max_node_count, self.node_count)
        return next((count for count in stated if count is not None), DEFAULT_NODES)


class DeclaredClusterSpec(Model):
    """The part of a cluster that its platform engineer declares."""

    cluster: ClusterSource
    node_pools: Annotated[tuple[DeclaredPool, ...], Field(max_length=MAX_POOLS)] = ()
    kserve: Any = None
    """How services are written there; whatever stands there is no fault of what is published."""


class ClusterName(Model):
    """The identity of a cluster."""

    name: Name
    uid: str = ""


class DeclaredCluster(Model):
    """One cluster, read for what it publishes."""

    metadata: ClusterName
    spec: DeclaredClusterSpec

    @property
    def existing(self) -> Existing | None:
        """How the handler makes it reachable; None for another source, which is an earlier step's work."""
        return self.spec.cluster.existing if self.spec.cluster.source == EXISTING else None


# InferenceCluster as a workload needs it: how to reach it, and what its nodes ask of pods.

RESERVED_PREFIX = "modelplane.ai/"
"""Labels and annotations that nobody but this system sets."""


Stamps = Annotated[
    dict[str, str],
    AfterValidator(lambda pairs: {key: pairs[key] for key in pairs if not key.startswith(RESERVED_PREFIX)}),
]
"""Without what decides where requests go and which pods belong to whom. Our XRD refuses that."""


class PoolNodes(Model):
    """How pods get onto the nodes of a pool."""

    name: Name
    node_selector: dict[str, str] = {}
    """Labels that its nodes have; empty: the label modelplane.ai/pool."""
    tolerations: tuple[dict[str, Any], ...] = ()
    across_nodes: Literal["Required"] | None = None
    """Whether pods of one engine are kept on different nodes."""


class Scheduling(Model):
    """The scheduler, priority class and labels of every pod on the cluster: for Kueue, KAI, Volcano."""

    scheduler_name: str = ""
    priority_class_name: str = ""
    labels: Stamps = {}
    annotations: Stamps = {}
    gangs: Literal["PodGroup"] | None = None
    """What binds the pods of a gang together or not at all; None: each is bound when it finds a place."""


class ProviderConfigRef(Model):
    """The ClusterProviderConfig of provider-kubernetes that reaches the cluster."""

    name: str = ""


class _Spec(StackSpec):
    """The part of the spec that pods depend on."""

    node_pools: tuple[PoolNodes, ...] = ()
    scheduling: Scheduling = Scheduling.model_construct()


class _Status(Model):
    """The part of the status that says how the cluster is reached."""

    provider_config_ref: ProviderConfigRef = ProviderConfigRef.model_construct()


class WorkloadCluster(Model):
    """One cluster, read for the pods on it."""

    spec: _Spec
    """Required: without it nobody knows what its nodes ask of pods, and those that run would restart."""
    status: _Status = _Status.model_construct()

    @property
    def provider_config(self) -> str:
        """The name of its ClusterProviderConfig; empty while it has none."""
        return self.status.provider_config_ref.name

    @cached_property
    def pools(self) -> dict[str, PoolNodes]:
        """The declared pools by name."""
        return {pool.name: pool for pool in self.spec.node_pools}


SHAPE: Shape = shape_of(WorkloadCluster)
read_workload_cluster = reader_of(WorkloadCluster, SHAPE)
