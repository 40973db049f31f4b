"""Routing on the workload cluster: the route, the pool of serving pods, and the endpoint picker between them.

    HTTPRoute /<namespace>/<replica>/ ▶ InferencePool (pods by label) ▶ endpoint picker ▶ pod

The picker of llm-d chooses the serving pod of a request by cached prefixes and queues. Most of this file is
data: its objects, its permissions, and its two configurations, for engines that do everything and for prefill
and decode apart. A gateway with the inference extension asks the picker. While that is away, requests should
go to any pod of the pool (FailOpen); Envoy does so only before it has sent a body, else it answers with 500.

One picker serves one replica, so its labels, its Service and its pool must match no other's. Pods of many
teams share a namespace: hence a label that no user can set (OwnSelectors of docs/compatibility.md).

Limits: one copy of the picker, which forgets its caches when it restarts. On KServe all of this is the
controller's own (`kserve.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from function import gateway_api
from function.api.expressible import PORT
from function.api.model import mapping
from function.api.names import CLUSTER_GATEWAY, SERVING_LABEL, SYSTEM_NAMESPACE
from function.api.workload import Workload
from function.fail_static import key_of, until_edited
from function.objects import ObservedObject
from function.replica import names
from function.replica.adapters import LOADING
from function.replica.pods import number, pod_scheduling, pull_secrets
from function.replica.snapshot import ReplicaSnapshot
from function.replica.state import count, is_about_spec

IMAGE = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0"
PICKER_PORT, HEALTH_PORT = 9002, 9003
CONFIG_FILE = "epp-config.yaml"
PICKER_LABEL = "modelplane.ai/picker"
"""The label that the picker's Service selects its pods by."""
CHECKSUM_ANNOTATION = "modelplane.ai/epp-config-checksum"
"""On the picker's pods, which restart by it when their configuration changes."""
BLOCK_SIZE = 16
"""Tokens of a KV block where the engine is started without a size."""

POOL_GROUP = "inference.networking.k8s.io"
GATEWAY = {"namespace": SYSTEM_NAMESPACE, "name": CLUSTER_GATEWAY}

# What the picker may read, and that in its own namespace only: a Role, and no ClusterRole. It chooses nothing
# before it has read every kind that the cluster serves (PickerReads of docs/compatibility.md).
_READ, _EARLIER_GROUP = ["get", "watch", "list"], "inference.networking.x-k8s.io"
_RULES = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
    {"apiGroups": [POOL_GROUP], "resources": ["inferencepools"], "verbs": _READ},
    {"apiGroups": [_EARLIER_GROUP], "resources": ["inferenceobjectives"], "verbs": _READ},
    {"apiGroups": [_EARLIER_GROUP], "resources": ["inferencemodelrewrites"], "verbs": _READ},
    {"apiGroups": ["llm-d.ai"], "resources": ["inferenceobjectives"], "verbs": _READ},
    {"apiGroups": ["llm-d.ai"], "resources": ["inferencemodelrewrites"], "verbs": _READ},
]
_EARLIER_RULES = _RULES[:3]
_PROBES = {
    "startupProbe": {"tcpSocket": {"port": PICKER_PORT}, "periodSeconds": 2, "failureThreshold": 60},
    "readinessProbe": {"grpc": {"port": HEALTH_PORT, "service": "readiness"}, "periodSeconds": 5},
}
"""Say that the picker takes questions, and that it has read its pool. Before either, requests get errors."""

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
_BEST = """\
  - pluginRef: max-score-picker
  - pluginRef: prefix-cache-scorer
    weight: 2
  - pluginRef: queue-scorer
    weight: 1
"""
_UNIFIED = f"""\
- type: queue-scorer
- type: max-score-picker
schedulingProfiles:
- name: default
  plugins:
{_BEST}"""
PHASES_PLUGIN = "disagg-profile-handler"
"""The plugin that only the configuration for prefill and decode apart has."""
_DISAGGREGATED = f"""\
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
{_BEST}- name: decode
  plugins:
  - pluginRef: decode-filter
{_BEST}"""


def configuration(replica: Workload) -> str:
    """Return the picker's configuration, in its own words.

    Prefixes are compared in blocks of the size that the engine has: of the decode engine, else of the first.
    """
    engine = replica.spec.engines[0]
    if replica.is_disaggregated:
        engine = next((engine for engine in replica.spec.engines if engine.phase == "Decode"), engine)
    flag = engine.serving.template.container.flag("--block-size", "--page-size")
    shared = _PREFIX_CACHE.format(block_size=number(flag, BLOCK_SIZE, 1_000_000))
    return shared + (_DISAGGREGATED if replica.is_disaggregated else _UNIFIED)


def routing(snapshot: ReplicaSnapshot, *, edited: bool) -> dict[str, dict[str, Any]]:
    """Return the manifests of a replica's routing by their keys. `edited`: whether its pods change now.

    The picker's Service selects by a label that no user can set, as soon as its pods have that: `app`, by
    which the Deployment selects for ever, is everybody's. Pods that run without it or without a probe, and a
    Role of fewer kinds beside them, stay until the replica is edited (Law C 6).
    """
    replica, namespace = snapshot.replica.name, snapshot.remote_namespace
    name, pool = names.joined_name(replica, names.PICKER), names.joined_name(replica, "pool")
    service = names.picker_service_name(replica)
    text = configuration(snapshot.replica)

    def manifest(api_version: str, kind: str, called: str = name, **fields: Any) -> dict[str, Any]:
        """Return the head of one manifest; most of the picker's objects have its name."""
        metadata = {"name": called, "namespace": namespace}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}

    head = manifest("apps/v1", "Deployment")
    running = snapshot.observed.get(key_of(names.PICKER, head, snapshot.observed))
    reader = manifest("rbac.authorization.k8s.io/v1", "Role", rules=_RULES)
    template = _template(snapshot, text, {PICKER_LABEL: name}, **_PROBES)
    if not edited:
        before = None if running is None else mapping(running.manifest.get("spec")).get("template")
        for ours in ({PICKER_LABEL: name}, {}):
            template = until_edited(template, _template(snapshot, text, ours), before)
        if "readinessProbe" not in template["spec"]["containers"][0]:
            role_before = snapshot.observed.get(key_of(names.PICKER_ROLE, reader, snapshot.observed))
            earlier = {**reader, "rules": _EARLIER_RULES}
            reader = until_edited(reader, earlier, None if role_before is None else role_before.manifest)
    selector = {PICKER_LABEL if _carry_label(snapshot, template, running) else "app": name}
    port = {"name": "grpc-ext-proc", "port": PICKER_PORT, "targetPort": PICKER_PORT, "appProtocol": "http2"}
    deployment = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    rbac = "rbac.authorization.k8s.io"
    role = {"apiGroup": rbac, "kind": "Role", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    pool_spec = {
        "selector": {"matchLabels": {SERVING_LABEL: names.serving_label(replica)}},
        "targetPorts": [{"number": PORT}],
        # Without its picker the pool spreads requests blindly, which beats refusing them.
        "endpointPickerRef": {"name": service, "port": {"number": PICKER_PORT}, "failureMode": "FailOpen"},
    }
    rule = {
        "matches": [gateway_api.prefix_match(f"/{snapshot.replica.namespace}/{replica}/")],
        "filters": [gateway_api.url_rewrite("/")],
        # No timeout: the fifteen seconds that gateways have by default would cut streams.
        "timeouts": {"request": "0s"},
        "backendRefs": [{"group": POOL_GROUP, "kind": "InferencePool", "name": pool}],
    }
    rules: list[dict[str, Any]] = [rule]
    if any(engine.adapters is not None for engine in snapshot.replica.spec.engines):
        # A rule without a backend is answered by the gateway: nobody from outside loads weights.
        paths = [f"/{snapshot.replica.namespace}/{replica}{path}" for path in LOADING]
        rules.append({"matches": [gateway_api.prefix_match(path) for path in paths]})
    return {
        names.POOL: manifest(f"{POOL_GROUP}/v1", "InferencePool", pool, spec=pool_spec),
        names.ROUTE: gateway_api.http_route({"name": replica, "namespace": namespace}, GATEWAY, *rules),
        names.PICKER: {**head, "spec": deployment},
        names.PICKER_SERVICE: manifest(
            "v1", "Service", service, spec={"selector": selector, "ports": [port]}
        ),
        names.PICKER_CONFIG: manifest("v1", "ConfigMap", data={CONFIG_FILE: text}),
        names.PICKER_ACCOUNT: manifest("v1", "ServiceAccount"),
        names.PICKER_ROLE: reader,
        names.PICKER_BINDING: manifest(f"{rbac}/v1", "RoleBinding", roleRef=role, subjects=[subject]),
    }


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
    for service in names.among(snapshot.observed, names.PICKER_SERVICE):
        if PICKER_LABEL in mapping(service.manifest, "spec", "selector"):
            return True  # It did select by the label, which no pod of a picker loses again.
    return (
        running.is_applied(was_applied=False)
        and is_about_spec(running, "", was_updated=False)
        and _is_labelled(running.remote or {})
        and count(running, "replicas") == count(running, "updatedReplicas")
        and count(running, "availableReplicas") > 0
    )


def _is_labelled(deployment: Mapping[str, Any]) -> bool:
    """Tell whether the pods of a Deployment as it is stated have our label."""
    metadata = mapping(deployment, "spec", "template", "metadata")
    return PICKER_LABEL in mapping(metadata.get("labels"))


def _template(snapshot: ReplicaSnapshot, text: str, ours: dict[str, str], **more: Any) -> dict[str, Any]:
    """Return the picker's pods. `text`: its configuration, `ours`: labels besides, `more`: of its container.

    A checksum of the configuration is part of the pods: they restart when it changes.
    """
    name, stamps = names.joined_name(snapshot.replica.name, names.PICKER), snapshot.cluster.spec.scheduling
    checksum = sha256(text.encode()).hexdigest()
    container = {
        "name": "epp",
        "image": snapshot.config.images.picker or IMAGE,
        "args": [
            f"--pool-name={names.joined_name(snapshot.replica.name, 'pool')}",
            f"--pool-namespace={snapshot.remote_namespace}",
            f"--pool-group={POOL_GROUP}",
            f"--config-file=/config/{CONFIG_FILE}",
            f"--grpc-port={PICKER_PORT}",
        ],
        "ports": [
            {"name": "grpc", "containerPort": PICKER_PORT},
            {"name": "grpc-health", "containerPort": HEALTH_PORT},
        ],
        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
        **more,
    }
    return {
        "metadata": {
            "labels": {**stamps.labels, "app": name, **ours},
            "annotations": {**stamps.annotations, CHECKSUM_ANNOTATION: checksum},
        },
        "spec": {
            "serviceAccountName": name,
            "containers": [container],
            "volumes": [{"name": "config", "configMap": {"name": name}}],
            **pull_secrets(snapshot, [*dict.fromkeys(snapshot.config.images.pull_secrets)]),
            **pod_scheduling(snapshot),
        },
    }
