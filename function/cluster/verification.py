"""Report drift as a condition: what an observed cluster holds, against what it publishes.

Opt-in by `spec.drift.mode: Observe`. Two collections are composed, of every ResourceSlice and of the nodes of
the pools; their members are required by the name that Crossplane gave each collection.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from function.api.model import mapping, plain_of
from function.api.names import POOL_LABEL, SYSTEM_NAMESPACE
from function.api.text import one_line
from function.boundary import Condition, JsonObject, Request, Requirement, Resolution, Unreadable, text_at
from function.cluster.drift import NodeDevices, PublishedDevice, drift, is_individual, read_nodes
from function.cluster.names import NODES, SLICES
from function.objects import API_VERSION, COLLECTION, KIND, MEMBERSHIP_LABEL, PROVIDER_CONFIG_KIND

# Write the InferenceClass of the nodes whose drivers publish the given ResourceSlices.
#
# Devices of one node that differ only in what tells two of a kind apart (a uuid, a PCI address, an index)
# are one entry with a count. Nodes are grouped by what they have; the class describes the largest group.

NAMES = {"gpu": "gpu", "tpu": "tpu", "dra": "nic"}
"""Names of entries by the first label of their driver; another driver's entry is called device."""


class NothingPublished(ValueError):
    """The slices hold no complete pool of any driver."""


@dataclass(frozen=True, slots=True)
class Described:
    """A class, and what it was made of."""

    spec: JsonObject
    nodes: int
    """Nodes that have exactly these devices."""
    others: int
    """Nodes that have others."""


def describe(slices: Iterable[JsonObject]) -> Described:
    """Return the spec of the class of the most frequent kind of node.

    Raises:
        NothingPublished: when no node's slices are complete.
    """
    nodes = [node for node in read_nodes(slices).values() if node.by_driver]
    if not nodes:
        raise NothingPublished("no node has a complete set of ResourceSlices")
    kinds = Counter(json.dumps(_entries(node), sort_keys=True) for node in nodes)
    content, count = min(kinds.items(), key=lambda kind: (-kind[1], kind[0]))
    devices = _named(json.loads(content))
    return Described({"devices": devices}, count, len(nodes) - count)


def _entries(node: NodeDevices) -> list[JsonObject]:
    counts: Counter[str] = Counter()
    for driver in sorted(node.by_driver):
        counts.update(json.dumps(_kind(device), sort_keys=True) for device in node.by_driver[driver])
    return [{**json.loads(kind), "count": count} for kind, count in sorted(counts.items())]


def _kind(device: PublishedDevice) -> JsonObject:
    """Return what a device has in common with others of its kind."""
    attributes = {
        name.removeprefix(f"{device.driver}/"): value
        for name, value in sorted(device.attributes.items())
        if not is_individual(name)
    }
    capacity = {
        name.removeprefix(f"{device.driver}/"): {"value": value["value"]}
        for name, value in sorted(device.capacity.items())
        if isinstance(value, dict) and "value" in value
    }
    kind: JsonObject = {"driver": device.driver, "deviceClassName": device.driver}
    published = {"attributes": attributes, "capacity": capacity}
    return kind | {key: values for key, values in published.items() if values}


def _named(entries: list[JsonObject]) -> list[JsonObject]:
    """Name the entries by their driver, the second of a name with a number."""
    used: Counter[str] = Counter()
    named = []
    for entry in entries:
        base = NAMES.get(str(entry["driver"]).partition(".")[0], "device")
        used[base] += 1
        name = base if used[base] == 1 else f"{base}-{used[base]}"
        order = ("driver", "deviceClassName", "count", "attributes", "capacity")
        named.append({"name": name, **{key: entry[key] for key in order if key in entry}})
    return named


VERIFIED = "DevicesVerified"
REQUIRED = {SLICES: "slices", NODES: "nodes"}
"""The requirement of the members of each collection, by its key."""


def observes_drift(request: Request) -> bool:
    """Tell whether the cluster asks for it. Read by itself: the rest of the cluster may be unreadable."""
    return text_at(request.composite, "spec", "drift", "mode") == "Observe"


def observes_capacity(request: Request) -> bool:
    """Tell whether the input asks for what can be used. Read by itself: the rest of it may be invalid."""
    return (request.input or {}).get("capacity") == "Usable"


def observes_nodes(request: Request) -> bool:
    """Tell whether the nodes and slices of the cluster are looked at, whatever for."""
    return observes_drift(request) or observes_capacity(request)


def members(request: Request) -> tuple[Requirement, ...]:
    """Require what the collections hold, once their names are observed."""
    if not observes_nodes(request):
        return ()
    collections = {
        key: text_at(request.observed[key], "metadata", "name") for key in REQUIRED if key in request.observed
    }
    return tuple(
        Requirement(
            *(REQUIRED[key], API_VERSION, KIND),
            namespace=SYSTEM_NAMESPACE,
            match_labels=((MEMBERSHIP_LABEL, name),),
            watched=False,  # A node's status is written all the time.
        )
        for key, name in collections.items()
        if name
    )


def collections(provider_config: str, *, own_labels: bool) -> dict[str, dict[str, Any]]:
    """Return the collections by key. `own_labels`: some pool's nodes carry another label than ours."""
    labelled = {"matchExpressions": [{"key": POOL_LABEL, "operator": "Exists"}]}
    return {
        SLICES: _collection("resource.k8s.io/v1", "ResourceSlice", {"matchLabels": {}}, provider_config),
        NODES: _collection("v1", "Node", {"matchLabels": {}} if own_labels else labelled, provider_config),
    }


def _collection(
    api_version: str, kind: str, selector: Mapping[str, Any], provider_config: str
) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": COLLECTION,
        "metadata": {"namespace": SYSTEM_NAMESPACE},
        "spec": {
            "observeObjects": {"apiVersion": api_version, "kind": kind, "selector": dict(selector)},
            "providerConfigRef": {"kind": PROVIDER_CONFIG_KIND, "name": provider_config},
        },
    }


def verified(request: Request, published: Mapping[str, Any]) -> Condition:
    """DevicesVerified: what the drivers publish has what the pools claim. One phrase a pool, worst first."""
    if any(request.resolution(name) is not Resolution.DELIVERED for name in REQUIRED.values()):
        text = "No ResourceSlice and no node of the cluster was observed yet"
        return Condition(VERIFIED, status=False, reason="NotObserved", message=text)
    slices, nodes = (_manifests(request, name) for name in REQUIRED.values())
    cluster = {**plain_of(request.composite), "status": published}
    pools = [pool for pool in drift(cluster, slices, nodes) if pool.drifts]
    if not pools:
        return Condition(VERIFIED, status=True, reason="Verified")
    pools.sort(key=lambda pool: (pool.findings[0].order, pool.name))
    text = one_line(". ".join(pool.phrase() for pool in pools))
    return Condition(VERIFIED, status=False, reason="Drift", message=text)


def _manifests(request: Request, name: str) -> list[dict[str, Any]]:
    """Return what was seen on the cluster, of members that can be read."""
    findings = []
    for document in request.required[name]:
        try:
            status = mapping(document.project({"status": {"atProvider": {"manifest": None}}}).get("status"))
        except Unreadable:
            continue
        findings.append(mapping(mapping(status.get("atProvider")).get("manifest")))
    return findings
