"""Declare what the handler needs of the control plane: the one table of requirement names.

Rules (docs/compatibility.md, Requirements): the same on every call of the same deployment; every cluster and
every replica, unfiltered; the referenced ModelCache by name; with coordination also the other deployments.
With `capacity: Published` only the replicas of deployments of this name, in all namespaces: one of another
namespace may have the object name that a new one of ours would get on its cluster.
"""

from __future__ import annotations

from function.api.names import API_VERSION
from function.api.replica import DEPLOYMENT_LABEL
from function.boundary import Request, Requirement, text_at

CLUSTERS, REPLICAS, CACHE = "clusters", "all-replicas", "cache"
OWN_REPLICAS = "own-replicas"
DEPLOYMENTS, CACHES = "all-deployments", "all-caches"

_CLUSTERS = Requirement(CLUSTERS, API_VERSION, "InferenceCluster")
_REPLICAS = Requirement(REPLICAS, API_VERSION, "ModelReplica")
_COORDINATED = (
    Requirement(DEPLOYMENTS, API_VERSION, "ModelDeployment"),
    Requirement(CACHES, API_VERSION, "ModelCache"),
)


def coordinated(request: Request) -> bool:
    """Whether the input asks for coordination. Read by itself: the rest of the input may be invalid.

    It takes all replicas, which are not listed where the clusters publish what is charged to them.
    """
    return (request.input or {}).get("coordination") == "GlobalOrder" and not published(request)


def published(request: Request) -> bool:
    """Whether the input asks for published charges, in the place of all replicas. Read by itself, too."""
    return (request.input or {}).get("capacity") == "Published"


def referenced_cache(request: Request) -> tuple[str, str]:
    """Return the name and namespace of the ModelCache the composite references, as far as readable."""
    cache = text_at(request.composite, "spec", "template", "spec", "modelCacheRef", "name")
    return cache, text_at(request.composite, "metadata", "namespace") if cache else ""


def declared(request: Request) -> tuple[Requirement, ...]:
    """Return what this request needs, whatever was delivered and whether or not a decision is reached."""
    cache, namespace = referenced_cache(request)
    by_name = (
        Requirement(
            CACHE, API_VERSION, "ModelCache", match_name=cache, namespace=namespace, served_by=CACHES
        ),
    )
    replicas = _own_replicas(request) if published(request) else _REPLICAS
    more = _COORDINATED if coordinated(request) else ()
    return (_CLUSTERS, replicas, *more, *(by_name if cache else ()))


def _own_replicas(request: Request) -> Requirement:
    """Require the replicas of deployments of this name. Without a name nothing is asked of the answer."""
    name = text_at(request.composite, "metadata", "name")
    labels = ((DEPLOYMENT_LABEL, name),) if name else ()
    return Requirement(OWN_REPLICAS, API_VERSION, "ModelReplica", match_labels=labels)
