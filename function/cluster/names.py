"""Keys in the composition and names of what is composed for a cluster."""

from __future__ import annotations

from function.api.names import child_name

NAMESPACE = "modelplane-system"
"""The namespace of the control plane that holds kubeconfigs, stacks and observations."""

PROVIDER_CONFIG, GUARD, STACK = "cluster-provider-config-kubernetes", "usage-replicas", "serving-stack"
GATEWAY, LEADER_WORKER_SET, CLASS_PREFIX = "see-gateway", "see-lws", "see-class-"
HEARTBEAT = "see-heartbeat"
SLICES, NODES = "see-slices", "see-nodes"
OBSERVATIONS = "see-"
"""How every key of an observation begins."""


def provider_config_name(cluster: str) -> str:
    """Return the name of the ClusterProviderConfig, as Modelplane v0.3 gives it."""
    return child_name(cluster, "cluster-kubeconfig")


def stack_name(cluster: str) -> str:
    """Return the name of the ServingStack, as Modelplane v0.3 gives it."""
    return child_name(cluster, "serving-stack")


def is_ours(key: str) -> bool:
    """Whether a key of the composition belongs to this handler."""
    fixed = (PROVIDER_CONFIG, GUARD, STACK, GATEWAY, LEADER_WORKER_SET, HEARTBEAT, SLICES, NODES)
    return key in fixed or key.startswith(CLASS_PREFIX)
