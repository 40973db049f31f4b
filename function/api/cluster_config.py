"""ClusterConfig: the input of the step that publishes an InferenceCluster. Every field is optional."""

from __future__ import annotations

from typing import Any, Literal

from function.api.model import Name
from function.api.names import CLUSTER_GATEWAY, SYSTEM_NAMESPACE
from function.api.step_input import API_VERSION, StepInput, TtlConfig


class RemoteName(StepInput):
    """An object on the cluster."""

    namespace: Name
    name: Name


class ClusterConfig(StepInput):
    """What a platform engineer chooses for all clusters of a Composition."""

    api_version: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = API_VERSION
    kind: Literal["ClusterConfig"] = "ClusterConfig"
    metadata: dict[str, Any] = {}
    stack: Literal["Modelplane", "None"] | None = None
    """The ServingStack of Modelplane: composed, withdrawn, or (not set) kept where one is observed."""
    publish: Literal["Pools", "Attributes"] = "Pools"
    """Whether `status` gets what only our XRD declares: attributes of pools, charges, capabilities."""
    gateway: RemoteName = RemoteName(namespace=SYSTEM_NAMESPACE, name=CLUSTER_GATEWAY)
    leader_worker_set: RemoteName = RemoteName(namespace="lws-system", name="lws-controller-manager")
    heartbeat: RemoteName | None = None
    """The Lease whose `renewTime` is published as `status.heartbeat`; none where it is not set."""
    ttl: TtlConfig = TtlConfig()
