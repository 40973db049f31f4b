"""Desired ModelEndpoints: traffic goes to a Ready replica behind a known gateway, and to nothing else.

Fail static: an endpoint is withdrawn only when its replica is observed not Ready, or leaves. While the
cluster is undelivered, unreadable or without a gateway, the observed endpoint is emitted unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.lenient import Reader
from function.api.names import endpoint_key, read_key
from function.boundary import Desired
from function.deployment.compose.objects import composed, labels
from function.fail_static import as_observed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Document, Shape
    from function.scheduler.decision import Decision, Kept
    from function.scheduler.fleet import Fleet

KIND = "ModelEndpoint"
_CONDITIONS: Shape = {"status": {"conditions": {"type": None, "status": None}}}


def _host(address: str) -> str:
    """An address as it stands in a URL: IPv6 in brackets."""
    return (
        f"[{address}]"
        if ":" in address and not address.startswith("[") and address.count(":") > 1
        else address
    )


def _spec(address: str, namespace: str, name: str) -> dict[str, Any]:
    return {"url": f"http://{_host(address)}/{namespace}/{name}/v1", "rewritePath": f"/{namespace}/{name}/"}


def _observed_ready(document: Document | None) -> bool:
    if document is None:
        return False
    try:
        return Reader().ready(document.project(_CONDITIONS)) is True
    except ValueError:
        return False


def _gateway(fleet: Fleet, cluster: str) -> str:
    found = fleet.clusters.get(cluster)
    return found.gateway if found else ""


def _endpoint(decision: Decision, kept: Kept) -> tuple[str, Desired] | None:
    """The endpoint of one kept replica, if it has one."""
    deployment, fleet = decision.inputs.deployment, decision.inputs.fleet
    own = kept.own
    if own.identity is None or own.replica.ready is False:
        return None
    key = endpoint_key(own.identity)
    observed = fleet.endpoints.get(key)
    ready = _observed_ready(observed)
    address = _gateway(fleet, own.cluster)
    if own.replica.ready is True and address and own.readable and own.replica.name:
        labelled = labels(deployment, own.identity)
        spec = _spec(address, deployment.namespace, own.replica.name)
        return key, Desired(composed(KIND, own.replica.name, deployment.namespace, labelled, spec), ready)
    if observed is None:
        return None
    return key, Desired(as_observed(observed, kind=KIND, namespace=deployment.namespace), ready)


def endpoints(decision: Decision) -> Mapping[str, Desired]:
    """The endpoints of all kept replicas.

    One whose key cannot be read is emitted as it is, and so is one of a replica not known yet, while it is
    not told which replicas there are.
    """
    found = dict(filter(None, (_endpoint(decision, kept) for kept in decision.kept)))
    fleet, namespace = decision.inputs.fleet, decision.inputs.deployment.namespace
    known = {endpoint_key(own.identity) for own in fleet.own_replicas if own.identity}
    for key, observed in fleet.endpoints.items():
        if read_key(key) is None or not (key in known or fleet.inputs_delivered):
            found[key] = Desired(
                as_observed(observed, kind=KIND, namespace=namespace), _observed_ready(observed)
            )
    return {key: each for key, each in found.items() if key not in fleet.theirs}
