"""Compose the endpoint picker, which chooses the serving pod of a request by cached prefixes and queues.

Mostly data: its objects, its permissions, and the two configurations, for engines that do everything and for
prefill and decode apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from function.api.expressible import PORT
from function.api.model import mapping
from function.api.names import CLUSTER_GATEWAY, SERVING_LABEL, SYSTEM_NAMESPACE
from function.api.workload import Workload
from function.fail_static import base_of, key_of, until_edited
from function.gateway_api import http_route, prefix_match, url_rewrite
from function.objects import ObservedObject
from function.replica import names
from function.replica.pods import number, pod_scheduling
from function.replica.snapshot import ReplicaSnapshot
from function.replica.state import count, is_about_spec

IMAGE = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0"
PICKER_PORT, HEALTH_PORT = 9002, 9003
CONFIG_FILE = "epp-config.yaml"
PICKER_LABEL = "modelplane.ai/picker"
"""What the picker's Service selects its pods by."""
CHECKSUM_ANNOTATION = "modelplane.ai/epp-config-checksum"
BLOCK_SIZE = 16
"""Tokens of a KV block where the engine is started without a size."""

_HIGHEST_BLOCK_SIZE = 1_000_000
_READ = ["get", "watch", "list"]
_RULES = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
    {"apiGroups": ["inference.networking.k8s.io"], "resources": ["inferencepools"], "verbs": _READ},
    {"apiGroups": ["inference.networking.x-k8s.io"], "resources": ["inferenceobjectives"], "verbs": _READ},
]

_PREFIX_CACHE = """\
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: approx-prefix-cache-producer
  parameters:
    autoTune: false
    blockSizeTokens: {block_size}
    maxPrefixBlocksToMatch: 256
    lruCapacityPerServer: 31250
- type: prefix-cache-scorer
"""
_UNIFIED = """\
- type: queue-scorer
- type: max-score-picker
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: max-score-picker
  - pluginRef: prefix-cache-scorer
    weight: 2
  - pluginRef: queue-scorer
    weight: 1
"""
_DISAGGREGATED = """\
- type: disagg-headers-handler
- type: queue-scorer
- type: prefill-filter
- type: decode-filter
- type: max-score-picker
- type: prefix-based-pd-decider
  parameters:
    nonCachedTokens: 16
- type: disagg-profile-handler
  parameters:
    deciders:
      prefill: prefix-based-pd-decider
schedulingProfiles:
- name: prefill
  plugins:
  - pluginRef: prefill-filter
  - pluginRef: max-score-picker
  - pluginRef: prefix-cache-scorer
    weight: 2
  - pluginRef: queue-scorer
    weight: 1
- name: decode
  plugins:
  - pluginRef: decode-filter
  - pluginRef: max-score-picker
  - pluginRef: prefix-cache-scorer
    weight: 2
  - pluginRef: queue-scorer
    weight: 1
"""


def block_size(replica: Workload) -> int:
    """Return the tokens of a KV block: of the decode engine, else of the first."""
    decoding = (engine for engine in replica.engines if engine.phase == "Decode")
    engine = next(decoding, replica.engines[0]) if replica.is_disaggregated else replica.engines[0]
    flag = engine.serving.template.container.flag("--block-size", "--page-size")
    return number(flag, BLOCK_SIZE, _HIGHEST_BLOCK_SIZE)


def configuration(replica: Workload) -> str:
    """Return the picker's configuration, in its own words."""
    shared = _PREFIX_CACHE.format(block_size=block_size(replica))
    return shared + (_DISAGGREGATED if replica.is_disaggregated else _UNIFIED)


def is_disaggregated(configured: str) -> bool:
    """Tell whether a configuration is for prefill and decode apart."""
    return "disagg-profile-handler" in configured


def picker(snapshot: ReplicaSnapshot, *, edited: bool) -> dict[str, dict[str, Any]]:
    """Return the manifests of the picker by their keys. `edited`: whether pods of the replica change now.

    Its Service selects by a label that no user can set, as soon as its pods have that: `app`, by which the
    Deployment selects for ever, is everybody's. Pods that run without it stay until the replica is edited.
    """
    name, namespace = names.picker_name(snapshot.replica.name), snapshot.remote_namespace
    metadata = {"name": name, "namespace": namespace}
    service = {"name": names.picker_service_name(snapshot.replica.name), "namespace": namespace}
    text = configuration(snapshot.replica)
    head = _manifest("apps/v1", "Deployment", metadata)
    running = snapshot.observed.get(key_of(names.PICKER, head, snapshot.observed))
    template = _template(snapshot, name, text, {PICKER_LABEL: name})
    if not edited:
        before = None if running is None else mapping(running.manifest.get("spec")).get("template")
        template = until_edited(template, _template(snapshot, name, text, {}), before)
    selector = {PICKER_LABEL if _carry_label(snapshot, template, running) else "app": name}
    rbac = "rbac.authorization.k8s.io"
    role = {"apiGroup": rbac, "kind": "Role", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {
        names.PICKER: {**head, "spec": _deployment(name, template)},
        names.PICKER_SERVICE: _manifest("v1", "Service", service, spec=_service(selector)),
        names.PICKER_CONFIG: _manifest("v1", "ConfigMap", metadata, data={CONFIG_FILE: text}),
        names.PICKER_ACCOUNT: _manifest("v1", "ServiceAccount", metadata),
        names.PICKER_ROLE: _manifest(f"{rbac}/v1", "Role", metadata, rules=_RULES),
        names.PICKER_BINDING: _manifest(
            f"{rbac}/v1", "RoleBinding", metadata, roleRef=role, subjects=[subject]
        ),
    }


def _manifest(api_version: str, kind: str, metadata: dict[str, str], **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": dict(metadata), **fields}


def _carry_label(snapshot: ReplicaSnapshot, template: dict[str, Any], running: ObservedObject | None) -> bool:
    """Tell whether all pods of the picker have the label that is ours.

    A new picker has no others. Of one that runs its controller says it: a Service that selects what no pod
    has yet would leave the pool without a picker.
    """
    if PICKER_LABEL not in template["metadata"]["labels"]:
        return False
    if running is None:
        return True
    if not _is_labelled(running.manifest):
        return False
    service = [
        observed.manifest
        for key, observed in snapshot.observed.items()
        if base_of(key) == names.PICKER_SERVICE
    ]
    selectors = [mapping(mapping(manifest.get("spec")).get("selector")) for manifest in service]
    return any(PICKER_LABEL in selector for selector in selectors) or (
        running.is_applied(was_applied=False)
        and is_about_spec(running, "", was_updated=False)
        and _is_labelled(running.remote or {})
        and 0 < count(running, "replicas") == count(running, "updatedReplicas")
        and count(running, "availableReplicas") > 0
    )


def _is_labelled(deployment: Mapping[str, Any]) -> bool:
    """Tell whether the pods of a Deployment as it is stated have our label."""
    metadata = mapping(mapping(mapping(deployment.get("spec")).get("template")).get("metadata"))
    return PICKER_LABEL in mapping(metadata.get("labels"))


def _service(selector: dict[str, str]) -> dict[str, Any]:
    port = {
        "name": "grpc-ext-proc",
        "port": PICKER_PORT,
        "targetPort": PICKER_PORT,
        "appProtocol": "http2",
    }
    return {"selector": selector, "ports": [port]}


def _deployment(name: str, template: dict[str, Any]) -> dict[str, Any]:
    return {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}


def _template(snapshot: ReplicaSnapshot, name: str, text: str, ours: dict[str, str]) -> dict[str, Any]:
    """A checksum of the configuration is part of the pods: they restart when it changes."""
    stamps = snapshot.cluster.scheduling
    checksum = sha256(text.encode()).hexdigest()
    return {
        "metadata": {
            "labels": {**stamps.labels, "app": name, **ours},
            "annotations": {**stamps.annotations, CHECKSUM_ANNOTATION: checksum},
        },
        "spec": {
            "serviceAccountName": name,
            "containers": [_container(snapshot)],
            "volumes": [{"name": "config", "configMap": {"name": name}}],
            **pod_scheduling(snapshot),
        },
    }


def _container(snapshot: ReplicaSnapshot) -> dict[str, Any]:
    return {
        "name": "epp",
        "image": IMAGE,
        "args": [
            f"--pool-name={names.pool_name(snapshot.replica.name)}",
            f"--pool-namespace={snapshot.remote_namespace}",
            "--pool-group=inference.networking.k8s.io",
            f"--config-file=/config/{CONFIG_FILE}",
            f"--grpc-port={PICKER_PORT}",
        ],
        "ports": [
            {"name": "grpc", "containerPort": PICKER_PORT},
            {"name": "grpc-health", "containerPort": HEALTH_PORT},
        ],
        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
    }


# Routing: the InferencePool of the serving pods and the HTTPRoute that leads to it.

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
