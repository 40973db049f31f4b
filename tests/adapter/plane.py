"""A played namespace: adapters, replicas of a base, what Crossplane applies, and what a provider reports.

`reconcile` is one reconcile of an adapter, `serve` one of a replica, both by the real handlers. What is
applied is read back by the next call, as Crossplane would hand it over.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function import dispatch
from function.api.adapter import ADAPTER_LABEL, REPLICA_LABEL
from function.api.text import text_of
from function.boundary import PlainDocument, Request
from tests.replica import build, provider
from tests.support import drive

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.boundary import Requirement, Response

Plain = dict[str, Any]

API, NAMESPACE = "modelplane.ai/v1alpha1", build.NAMESPACE
START = 1_767_225_600
"""The first second of 2026."""
CALLS = 4
"""Calls of one reconcile, at most."""


def adapter(name: str = "support", *, base: str = "chat", replicas: int = 1, **spec: Any) -> Plain:
    """Return a ModelAdapter."""
    return {
        "apiVersion": API,
        "kind": "ModelAdapter",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}"},
        "spec": {
            "base": {"deploymentName": base},
            "source": f"acme/{name}-lora",
            "replicas": replicas,
            **spec,
        },
    }


def replica(name: str, cluster: str = "cluster-a", slots: int | None = 2, **room: Any) -> Plain:
    """Return a Ready ModelReplica of the base `chat`, as it is before its handler ran."""
    engine = build.engine()
    if slots is not None:
        engine["adapters"] = {"slots": slots, **room}
    made = build.replica(engine, name=name, conditions=[{"type": "Ready", "status": "True"}])
    made["metadata"]["labels"] = {"modelplane.ai/deployment": "chat"}
    made["spec"]["clusterName"] = cluster
    return made


@dataclass
class Plane:
    """The objects of one namespace, by kind and name."""

    replicas: dict[str, Plain] = field(default_factory=dict)
    adapters: dict[str, Plain] = field(default_factory=dict)
    composed: dict[str, dict[str, Plain]] = field(default_factory=dict)
    """What is composed of an adapter or a replica, by its name and then by key."""
    now: int = 0
    calls: int = 0
    """Calls of the function so far."""

    @classmethod
    def of(cls, replicas: Iterable[Plain], adapters: Iterable[Plain]) -> Plane:
        """Return a namespace with these objects."""
        return cls(
            {item["metadata"]["name"]: item for item in replicas},
            {item["metadata"]["name"]: item for item in adapters},
        )

    def listed(self, kind: str) -> list[Plain]:
        """Return all objects of a kind."""
        if kind == "ModelReplica":
            return list(self.replicas.values())
        made = [item for owner in self.composed.values() for item in owner.values() if item["kind"] == kind]
        if kind != "ModelEndpoint":
            return made
        ready = [item for item in self.replicas.values() if self.is_ready(item)]
        return [*made, *(self.way_to(item["metadata"]["name"]) for item in ready)]

    def is_ready(self, item: Plain) -> bool:
        """Tell whether a replica is Ready."""
        conditions = item.get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def way_to(self, name: str) -> Plain:
        """Return the endpoint of a replica, as its deployment makes it."""
        path = f"/{NAMESPACE}/{name}/"
        metadata = {"name": name, "namespace": NAMESPACE}
        spec = {"url": f"http://203.0.113.7{path}v1", "rewritePath": path}
        return {"apiVersion": API, "kind": "ModelEndpoint", "metadata": metadata, "spec": spec}

    def deliver(self, requirement: Requirement) -> list[Plain]:
        """Return what a requirement selects."""
        if requirement.kind == "InferenceCluster":
            made = build.cluster()
            made["metadata"]["name"] = requirement.match_name
            return [made]
        return [
            copy.deepcopy(item)
            for item in self.listed(requirement.kind)
            if requirement.match_name in (None, item["metadata"]["name"])
            and dict(requirement.match_labels).items() <= item["metadata"].get("labels", {}).items()
        ]

    def ask(self, composite: Plain, name: str) -> Response:
        """Call the function until it states nothing that was not delivered."""
        stated: tuple[str, ...] = ()
        required: dict[str, list[Plain]] = {}
        observed = self.composed.get(name, {})
        for _ in range(CALLS):
            self.calls += 1
            response = dispatch.run(
                Request(
                    composite=PlainDocument(composite),
                    observed={key: PlainDocument(item) for key, item in observed.items()},
                    required={key: tuple(map(PlainDocument, items)) for key, items in required.items()},
                    stated=stated,
                )
            )
            if all(item.name in required for item in response.requirements):
                return response
            assert {item.name for item in response.requirements} >= set(stated), "asked for less than before"
            required = {item.name: self.deliver(item) for item in response.requirements}
            stated = tuple(required)
        raise AssertionError(f"{name}: still asking after {CALLS} calls")

    def reconcile(self, name: str) -> drive.Answer:
        """Reconcile an adapter, and apply the answer."""
        composite = self.adapters[name]
        response = self.ask(composite, name)
        before, self.now = self.composed.get(name, {}), self.now + 1
        applied = {}
        for key, desired in response.desired.items():
            item = copy.deepcopy(desired.resource)
            item["metadata"] = {
                "creationTimestamp": text_of(START + self.now),
                **before.get(key, {}).get("metadata", {}),
                **item["metadata"],
                "ownerReferences": [{"uid": composite["metadata"]["uid"], "controller": True}],
            }
            applied[key] = item
        self.composed[name] = applied
        conditions = [
            {"type": one.type, "status": str(one.status), "reason": one.reason, "message": one.message}
            for one in response.conditions
        ]
        composite["status"] = {**response.status, "conditions": conditions}
        return drive.of_core(response)

    def serve(self, name: str, stage: str = "available") -> drive.Answer:
        """Reconcile a replica by its own handler; the provider applies what it composes."""
        composite = self.replicas[name]
        response = self.ask(composite, name)
        answer = drive.of_core(response)
        self.composed[name] = provider.applied(answer, stage)
        composite["status"] = {**composite.get("status", {}), **response.status}
        return answer

    def settle(self, rounds: int = 6) -> None:
        """Reconcile everything a few times, in the order of names."""
        for _ in range(rounds):
            for name in sorted(self.adapters):
                self.reconcile(name)
            for name in sorted(self.replicas):
                self.serve(name)

    def where(self, name: str) -> list[str]:
        """Return the replicas that an adapter has a placement on."""
        return sorted(
            item["metadata"]["labels"][REPLICA_LABEL]
            for item in self.listed("ModelAdapterPlacement")
            if item["metadata"]["labels"][ADAPTER_LABEL] == name
        )

    def drop(self, name: str) -> None:
        """Let a replica be gone, with what was composed of it."""
        del self.replicas[name]
        self.composed.pop(name, None)
