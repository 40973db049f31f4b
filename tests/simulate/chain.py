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

import structlog
from crossplane.function.proto.v1 import run_function_pb2 as pb

from function.runner import Function
from tests.simulate import gateway
from tests.simulate.workers import Cluster, Place, Refused
from tests.support import drive
from tests.support.any_request import AnyRequest
from tests.support.crossplane import Step, run_step, selects

if TYPE_CHECKING:
    from collections.abc import Mapping

Plain = dict[str, Any]
Name = tuple[str, str, str]
"""Kind, namespace and name of an object of the control plane."""

MEMBERSHIP = "kubernetes.crossplane.io/owned-by-collection"
COMPOSITES = ("InferenceCluster", "ModelDeployment", "ModelEndpoint", "ModelReplica", "ModelService")


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
    version: str = "2.3"
    """Of Crossplane."""
    seeds: dict[Name, dict[str, pb.ResourceSelector]] = field(default_factory=dict)
    """What each composite required last."""
    step: Step = field(default_factory=lambda: Step(Function(structlog.get_logger()).answer))

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

    def reconcile(self, name: Name) -> drive.Answer:
        """Do for one composite what Crossplane does."""
        mine = {key: self.store[value] for value, (owner, key) in self.owners.items() if owner == name}
        asked = AnyRequest(self.store[name], mine, input=self.inputs.get(name[0]))
        ran = run_step(
            *(self.step, asked.first_message(), self.fetch),
            version=self.version,
            seeds=self.seeds.get(name),
            withheld=self.withheld,
        )
        answer = drive.answer(ran.response)
        if not answer.fatal:
            self.seeds[name] = ran.stated
            self.enact(name, answer)
        return answer

    def fetch(self, selector: pb.ResourceSelector) -> pb.Resources:
        """Return what a requirement selects."""
        resources = pb.Resources()
        for _, plain in sorted(self.store.items()):
            if selects(selector, plain):
                resources.items.add().resource.update(plain)
        return resources

    def enact(self, name: Name, answer: drive.Answer) -> None:
        """Delete, apply, and write what the composite says of itself."""
        composite = self.store[name]
        mine = {key: value for value, (owner, key) in self.owners.items() if owner == name}
        for key, held in mine.items():
            if key not in answer.desired:
                self.remove(held)
        for key, desired in answer.desired.items():
            self.apply(name, key, desired, mine.get(key))
        conditions = composite.get("status", {}).get("conditions", [])
        status = composite["status"] = {**answer.status, "conditions": conditions}
        rows = {row["type"]: row for row in status.get("conditions", [])}
        for kind, (holds, reason, message) in answer.conditions.items():
            rows[kind] = {"type": kind, "status": str(holds), "reason": reason, "message": message}
        ready = not answer.unready and answer.ready >= answer.desired.keys()
        rows["Ready"] = {"type": "Ready", "status": str(ready), "reason": "Simulated"}
        status["conditions"] = [rows[kind] for kind in sorted(rows)]

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
            cluster.delete(place_of(plain["spec"]["forProvider"]["manifest"]))

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
        name = collection["metadata"]["name"]
        for item in [key for key, held in self.store.items() if _collection(held) == name]:
            self.store.pop(item)
        for member in pods_of(collection, cluster):
            self.add(member)
        _condition(collection, "Ready", status=True)


def pods_of(collection: Plain, cluster: Cluster) -> list[Plain]:
    """Return an Object for every pod that a collection selects."""
    selected = collection["spec"]["observeObjects"]
    labels = list(selected["selector"]["matchLabels"].values())
    name, members = collection["metadata"]["name"], []
    for pod in (pod for pod in cluster.pods if pod.workload[3] in labels):
        row = {"type": "PodScheduled", "status": str(bool(pod.node)), "message": pod.why}
        manifest = {"apiVersion": "v1", "kind": "Pod"}
        manifest["metadata"] = {"name": pod.name, "namespace": selected["namespace"]}
        metadata = {"name": f"{name}-{pod.name}", "namespace": collection["metadata"]["namespace"]}
        spec = {
            "forProvider": {"manifest": manifest},
            "providerConfigRef": collection["spec"]["providerConfigRef"],
            "managementPolicies": ["Observe"],
        }
        seen = {**manifest, "status": {"conditions": [row]}}
        member = {"apiVersion": collection["apiVersion"], "kind": "Object", "spec": spec}
        status = {"atProvider": {"manifest": seen}}
        members.append({**member, "metadata": {**metadata, "labels": {MEMBERSHIP: name}}, "status": status})
    return members


def _collection(plain: Plain) -> str | None:
    """Return the collection that an Object is a member of."""
    member_of = plain["metadata"].get("labels", {}).get(MEMBERSHIP)
    return None if member_of is None else str(member_of)


def place_of(manifest: Plain) -> Place:
    """Return where a cluster has the object of a manifest."""
    group = manifest["apiVersion"].rpartition("/")[0]
    metadata = manifest["metadata"]
    return group, manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def _carry(plain: Plain, cluster: Cluster) -> None:
    """Apply the manifest of an Object, and note what is there now."""
    spec, status = plain["spec"], plain.setdefault("status", {})
    manifest = spec["forProvider"]["manifest"]
    if spec.get("managementPolicies") == ["Observe"]:
        held = cluster.objects.get(place_of(manifest))
        if held is not None:
            status["atProvider"] = {"manifest": copy.deepcopy(held)}
        _condition(plain, "Synced", status=held is not None)
        _condition(plain, "Ready", status=held is not None)
        return
    try:
        held = cluster.apply(place_of(manifest), manifest)
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
