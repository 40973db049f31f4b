"""Desire the placements of an adapter, and an endpoint for each replica that serves it.

An endpoint of an adapter leads where that of its replica does, under a label of the adapter: a ModelService
that selects the label is the one address of the adapter, whatever replica it moves to. Requests name the
adapter as their model.

Law 2 for endpoints: one is composed when the replica's handler says that the adapter is configured. From then
on it is withdrawn only when the replica is observed not Ready, or the placement leaves or lost its slot.
"""

from __future__ import annotations

from typing import Any

from function.adapter.schedule import AdapterDecision, KeptPlacement
from function.adapter.snapshot import ENDPOINT, ENDPOINT_KEY, ENDPOINT_KIND, PLACEMENT_KEY, AdapterSnapshot
from function.api.adapter import ADAPTER_LABEL, PLACEMENT_KIND, REPLICA_LABEL, placement_name
from function.api.model import Reader, mapping, plain_of
from function.api.names import API_VERSION
from function.boundary import Desired, Document, Request, Resolution
from function.fail_static import as_observed


def compose(request: Request, snapshot: AdapterSnapshot, decision: AdapterDecision) -> dict[str, Desired]:
    """Return all desired resources."""
    adapter, desired = snapshot.adapter, {}

    def placement(replica: str, name: str) -> dict[str, Any]:
        spec = {"adapter": adapter.name, "replica": replica, "source": adapter.spec.source}
        return _composed(PLACEMENT_KIND, snapshot, replica, name) | {"spec": spec}

    for kept in decision.kept:
        replica = kept.existing.replica
        base = snapshot.inputs.bases.get(replica)
        is_configured = base is not None and adapter.name in base.configured
        # The name that it has: one that is only listed stays the object that it is.
        name = kept.existing.name or placement_name(adapter.name, replica)
        desired[f"{PLACEMENT_KEY}{replica}"] = Desired(placement(replica, name), ready=is_configured)
        endpoint = _endpoint(request, snapshot, kept, is_configured=is_configured)
        if endpoint is not None:
            desired[f"{ENDPOINT_KEY}{replica}"] = endpoint
    for replica in decision.placed:
        name = placement_name(adapter.name, replica)
        desired[f"{PLACEMENT_KEY}{replica}"] = Desired(placement(replica, name))
    return {key: desired[key] for key in sorted(desired) if key not in request.desired}


def _composed(kind: str, snapshot: AdapterSnapshot, replica: str, name: str) -> dict[str, Any]:
    labels = {ADAPTER_LABEL: snapshot.adapter.name, REPLICA_LABEL: replica}
    metadata = {"name": name, "namespace": snapshot.adapter.namespace, "labels": labels}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}


def _endpoint(
    request: Request, snapshot: AdapterSnapshot, kept: KeptPlacement, *, is_configured: bool
) -> Desired | None:
    """Return the endpoint of a kept placement, None where there is none."""
    replica = kept.existing.replica
    base = snapshot.inputs.bases.get(replica)
    key = f"{ENDPOINT_KEY}{replica}"
    observed: Document | None = None if key in request.desired else request.observed.get(key)
    if kept.lost or (base is not None and base.ready is False):
        return None
    ready = observed is not None and Reader().ready(plain_of(observed)) is True
    name = f"{ENDPOINT}/{replica}"
    if is_configured and request.resolution(name) is Resolution.DELIVERED:
        source = plain_of(request.required[name][0])
        spec = mapping(source.get("spec"))
        if spec.get("url") and not mapping(source.get("metadata")).get("deletionTimestamp"):
            wanted = {key: spec[key] for key in ("url", "rewritePath") if key in spec}
            named = placement_name(snapshot.adapter.name, replica)
            return Desired(_composed(ENDPOINT_KIND, snapshot, replica, named) | {"spec": wanted}, ready)
    if observed is None:
        return None
    namespace = snapshot.adapter.namespace
    return Desired(as_observed(observed, kind=ENDPOINT_KIND, namespace=namespace), ready)
