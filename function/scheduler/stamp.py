"""The spec of a replica: what is stamped on it when it is placed, and what an edit makes of it in place.

An update keeps what was stamped (pools and device requests) and takes the rest from the deployment. What of
it restarts pods is the template: everything but where the replica is, what it claims there, and how many
copies it has. Whether a replica is outdated is decided by comparing templates, so it is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from function.api import Engine, Member, ModelDeployment
from function.api.deployment import ReplicaShape
from function.api.model import mapping
from function.api.names import Identity, object_name
from function.boundary import Shape
from function.scheduler.scheduling_input import Fleet

# Hand out indices: the lowest free one on the cluster whose object name is free too.


class Indices:
    """Hands out identities and object names; none is used while an object or observed key has it."""

    def __init__(self, deployment: ModelDeployment, fleet: Fleet) -> None:
        """Note every identity and name in use."""
        self._deployment = deployment
        self._taken = fleet.taken
        self._fleet = fleet
        self._given: set[str] = set()
        self._lowest: dict[str, int] = {}
        self._own_names = {own_replica.replica.name for own_replica in fleet.own_replicas}

    def take(self, cluster: str) -> tuple[Identity, str]:
        """Take the lowest free index on a cluster, and its object name; neither is ever given back."""
        for index in count(self._lowest.get(cluster, 0)):
            identity = Identity(cluster, index)
            if identity in self._taken:
                continue
            name = object_name(self._deployment.name, identity)
            if name not in self._given and not self._clashes(cluster, name):
                self._given.add(name)
                self._lowest[cluster] = index + 1
                return identity, name
        raise AssertionError  # pragma: no cover - there are more indices than replicas

    def _clashes(self, cluster: str, name: str) -> bool:
        """Tell if a replica of our namespace, one of our own, or one on the same cluster has the name."""
        namespace = self._deployment.namespace
        return name in self._own_names or any(
            replica.namespace == namespace or replica.cluster == cluster
            for replica in self._fleet.other_replicas.named(name)
        )


STAMPED: Shape = {
    "spec": {
        "engines": {
            "name": None,
            "members": {
                "role": None,
                "nodePoolName": None,
                "deviceRequests": None,
                "deviceConstraints": None,
            },
        }
    }
}
"""What an updated replica keeps of what was stamped on it; the templates come from the deployment."""
RUNNING: Shape = {"spec": None}
"""A replica whose update has to wait keeps everything."""
_MANAGED = "crossplane"
"""The field of a spec that Crossplane manages."""


def member_spec(
    member: Member, pool: str, requests: list[dict[str, Any]], constraints: list[dict[str, Any]]
) -> dict[str, Any]:
    """One member: only the fields that are set, and never an empty list."""
    emitted: dict[str, Any] = {"role": member.role, "nodePoolName": pool}
    if requests:
        emitted["deviceRequests"] = requests
    if constraints:
        emitted["deviceConstraints"] = constraints
    if member.worker is not None and member.worker.nodes is not None:
        emitted["worker"] = {"nodes": member.worker.nodes}
    if member.template is not None:
        emitted["template"] = member.template
    return emitted


def engine_spec(engine: Engine, members: list[dict[str, Any]]) -> dict[str, Any]:
    """One engine with its members."""
    emitted: dict[str, Any] = {"name": engine.name, "copies": engine.copies, "members": members}
    if engine.phase is not None:
        emitted["phase"] = engine.phase
    if engine.adapters is not None:
        emitted["adapters"] = engine.adapters.as_written()
    return emitted


def replica_spec(deployment: ModelDeployment, cluster: str, engines: list[dict[str, Any]]) -> dict[str, Any]:
    """The spec of a replica with its engines."""
    spec: dict[str, Any] = {"clusterName": cluster, "engines": engines}
    if deployment.cache:
        spec["modelCacheRef"] = {"name": deployment.cache}
    if deployment.template.serving is not None:
        spec["serving"] = deployment.template.serving
    return spec


def _updated_engine(engine: Engine, observed: Mapping[str, Any]) -> dict[str, Any]:
    """An engine as wanted now, on the pools and with the requests it was stamped with."""
    by_role = {str(member.role): member for member in engine.members}
    members = [
        member_spec(
            by_role[stamped.get("role") or "Standalone"],
            stamped["nodePoolName"],
            stamped.get("deviceRequests") or [],
            stamped.get("deviceConstraints") or [],
        )
        for stamped in observed["members"]
    ]
    return engine_spec(engine, members)


def updated_spec(
    deployment: ModelDeployment, cluster: str, shape: ReplicaShape, observed: Mapping[str, Any]
) -> dict[str, Any]:
    """The spec of a replica as wanted now, from the observed one (see `STAMPED`)."""
    by_name = {engine.name: engine for engine in shape.engines}
    engines = [_updated_engine(by_name[engine["name"]], engine) for engine in observed["engines"]]
    return replica_spec(deployment, cluster, engines)


def paused_spec(shape: ReplicaShape, observed: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a replica whose update waits: as observed, with as many copies as are wanted now.

    How many copies there are is no part of the template: scaling an engine does not wait for a rollout. More
    copies do where an engine is to have fewer pods: the charge counts copies and pods as they will be, so
    none of the nodes that it gives back is taken before.
    """
    by_name, engines = {engine.name: engine for engine in shape.engines}, []
    workers = (
        (by_name[engine["name"]], mapping(member.get("worker")).get("nodes") or 1)
        for engine in observed["engines"]
        for member in engine["members"]
        if member.get("role") == "Worker"
    )
    shrinks = any(max(member.pods for member in wanted.members) < pods for wanted, pods in workers)
    for engine in observed["engines"]:
        copies = by_name[engine["name"]].copies
        engines.append({**engine, "copies": min(copies, engine.get("copies") or 1) if shrinks else copies})
    kept = {key: value for key, value in observed.items() if key != _MANAGED}
    return {**kept, "engines": engines}


def template_of(spec: Mapping[str, Any]) -> Any:
    """The fields of a replica's spec that decide what its pods run, so that another value restarts them.

    Without what an API server may add or leave out: a default that it fills in makes no replica outdated.
    """
    engines = [_engine_template(engine) for engine in spec.get("engines") or ()]
    serving = {key: value for key, value in mapping(spec.get("serving")).items() if value != "Unified"}
    return _without_empty({"engines": engines, "serving": serving, "cache": spec.get("modelCacheRef")})


def _engine_template(engine: Mapping[str, Any]) -> dict[str, Any]:
    """Return what restarts the pods of an engine: neither its pools and claims, nor the number of copies."""
    members = [
        {
            "role": member.get("role") or "Standalone",
            "pods": mapping(member.get("worker")).get("nodes") or 1,
            "template": member.get("template"),
        }
        for member in engine.get("members") or ()
    ]
    kept = {key: engine.get(key) for key in ("name", "phase", "adapters")}
    return {**kept, "members": members}


def _without_empty(value: Any) -> Any:
    """A value without nulls and empty containers: leaving a field out says the same."""
    if isinstance(value, dict):
        cleaned = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item not in (None, {}, [])}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value
