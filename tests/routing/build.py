"""Short builders for endpoints, services, and requests about one."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tests.support.any_request import AnyRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.drive import Answer

Plain = dict[str, Any]

API = "modelplane.ai/v1alpha1"
NAMESPACE = "ml-team"
INPUT = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "RoutingConfig"}
ACCEPTED = [
    {
        "parentRef": {"name": "modelplane", "namespace": "modelplane-system"},
        "controllerName": "example.com/gateway",
        "conditions": [
            {"type": "Accepted", "status": "True", "reason": "Accepted"},
            {"type": "ResolvedRefs", "status": "True", "reason": "ResolvedRefs"},
        ],
    }
]


def endpoint(
    name: str = "chat-1",
    url: str = "http://203.0.113.7/ml-team/chat-1/v1",
    *,
    backend: str | None = None,
    rewrite: str | None = None,
    namespace: str = NAMESPACE,
    labels: Mapping[str, str] | None = None,
) -> Plain:
    """Return a ModelEndpoint; with `backend` None it has a Service called `svc-<name>`, with "" none."""
    spec: Plain = {"url": url} | ({} if rewrite is None else {"rewritePath": rewrite})
    metadata: Plain = {"name": name, "namespace": namespace, "labels": dict(labels or {"app": "chat"})}
    made: Plain = {"apiVersion": API, "kind": "ModelEndpoint", "metadata": metadata, "spec": spec}
    service = f"svc-{name}" if backend is None else backend
    return made | ({"status": {"routing": {"backendName": service}}} if service else {})


def group(weight: int | None = None, priority: int | None = None, **labels: str) -> Plain:
    """Return a group of endpoints; `labels` default to `app: chat`."""
    made: Plain = {"selector": {"matchLabels": labels or {"app": "chat"}}}
    for key, value in (("weight", weight), ("priority", priority)):
        if value is not None:
            made[key] = value
    return made


def service(*groups: Plain, name: str = "chat", **status: Any) -> Plain:
    """Return a ModelService; without groups it has one."""
    spec = {"endpoints": list(groups or (group(),))}
    metadata = {"name": name, "namespace": NAMESPACE}
    made: Plain = {"apiVersion": API, "kind": "ModelService", "metadata": metadata, "spec": spec}
    return made | ({"status": status} if status else {})


def inference_gateway(address: str | None = "198.51.100.9") -> Plain:
    """Return Modelplane's InferenceGateway."""
    made: Plain = {"apiVersion": API, "kind": "InferenceGateway", "metadata": {"name": "default"}}
    return made | ({} if address is None else {"status": {"address": address}})


def gateway(address: str = "198.51.100.9") -> Plain:
    """Return the Gateway."""
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "modelplane", "namespace": "modelplane-system"},
        "status": {"addresses": [{"type": "IPAddress", "value": address}]},
    }


def config(**fields: Any) -> Plain:
    """Return the input of the step."""
    return {**INPUT, **fields}


def request_about(
    composite: Plain, *delivered: Sequence[Plain] | None, settings: Plain | None = None, **more: Any
) -> AnyRequest:
    """Return a request about a service: `delivered` are the endpoints of each group, None is undelivered."""
    required: dict[str, Sequence[Plain]] = {
        f"endpoints-{number}": items for number, items in enumerate(delivered) if items is not None
    }
    required["inference-gateway"] = [inference_gateway()]
    return AnyRequest(composite, more.get("observed", {}), required | more.get("required", {}), settings)


def observed(answer: Answer, parents: Sequence[Plain] = tuple(ACCEPTED)) -> dict[str, Plain]:
    """Return what is observed after an answer was applied; a gateway said `parents` of a route."""
    made = {}
    for key, resource in answer.desired.items():
        made[key] = copy.deepcopy(resource)
        metadata = made[key]["metadata"]
        metadata.setdefault("name", f"observed-{key}")
        metadata["labels"] = metadata.get("labels", {}) | {"crossplane.io/composite": "x"}
        if resource["kind"] == "HTTPRoute" and parents:
            made[key]["status"] = {"parents": list(parents)}
        if resource["kind"] == "Service":
            made[key]["spec"] |= {"clusterIP": "10.0.0.5", "type": "ClusterIP"}
    return made


def applied(request: AnyRequest, answer: Answer | None = None) -> AnyRequest:
    """Return a request after its answer was applied: objects observed, status and conditions written."""
    answer = request.answer() if answer is None else answer
    conditions = [
        {"type": kind, "status": str(status), "reason": reason}
        for kind, (status, reason, _) in answer.conditions.items()
    ]
    status = {**request.composite.get("status", {}), **answer.status, "conditions": conditions}
    return request.but(composite={**request.composite, "status": status}, observed=observed(answer))


def settled(request: AnyRequest) -> AnyRequest:
    """Return a request once nothing changes any more."""
    for _ in range(5):
        request = applied(request)
    return request


def references(answer: Answer) -> dict[str, int]:
    """Return the weight of every backend of the route, by Service."""
    (rule,) = answer.desired["httproute"]["spec"]["rules"]
    return {backendref["name"]: backendref["weight"] for backendref in rule.get("backendRefs", ())}
