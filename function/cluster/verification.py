"""Report drift as a condition: what an observed cluster holds, against what it publishes.

Opt-in by `spec.drift.mode: Observe`. Two collections are composed, of every ResourceSlice and of the nodes of
the pools; their members are required by the name that Crossplane gave each collection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.lenient import mapping, plain_of
from function.api.names import POOL_LABEL, SYSTEM_NAMESPACE
from function.api.text import one_line
from function.boundary import Condition, Requirement, Resolution, Unreadable, text_at
from function.cluster.drift import drift
from function.cluster.names import NODES, SLICES
from function.objects import API_VERSION, COLLECTION, KIND, MEMBERSHIP_LABEL, PROVIDER_CONFIG_KIND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Request

VERIFIED = "DevicesVerified"
REQUIRED = {SLICES: "slices", NODES: "nodes"}
"""The requirement of the members of each collection, by its key."""


def observes_drift(request: Request) -> bool:
    """Whether the cluster asks for it. Read by itself: the rest of the cluster may be unreadable."""
    return text_at(request.composite, "spec", "drift", "mode") == "Observe"


def members(request: Request) -> tuple[Requirement, ...]:
    """Require what the collections hold, once their names are observed."""
    if not observes_drift(request):
        return ()
    collections = {
        key: text_at(request.observed[key], "metadata", "name") for key in REQUIRED if key in request.observed
    }
    return tuple(
        Requirement(
            *(REQUIRED[key], API_VERSION, KIND),
            namespace=SYSTEM_NAMESPACE,
            match_labels=((MEMBERSHIP_LABEL, name),),
        )
        for key, name in collections.items()
        if name
    )


def collections(provider_config: str, *, own_labels: bool) -> dict[str, dict[str, Any]]:
    """Return the collections by key. `own_labels`: some pool's nodes carry another label than ours."""
    labelled = {"matchExpressions": [{"key": POOL_LABEL, "operator": "Exists"}]}
    return {
        SLICES: _collection("resource.k8s.io/v1", "ResourceSlice", {"matchLabels": {}}, provider_config),
        NODES: _collection("v1", "Node", {"matchLabels": {}} if own_labels else labelled, provider_config),
    }


def _collection(
    api_version: str, kind: str, selector: Mapping[str, Any], provider_config: str
) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": COLLECTION,
        "metadata": {"namespace": SYSTEM_NAMESPACE},
        "spec": {
            "observeObjects": {"apiVersion": api_version, "kind": kind, "selector": dict(selector)},
            "providerConfigRef": {"kind": PROVIDER_CONFIG_KIND, "name": provider_config},
        },
    }


def verified(request: Request, published: Mapping[str, Any]) -> Condition:
    """DevicesVerified: what the drivers publish has what the pools claim. One phrase a pool, worst first."""
    if any(request.resolution(name) is not Resolution.DELIVERED for name in REQUIRED.values()):
        text = "No ResourceSlice and no node of the cluster was observed yet"
        return Condition(VERIFIED, status=False, reason="NotObserved", message=text)
    slices, nodes = (_manifests(request, name) for name in REQUIRED.values())
    cluster = {**plain_of(request.composite), "status": published}
    pools = [pool for pool in drift(cluster, slices, nodes) if pool.drifts]
    if not pools:
        return Condition(VERIFIED, status=True, reason="Verified")
    pools.sort(key=lambda pool: (pool.findings[0].order, pool.name))
    text = one_line(". ".join(pool.phrase() for pool in pools))
    return Condition(VERIFIED, status=False, reason="Drift", message=text)


def _manifests(request: Request, name: str) -> list[dict[str, Any]]:
    """Return what was seen on the cluster, of members that can be read."""
    findings = []
    for document in request.required[name]:
        try:
            status = mapping(document.project({"status": {"atProvider": {"manifest": None}}}).get("status"))
        except Unreadable:
            continue
        findings.append(mapping(mapping(status.get("atProvider")).get("manifest")))
    return findings
