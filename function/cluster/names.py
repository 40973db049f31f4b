"""Keys and names of what is composed for a cluster, and what is asked for in order to look at its nodes.

A key is what Crossplane knows a composed resource by: one that changes deletes the resource and makes
another. So keys are those of Modelplane v0.3 where it has them, and the others begin with `see-`, for what is
looked at and never touched.

Nodes and ResourceSlices are looked at only where somebody asks: the cluster by `spec.drift.mode: Observe`, or
the input of the step by `capacity: Usable`. Two collections are composed then; a third of DeviceTaintRules
where the cluster's release has them, and one of ResourceClaims with `tenants: Charge`. Their members are
required by the name that Crossplane gave each collection, so they come a call later.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from function import objects
from function.api.names import DNS_SUBDOMAIN, POOL_LABEL, SYSTEM_NAMESPACE, child_name, dns_1035_name
from function.boundary import Request, Requirement, text_at
from function.fail_static import base_of

PROVIDER_CONFIG, GUARD, STACK = "cluster-provider-config-kubernetes", "usage-replicas", "serving-stack"
GATEWAY, LEADER_WORKER_SET, CLASS_PREFIX = "see-gateway", "see-lws", "see-class-"
HEARTBEAT, KSERVE_API = "see-heartbeat", "see-kserve"
SLICES, NODES, TAINT_RULES, CLAIMS = "see-slices", "see-nodes", "see-taint-rules", "see-claims"
OBSERVATIONS = "see-"
"""How every key of an observation begins."""


OPTIONAL = (TAINT_RULES, CLAIMS)
"""Collections without which the others say what they say."""
REQUIRED = {SLICES: "slices", NODES: "nodes", TAINT_RULES: "taint-rules", CLAIMS: "claims"}
"""The requirement of the members of each collection, by its key."""
TAINT_RULES_SINCE = "1.37"
"""The release from which every cluster serves DeviceTaintRules as resource.k8s.io/v1."""
KINDS = {
    PROVIDER_CONFIG: "ClusterProviderConfig",
    GUARD: "ClusterUsage",
    STACK: "ServingStack",
    **dict.fromkeys((GATEWAY, LEADER_WORKER_SET, HEARTBEAT, KSERVE_API), objects.KIND),
    **dict.fromkeys(REQUIRED, objects.COLLECTION),
}
"""The kinds under the keys that do not depend on the cluster."""


def provider_config_name(cluster: str, what: str = "cluster-kubeconfig") -> str:
    """Return the name of the ClusterProviderConfig, or what else a cluster has, as Modelplane v0.3 gives it.

    Mended where it was cut at a dot: Kubernetes refuses that one.
    """
    name = child_name(cluster, what)
    return name if DNS_SUBDOMAIN.fullmatch(name) else dns_1035_name(cluster, what)


def kind_of(key: str) -> str | None:
    """Return the kind of what this handler composes under a key, None for a key that is not ours."""
    return objects.KIND if key.startswith(CLASS_PREFIX) else KINDS.get(base_of(key))


def observes_drift(request: Request) -> bool:
    """Tell whether the cluster asks for it. Read by itself: the rest of the cluster may be unreadable."""
    return text_at(request.composite, "spec", "drift", "mode") == "Observe"


def asks_for(request: Request, key: str) -> bool:
    """Tell whether a collection is to be looked at."""
    usable = request.asks("capacity", "Usable")
    if key == TAINT_RULES:
        release = text_at(request.composite, "spec", "celVersion")
        return usable and release == TAINT_RULES_SINCE
    if key == CLAIMS:
        return usable and request.asks("tenants", "Charge")
    return observes_drift(request) or usable


def members(request: Request) -> tuple[Requirement, ...]:
    """Require what the collections hold, once their names are observed."""
    requirements = []
    for key in filter(partial(asks_for, request), REQUIRED):
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


def collections(request: Request, provider_config: str, *, own_labels: bool) -> dict[str, dict[str, Any]]:
    """Return the collections by key. `own_labels`: some pool's nodes carry another label than ours."""
    of_pools: dict[str, Any] = {"matchExpressions": [{"key": POOL_LABEL, "operator": "Exists"}]}
    looked_at = {
        SLICES: ("resource.k8s.io/v1", "ResourceSlice", {"matchLabels": {}}),
        NODES: ("v1", "Node", {"matchLabels": {}} if own_labels else of_pools),
        TAINT_RULES: ("resource.k8s.io/v1", "DeviceTaintRule", {"matchLabels": {}}),
        CLAIMS: ("resource.k8s.io/v1", "ResourceClaim", {"matchLabels": {}}),
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
        if asks_for(request, key)
    }
