"""Routing: the InferencePool of the serving pods and the HTTPRoute that leads to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.names import CLUSTER_GATEWAY, SERVING_LABEL, SYSTEM_NAMESPACE
from function.gateway_api import http_route, prefix_match, url_rewrite
from function.replica import names
from function.replica.picker import PICKER_PORT
from function.replica.ports import PORT

if TYPE_CHECKING:
    from function.replica.snapshot import ReplicaSnapshot

POOL_GROUP = "inference.networking.k8s.io"
GATEWAY = {"namespace": SYSTEM_NAMESPACE, "name": CLUSTER_GATEWAY}


def inference_pool(snapshot: ReplicaSnapshot) -> dict[str, Any]:
    """Return the pool: requests go on to any serving pod while its picker is away."""
    replica = snapshot.replica.name
    return {
        "apiVersion": f"{POOL_GROUP}/v1",
        "kind": "InferencePool",
        "metadata": {"name": names.pool_name(replica), "namespace": snapshot.remote_namespace},
        "spec": {
            "selector": {"matchLabels": {SERVING_LABEL: names.serving_label(replica)}},
            "targetPorts": [{"number": PORT}],
            "endpointPickerRef": {
                "name": names.picker_service_name(replica),
                "port": {"number": PICKER_PORT},
                "failureMode": "FailOpen",
            },
        },
    }


def model_route(snapshot: ReplicaSnapshot) -> dict[str, Any]:
    """Return the route of `/<namespace>/<replica>/`. No timeout: fifteen seconds would cut streams."""
    namespace, replica = snapshot.replica.namespace, snapshot.replica.name
    rule = {
        "matches": [prefix_match(f"/{namespace}/{replica}/")],
        "filters": [url_rewrite("/")],
        "timeouts": {"request": "0s"},
        "backendRefs": [{"group": POOL_GROUP, "kind": "InferencePool", "name": names.pool_name(replica)}],
    }
    return http_route({"name": replica, "namespace": snapshot.remote_namespace}, GATEWAY, rule)
