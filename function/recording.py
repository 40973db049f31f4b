"""Cut a call down to what its decision reads: the request, and the response that is the answer to that.

Three parts: the allow-lists and how they are applied (`redacted`), the file of a recording (`Recording`), and
the cut of a request and its response (`redacted_request`, `redacted_response`).

Both are put together anew from the allow-lists: whatever else a request carries (context, credentials, extra
resources, connection details, objects of other steps, fields of a later version) never gets there. The
response to the redacted request is the redacted response, byte for byte. Only calls about ModelDeployments
are recorded, and only where every object that is kept can be decoded: no API server has another.

`snapshot` uses the same lists for whole objects, so a snapshot holds what a recording may.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

from function import wire
from function.api import cluster, replica as replica_api
from function.api.charge import Charged
from function.api.cluster import Fabric
from function.api.deployment import PlacementPolicy, SubRequest
from function.api.devices import Device
from function.api.inputs import SchedulerConfig
from function.api.model import Model, shape_of
from function.api.names import KEY_ANNOTATION, NOT_COMPOSED, PAUSED_ANNOTATION, RECONCILE_ANNOTATION, read_key
from function.api.taints import DeviceToleration
from function.api.text import QUOTED, STRIPPED
from function.boundary import Desired, Plain, Response, Shape, Unreadable, frozen
from function.deployment.requirements import kind_of
from function.operations.handler import WATCHED
from function.wire import messages, write
from function.wire.fast import read
from function.wire.request import REQUIREMENTS_STATED, SEEDED

# Redact by allow-list: of every kind, the fields that a decision reads, and nothing else.
#
# An object is cut down to the fields of its kind below; a field that is not listed is left out, whatever its
# name says. What a decision passes on without reading it (pod templates, `serving`, labels of replicas) is
# replaced by a stand-in. So a decision on redacted objects is the redacted decision:
#
# - a template's stand-in is as long as the template, because the size of an answer is bounded;
# - where a map or a list is expected and something else was found, the type of it is kept;
# - redacting twice changes nothing, and equal values stay equal.
#
# One decision reads templates and `serving`: whether a cluster's stack can express them. A stand-in is no
# obstacle, so in a recording of a fleet with KServe a cluster may be open that was `StackCannotExpress`.
#
# `tests/wire/test_redact.py` holds the list against the models: a field that a parser reads must be here.


Cut: TypeAlias = "Callable[[Plain], Plain]"
Allowed: TypeAlias = "Cut | Mapping[str, Allowed]"
"""A rule for a value, or the fields of a map that are kept. For a list it applies to each item; "*" stands
for every field that is not named."""

OUR_LABELS = frozenset(
    {
        replica_api.DEPLOYMENT_LABEL,
        replica_api.CLUSTER_LABEL,
        replica_api.INDEX_LABEL,
        replica_api.ALTERNATIVE_LABEL,
        replica_api.PREEMPTING_LABEL,
    }
)
OUR_CONDITIONS = frozenset(
    {"ModelCacheResolved", "ReplicasScheduled", "ReplicasReady", "CapacityRespected", "PriorityResolved"}
)
"""Conditions of a deployment that are compared with those of the answer, message included."""


def redacted(value: Plain, allowed: Allowed) -> Plain:
    """Return a value cut down to what is allowed.

    The walk follows the allow-list, not the value: a field that the list does not name is left out whatever
    it holds. A value of another type than the list expects keeps its type and loses its content, so that a
    parser refuses it for the same reason.
    """
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
    """Return a value of the same type, and empty where the value is.

    Type and emptiness are all that a decision may learn of what it does not read. A bool or null has no
    content to hide.
    """
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
    """Replace what is passed on unread by a map whose JSON is as long (but never below 18 bytes).

    The length matters because an answer is bounded in bytes: with templates cut short, an answer that was too
    large would be one that is not.
    """
    if not isinstance(value, dict) or not value:
        return stand_in(value)
    shell = {STRIPPED: ""}
    return {STRIPPED: "x" * max(0, len(json.dumps(value)) - len(json.dumps(shell)))}


def labels(value: Plain) -> Plain:
    """Keep the names of labels; of the values, only those of our own.

    Names decide which replica is whose. Values of other labels can be anything that a team writes there.
    """
    if not isinstance(value, dict):
        return stand_in(value)
    return {
        key: plain_value(held) if key in OUR_LABELS or not isinstance(held, str) else stand_in(held)
        for key, held in value.items()
    }


def own_conditions(value: Plain) -> Plain:
    """Keep conditions; reason and message of our own only.

    A decision compares them with those it is about to write: an unchanged condition causes no event.
    """
    if not isinstance(value, list):
        return stand_in(value)
    return [_condition(item) for item in value]


def _condition(item: Plain) -> Plain:
    """Of Synced keep whether a Composition is found: a deployment without one holds no node back."""
    kind = item.get("type") if isinstance(item, dict) else None
    kept = redacted(item, _OWN_CONDITION if kind in OUR_CONDITIONS else _CONDITION)
    if isinstance(kept, dict) and isinstance(kept.get("message"), str):
        kept["message"] = kept["message"].partition(QUOTED)[0]
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


def read_by(model: type[Model], **maps: Allowed) -> dict[str, Allowed]:
    """Allow what a model reads, at any depth; of a field in `maps`, what is said of it there.

    A map that is not named is replaced by its stand-in, since anything may stand in one.
    """

    def below(shape: Shape) -> dict[str, Allowed]:
        return {
            name: maps.get(name, plain_value if part is None else below(part)) for name, part in shape.items()
        }

    return below(shape_of(model))


_TYPE = fields("apiVersion", "kind")
_CONDITION = fields("type", "status", "lastTransitionTime")
_OWN_CONDITION = fields("type", "status", "reason", "message")
_METADATA: Mapping[str, Allowed] = {
    **fields("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"),
    "labels": labels,
}
# Of what a deployment composes, also whose it is, when it was written and what its deployment noted on it.
_COMPOSED: Mapping[str, Allowed] = {
    **_METADATA,
    **fields("resourceVersion"),
    "annotations": fields(
        *(replica_api.WAS_READY_ANNOTATION, replica_api.LEAVING_ANNOTATION, KEY_ANNOTATION),
        *(
            replica_api.PRIORITY_CLASS_ANNOTATION,
            replica_api.PRIORITY_ANNOTATION,
            replica_api.SPARE_ANNOTATION,
            replica_api.GUARANTEE_ANNOTATION,
        ),
    ),
    "ownerReferences": fields("uid", "controller"),
}
_NAMED = fields("name")
_FABRIC = read_by(Fabric)
_DEVICE = read_by(Device, attributes=subtree, capacity=subtree)

INFERENCE_CLASS: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": _METADATA,
    "spec": {
        "from": fields("machineType", "revision"),
        "devices": _DEVICE,
        "attributes": subtree,
    },
}

# Of a cluster, what gates, selectors and capacity read. How it is reached, Secrets included, has no line.
INFERENCE_CLUSTER: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": {**_METADATA, "labels": subtree},
    "spec": {
        **fields("celVersion", "stack"),
        "kserve": fields("apiVersion"),
        "cluster": {"existing": {"gateway": fields("address")}},
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
        "givesWay": fields("replica", "uid", "to", "priorityClassName", "quota"),
        "conditions": _CONDITION,
        "gateway": fields("address"),
        "gpuPools": {
            **fields("name", "nodes", "className", "accounting", "overcommitted"),
            "usable": fields("nodes", "toCome", "exceeded", "awaiting"),
            "devices": _DEVICE,
            "attributes": subtree,
            "fabric": _FABRIC,
            "charged": read_by(Charged),
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
_SUB_REQUEST = read_by(SubRequest)
_CONSTRAINTS = fields("requests", "matchAttribute")
_ROOM = fields("slots", "maxRank", "capabilities", "overcommit")
_ENGINE: Mapping[str, Allowed] = {
    **fields("name", "copies", "phase", "poolPolicy"),
    "adapters": _ROOM,
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
_PLACEMENT = read_by(PlacementPolicy, matchLabels=subtree)

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
            "adapters": _ROOM,
            "members": {
                **fields("role", "nodePoolName"),
                "worker": fields("nodes"),
                "deviceRequests": {
                    **fields("name", "deviceClassName", "count"),
                    "selectors": _CEL,
                    "tolerations": read_by(DeviceToleration),
                },
                "deviceConstraints": _CONSTRAINTS,
                "template": template,
            },
        },
    },
    "status": {"conditions": _CONDITION, "adapters": _NAMED},
}

# Of an endpoint, where it leads is kept: a recorded answer composes it again, or keeps it as it is.
MODEL_ENDPOINT: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": _COMPOSED,
    "spec": fields("url", "rewritePath"),
    "status": {"conditions": _CONDITION},
}

# The source of an adapter may be a private path, and no decision reads more of it than that it is there.
MODEL_ADAPTER: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": _METADATA,
    "spec": {
        "base": {**fields("deploymentName"), "matchLabels": subtree},
        **fields("replicas", "minReplicas", "rank", "requirements"),
        "source": stand_in,
    },
}

MODEL_ADAPTER_PLACEMENT: Mapping[str, Allowed] = {
    **_TYPE,
    "metadata": {**_METADATA, "labels": subtree, "ownerReferences": fields("uid", "controller")},
    "spec": {**fields("adapter", "replica"), "source": stand_in},
}

# The input may have no unknown field, so the names of those are kept: the error of a replay names them too.
SCHEDULER_CONFIG: Mapping[str, Allowed] = {
    **strict({**_TYPE, **read_by(SchedulerConfig, matchLabels=subtree)}),
    "metadata": stand_in,
}

CLUSTER_CONFIG: Mapping[str, Allowed] = {
    **_TYPE,
    **fields("publish", "charges", "accounting", "preemption"),
    "metadata": stand_in,
}
"""Settings that complete clusters in files that have no status yet."""

KINDS: Mapping[str, Mapping[str, Allowed]] = {
    "ClusterConfig": CLUSTER_CONFIG,
    "InferenceClass": INFERENCE_CLASS,
    "InferenceCluster": INFERENCE_CLUSTER,
    "ModelAdapter": MODEL_ADAPTER,
    "ModelAdapterPlacement": MODEL_ADAPTER_PLACEMENT,
    "ModelCache": MODEL_CACHE,
    "ModelDeployment": MODEL_DEPLOYMENT,
    "ModelEndpoint": MODEL_ENDPOINT,
    "ModelReplica": MODEL_REPLICA,
    "SchedulerConfig": SCHEDULER_CONFIG,
}
"""The fields that are kept of each kind. Of any other kind, nothing is, and of a requirement that is not ours
not even its name."""


def redacted_object(content: dict[str, Any], allowed: Mapping[str, Allowed]) -> dict[str, Any]:
    """Return an object cut down to what is allowed. One that is there never becomes none at all."""
    cut: dict[str, Any] = redacted(content, allowed)
    return cut if cut or not content else {STRIPPED: True}


# The file of a recorded call, and a response as plain values to be compared.

FORMAT = 1
"""Raised where an older reader would take a file for something else; fields that are added need no other."""


class NoRecording(ValueError):
    """The bytes are not a recording of ours."""


@frozen
class Recording:
    """One call."""

    version: str
    """Version of the function that answered."""
    ttl: wire.Ttl
    request: bytes
    response: bytes


def dumped(recording: Recording) -> bytes:
    """A recording as the bytes of its file."""
    document = {
        "format": FORMAT,
        "version": recording.version,
        "ttl": [recording.ttl.pending, recording.ttl.settled, recording.ttl.watched],
        "request": base64.b64encode(recording.request).decode(),
        "response": base64.b64encode(recording.response).decode(),
    }
    return json.dumps(document).encode()


def loaded(content: bytes) -> Recording:
    """Read a file back. Raises NoRecording.

    A recording can come from anyone. It holds bytes of two messages, which are read like those of a request:
    what is no message of ours is refused there.
    """
    try:
        document = json.loads(content)
        if document["format"] != FORMAT:
            raise NoRecording(f"format {document['format']} is not known here, only {FORMAT}")
        ttl = wire.Ttl(*map(float, document["ttl"]))  # Earlier ones have no third number.
        request, response = (
            base64.b64decode(document[key], validate=True) for key in ("request", "response")
        )
        return Recording(str(document["version"]), ttl, request, response)
    except (KeyError, TypeError, ValueError, binascii.Error, RecursionError) as error:
        if isinstance(error, NoRecording):
            raise
        raise NoRecording("not a recording of this function") from None


def readable(response: bytes) -> dict[str, Any]:
    """Return a response as plain values, to be compared and shown.

    Requirements are compared by name: what they select follows from the name.
    """
    message = messages.Response.FromString(response)
    return {
        "ttl": message.meta.ttl.seconds + message.meta.ttl.nanos / 1e9,
        "ready": message.desired.composite.ready,
        "composite": _plain(message.desired.composite.resource),
        "desired": {
            key: {"resource": _plain(desired.resource), "ready": desired.ready}
            for key, desired in sorted(message.desired.resources.items())
        },
        "requirements": sorted(message.requirements.resources),
        "conditions": {
            condition.type: {
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
            }
            for condition in message.conditions
        },
        "results": [f"{result.severity} {result.reason}: {result.message}" for result in message.results],
    }


def _plain(content: bytes) -> Any:
    """Return an object as plain values, or a word where it cannot be read: two such objects compare equal."""
    try:
        return read.plain(content) if content else {}
    except Unreadable:
        return "(unreadable)"


RECORDED = "ModelDeployment"

COMPOSED: Mapping[str, Mapping[str, Allowed]] = {
    "ModelReplica": MODEL_REPLICA,
    "ModelEndpoint": MODEL_ENDPOINT,
}
BY_KEY = {"replica": MODEL_REPLICA, "endpoint": MODEL_ENDPOINT}


def _struct(content: bytes, allowed: Mapping[str, Allowed]) -> bytes:
    """Return an object cut down to what is allowed. Raises Unreadable where it cannot be decoded whole."""
    if not content:
        return content
    if allowed is INFERENCE_CLUSTER:
        read.project(content, cluster.SHAPE)  # Device lists are opened less deep than the rest.
    return write.struct(redacted_object(read.plain(content) or {"": None}, allowed))


def composed(key: str, kind: object) -> Mapping[str, Allowed] | None:
    """Return what is kept of a composed resource: by its key where that is ours, else by its kind.

    None for what belongs to other steps of the pipeline. The key decides first, because it decides for the
    handler too: an object of a strange kind under a key of ours is ours to keep or to let go.
    """
    ours = read_key(key)
    return BY_KEY[ours[0]] if ours else COMPOSED.get(str(kind))


def _kind(content: bytes) -> object:
    """Return the kind that an object says it is, None where nothing can be read."""
    with suppress(Unreadable):
        return read.project(content, {"kind": None}).get("kind")
    return None


def redacted_request(content: bytes) -> bytes | None:
    """Return a RunFunctionRequest that holds what a decision reads, and nothing else.

    None for a request that asks for no placement: one about another kind, or a step of an Operation.

    A message of our own is built and filled from the allow-lists, field by field. Nothing is deleted from a
    copy, so nothing can be forgotten in one: context, credentials and connection details have no line here.

    Raises:
        Unreadable: where an object cannot be decoded whole: nothing in it is known to be harmless.
    """
    message, kept = messages.Request.FromString(content), messages.Request()
    observed = message.observed
    if _kind(observed.composite.resource) not in (RECORDED, None) or WATCHED in message.required_resources:
        return None
    kept.observed.composite.resource = _struct(observed.composite.resource, MODEL_DEPLOYMENT)
    for key in sorted(observed.resources):
        resource = observed.resources[key].resource
        allowed = composed(key, _kind(resource))
        if allowed is not None:
            kept.observed.resources[key].resource = _struct(resource, allowed)
    for key in message.desired.resources:
        if read_key(key) or key in kept.observed.resources:  # Whose key it is decides; the object does not.
            kept.desired.resources[key].SetInParent()
    if message.HasField("input"):
        kept.input = _struct(message.input, SCHEDULER_CONFIG)
    request = wire.decode(content).request
    if request.stated:
        kept.context = write.struct({REQUIREMENTS_STATED: list(request.stated), SEEDED: request.seeded})
    for name in filter(kind_of, message.required_resources):
        kept.required_resources[name].SetInParent()
        allowed = KINDS[kind_of(name) or ""]
        for item in message.required_resources[name].items:
            kept.required_resources[name].items.add().resource = _struct(item.resource, allowed)
    return bytes(kept.SerializeToString(deterministic=True))


def redacted_response(request: bytes, response: Response, ttl: wire.Ttl) -> bytes:
    """Return the RunFunctionResponse that a response is to a redacted request, itself redacted.

    It is encoded against the redacted request, so tag and context are those that a replay sees. Replaying the
    request gives these bytes, or the version that replays it decides otherwise.
    """
    desired = {}
    for key, resource in response.desired.items():
        allowed = composed(key, resource.resource.get("kind")) or {}
        desired[key] = Desired(redacted_object(resource.resource, allowed), resource.ready)
    cut = replace(
        response,
        desired=desired,
        conditions=tuple(replace(item, message=_unquoted(item.message)) for item in response.conditions),
        results=tuple(replace(item, message=_unquoted(item.message)) for item in response.results),
    )
    return wire.encode(wire.decode(request), cut, ttl)


_IN_SERVICE = re.compile(
    r"(/\S+ is in service) \(.*?(\)(?=, \S+/\S+ is in service|, \d+ more | and \d+ more$|$)|…$)"
)
"""A replica that a rollout waits for, with its own words in parentheses."""


def _unquoted(message: str) -> str:
    """Cut the words of replicas from a message: the redacted request does not have them either."""
    return _IN_SERVICE.sub(r"\1", message.partition(QUOTED)[0])
