"""Declare what the handler needs of the control plane: the one table of requirement names.

The replicas on the cluster, by label and in all namespaces; each class that a pool names, by name, sorted.
Read leniently: what is required must not depend on whether the rest of the cluster can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.lenient import mapping, mappings
from function.api.names import API_VERSION
from function.api.replica import CLUSTER_LABEL
from function.boundary import Requirement, Unreadable, text_at
from function.cluster.verification import members

if TYPE_CHECKING:
    from function.boundary import Request

REPLICAS = "model-replicas"


def class_requirement(name: str) -> str:
    """Return the name of the requirement of a class."""
    return f"class-{name}"


def declared(request: Request) -> tuple[Requirement, ...]:
    """Return what this request needs, whatever was delivered."""
    name = text_at(request.composite, "metadata", "name")
    labels = ((CLUSTER_LABEL, name),)
    replicas = (Requirement(REPLICAS, API_VERSION, "ModelReplica", match_labels=labels),) if name else ()
    classes = tuple(
        Requirement(class_requirement(name), API_VERSION, "InferenceClass", match_name=name)
        for name in class_names(request)
    )
    return (*classes, *replicas, *members(request))


def class_names(request: Request) -> list[str]:
    """Return the classes that the cluster's pools name, as far as they can be read."""
    try:
        plain = request.composite.project({"spec": {"nodePools": {"className": None}}})
    except Unreadable:
        return []
    names = (pool.get("className") for pool in mappings(mapping(plain.get("spec")).get("nodePools")))
    return sorted({name for name in names if isinstance(name, str) and name})
