"""Keys in the composition and names of what is composed for a cluster."""

from __future__ import annotations

from function.api.names import child_name, dns_1035_name, is_dns_subdomain
from function.fail_static import base_of
from function.objects import COLLECTION, KIND

PROVIDER_CONFIG, GUARD, STACK = "cluster-provider-config-kubernetes", "usage-replicas", "serving-stack"
GATEWAY, LEADER_WORKER_SET, CLASS_PREFIX = "see-gateway", "see-lws", "see-class-"
HEARTBEAT = "see-heartbeat"
SLICES, NODES = "see-slices", "see-nodes"
OBSERVATIONS = "see-"
"""How every key of an observation begins."""


def provider_config_name(cluster: str) -> str:
    """Return the name of the ClusterProviderConfig, as Modelplane v0.3 gives it."""
    return _child(cluster, "cluster-kubeconfig")


def stack_name(cluster: str) -> str:
    """Return the name of the ServingStack, as Modelplane v0.3 gives it."""
    return _child(cluster, "serving-stack")


def _child(cluster: str, what: str) -> str:
    """Return the name that v0.3 gives, mended where it was cut at a dot: Kubernetes refuses that one."""
    name = child_name(cluster, what)
    return name if is_dns_subdomain(name) else dns_1035_name(cluster, what)


KINDS = {
    PROVIDER_CONFIG: "ClusterProviderConfig",
    GUARD: "ClusterUsage",
    STACK: "ServingStack",
    **dict.fromkeys((GATEWAY, LEADER_WORKER_SET, HEARTBEAT), KIND),
    **dict.fromkeys((SLICES, NODES), COLLECTION),
}
"""What stands under the keys that do not depend on the cluster."""


def kind_of(key: str) -> str | None:
    """Return the kind of what this handler composes under a key, None for a key that is not ours."""
    return KIND if key.startswith(CLASS_PREFIX) else KINDS.get(base_of(key))
