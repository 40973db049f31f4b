"""A recording made by hand: objects are written, leave and end, as an API server would say it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.history.judge import KEY, Verdict, judge
from tests.history.lives import FOREGROUND, ordered
from tests.history.record import KINDS

Plain = dict[str, Any]

CLUSTER, DEPLOYMENT = "use1", "chat"
DEVICES = [{"name": "gpu", "driver": "gpu.nvidia.com", "count": 8}]
REQUESTS = [{"name": "gpu", "count": 8}]
SELECTOR = {"devices": [{"name": "gpu", "count": 8}]}


def engine(image: str = "v1", pool: str | None = None, copies: int = 1) -> Plain:
    """Return an engine of one member: as stamped on a pool, or as a deployment has it."""
    template = {"spec": {"containers": [{"name": "engine", "image": image}]}}
    member: Plain = {"role": "Standalone", "template": template}
    member |= {"nodePoolName": pool, "deviceRequests": REQUESTS} if pool else {"nodeSelector": SELECTOR}
    return {"name": "main", "copies": copies, "members": [member]}


def ready(status: str = "True", **more: Any) -> Plain:
    """Return a status with the condition Ready."""
    return {"conditions": [{"type": "Ready", "status": status, **more}]}


@dataclass
class Play:
    """A control plane, its clock, and what was recorded of it."""

    at: float = 10.0
    version: int = 100
    objects: dict[tuple[str, str], Plain] = field(default_factory=dict)
    rows: list[Plain] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with an empty server."""
        self.rows += [
            {"at": 0.0, "type": "LISTED", "kind": kind, "version": "1", "objects": []} for kind in KINDS
        ]

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.at += seconds

    def write(self, kind: str, name: str, *, owner: str = "", key: str = "", **parts: Any) -> None:
        """Create an object, or replace its spec or status; another spec is another generation."""
        before = self.objects.get((kind, name))
        plain = deepcopy(before) if before else self._born(kind, name, owner, key)
        if before and parts.get("spec", before.get("spec")) != before.get("spec"):
            plain["metadata"]["generation"] += 1
        plain |= deepcopy(parts)
        self._say("MODIFIED" if before else "ADDED", kind, name, plain)

    def _born(self, kind: str, name: str, owner: str, key: str) -> Plain:
        metadata: Plain = {"name": name, "uid": f"{kind}-{name}-{self.version}", "generation": 1}
        if owner:
            above = next(plain for (_, named), plain in self.objects.items() if named == owner)
            metadata["ownerReferences"] = [{"uid": above["metadata"]["uid"], "controller": True}]
        if key:
            metadata["annotations"] = {KEY: key}
        return {"kind": kind, "metadata": metadata}

    def _say(self, event: str, kind: str, name: str, plain: Plain) -> None:
        self.version += 1
        self.at += 0.1
        plain["metadata"]["resourceVersion"] = str(self.version)
        self.objects[kind, name] = plain
        self.rows.append({"at": self.at, "type": event, "kind": kind, "object": deepcopy(plain)})

    def leave(self, kind: str, name: str, *, by_crossplane: bool = True) -> None:
        """Delete an object, which stays until its end."""
        plain = deepcopy(self.objects[kind, name])
        plain["metadata"] |= {"deletionTimestamp": "now", "finalizers": [FOREGROUND] if by_crossplane else []}
        self._say("MODIFIED", kind, name, plain)

    def end(self, kind: str, name: str) -> None:
        """Have an object gone."""
        self._say("DELETED", kind, name, deepcopy(self.objects[kind, name]))
        del self.objects[kind, name]

    def remove(self, kind: str, name: str) -> None:
        """Delete an object as Crossplane does, up to its end."""
        self.leave(kind, name)
        self.end(kind, name)

    def relist(self, kind: str) -> None:
        """Have a watch miss what came before, and list the kind again."""
        standing = [deepcopy(plain) for (named, _), plain in self.objects.items() if named == kind]
        row = {
            "at": self.at,
            "type": "LISTED",
            "kind": kind,
            "version": str(self.version),
            "objects": standing,
        }
        self.rows.append(row)

    def cluster(
        self, name: str = CLUSTER, nodes: int = 2, taints: tuple[Plain, ...] = (), **pool: Any
    ) -> None:
        """Publish a cluster of one pool."""
        spec = {"nodePools": [{"name": "h100"}], "taints": list(taints)}
        published = {"name": "h100", "nodes": nodes, "devices": DEVICES, **pool}
        self.write("InferenceCluster", name, spec=spec, status={"gpuPools": [published]})

    def deployment(
        self, replicas: int = 2, image: str = "v1", placement: Plain | None = None, **more: Any
    ) -> None:
        """Write the deployment."""
        template = {"spec": {"engines": [engine(image)], **more}}
        spec = {"replicas": replicas, "template": template, "placement": placement or {}}
        self.write("ModelDeployment", DEPLOYMENT, spec=spec, status={})

    def replica(
        self, index: int, image: str = "v1", cluster: str = CLUSTER, pool: str = "h100", **more: Any
    ) -> None:
        """Write a replica of the deployment."""
        spec = {"clusterName": cluster, "engines": [engine(image, pool)]}
        key = more.pop("key", f"replica-{cluster}-{index}")
        self.write("ModelReplica", f"chat-{index}", owner=DEPLOYMENT, key=key, spec=spec, **more)

    def serve(self, index: int, status: str = "True") -> None:
        """Say of a replica whether it is Ready, of the generation that it has."""
        generation = self.objects["ModelReplica", f"chat-{index}"]["metadata"]["generation"]
        self.write("ModelReplica", f"chat-{index}", status=ready(status, observedGeneration=generation))

    def verdict(self) -> Verdict:
        """Judge what was recorded."""
        return judge(ordered(self.rows))


def serving(replicas: int = 2, **deployment: Any) -> Play:
    """Return a control plane with a deployment whose replicas serve, each with its endpoint, for an hour."""
    play = Play()
    play.cluster()
    play.deployment(replicas, **deployment)
    for index in range(replicas):
        play.replica(index)
        play.serve(index)
        play.write("ModelEndpoint", f"chat-{index}", owner=DEPLOYMENT, spec={})
    play.wait(3600)
    return play
