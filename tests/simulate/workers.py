"""A workload cluster: its API, its nodes, and the controllers of Deployments and LeaderWorkerSets.

Enough of them to be wrong in: pods need their Secrets, claims a template and devices that are free, a rolling
update goes by maxSurge and maxUnavailable, a Deployment is Available when no more copies are missing than may
be (so one that may miss its only copy always is), and a group of a LeaderWorkerSet starts and stops as one. A
controller that is idle neither acts nor reports, and a LeaderWorkerSet does not say which spec its status is
about: only the API server's clock says what was written when.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator

Plain = dict[str, Any]
Place = tuple[str, str, str, str]
"""Group, kind, namespace and name of a remote object."""

DEVICES = 8
"""GPUs of a node."""
START = 2
"""Ticks from scheduled to ready: loading weights. What claims nothing, the picker, has none to load."""
WORKLOADS = ("Deployment", "LeaderWorkerSet")
BROKEN = "broken"
"""An image with this in its name never starts."""


class Refused(Exception):
    """The API server does not take a change."""


@dataclass
class Pod:
    """One pod."""

    name: str
    workload: Place
    copy: int
    revision: str
    template: Plain
    node: str = ""
    age: int = 0
    devices: int = 0
    """Devices it was allocated: its claim outlives the template."""
    why: str = ""
    """Why it is not scheduled."""

    @property
    def ready(self) -> bool:
        """Whether it takes requests."""
        broken = BROKEN in image_of(self.template)
        return bool(self.node) and not broken and self.age >= (START if self.devices else 0)


@dataclass
class Cluster:
    """One cluster. `nodes`: node name to the labels it has."""

    nodes: dict[str, Plain]
    objects: dict[Place, Plain] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    reachable: bool = True
    quota: int | None = None
    """Pods that may be there; the API server refuses more. What is there stays."""
    born: int = 0
    clock: int = 0
    """Seconds of the API server. Whatever happens in one tick happens in the same second."""
    revisions: dict[int, tuple[Plain, str]] = field(default_factory=dict)
    """Revisions of specs by their identities: what is stored never changes."""
    managers: dict[Place, Hashable] = field(default_factory=dict)
    """Who applied an object last: replicas of two teams may have one name."""
    owners: dict[Place, Place] = field(default_factory=dict)
    """What goes with another object, once that is deleted."""

    def get(self, place: Place) -> Plain | None:
        """Return an object as it is, a pod too; None where there is none."""
        if place[1] != "Pod":
            return self.objects.get(place)
        pod = next((pod for pod in self.pods if (pod.workload[2], pod.name) == place[2:]), None)
        if pod is None:
            return None
        row = {"type": "PodScheduled", "status": str(bool(pod.node)), "message": pod.why}
        metadata = {"name": pod.name, "namespace": pod.workload[2]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"conditions": [row]}}

    def select(self, kind: str, namespace: str, labels: Plain) -> list[Place]:
        """Return the pods of the workload that labels name."""
        return [
            ("", kind, namespace, pod.name)
            for pod in self.pods
            if kind == "Pod" and pod.workload[2] == namespace and pod.workload[3] in labels.values()
        ]

    def apply(self, place: Place, manifest: Plain) -> Plain:
        """Create or update an object. Raises Refused. What is stored never changes: parts are shared."""
        held = self.objects.get(place)
        if held is None:
            metadata = {"generation": 1, "uid": f"uid-{len(self.objects)}-{self.born}"}
            made = {**manifest, "metadata": {**manifest["metadata"], **metadata}}
            self.objects[place] = self._wrote(made, status=False)
            return self.objects[place]
        parts = {key: value for key, value in manifest.items() if key != "metadata"}
        if all(key in held and held[key] == value for key, value in parts.items()):
            return held
        made = {**held, **parts}
        if held.get("spec") != manifest.get("spec"):
            if held["kind"] == "ResourceClaimTemplate":
                raise Refused("spec: Invalid value: field is immutable")
            selectors = [item["spec"].get("selector") for item in (held, manifest)]
            if held["kind"] == "Deployment" and selectors[0] != selectors[1]:
                raise Refused("spec.selector: Invalid value: field is immutable")
            made["metadata"] = {**held["metadata"], "generation": held["metadata"]["generation"] + 1}
            made = self._wrote(made, status=False)
        self.objects[place] = made
        return made

    def delete(self, place: Place) -> None:
        """Delete an object, what goes with it, and the pods of a workload."""
        self.objects.pop(place, None)
        self.pods = [pod for pod in self.pods if pod.workload != place]
        for owned in [other for other, owner in self.owners.items() if owner == place]:
            del self.owners[owned]
            self.delete(owned)

    def lose(self, node: str) -> Plain:
        """Take a node away with its pods; return it, to be put back."""
        self.pods = [pod for pod in self.pods if pod.node != node]
        return self.nodes.pop(node)

    def _wrote(self, made: Plain, *, status: bool) -> Plain:
        """Note when a spec or a status was written, as an API server does."""
        before = made["metadata"].get("managedFields", ())
        fields = {"f:status": {}} if status else {"f:spec": {"f:leaderWorkerTemplate": {}}}
        entry = {"time": f"{self.clock:010}", "fieldsV1": fields}
        entry |= {"subresource": "status"} if status else {}
        times = [*(one for one in before if ("subresource" in one) != status), entry]
        return {**made, "metadata": {**made["metadata"], "managedFields": times}}

    def tick(self, idle: Collection[Place] = ()) -> None:
        """Let every controller act once, but for those of the workloads that are `idle`."""
        self.clock += 1
        acting = [place for place in sorted(self.objects) if place[1] in WORKLOADS and place not in idle]
        for place in acting:
            self._roll(place)
        for pod in self.pods:
            if pod.node:
                pod.age += 1
            else:
                self._schedule(pod)
        for place in acting:
            self._report(place)

    def serving(self) -> dict[Place, int]:
        """Return how many copies of each workload take requests."""
        return {place: self._available(place) for place in self.objects if place[1] in WORKLOADS}

    def standing(self) -> list[tuple[str, str, int]]:
        """Return every pod, where it is, and how far it has started."""
        return [(pod.name, pod.node, min(pod.age, START)) for pod in self.pods]

    def mine(self, place: Place) -> list[Pod]:
        """Return the pods of a workload."""
        return [pod for pod in self.pods if pod.workload == place]

    def _roll(self, place: Place) -> None:
        """One step of a rollout: create what is missing, replace what is old, within the budget."""
        made = self.objects[place]
        wanted, revision = made["spec"]["replicas"], self._revision(made)
        surge, unavailable = _budget(made)
        copies = {pod.copy: pod for pod in self.mine(place)}
        current = {number for number, pod in copies.items() if pod.revision == revision}
        for number in sorted(copies, reverse=True):
            replaced = number not in current and len(current & self._ready_copies(place)) >= wanted
            if replaced or len(copies) > wanted + surge or len(current) > wanted:
                self._stop(place, number)
                copies.pop(number)
                current.discard(number)
        missing = wanted - self._available(place)
        for number in sorted(copies):
            old = number not in current
            # An old copy that takes no requests costs nothing; one that does counts.
            if old and (number not in self._ready_copies(place) or missing < unavailable):
                missing += number in self._ready_copies(place)
                self._stop(place, number)
                copies.pop(number)
        while len(copies) < wanted + (surge if set(copies) - current else 0) and len(current) < wanted:
            if self._refuses(made):
                break
            self.born += 1
            self._start(place, made, self.born, revision)
            copies[self.born] = self.pods[-1]
            current.add(self.born)

    def _refuses(self, made: Plain) -> bool:
        return self.quota is not None and len(self.pods) + len(written(made)) > self.quota

    def _revision(self, made: Plain) -> str:
        spec, revision = self.revisions.get(id(made["spec"]), (None, ""))
        if spec is not made["spec"]:
            revision = sha256(json.dumps(written(made), sort_keys=True).encode()).hexdigest()[:10]
            self.revisions[id(made["spec"])] = made["spec"], revision
        return revision

    def _start(self, place: Place, made: Plain, number: int, revision: str) -> None:
        for index, template in enumerate(written(made)):
            name = f"{place[3]}-{number}-{index}"
            self.pods.append(Pod(name, place, number, revision, template))

    def _stop(self, place: Place, number: int) -> None:
        self.pods = [pod for pod in self.pods if (pod.workload, pod.copy) != (place, number)]

    def _schedule(self, pod: Pod) -> None:
        spec = pod.template["spec"]
        namespace, needed = pod.workload[2], 0
        for secret in _secrets(spec):
            if ("", "Secret", namespace, secret) not in self.objects:
                pod.why = f'secret "{secret}" not found'
                return
        for claim in spec.get("resourceClaims", ()):
            name = claim["resourceClaimTemplateName"]
            template = self.objects.get(("resource.k8s.io", "ResourceClaimTemplate", namespace, name))
            if template is None:
                pod.why = f'resourceclaimtemplate "{name}" not found'
                return
            requests = template["spec"]["spec"]["devices"]["requests"]
            needed += sum(request["exactly"]["count"] for request in requests)
        for node in sorted(self.nodes):
            if (
                spec.get("nodeSelector", {}).items() <= self.nodes[node].items()
                and self._free(node) >= needed
            ):
                pod.node, pod.why, pod.devices = node, "", needed
                return
        pod.why = f"0/{len(self.nodes)} nodes are available: cannot allocate all claims"

    def _free(self, node: str) -> int:
        return DEVICES - sum(pod.devices for pod in self.pods if pod.node == node)

    def _ready_copies(self, place: Place) -> set[int]:
        copies: dict[int, list[Pod]] = {}
        for pod in self.mine(place):
            copies.setdefault(pod.copy, []).append(pod)
        return {number for number, pods in copies.items() if all(pod.ready for pod in pods)}

    def _available(self, place: Place) -> int:
        return len(self._ready_copies(place))

    def _report(self, place: Place) -> None:
        made = self.objects[place]
        wanted, revision = made["spec"]["replicas"], self._revision(made)
        copies = {pod.copy: pod.revision for pod in self.mine(place)}
        available, updated = self._available(place), sum(item == revision for item in copies.values())
        _, unavailable = _budget(made)
        gang = made["kind"] == "LeaderWorkerSet"
        enough = available >= wanted - (0 if gang else unavailable)
        rolled = updated == wanted == len(copies)
        conditions = [{"type": "Available", "status": str(enough and (rolled or not gang))}]
        if gang:
            conditions.append({"type": "UpdateInProgress", "status": str(not rolled)})
            status: Plain = {"readyReplicas": available}
        else:
            conditions.append({"type": "Progressing", "status": "True"})
            if updated < wanted and self._refuses(made):
                failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
                conditions.append({**failure, "message": "exceeded quota"})
            status = {"observedGeneration": made["metadata"]["generation"]}
            status |= {"availableReplicas": available} if available else {}
        before = {row["type"]: row for row in made.get("status", {}).get("conditions", ())}
        for row in conditions:
            held = before.get(row["type"], {})
            since = held.get("lastTransitionTime") if held.get("status") == row["status"] else None
            row["lastTransitionTime"] = since or f"{self.clock:010}"
        status |= {"replicas": len(copies), "updatedReplicas": updated, "conditions": conditions}
        if made.get("status") != status:
            self.objects[place] = self._wrote({**made, "status": status}, status=True)


def place_of(manifest: Plain) -> Place:
    """Return where a cluster has the object of a manifest."""
    group = manifest["apiVersion"].rpartition("/")[0]
    metadata = manifest["metadata"]
    return group, manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def condition(plain: Plain, kind: str) -> str | None:
    """Return the status of a condition."""
    listed = plain.get("status", {}).get("conditions", [])
    return next((row["status"] for row in listed if row["type"] == kind), None)


def image_of(template: Plain) -> str:
    """Return the image of a pod template."""
    return str(template["spec"]["containers"][0]["image"])


def _secrets(spec: Plain) -> Iterator[str]:
    """Yield the names of the Secrets without which a pod does not start."""
    for container in spec["containers"]:
        for variable in container.get("env", ()):
            if "secretKeyRef" in variable.get("valueFrom", {}):
                yield variable["valueFrom"]["secretKeyRef"]["name"]


def written(made: Plain) -> list[Plain]:
    """Return the templates of the pods of one copy."""
    if made["kind"] == "Deployment":
        return [made["spec"]["template"]]
    both = made["spec"]["leaderWorkerTemplate"]
    return [both["leaderTemplate"], *([both["workerTemplate"]] * (both["size"] - 1))]


def _budget(made: Plain) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable, with the defaults of Kubernetes."""
    if made["kind"] == "LeaderWorkerSet":
        return 0, 1
    rolling = made["spec"].get("strategy", {}).get("rollingUpdate")
    if rolling is None:
        wanted = made["spec"]["replicas"]
        return -(-wanted // 4), wanted // 4
    return rolling["maxSurge"], min(rolling["maxUnavailable"], made["spec"]["replicas"])
