"""Deployments of priority classes on clusters that arbitrate: what tests of preemption begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from function.api import InferenceCluster, ModelDeployment, ModelReplica
from function.api.inputs import Quota
from function.api.replica import parse
from function.boundary import PlainDocument, Request
from function.deployment.handler import run
from function.verify import Decided, State, check
from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.drive import Answer, of_core

if TYPE_CHECKING:
    from collections.abc import Sequence

Plain = dict[str, Any]
CLASSES = [
    {"name": "production", "value": 1000, "preempts": True},
    {"name": "standard", "value": 100},
    {"name": "batch", "value": 10},
]
ON = {"overcommit": "Yield", "priorityClasses": CLASSES}
PREFIX = "modelplane.ai/"
LABEL, SPARE = f"{PREFIX}preempting", f"{PREFIX}spare"
LATE = "2026-03-02T00:00:00Z"


class Resident(NamedTuple):
    """A replica that exists, as far as the rules speak of it."""

    name: str
    """It ends with its index."""
    cluster: str
    deployment: str
    value: int | None
    age: int
    """Minutes since it was created."""
    spare: int
    is_ready: bool
    leaves: bool
    team: str = ""
    word: str = ""
    """`Within` or `Borrowed`."""

    def manifest(self, namespace: str = "ml-team") -> Plain:
        """The ModelReplica."""
        parent = of(self.deployment, None)
        parent["metadata"]["namespace"] = namespace
        made = running(
            parent,
            self.cluster,
            int(self.name[-1]),
            self.value,
            str(self.spare),
            ready=self.is_ready,
            terminating=self.leaves,
            name=self.name,
        )
        made["metadata"] |= {"creationTimestamp": f"2026-03-01T08:{9 - self.age:02}:00Z", "uid": self.name}
        if self.word and self.value is not None:
            made["metadata"]["annotations"][f"{PREFIX}guarantee"] = f"{self.word} {self.team}"
        return made


def arbitrating(*named: Plain, **nodes: int) -> list[Plain]:
    """Clusters that arbitrate; the first names some who give way."""
    fleet = clusters(**nodes)
    for cluster in fleet:
        cluster["status"]["givesWay"] = []
    fleet[0]["status"]["givesWay"] = [*named]
    return fleet


def of(name: str, class_name: str | None = "production", replicas: int = 1, **more: Any) -> Plain:
    made = ask(replicas, **more)
    made["metadata"] |= {"name": name, "uid": build.uid(name)}
    if class_name is not None:
        made["spec"].setdefault("placement", {})["priorityClassName"] = class_name
    return made


def running(
    parent: Plain, cluster: str, index: int = 0, value: int | None = 10, spare: str = "all", **more: Any
) -> Plain:
    """A replica, Ready unless said otherwise, with the notes of its deployment."""
    made = build.replica(parent, cluster, index, pools="p0", ready=more.pop("ready", True), **more)
    name = next((listed["name"] for listed in CLASSES if listed["value"] == value), "")
    if value is not None:
        noted = {"priority-class": name, "priority": str(value), "spare": spare}
        made["metadata"]["annotations"] = {PREFIX + key: text for key, text in noted.items() if text}
    return made


def waiting(parent: Plain, cluster: str, index: int = 0) -> Plain:
    """A replica that preempts."""
    made = running(parent, cluster, index, 1000, "0", ready=False)
    made["metadata"]["labels"][LABEL] = "true"
    made["metadata"]["creationTimestamp"] = LATE
    return made


CHAT = of("chat")
"""A deployment of the class that preempts."""


def asked(ours: Plain, fleet: list[Plain], listed: list[Plain], config: Plain | None = None) -> Answer:
    """Ask for a deployment; its own replicas among those that are listed are observed."""
    mine = [
        replica
        for replica in listed
        if replica["metadata"]["labels"][f"{PREFIX}deployment"] == ours["metadata"]["name"]
        and "deletionTimestamp" not in replica["metadata"]
    ]
    lists = {"clusters": fleet, "all-replicas": listed, "all-deployments": [ours], "all-caches": []}
    required = {name: tuple(map(PlainDocument, items)) for name, items in lists.items()}
    observed = {key: PlainDocument(manifest) for key, manifest in build.observed(*mine).items()}
    return of_core(run(Request(PlainDocument(ours), observed, required, ON if config is None else config)))


def placed_on(answer: Answer) -> list[str]:
    return sorted(replica["spec"]["clusterName"] for replica in answer.replicas.values())


def named(replica: Plain, to: str = "ml-team/chat", class_name: str = "production") -> Plain:
    metadata = replica["metadata"]
    return {
        "replica": f"{metadata['namespace']}/{metadata['name']}",
        "uid": metadata["uid"],
        "to": to,
        "priorityClassName": class_name,
    }


def certified(
    ours: Plain, fleet: list[Plain], listed: list[Plain], desired: list[Plain], quotas: Sequence[Plain] = ()
) -> list[str]:
    """The rules that a decision breaks."""

    def parsed(replicas: list[Plain]) -> tuple[ModelReplica, ...]:
        return tuple(parse(PlainDocument(replica)) for replica in replicas)

    read = [InferenceCluster.parse(cluster) for cluster in fleet]
    state = State(
        {cluster.name: cluster for cluster in read},
        parsed(listed),
        yields=True,
        preempts={"production": 1000},
        quotas=tuple(map(Quota.parse, quotas)),
    )
    existing = [
        replica
        for replica in parsed(listed)
        if replica.deployment == ours["metadata"]["name"] and not replica.deleting
    ]
    decided = Decided(ModelDeployment.parse(ours), tuple(existing), parsed(desired))
    return [violation.rule for violation in check(state, [decided])]
