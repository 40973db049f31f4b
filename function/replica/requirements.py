"""Declare what the handler needs of the control plane: the one table of requirement names.

Always the InferenceCluster of the replica, by name. With `diagnose: Pods` also the members of every
collection of pods that is observed: they are known by the name that Crossplane gave the collection. With
`namesakes: Refuse` also the replicas of deployments of this name on its cluster, in all namespaces, and the
ModelCaches whose volume may be that of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.names import API_VERSION
from function.boundary import Requirement, text_at
from function.fail_static import base_of
from function.objects import API_VERSION as OBJECT_API_VERSION
from function.objects import COLLECTION, KIND, MEMBERSHIP_LABEL
from function.replica import names
from function.replica.names import PODS, read_key

if TYPE_CHECKING:
    from function.boundary import Request

CLUSTER = "cluster"


def diagnoses_pods(request: Request) -> bool:
    """Tell whether the input asks for the pods. Read by itself: the rest of the input may be invalid."""
    return (request.input or {}).get("diagnose") == "Pods"


def declared(request: Request) -> tuple[Requirement, ...]:
    """Return what this request needs, whatever was delivered; nothing for a replica that names no cluster."""
    cluster = text_at(request.composite, "spec", "clusterName")
    by_name = (Requirement(CLUSTER, API_VERSION, "InferenceCluster", match_name=cluster),) if cluster else ()
    return (*by_name, *names.required(request), *_pods(request))


def _pods(request: Request) -> tuple[Requirement, ...]:
    if not diagnoses_pods(request):
        return ()
    namespace = text_at(request.composite, "metadata", "namespace")
    collections = {
        key: text_at(request.observed[key], "metadata", "name")
        for key in sorted(request.observed)
        if (read := read_key(base_of(key))) is not None and read.what == PODS
        if text_at(request.observed[key], "kind") == COLLECTION
    }
    return tuple(
        Requirement(
            *(key, OBJECT_API_VERSION, KIND),
            namespace=namespace,
            match_labels=((MEMBERSHIP_LABEL, name),),
            watched=False,
        )
        for key, name in collections.items()
        if name
    )
