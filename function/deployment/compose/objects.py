"""Build desired objects: apiVersion, kind, name, namespace and labels, which all kinds share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.names import API_VERSION
from function.api.replica import ALTERNATIVE_LABEL, CLUSTER_LABEL, DEPLOYMENT_LABEL, INDEX_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.api import ModelDeployment
    from function.api.names import Identity
    from function.boundary import Plain


def labels(deployment: ModelDeployment, identity: Identity, alternative: str = "") -> dict[str, str]:
    """Labels of a replica and its endpoint: the template's, then (winning) ours."""
    ours = {
        DEPLOYMENT_LABEL: deployment.name,
        CLUSTER_LABEL: identity.cluster,
        INDEX_LABEL: str(identity.index),
    }
    if alternative:
        ours[ALTERNATIVE_LABEL] = alternative
    return {**deployment.spec.template.metadata.labels, **ours}


def composed(
    kind: str, name: str, namespace: str, labelled: Mapping[str, str], spec: Mapping[str, Plain]
) -> dict[str, Any]:
    """A composed object. Only fields that are set: what is emitted is owned."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labelled)},
        "spec": dict(spec),
    }
