"""Keys and names of what is composed for a cluster, and what is asked for in order to look at its nodes.

A key is what Crossplane knows a composed resource by: one that changes deletes the resource and makes
another. So keys are those of Modelplane v0.3 where it has them, and the others begin with `see-`, for what is
looked at and never touched.

Nodes and ResourceSlices are looked at only where somebody asks: the cluster by `spec.drift.mode: Observe`, or
the input of the step by `capacity: Usable`. Two collections are composed then. Their members are required by
the name that Crossplane gave each collection, so they come a call later.
"""

from __future__ import annotations

from typing import Any

from function import objects
from function.api.names import POOL_LABEL, SYSTEM_NAMESPACE, child_name, dns_1035_name, is_dns_subdomain
from function.boundary import Request, Requirement, text_at
from function.fail_static import base_of

PROVIDER_CONFIG, GUARD, STACK = "cluster-provider-config-kubernetes", "usage-replicas", "serving-stack"
GATEWAY, LEADER_WORKER_SET, CLASS_PREFIX = "see-gateway", "see-lws", "see-class-"
HEARTBEAT = "see-heartbeat"
SLICES, NODES = "see-slices", "see-nodes"
OBSERVATIONS = "see-"
"""How every key of an observation begins."""


REQUIRED = {SLICES: "slices", NODES: "nodes"}
"""The requirement of the members of each collection, by its key."""
KINDS = {
    PROVIDER_CONFIG: "ClusterProviderConfig",
    GUARD: "ClusterUsage",
    STACK: "ServingStack",
    **dict.fromkeys((GATEWAY, LEADER_WORKER_SET, HEARTBEAT), objects.KIND),
    **dict.fromkeys((SLICES, NODES), objects.COLLECTION),
}
"""What stands under the keys that do not depend on the cluster."""


def provider_config_name(cluster: str, what: str = "cluster-kubeconfig") -> str:
    """Return the name of the ClusterProviderConfig, as Modelplane v0.3 gives it.

    Mended where it was cut at a dot: Kubernetes refuses that one.
    """
    name = child_name(cluster, what)
    return name if is_dns_subdomain(name) else dns_1035_name(cluster, what)


def stack_name(cluster: str) -> str:
    """Return the name of the ServingStack, as Modelplane v0.3 gives it, mended likewise."""
    return provider_config_name(cluster, "serving-stack")


def kind_of(key: str) -> str | None:
    """Return the kind of what this handler composes under a key, None for a key that is not ours."""
    return objects.KIND if key.startswith(CLASS_PREFIX) else KINDS.get(base_of(key))


def observes_drift(request: Request) -> bool:
    """Tell whether the cluster asks for it. Read by itself: the rest of the cluster may be unreadable."""
    return text_at(request.composite, "spec", "drift", "mode") == "Observe"


def observes_capacity(request: Request) -> bool:
    """Tell whether the input asks for what can be used. Read by itself: the rest of it may be invalid."""
    return (request.input or {}).get("capacity") == "Usable"


def members(request: Request) -> tuple[Requirement, ...]:
    """Require what the collections hold, once their names are observed."""
    requirements = []
    for key in REQUIRED if observes_drift(request) or observes_capacity(request) else ():
        name = text_at(request.observed[key], "metadata", "name") if key in request.observed else ""
        if name:
            requirements.append(
                Requirement(
                    *(REQUIRED[key], objects.API_VERSION, objects.KIND),
                    namespace=SYSTEM_NAMESPACE,
                    match_labels=((objects.MEMBERSHIP_LABEL, name),),
                    watched=False,  # A node's status is written all the time.
                )
            )
    return tuple(requirements)


def collections(provider_config: str, *, own_labels: bool) -> dict[str, dict[str, Any]]:
    """Return the collections by key. `own_labels`: some pool's nodes carry another label than ours."""
    of_pools: dict[str, Any] = {"matchExpressions": [{"key": POOL_LABEL, "operator": "Exists"}]}
    looked_at = {
        SLICES: ("resource.k8s.io/v1", "ResourceSlice", {"matchLabels": {}}),
        NODES: ("v1", "Node", {"matchLabels": {}} if own_labels else of_pools),
    }
    return {
        key: {
            "apiVersion": objects.API_VERSION,
            "kind": objects.COLLECTION,
            "metadata": {"namespace": SYSTEM_NAMESPACE},
            "spec": {
                "observeObjects": {"apiVersion": api_version, "kind": kind, "selector": selector},
                "providerConfigRef": {"kind": objects.PROVIDER_CONFIG_KIND, "name": provider_config},
            },
        }
        for key, (api_version, kind, selector) in looked_at.items()
    }
