"""The kinds that are read of a control plane: those that decide, and those that only some commands show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API server serves it."""

    kind: str
    plural: str
    group: str = "modelplane.ai"
    version: str = "v1alpha1"
    required: bool = False
    """Whether a control plane without it is none of a fleet."""

    @property
    def name(self) -> str:
        """`modeldeployments.modelplane.ai`, as RBAC and kubectl name it."""
        return f"{self.plural}.{self.group}"


DEPLOYMENTS = Resource("ModelDeployment", "modeldeployments", required=True)
CLUSTERS = Resource("InferenceCluster", "inferenceclusters", required=True)
REPLICAS = Resource("ModelReplica", "modelreplicas", required=True)
FLEET = (
    DEPLOYMENTS,
    CLUSTERS,
    REPLICAS,
    Resource("InferenceClass", "inferenceclasses"),
    Resource("ModelEndpoint", "modelendpoints"),
    Resource("ModelCache", "modelcaches"),
)
"""What a decision reads."""
COMPOSITIONS = Resource("Composition", "compositions", "apiextensions.crossplane.io", "v1")
"""Where the inputs of the function's steps stand."""
WORKLOADS = (
    Resource("Object", "objects", "kubernetes.m.crossplane.io"),
    Resource("ObservedObjectCollection", "observedobjectcollections", "kubernetes.m.crossplane.io"),
)
"""What `why` reads to go on below the cluster."""
