"""Desired ModelEndpoints: traffic goes to a Ready replica behind a known gateway, and to nothing else.

Fail static: an endpoint is withdrawn only when its replica is observed not Ready, or leaves. While the
cluster is undelivered, unreadable or without a gateway, the observed endpoint is emitted unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.destination import bracketed
from function.api.lenient import Reader
from function.api.names import endpoint_key, read_key
from function.boundary import Desired
from function.deployment.compose.objects import composed, labels
from function.fail_static import as_observed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Document, Shape
    from function.scheduler.decision import Decision
    from function.scheduler.fleet import Fleet
    from function.scheduler.outcomes import Kept

KIND = "ModelEndpoint"
_CONDITIONS: Shape = {"status": {"conditions": {"type": None, "status": None}}}


def _spec(address: str, namespace: str, name: str) -> dict[str, Any]:
    return {
        "url": f"http://{bracketed(address)}/{namespace}/{name}/v1",
        "rewritePath": f"/{namespace}/{name}/",
    }


def _observed_ready(document: Document | None) -> bool:
    """Whether an endpoint is observed Ready; not where it cannot be read."""
    if document is None:
        return False
    try:
        return Reader().ready(document.project(_CONDITIONS)) is True
    except ValueError:
        return False


def _gateway(fleet: Fleet, cluster: str) -> str:
    """The gateway's address of a cluster that can be read; empty for none."""
    return fleet.clusters[cluster].gateway if cluster in fleet.clusters else ""


def _endpoint(decision: Decision, kept: Kept) -> tuple[str, Desired] | None:
    """The endpoint of one kept replica, if it has one."""
    deployment, fleet = decision.inputs.deployment, decision.inputs.fleet
    own_replica = kept.own_replica
    if own_replica.identity is None or own_replica.replica.ready is False:
        return None
    key = endpoint_key(own_replica.identity)
    observed = fleet.endpoints.get(key)
    ready = _observed_ready(observed)
    address = _gateway(fleet, own_replica.cluster)
    if own_replica.replica.ready is True and address and own_replica.readable and own_replica.replica.name:
        labelled = labels(deployment, own_replica.identity)
        spec = _spec(address, deployment.namespace, own_replica.replica.name)
        return key, Desired(
            composed(KIND, own_replica.replica.name, deployment.namespace, labelled, spec), ready
        )
    if observed is None:
        return None
    return key, Desired(as_observed(observed, kind=KIND, namespace=deployment.namespace), ready)


def endpoints(decision: Decision) -> Mapping[str, Desired]:
    """The endpoints of all kept replicas.

    Law 2: one whose key cannot be read is emitted as observed, and so is one of no replica of ours that is
    known while the lists are undelivered.
    """
    desired = dict(filter(None, (_endpoint(decision, kept) for kept in decision.kept)))
    fleet, namespace = decision.inputs.fleet, decision.inputs.deployment.namespace
    ours = {endpoint_key(own_replica.identity) for own_replica in fleet.own_replicas if own_replica.identity}
    for key, observed in fleet.endpoints.items():
        if read_key(key) is None or not (key in ours or fleet.inputs_delivered):
            resource = as_observed(observed, kind=KIND, namespace=namespace)
            desired[key] = Desired(resource, _observed_ready(observed))
    return {key: endpoint for key, endpoint in desired.items() if key not in fleet.theirs}
