"""Declare what the handler needs of the control plane: the one table of requirement names.

Rules (`contract.md`, Requirements): the same on every call of the same deployment; every cluster and every
replica, unfiltered; the referenced ModelCache by name; with coordination also the other deployments.
"""

from __future__ import annotations

from function.boundary import Request, Requirement, text_at

API_VERSION = "modelplane.ai/v1alpha1"

CLUSTERS, REPLICAS, CACHE = "clusters", "all-replicas", "cache"
DEPLOYMENTS, CACHES = "all-deployments", "all-caches"

_ALWAYS = (
    Requirement(CLUSTERS, API_VERSION, "InferenceCluster"),
    Requirement(REPLICAS, API_VERSION, "ModelReplica"),
)
_COORDINATED = (
    Requirement(DEPLOYMENTS, API_VERSION, "ModelDeployment"),
    Requirement(CACHES, API_VERSION, "ModelCache"),
)


def coordinated(request: Request) -> bool:
    """Whether the input asks for coordination. Read by itself: the rest of the input may be invalid."""
    return (request.input or {}).get("coordination") == "GlobalOrder"


def referenced_cache(request: Request) -> tuple[str, str]:
    """Return the name and namespace of the ModelCache the composite references, as far as readable."""
    cache = text_at(request.composite, "spec", "template", "spec", "modelCacheRef", "name")
    return cache, text_at(request.composite, "metadata", "namespace")


def declared(request: Request) -> tuple[Requirement, ...]:
    """Return what this request needs, whatever was delivered and whether or not a decision is reached."""
    cache, namespace = referenced_cache(request)
    by_name = (
        Requirement(
            CACHE, API_VERSION, "ModelCache", match_name=cache, namespace=namespace, served_by=CACHES
        ),
    )
    return (*_ALWAYS, *(_COORDINATED if coordinated(request) else ()), *(by_name if cache else ()))
