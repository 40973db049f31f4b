"""Many deployments that reconcile at the same time, from lists that lag behind.

An episode is a random interleaving: a deployment reconciles with a list of replicas from some steps ago (its
own replicas it always sees as they are), what it desires is applied, what it does not is deleted and lives on
for a while. A replica becomes Ready when the pool has nodes left for it, first come, first served. With
`capacity: Published` clusters reconcile too, each from a list of its own age, and what they published last is
all that deployments are told of each other.

In whole days (`swarm`) a list is as new as its call, and the Composition is the shipped one. Here lists are
old, each setting is played without the others, and several deployments pass a quota at once.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function.api import replica as replica_api
from function.boundary import PlainDocument, Request, Response, Result
from function.cluster.publish import charge, flag
from function.deployment.handler import run
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Plain = dict[str, Any]

LAG = 12
"""How many steps a list may be behind."""
STEPS = 30
SETTLE = 8
"""Rounds of fresh reconciles at the end."""


@dataclass
class Race:
    """One episode. `input` is the function's input; `churn` lets replicas be deleted and wants grow."""

    seed: int
    input: Plain
    churn: bool = False
    draw: random.Random = field(init=False)
    clusters: list[Plain] = field(init=False)
    deployments: list[Plain] = field(init=False)
    replicas: dict[str, Plain] = field(default_factory=dict)
    """Replicas by name; all names differ."""
    dying: dict[str, int] = field(default_factory=dict)
    past: list[list[Plain]] = field(default_factory=list)
    step: int = 0
    ready_removed: list[str] = field(default_factory=list)
    """Replicas that were Ready when the function gave them up."""
    overcommitted: set[tuple[str, str]] = field(default_factory=set)
    """Pools that were overcommitted at some step."""
    published: list[Plain] = field(init=False)
    """The clusters as they stand, with what they published of their charges."""
    answers: dict[str, Response] = field(default_factory=dict)
    """The latest answer to each deployment."""
    results: list[Result] = field(default_factory=list)
    """Every event of the episode."""

    def __post_init__(self) -> None:
        """Draw the fleet."""
        draw = self.draw = random.Random(self.seed)
        self.clusters = [
            build.cluster(
                name, [build.pool(f"p{n}", draw.choice((1, 1, 2, 3))) for n in range(draw.choice((1, 2)))]
            )
            for name in ("a", "b", "c")[: draw.choice((2, 3))]
        ]
        self.published = [self._published(cluster, []) for cluster in self.clusters]
        self.deployments = [self._deployment(number) for number in range(draw.choice((3, 4, 5)))]

    def _deployment(self, number: int) -> Plain:
        copies = self.draw.choice((None, None, 2))
        engine = build.engine(members=[build.member(devices=[build.request("gpu", 8)])], copies=copies)
        made = build.deployment(f"model-{number}", self.draw.choice((1, 1, 2, 3)), [engine])
        made["metadata"]["creationTimestamp"] = stamp(self.draw.choice((1, 2, 3)))
        return made

    def play(self) -> Race:
        """Play the episode to its end."""
        for _ in range(STEPS):
            self._one_step()
        for _ in range(SETTLE):
            for deployment in self.deployments:
                self.past.append(self._listed())
                self._publish(range(len(self.clusters)), 0)
                self._reconcile(deployment, self.past[-1])
                self._tick()
        return self

    def _one_step(self) -> None:
        self.past.append(self._listed())
        if self.churn and self.draw.random() < 0.15:
            self._disturb()
        else:
            age = self.draw.randint(0, min(LAG, len(self.past) - 1))
            self._publish([self.draw.randrange(len(self.clusters))], self.draw.randint(0, age))
            self._reconcile(self.draw.choice(self.deployments), self.past[-1 - age])
        self._tick()

    @property
    def by_charges(self) -> bool:
        """Whether deployments read what the clusters publish."""
        return self.input.get("capacity") == "Published"

    def _publish(self, numbers: Iterable[int], age: int) -> None:
        """Some clusters reconcile, from a list of an age in steps."""
        for number in numbers:
            self.published[number] = self._published(self.clusters[number], self.past[-1 - age])

    def _published(self, cluster: Plain, listed: Iterable[Plain]) -> Plain:
        """A cluster with what it publishes of listed replicas: charges, or which pools hold too much."""
        return with_charges(cluster, listed, charge if self.by_charges else flag)

    def _disturb(self) -> None:
        """Somebody deletes a replica, or wants one more."""
        alive = sorted(set(self.replicas) - set(self.dying))
        if alive and self.draw.random() < 0.6:
            self._delete(self.draw.choice(alive))
        else:
            self.draw.choice(self.deployments)["spec"]["replicas"] += 1

    def _listed(self) -> list[Plain]:
        return [frozen(replica) for replica in self.replicas.values()]

    def observed_of(self, deployment: Plain) -> dict[str, Plain]:
        """What is observed of a deployment: its replicas that are not being deleted, by key."""
        mine = {
            name: replica
            for name, replica in self.replicas.items()
            if name not in self.dying and label(replica, "deployment") == deployment["metadata"]["name"]
        }
        return {
            f"replica-{label(replica, 'cluster')}-{label(replica, 'replica-index')}": replica
            for replica in mine.values()
        }

    def _reconcile(self, deployment: Plain, listed: list[Plain]) -> None:
        """Ask the function, and apply the answer as Crossplane does."""
        observed = self.observed_of(deployment)
        name = deployment["metadata"]["name"]
        own_replicas = [frozen(item) for item in self.replicas.values() if label(item, "deployment") == name]
        others = [item for item in listed if label(item, "deployment") != name]
        required = {
            "clusters": self.published,
            "all-replicas": [*others, *own_replicas],
            "all-deployments": self.deployments,
            "all-caches": [],
        }
        if self.by_charges:
            required = {"clusters": self.published, "own-replicas": own_replicas}
        answer = run(
            Request(
                PlainDocument(deployment),
                {key: PlainDocument(frozen(manifest)) for key, manifest in observed.items()},
                {key: tuple(PlainDocument(item) for item in items) for key, items in required.items()},
                self.input,
            )
        )
        self.answers[name] = answer
        self.results += answer.results
        for key, manifest in observed.items():
            if key not in answer.desired:
                self._give_up(manifest)
        for key, resource in answer.desired.items():
            if resource.resource["kind"] == "ModelReplica":
                self._apply(deployment, observed.get(key), resource.resource)

    def _give_up(self, replica: Plain) -> None:
        name = replica["metadata"]["name"]
        if is_ready(replica):
            self.ready_removed.append(name)
        self._delete(name)

    def _delete(self, name: str) -> None:
        self.replicas[name]["metadata"]["deletionTimestamp"] = stamp(self.step)
        self.dying[name] = self.draw.randint(1, 6)

    def _apply(self, deployment: Plain, observed: Plain | None, resource: Plain) -> None:
        made = copy.deepcopy(resource)
        name = made["metadata"]["name"]
        if observed is not None:
            before = self.replicas[observed["metadata"]["name"]]
            before["spec"] = made["spec"]
            before["metadata"]["annotations"] = made["metadata"].get("annotations", {})
            return
        if (
            name in self.replicas
        ):  # An object of that name is still there: the apply fails, and is tried again.
            return
        made["metadata"] |= {
            "uid": build.uid(name, self.step),
            "creationTimestamp": stamp(self.step // 3),
            "ownerReferences": [build.owner(deployment)],
        }
        self.replicas[name] = made

    def _tick(self) -> None:
        """Time passes: what is being deleted goes, nodes are given out, pods become Ready."""
        self.step += 1
        for name in [name for name, left in self.dying.items() if left <= 0]:
            del self.replicas[name], self.dying[name]
        self.dying = {name: left - 1 for name, left in self.dying.items()}
        running = {name for name, replica in self.replicas.items() if self.has_nodes(replica)}
        for name, replica in self.replicas.items():
            if not is_ready(replica) and name not in self.dying and self.draw.random() < 0.5:
                cluster, pool, nodes = held(replica)
                used = sum(
                    held(self.replicas[n])[2]
                    for n in running - {name}
                    if held(self.replicas[n])[:2] == (cluster, pool)
                )
                if used + nodes <= self.size(cluster, pool):
                    running.add(name)
                    replica["status"] = {"conditions": [build.condition("Ready", status=True)]}
        self.overcommitted |= set(self.crowded())

    def has_nodes(self, replica: Plain) -> bool:
        """Tell whether a replica's pods run on nodes."""
        return is_ready(replica)

    def size(self, cluster: str, pool: str) -> int:
        """Nodes of a pool."""
        resized = next(manifest for manifest in self.clusters if manifest["metadata"]["name"] == cluster)
        return int(next(entry["nodes"] for entry in resized["status"]["gpuPools"] if entry["name"] == pool))

    def crowded(self) -> list[tuple[str, str]]:
        """The pools that hold more than they have, terminating replicas aside."""
        used: dict[tuple[str, str], int] = {}
        for name, replica in self.replicas.items():
            if name not in self.dying:
                cluster, pool, nodes = held(replica)
                used[cluster, pool] = used.get((cluster, pool), 0) + nodes
        return sorted(where for where, nodes in used.items() if nodes > self.size(*where))

    def on(self, where: tuple[str, str]) -> set[str]:
        """The deployments with a living replica on a pool."""
        return {
            label(replica, "deployment")
            for name, replica in self.replicas.items()
            if name not in self.dying and held(replica)[:2] == where
        }


def with_charges(
    cluster: Plain, listed: Iterable[Plain], summed: Callable[..., list[Plain]] = charge
) -> Plain:
    """A cluster that publishes what listed replicas hold of it."""
    replicas = [replica_api.parse(PlainDocument(item)) for item in listed]
    pools = summed(cluster["metadata"]["name"], cluster["status"]["gpuPools"], replicas)
    return cluster | {"status": cluster["status"] | {"gpuPools": pools}}


def stamp(step: int) -> str:
    """A time as the API server writes it: whole seconds."""
    return f"2026-03-01T08:{step // 60:02}:{step % 60:02}Z"


def frozen(replica: Plain) -> Plain:
    """A replica as it is now. Its spec is only ever replaced as a whole."""
    return replica | {"metadata": dict(replica["metadata"])}


def label(replica: Plain, name: str) -> str:
    """A label that the function gave a replica."""
    return str(replica["metadata"]["labels"][f"modelplane.ai/{name}"])


def is_ready(replica: Plain) -> bool:
    """Whether a replica is Ready."""
    return any(condition["status"] == "True" for condition in replica.get("status", {}).get("conditions", ()))


def held(replica: Plain) -> tuple[str, str, int]:
    """Cluster, pool and nodes of a replica of one engine with one member."""
    engine = replica["spec"]["engines"][0]
    return replica["spec"]["clusterName"], engine["members"][0]["nodePoolName"], engine["copies"]
