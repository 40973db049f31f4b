"""What is seen of replicas in a whole day, and what may not be said of them or done to them.

Everybody believes of a replica what could be known: it counts as serving while it said so, within the time
that an answer may have been on its way. A promise is broken only where no such moment excuses it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tests.simulate.swarm import WINDOW, image, is_ready
from tests.simulate.workers import image_of, written
from tests.support.crossplane import Name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.whole import WholeDay
    from tests.simulate.workers import Cluster, Place
    from tests.support.crossplane import Composite, ControlPlane
    from tests.support.drive import Answer

Plain = dict[str, Any]

VALUES = {"vip": 100, "high": 50, "low": 10}
CLASSES = [
    {"name": name, "value": value, "preempts": name in ("vip", "high")} for name, value in VALUES.items()
]
SLOTS = 2
"""Adapters that a replica with room holds."""
PACED = ("ReplicaGaveWay", "ReplicaReturned", "ReplicaDrained")
"""Why replicas leave within `disruption.maxUnavailable`."""


class Lived(Protocol):
    """Where replicas are looked at."""

    plane: ControlPlane

    def replicas(self) -> dict[Name, Plain]:
        """Return the replicas that stand."""
        ...


@dataclass
class Sights:
    """What was seen of replicas."""

    ready: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    """When each of a deployment said last that it is Ready, by uid."""
    waits: list[tuple[float, str, int, str]] = field(default_factory=list)
    """Who preempted: when, on which cluster, the value of its class, and its namespace."""
    guaranteed: set[Name] = field(default_factory=set)
    """Replicas that were within the guarantee of their namespace, as far as anybody could know."""
    staged: list[tuple[float, frozenset[str]]] = field(default_factory=list)
    """The clusters that caches select, since when."""
    serving: set[str] = field(default_factory=set)
    """The uids of replicas of which a pod was seen that takes requests."""
    ran: set[tuple[str, str]] = field(default_factory=set)
    """By uid, the images that all pods of a replica were seen to run."""
    engines: dict[str, list[Plain]] = field(default_factory=dict)
    edits: Counter[str] = field(default_factory=Counter)
    """How often the engines of each replica were edited."""
    templates: dict[tuple[str, Place], list[Plain]] = field(default_factory=dict)
    """The pod templates of the workloads of each replica."""
    rolls: Counter[tuple[str, Place]] = field(default_factory=Counter)
    """How often these changed."""

    def hear(self, day: WholeDay, event: str, replica: Plain) -> Iterator[str]:
        """Note what a replica says of itself, and yield what is not true."""
        uid, name = replica["metadata"]["uid"], replica["metadata"]["name"]
        where = replica["spec"]["clusterName"]
        before, self.engines[uid] = self.engines.get(uid), replica["spec"]["engines"]
        self.edits[uid] += before not in (None, self.engines[uid])
        if event == "ADDED" and "modelCacheRef" in replica["spec"] and not self._is_staged(day, where):
            yield f"{name} was placed where its cache is not"
        self.note(day, replica)
        if is_ready(replica) and uid not in self.serving:
            yield f"{name} is Ready, and no pod of it ever took requests"

    def note(self, lived: Lived, replica: Plain) -> None:
        """Note that a replica is Ready, or waits for others to give way."""
        if is_ready(replica):
            self.ready.setdefault(owner(replica), {})[replica["metadata"]["uid"]] = lived.plane.now
        if replica["metadata"]["labels"].get("modelplane.ai/preempting"):
            where = replica["spec"]["clusterName"]
            self.waits.append((lived.plane.now, where, rank(lived, replica), owner(replica)[0]))

    def _is_staged(self, day: WholeDay, where: str) -> bool:
        """Whether the caches selected a cluster while an answer may have been on its way."""
        ends = [*(since for since, _ in self.staged[1:]), day.plane.now]
        return any(
            where in clusters and end >= day.plane.now - WINDOW
            for (_, clusters), end in zip(self.staged, ends, strict=True)
        )

    def look(self, day: WholeDay) -> Iterator[str]:
        """Look at the pods, and yield what may not be: pods that start anew, and adapters without a slot."""
        for name, replica in day.replicas().items():
            uid, pods = replica["metadata"]["uid"], []
            for cluster, place in day.workloads(name):
                if "epp" not in place[3]:
                    pods += cluster.mine(place)
                    yield from self._unedited(day, replica, place, written(cluster.objects[place]))
            self.serving |= {uid for pod in pods if pod.ready}
            if len(images := {image_of(pod.template) for pod in pods}) == 1:
                self.ran.add((uid, *images))
            cluster = day.remote[replica["spec"]["clusterName"]]
            if len(adapters := listed(cluster, name.name)) > SLOTS:
                yield f"{name.name} lists {sorted(adapters)}"

    def _unedited(self, day: WholeDay, replica: Plain, place: Place, templates: list[Plain]) -> Iterator[str]:
        """Yield pods that have another template though nobody edited their replica, or that have no cache."""
        key = uid, _ = replica["metadata"]["uid"], place
        if any(place == other for _, other in day.shared):
            # Its namesake manages it, too, and it may be written once more when that lets go.
            self.templates.pop(key, None)
            self.rolls[key] = self.edits[uid] - 1
            return
        before, self.templates[key] = self.templates.get(key), templates
        if before != templates:
            self.rolls[key] += before is not None
            if "modelCacheRef" in replica["spec"] and "persistentVolumeClaim" not in str(templates):
                yield f"{place[3]} lost its cache"
            # A restore brings the template of then back, and what is declared after it that of now.
            if self.rolls[key] > self.edits[uid] + 2 * day.restores:
                yield f"{place[3]} was rolled without an edit of its replica"

    def untrue(self, composite: Composite, answer: Answer) -> Iterator[str]:
        """Yield that a replica is said to run what no pods of it ran."""
        if (said := is_said(composite, answer)) and said not in self.ran:
            yield f"{composite.began['metadata']['name']} is said to run {said[1]}, and its pods never did"

    def unfair(self, day: Lived, name: Name, answer: Answer) -> Iterator[str]:
        """Yield what a deployment gives up against the promises of classes, guarantees and budgets."""
        composite = day.plane.composites[name]
        for replica in day.replicas().values():
            self.note(day, replica)  # One at rest says nothing more.
        paced, taken = set[str](), set[str]()
        for key, child in composite.composed.items():
            plain = day.plane.objects.get(child)
            if child.kind != "ModelReplica" or key in answer.desired or plain is None:
                continue
            where = f"{plain['spec']['clusterName']}/{child.name}"
            causes = {reason for _, reason, message in answer.events if where in message} & {*PACED}
            taken |= {plain["metadata"]["uid"]} if causes - {"ReplicaDrained"} else set()
            paced |= {plain["metadata"]["uid"]} if causes else set()
            in_team = child in self.guaranteed
            if "ReplicaGaveWay" in causes and not self._outranked(day, plain, in_team=in_team):
                yield f"{child.name} gave way to no higher class{' of its team' * in_team}"
            if "ReplicaReturned" in causes and standing(plain) != "Borrowed":
                yield f"{child.name} was returned, and not borrowed"
        spec, since = composite.began["spec"], day.plane.now - WINDOW
        most = spec.get("placement", {}).get("disruption", {}).get("maxUnavailable")
        least = min(spec.get("minReplicas", 0), spec["replicas"])
        team = name.namespace, name.name
        serving = {uid for uid, at in self.ready.get(team, {}).items() if at >= since}
        if most is not None and paced & serving and spec["replicas"] - len(serving - paced) > most:
            yield f"{len(paced)} left, and {len(serving - paced)} of {spec['replicas']} serve of {name.name}"
        if taken & serving and len(serving - paced) < least:
            yield f"{len(taken)} left, and {len(serving - paced)} of {least} that are needed of {name.name}"

    def _outranked(self, day: Lived, replica: Plain, *, in_team: bool) -> bool:
        """Whether somebody of a higher class waited on its cluster, or anybody while it was borrowed.

        `in_team`: it gives way to its own namespace only.
        """
        lowest = -1 if standing(replica) == "Borrowed" else rank(day, replica)
        cluster, since = replica["spec"]["clusterName"], day.plane.now - 2 * WINDOW
        team, _ = owner(replica)
        return any(
            at >= since and where == cluster and value > lowest and (of == team or not in_team)
            for at, where, value, of in self.waits
        )


def is_said(composite: Composite, answer: Answer) -> tuple[str, str] | None:
    """Return the uid of a replica and the image that its pods are said to run; None where they are not."""
    updated = answer.conditions.get("ModelUpdated", (False,))[0] is True
    return (composite.began["metadata"]["uid"], image(composite.began)) if updated else None


def owner(replica: Plain) -> tuple[str, str]:
    """Return namespace and name of the deployment of a replica."""
    metadata = replica["metadata"]
    return metadata["namespace"], metadata["labels"]["modelplane.ai/deployment"]


def rank(day: Lived, replica: Plain) -> int:
    """Return the value of the class of a replica's deployment."""
    return value_of(day.plane.objects.get(Name("ModelDeployment", *owner(replica)), {"spec": {}}))


def value_of(deployment: Plain) -> int:
    """Return the value of the class of a deployment."""
    return VALUES.get(deployment["spec"].get("placement", {}).get("priorityClassName", ""), 0)


def standing(replica: Plain) -> str:
    """Return how a replica says that it stands to guarantees: Within, Borrowed, or ""."""
    note = str(replica["metadata"].get("annotations", {}).get("modelplane.ai/guarantee", ""))
    return note.partition(" ")[0].replace("Reclaims", "Within")


def listed(cluster: Cluster, replica: str) -> set[str]:
    """Return the adapters that the list of a replica has on a cluster."""
    lists = [held for place, held in cluster.objects.items() if place[3] == f"{replica}-adapters"]
    texts = [text for held in lists for text in held.get("data", {}).values()]
    models = [json.loads(text)["vLLMLoRAConfig"]["ensureExist"]["models"] for text in texts]
    return {model["id"] for listing in models for model in listing}
