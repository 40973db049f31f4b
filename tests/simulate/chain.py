"""A control plane with a provider: composites of every kind we handle, their Objects, and the clusters behind
them.

A reconcile does what Crossplane does: it fetches what is required until that is stable, deletes what is
observed and not desired, applies the rest and writes conditions, Ready among them. The provider then carries
Objects to their clusters and back, and each cluster's controllers act once.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function import dispatch
from function.boundary import PlainDocument, Request
from tests.simulate import gateway
from tests.simulate.workers import Cluster, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.boundary import Requirement, Response

Plain = dict[str, Any]
Name = tuple[str, str, str]
"""Kind, namespace and name of an object of the control plane."""

MEMBERSHIP = "kubernetes.crossplane.io/owned-by-collection"
COMPOSITES = ("InferenceCluster", "ModelDeployment", "ModelEndpoint", "ModelReplica", "ModelService")
CALLS = 5


def name_of(plain: Plain) -> Name:
    """Return what an object is stored under."""
    metadata = plain["metadata"]
    return plain["kind"], metadata.get("namespace", ""), metadata["name"]


def condition(plain: Plain, kind: str) -> str | None:
    """Return the status of a condition."""
    listed = plain.get("status", {}).get("conditions", [])
    return next((manifest["status"] for manifest in listed if manifest["type"] == kind), None)


@dataclass
class Plane:
    """The control plane and everything behind it."""

    clusters: dict[str, Cluster] = field(default_factory=dict)
    """Workload clusters by the name of their ProviderConfig."""
    store: dict[Name, Plain] = field(default_factory=dict)
    owners: dict[Name, tuple[Name, str]] = field(default_factory=dict)
    """The composite of a composed resource, and its key there."""
    inputs: Mapping[str, Plain] = field(default_factory=dict)
    """The input of the step, by kind of composite."""
    skipped: frozenset[str] = frozenset()
    """Kinds of composites that nobody reconciles."""
    withheld: frozenset[str] = frozenset()
    """Requirements that do not arrive."""

    def add(self, plain: Plain) -> Name:
        """Create or replace an object as a user would."""
        name = name_of(plain)
        made = copy.deepcopy(plain)
        made["metadata"].setdefault("uid", "-".join(name))
        self.store[name] = made
        return name

    def round(self) -> bool:
        """Reconcile every composite once, let provider and clusters act; say whether anything changed."""
        before = copy.deepcopy(self.state())
        for name in sorted(self.store):
            if name[0] in COMPOSITES and name in self.store and name[0] not in self.skipped:
                self.reconcile(name)
        self.provide()
        for cluster in self.clusters.values():
            cluster.tick()
        self.provide()
        gateway.report(self.store)
        return before != self.state()

    def state(self) -> tuple[Any, ...]:
        """Return everything that can change."""
        behind = [(cluster.objects, cluster.standing()) for cluster in self.clusters.values()]
        return self.store, behind

    def settle(self, rounds: int = 60) -> int:
        """Run rounds until nothing changes; return how many it took. Raises AssertionError."""
        for number in range(rounds):
            if not self.round():
                return number
        raise AssertionError(f"still changing after {rounds} rounds")

    def reconcile(self, name: Name) -> Response:
        """Do for one composite what Crossplane does."""
        composite = self.store[name]
        observed = {key: self.store[value] for value, (owner, key) in self.owners.items() if owner == name}
        required: dict[str, tuple[PlainDocument, ...]] = {}
        for _ in range(CALLS):
            request = Request(
                composite=PlainDocument(copy.deepcopy(composite)),
                observed={key: PlainDocument(copy.deepcopy(observed[key])) for key in sorted(observed)},
                required=required,
                input=self.inputs.get(name[0]),
            )
            response = dispatch.run(request)
            fetched = {
                requirement.name: tuple(map(PlainDocument, self.fetch(requirement)))
                for requirement in response.requirements
                if requirement.name not in self.withheld
            }
            if fetched.keys() == required.keys():
                break
            required = fetched
        else:
            raise AssertionError(f"{name}: requirements do not settle")
        if not any(result.severity == "FATAL" for result in response.results):
            self.enact(name, response)
        return response

    def fetch(self, requirement: Requirement) -> Iterator[Plain]:
        """Yield what a requirement selects."""
        for (kind, namespace, called), plain in sorted(self.store.items()):
            if kind != requirement.kind or plain["apiVersion"] != requirement.api_version:
                continue
            if requirement.match_name is not None and called != requirement.match_name:
                continue
            if requirement.namespace is not None and namespace != requirement.namespace:
                continue
            labels = plain["metadata"].get("labels", {})
            if all(labels.get(key) == value for key, value in requirement.match_labels):
                yield copy.deepcopy(plain)

    def enact(self, name: Name, response: Response) -> None:
        """Delete, apply, and write what the composite says of itself."""
        composite = self.store[name]
        mine = {key: value for value, (owner, key) in self.owners.items() if owner == name}
        for key, held in mine.items():
            if key not in response.desired:
                self.remove(held)
        ready = not response.unready
        for key, desired in response.desired.items():
            ready = ready and desired.ready
            self.apply(name, key, desired.resource, mine.get(key))
        status = composite.setdefault("status", {})
        status |= copy.deepcopy(dict(response.status))
        conditions = {condition_row["type"]: condition_row for condition_row in status.get("conditions", [])}
        for finding in response.conditions:
            conditions[finding.type] = {
                "type": finding.type,
                "status": str(finding.status),
                "reason": finding.reason,
            }
            conditions[finding.type] |= {"message": finding.message}
        conditions["Ready"] = {"type": "Ready", "status": str(ready), "reason": "Simulated"}
        status["conditions"] = [conditions[kind] for kind in sorted(conditions)]

    def apply(self, owner: Name, key: str, resource: Plain, held: Name | None) -> None:
        """Apply one composed resource: its name stays, its status too."""
        made = copy.deepcopy(resource)
        metadata = made.setdefault("metadata", {})
        if held is not None:
            metadata["name"] = held[2]
        metadata.setdefault("name", re.sub(r"[^a-z0-9-]", "-", f"{owner[2]}-{key}"))
        if owner[1]:
            metadata.setdefault("namespace", owner[1])
        metadata["uid"] = "-".join(name_of(made))
        if held is not None:
            assert held[0] == made["kind"], "an object never changes its kind"
            if "status" in self.store[held]:
                made["status"] = self.store[held]["status"]
        self.store[name_of(made)] = made
        self.owners[name_of(made)] = (owner, key)

    def remove(self, name: Name) -> None:
        """Delete an object, what it composed, and what it holds on a cluster."""
        for item in [key for key, (owner, _) in self.owners.items() if owner == name]:
            self.remove(item)
        plain = self.store.pop(name)
        self.owners.pop(name, None)
        if plain["kind"] == "Object":
            self.withdraw(plain)
        for manifest in [key for key, held in self.store.items() if _collection(held) == name[2]]:
            self.store.pop(manifest)

    def withdraw(self, plain: Plain) -> None:
        """Delete the remote object of an Object, unless its policies say otherwise."""
        cluster = self.clusters.get(plain["spec"]["providerConfigRef"]["name"])
        policies = plain["spec"].get("managementPolicies", ["*"])
        if cluster is not None and ("*" in policies or "Delete" in policies):
            cluster.delete(_place(plain["spec"]["forProvider"]["manifest"]))

    def provide(self) -> None:
        """Let the provider carry every Object to its cluster and back."""
        for name in sorted(self.store):
            plain = self.store.get(name)
            if plain is None or name[0] not in ("Object", "ObservedObjectCollection"):
                continue
            cluster = self.clusters.get(plain["spec"]["providerConfigRef"]["name"])
            if cluster is None or not cluster.reachable:
                _condition(plain, "Synced", status=False, message="cannot reach the cluster")
            elif name[0] == "Object" and _collection(plain) is None:
                _carry(plain, cluster)
            elif name[0] == "ObservedObjectCollection":
                self.observe(plain, cluster)

    def observe(self, collection: Plain, cluster: Cluster) -> None:
        """Make an Object of every pod that a collection selects, and remove those that are gone."""
        selected = collection["spec"]["observeObjects"]
        labels = list(selected["selector"]["matchLabels"].values())
        pods = {pod.name: pod for pod in cluster.pods if pod.workload[3] in labels}
        name, namespace = collection["metadata"]["name"], collection["metadata"]["namespace"]
        for item in [key for key, held in self.store.items() if _collection(held) == name]:
            self.store.pop(item)
        for pod in pods.values():
            said = {"type": "PodScheduled", "status": str(bool(pod.node)), "message": pod.why}
            manifest = {"apiVersion": "v1", "kind": "Pod"}
            manifest["metadata"] = {"name": pod.name, "namespace": selected["namespace"]}  # type: ignore[assignment]
            seen = {**manifest, "status": {"conditions": [said]}}
            self.add(
                {
                    "apiVersion": collection["apiVersion"],
                    "kind": "Object",
                    "metadata": {
                        "name": f"{name}-{pod.name}",
                        "namespace": namespace,
                        "labels": {MEMBERSHIP: name},
                    },
                    "spec": {
                        "forProvider": {"manifest": manifest},
                        "providerConfigRef": collection["spec"]["providerConfigRef"],
                        "managementPolicies": ["Observe"],
                    },
                    "status": {"atProvider": {"manifest": seen}},
                }
            )
        _condition(collection, "Ready", status=True)


def _collection(plain: Plain) -> str | None:
    """Return the collection that an Object is a member of."""
    member_of = plain["metadata"].get("labels", {}).get(MEMBERSHIP)
    return None if member_of is None else str(member_of)


def _place(manifest: Plain) -> tuple[str, str, str, str]:
    group = manifest["apiVersion"].rpartition("/")[0]
    metadata = manifest["metadata"]
    return group, manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def _carry(plain: Plain, cluster: Cluster) -> None:
    """Apply the manifest of an Object, and note what is there now."""
    spec, status = plain["spec"], plain.setdefault("status", {})
    manifest = spec["forProvider"]["manifest"]
    if spec.get("managementPolicies") == ["Observe"]:
        held = cluster.objects.get(_place(manifest))
        if held is not None:
            status["atProvider"] = {"manifest": copy.deepcopy(held)}
        _condition(plain, "Synced", status=held is not None)
        _condition(plain, "Ready", status=held is not None)
        return
    try:
        held = cluster.apply(_place(manifest), manifest)
    except Refused as error:
        _condition(plain, "Synced", status=False, message=str(error))
        return
    status["atProvider"] = {"manifest": copy.deepcopy(held)}
    _condition(plain, "Synced", status=True)
    query = spec.get("readiness", {}).get("celQuery", "")
    available = condition(held, "Available") == "True" or held["kind"] not in (
        "Deployment",
        "LeaderWorkerSet",
    )
    if "availableReplicas" in query:
        available = available and held.get("status", {}).get("availableReplicas", 0) > 0
    _condition(plain, "Ready", status=available or not query)


def _condition(plain: Plain, kind: str, *, status: bool, message: str = "") -> None:
    conditions = plain.setdefault("status", {}).setdefault("conditions", [])
    conditions[:] = [condition_row for condition_row in conditions if condition_row["type"] != kind]
    said = {"type": kind, "status": str(status), "reason": "Simulated"}
    conditions.append(said | ({"message": message} if message else {}))
    conditions.sort(key=lambda condition_row: str(condition_row["type"]))
