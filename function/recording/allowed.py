"""Redact by allow-list: of every kind, the fields that a decision reads, and nothing else.

An object is cut down to the fields of its kind below; a field that is not listed is left out, whatever its
name says. What a decision passes on without reading it (pod templates, `serving`, labels of replicas) is
replaced by a stand-in. So a decision on redacted objects is the redacted decision:

- a template's stand-in is as long as the template, because the size of an answer is bounded;
- where a map or a list is expected and something else was found, the type of it is kept;
- redacting twice changes nothing, and equal values stay equal.

One decision reads templates and `serving`: whether the stack of a cluster can express them. A stand-in is no
obstacle, so in a recording of a fleet with KServe a cluster may be open that was `StackCannotExpress`.

`tests/wire/test_redact.py` holds the list against the models: a field that a parser reads must be here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from function.api.names import KEY_ANNOTATION, NOT_COMPOSED, PAUSED_ANNOTATION, RECONCILE_ANNOTATION
from function.api.replica import (
    ALTERNATIVE_LABEL,
    CLUSTER_LABEL,
    DEPLOYMENT_LABEL,
    INDEX_LABEL,
    WAS_READY_ANNOTATION,
)

if TYPE_CHECKING:
    from function.boundary import Plain

Cut: TypeAlias = "Callable[[Plain], Plain]"
Allowed: TypeAlias = "Cut | Mapping[str, Allowed]"
"""A rule for a value, or the fields of a map that are kept. For a list it applies to each item; "*" stands
for every field that is not named."""

STRIPPED = "(stripped)"
OUR_LABELS = frozenset({DEPLOYMENT_LABEL, CLUSTER_LABEL, INDEX_LABEL, ALTERNATIVE_LABEL})
OUR_CONDITIONS = frozenset({"ModelCacheResolved", "ReplicasScheduled", "ReplicasReady", "CapacityRespected"})
"""Conditions of a deployment that are compared with those of the answer, message included."""


def redacted(value: Plain, allowed: Allowed) -> Plain:
    """Return a value cut down to what is allowed."""
    if not isinstance(allowed, Mapping):
        return allowed(value)
    if isinstance(value, list):
        return [redacted(item, allowed) for item in value]
    if not isinstance(value, dict):
        return stand_in(value)
    rest = allowed.get("*")
    rules = ((key, allowed.get(key, rest)) for key in value)
    return {key: redacted(value[key], rule) for key, rule in rules if rule is not None}


def stand_in(value: Plain) -> Plain:
    """Return a value of the same type, and empty where the value is."""
    if value is None or isinstance(value, bool) or not value:
        return value
    if isinstance(value, dict):
        return {STRIPPED: True}
    if isinstance(value, list):
        return [STRIPPED]
    return STRIPPED if isinstance(value, str) else 1


def plain_value(value: Plain) -> Plain:
    """Keep a scalar or a list of scalars; what nests deeper is replaced by its stand-in."""
    if isinstance(value, list):
        return [stand_in(item) if isinstance(item, dict | list) else item for item in value]
    return stand_in(value) if isinstance(value, dict) else value


def subtree(value: Plain) -> Plain:
    """Keep a value with everything below it: of labels and attributes, a selector may read every one."""
    return value


def template(value: Plain) -> Plain:
    """Replace what is passed on unread by a map whose JSON is as long (but never below 18 bytes)."""
    if not isinstance(value, dict) or not value:
        return stand_in(value)
    shell = {STRIPPED: ""}
    return {STRIPPED: "x" * max(0, len(json.dumps(value)) - len(json.dumps(shell)))}


def labels(value: Plain) -> Plain:
    """Keep the names of labels; of the values, only those of our own."""
    if not isinstance(value, dict):
        return stand_in(value)
    return {
        key: plain_value(held) if key in OUR_LABELS or not isinstance(held, str) else stand_in(held)
        for key, held in value.items()
    }


def own_conditions(value: Plain) -> Plain:
    """Keep conditions; reason and message of our own only."""
    if not isinstance(value, list):
        return stand_in(value)
    return [_condition(item) for item in value]


def _condition(item: Plain) -> Plain:
    """Of Synced keep whether a Composition is found: a deployment without one holds no node back."""
    kind = item.get("type") if isinstance(item, dict) else None
    kept = redacted(item, _OWN_CONDITION if kind in OUR_CONDITIONS else _CONDITION)
    if kind == "Synced" and isinstance(item, dict) and isinstance(kept, dict):
        said = next((words for words in NOT_COMPOSED if str(item.get("message")).startswith(words)), "")
        return kept | ({"message": said} if said else {})
    return kept


def strict(allowed: Mapping[str, Allowed]) -> Mapping[str, Allowed]:
    """Keep the names of unknown fields too, for an object that may not have any: an error names them."""
    below = {
        key: strict(rule) if isinstance(rule, Mapping) and "*" not in rule else rule
        for key, rule in allowed.items()
    }
    return {**below, "*": stand_in}


def fields(*names: str) -> dict[str, Allowed]:
    """Allow fields that hold a scalar or a list of scalars."""
    return dict.fromkeys(names, plain_value)


_TYPE = fields("apiVersion", "kind")
_CONDITION = fields("type", "status", "lastTransitionTime")
_OWN_CONDITION = fields("type", "status", "reason", "message")
_METADATA: Mapping[str, Allowed] = {
    **fields("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"),
    "labels": labels,
}
_COMPOSED: Mapping[str, Allowed] = {
    **_METADATA,
    "annotations": fields(WAS_READY_ANNOTATION, KEY_ANNOTATION),
    "ownerReferences": fields("uid", "controller"),
}
_NAMED = fields("name")
_FABRIC: Mapping[str, Allowed] = {**fields("type"), "infiniband": fields("fabric")}
_DEVICE: Mapping[str, Allowed] = {
    **fields("name", "claim", "driver", "deviceClassName", "count", "allowMultipleAllocations"),
    "attributes": subtree,
    "capacity": subtree,
}

INFERENCE_CLASS: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": _METADATA,
    "spec": {"from": fields("machineType", "revision"), "devices": _DEVICE},
}

_HOLDING: Mapping[str, Allowed] = {
    **fields("deployment", "replica", "digests", "replicas", "nodes", "leaving"),
    "engines": {
        **fields("copies"),
        "members": {
            **fields("pods"),
            "requests": fields("deviceClassName", "count", "selectors"),
            "constraints": fields("matchAttribute", "requests"),
        },
    },
}

INFERENCE_CLUSTER: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": {**_METADATA, "labels": subtree},
    "spec": {
        **fields("celVersion", "stack"),
        "taints": fields("key", "value", "effect"),
        "attributes": subtree,
        "nodePools": {
            **fields("name", "className", "accounting", "acrossNodes", "nodeCount", "maxNodeCount"),
            "attributes": subtree,
            "fabric": _FABRIC,
        },
    },
    "status": {
        **fields("heartbeat"),
        "conditions": _CONDITION,
        "gateway": fields("address"),
        "gpuPools": {
            **fields("name", "nodes", "className", "accounting", "overcommitted"),
            "devices": _DEVICE,
            "attributes": subtree,
            "fabric": _FABRIC,
            "charged": {
                **fields("nodes"),
                "by": _HOLDING,
                "others": _HOLDING,
                "givesWay": fields("replica", "deployment", "uid", "created"),
            },
        },
        "attributes": subtree,
    },
}

MODEL_CACHE: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": _METADATA,
    "spec": {"clusterSelector": {"matchLabels": subtree}},
    "status": {"clusters": fields("name", "phase")},
}

_CEL = fields("cel")
_SUB_REQUEST: Mapping[str, Allowed] = {
    **fields("name", "count"),
    "selectors": _CEL,
    "claimSelectors": _CEL,
}
_CONSTRAINTS = fields("requests", "matchAttribute")
_ENGINE: Mapping[str, Allowed] = {
    **fields("name", "copies", "phase", "poolPolicy"),
    "members": {
        **fields("role"),
        "worker": fields("nodes"),
        "nodeSelector": {
            "devices": {**_SUB_REQUEST, "firstAvailable": _SUB_REQUEST},
            "selectors": _CEL,
            "constraints": _CONSTRAINTS,
        },
        "template": template,
    },
}
_PLACEMENT: Mapping[str, Allowed] = {
    **fields("strategy", "tieBreak", "maxReplicasPerCluster", "alternativePolicy", "cache"),
    "topologySpread": fields("topologyKey", "maxSkew", "minDomains", "whenUnsatisfiable"),
    "preferences": {**fields("weight", "cel"), "matchLabels": subtree},
    "disruption": fields("maxUnavailable", "maxSurge"),
    "rollout": fields("maxUnavailable"),
    "evacuate": fields("afterSeconds"),
}

_REPORT: Mapping[str, Allowed] = {
    **fields("summary", "inputDigest", "decisionDigest", "clustersOmitted"),
    **dict.fromkeys(("replicas", "dropped", "clusters", "hints", "lint"), subtree),
}
"""Our own report, as an earlier answer wrote it: the answer may be that it stays."""

MODEL_DEPLOYMENT: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": {**_METADATA, "annotations": fields(PAUSED_ANNOTATION, RECONCILE_ANNOTATION)},
    "spec": {
        **fields("replicas", "minReplicas"),
        "crossplane": {"compositionRef": _NAMED},
        "placement": _PLACEMENT,
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "clusterSelector": {
                    **_CEL,
                    "matchLabels": subtree,
                    "matchExpressions": fields("key", "operator", "values"),
                },
                "modelCacheRef": _NAMED,
                "serving": template,
                "tolerations": fields("key", "operator", "value", "effect"),
                "engines": _ENGINE,
                "alternatives": {**_NAMED, "engines": _ENGINE},
            },
        },
    },
    "status": {"conditions": own_conditions, "placement": _REPORT},
}

MODEL_REPLICA: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": _COMPOSED,
    "spec": {
        **fields("clusterName"),
        "modelCacheRef": _NAMED,
        "serving": template,
        "engines": {
            **fields("name", "copies", "phase"),
            "members": {
                **fields("role", "nodePoolName"),
                "worker": fields("nodes"),
                "deviceRequests": {**fields("name", "deviceClassName", "count"), "selectors": _CEL},
                "deviceConstraints": _CONSTRAINTS,
                "template": template,
            },
        },
    },
    "status": {"conditions": _CONDITION},
}

MODEL_ENDPOINT: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": _COMPOSED,
    "spec": fields("url", "rewritePath"),
    "status": {"conditions": _CONDITION},
}

SCHEDULER_CONFIG: Mapping[str, Allowed] = {
    **strict(
        {
            **_TYPE,
            **fields("explain", "overcommit", "coordination", "capacity", "searchBudget", "celVersion"),
            **fields("scaleSelector"),
            "defaults": {"placement": _PLACEMENT},
            "ttl": fields("waiting", "pending", "settled"),
        }
    ),
    "metadata": stand_in,
}

KINDS: Mapping[str, Mapping[str, Allowed]] = {
    "InferenceClass": INFERENCE_CLASS,
    "InferenceCluster": INFERENCE_CLUSTER,
    "ModelCache": MODEL_CACHE,
    "ModelDeployment": MODEL_DEPLOYMENT,
    "ModelEndpoint": MODEL_ENDPOINT,
    "ModelReplica": MODEL_REPLICA,
    "SchedulerConfig": SCHEDULER_CONFIG,
}
"""What is kept of each kind. Of any other kind, nothing."""


def redacted_object(content: dict[str, Any], allowed: Mapping[str, Allowed]) -> dict[str, Any]:
    """Return an object cut down to what is allowed. One that is there never becomes none at all."""
    cut: dict[str, Any] = redacted(content, allowed)
    return cut if cut or not content else {STRIPPED: True}
