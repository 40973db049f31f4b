"""What desired objects share: kind, name, namespace, labels; and how an observed object is emitted again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.replica import ALTERNATIVE_LABEL, CLUSTER_LABEL, DEPLOYMENT_LABEL, INDEX_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.api import ModelDeployment
    from function.api.names import Identity
    from function.exchange import Document, Plain

API_VERSION = "modelplane.ai/v1alpha1"

_MANAGED_PREFIX = "crossplane.io/"
_MANAGED_SPEC = "crossplane"


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


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_observed(document: Document, *, kind: str, namespace: str) -> dict[str, Any]:
    """Emit an observed object again, exactly as it was last applied.

    What others own is left out: labels and spec fields that Crossplane manages, and everything the API
    server adds. An object without a readable name is emitted without one; Crossplane knows it by its key.
    An object of another kind under a key of ours stays what it is.
    """
    try:
        plain = document.plain()
    except ValueError:
        plain = {}
    metadata = _again(_mapping(plain.get("metadata")), namespace)
    if isinstance(plain.get("kind"), str) and plain["kind"] != kind:
        kept = {key: value for key, value in plain.items() if key not in ("metadata", "status")}
        return {**kept, "metadata": metadata}
    spec = {key: value for key, value in _mapping(plain.get("spec")).items() if key != _MANAGED_SPEC}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _again(metadata: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The metadata of an observed object as we applied it: name, namespace and our labels."""
    again: dict[str, Any] = {"namespace": metadata.get("namespace") or namespace}
    if isinstance(metadata.get("name"), str):
        again["name"] = metadata["name"]
    labelled = _mapping(metadata.get("labels")).items()
    kept = {key: value for key, value in labelled if not key.startswith(_MANAGED_PREFIX)}
    if kept:
        again["labels"] = kept
    return again
