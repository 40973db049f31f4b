"""Replicas of one name in two namespaces, whose pods would be the same objects on their cluster.

A replica's name is made of the deployment's name, the cluster and an index, not of the namespace, and without
`remoteNamespace: Same` all pods are in one namespace of the cluster. The scheduler takes no index whose name
another replica on the cluster has; but deployments of one name in two namespaces that are created at once do
not see each other's replicas yet, and a hand may make one of any name. Workloads, claims and routes of both
would have one name, and each would replace the other's. With `namesakes: Refuse` the replica that came first
has them, and nothing is composed for the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.lenient import mapping
from function.api.names import API_VERSION
from function.api.replica import CLUSTER_LABEL, DEPLOYMENT_LABEL
from function.boundary import Requirement, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from function.boundary import Document, Request, Shape

NAMESAKES = "namesakes"
_NOT_YET = "9999"
"""When one was created that a file has before any API server: it comes after all others."""
_LABELS = (CLUSTER_LABEL, DEPLOYMENT_LABEL)
_READ_LABELS: Shape = dict.fromkeys(_LABELS)
_SHAPE: Shape = {
    "metadata": {
        "name": None,
        "namespace": None,
        "creationTimestamp": None,
        "labels": _READ_LABELS,
    },
    "spec": {"clusterName": None},
}


def required(request: Request) -> Iterator[Requirement]:
    """Yield what namesakes are found by: the replicas of deployments of this name on this cluster.

    Nothing where they are not looked for, and for a replica without these labels: a hand made it. The input
    is read by itself, because the rest of it may be invalid.
    """
    config = request.input or {}
    if config.get("namesakes") != "Refuse" or config.get("remoteNamespace") == "Same":
        return
    labels = mapping(_metadata(_read(request.composite)).get("labels"))
    match_labels = tuple((label, labels[label]) for label in _LABELS if _is_text(labels.get(label)))
    if len(match_labels) == len(_LABELS):
        yield Requirement(NAMESAKES, API_VERSION, "ModelReplica", match_labels=match_labels)


def earlier_namesake(request: Request) -> str:
    """Return the namespace of the replica that has this one's name on this cluster, "" where none has.

    The one that was created first has it; of two in one second, that of the namespace that sorts first.
    """
    ours = _read(request.composite)
    holders = {
        _standing(theirs)
        for document in request.required.get(NAMESAKES, ())
        if _place(theirs := _read(document)) == _place(ours)
    }
    first = min(holders, default=("", ""))
    return first[1] if holders and first < _standing(ours) else ""


def _read(document: Document) -> dict[str, Any]:
    try:
        return document.project(_SHAPE)
    except Unreadable:
        return {}


def _metadata(replica: dict[str, Any]) -> dict[str, Any]:
    return mapping(replica.get("metadata"))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _place(replica: dict[str, Any]) -> tuple[object, object]:
    """Return what decides what its objects on the cluster are called."""
    return _metadata(replica).get("name"), mapping(replica.get("spec")).get("clusterName")


def _standing(replica: dict[str, Any]) -> tuple[str, str]:
    """Return when it was created, as the API server writes it so that texts sort, and its namespace."""
    metadata = _metadata(replica)
    created, namespace = (metadata.get(key) for key in ("creationTimestamp", "namespace"))
    return str(created or _NOT_YET), str(namespace or "")
