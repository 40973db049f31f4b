"""The kinds that are read: those that decide, those that some commands show, and the devices of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API server serves it."""

    kind: str
    plural: str
    group: str = "modelplane.ai"
    version: str = "v1alpha1"
    required: bool = False
    """Whether a control plane without it is none of a fleet."""
    role: str = "example/operate/reader.yaml"
    """The file with the ClusterRole that allows it to be read."""

    @property
    def name(self) -> str:
        """`modeldeployments.modelplane.ai`, as RBAC and kubectl name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


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
BY_KIND = {resource.kind: resource for resource in FLEET}
COMPOSITIONS = Resource("Composition", "compositions", "apiextensions.crossplane.io", "v1")
"""Where the inputs of the function's steps stand."""
WORKLOADS = (
    Resource("Object", "objects", "kubernetes.m.crossplane.io"),
    Resource("ObservedObjectCollection", "observedobjectcollections", "kubernetes.m.crossplane.io"),
)
"""What `why` reads to go on below the cluster."""
DEVICES = "example/operate/device-reader.yaml"
SLICES = tuple(
    Resource("ResourceSlice", "resourceslices", "resource.k8s.io", version, role=DEVICES)
    for version in ("v1", "v1beta2", "v1beta1")
)
NODES = Resource("Node", "nodes", "", "v1", required=True, role=DEVICES)
"""What `drift` and `class` read of a cluster itself; ResourceSlices in the versions it may serve."""
RULES = tuple(
    Resource(kind, plural, "resource.k8s.io", version, role=DEVICES)
    for kind, plural, version in (
        ("ResourceClaimTemplate", "resourceclaimtemplates", "v1"),
        ("DeviceClass", "deviceclasses", "v1"),
        ("DeviceTaintRule", "devicetaintrules", "v1alpha3"),
    )
)
"""What else `drift` reads there, where it is served."""


def joined(resources: Iterable[Resource]) -> str:
    """`modeldeployments.modelplane.ai,modelcaches.modelplane.ai`, as kubectl takes several."""
    return ",".join(resource.name for resource in resources)
