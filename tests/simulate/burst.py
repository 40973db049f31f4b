"""Deployments created within seconds, as in a living control plane: read early, applied late.

Crossplane takes the snapshot of a reconcile when it starts, up to a hundred at a time; then the calls and
the applies queue for processor time and for the API server. So an answer may be applied most of a minute
after what it was computed from, and everybody's at once. That is `tests.support.crossplane` with a long
queue. Here are the deployments, and the clusters: a node runs one replica at a time, and which of those that
wait for it is up to its cluster. With `capacity: Published` the clusters read and publish in the same way,
and what each published last is all that deployments are told of others.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.simulate.race import with_charges
from tests.simulate.swarm import held, is_ready
from tests.support import build
from tests.support.crossplane import ControlPlane, Name, Step, fresh_copy

if TYPE_CHECKING:
    from tests.support.drive import Answer

Plain = dict[str, Any]
Pool = tuple[str, str]

PENDING, SETTLED = 15.0, 60.0
"""Times to live, in seconds."""
END = 1_800.0
"""Seconds after which an episode is over, at rest or not."""


@dataclass(frozen=True)
class Kind:
    """What kind of burst."""

    deployments: int = 10
    replicas: tuple[int, ...] = (1, 2, 3)
    clusters: int = 12
    nodes: tuple[int, ...] = (2,)
    copies: tuple[int, ...] = (1,)
    within: float = 4.0
    queue: tuple[float, float] = (1.0, 50.0)
    start: float | None = None
    """Mean seconds until a replica that has its nodes is Ready; None: none ever is."""


@dataclass
class Burst:
    """One episode."""

    seed: int
    input: Plain
    kind: Kind = field(default_factory=Kind)
    wanted: dict[str, Plain] = field(default_factory=dict)
    """The specs of the deployments, by name."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """What each was answered last."""
    reasons: dict[str, set[str]] = field(default_factory=dict)
    """Every reason that a condition of it had."""
    passes: dict[str, Counter[float]] = field(default_factory=dict)
    """How many replicas it gave up, by when."""
    leaving: set[str] = field(default_factory=set)
    """Replicas that were deleted."""
    running: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    """What has its nodes: cluster, pool and nodes by replica."""
    ready_removed: list[str] = field(default_factory=list)
    """Replicas that were Ready when they were deleted."""
    quiet_since: float = 0.0
    """When a replica was created or deleted last."""

    def __post_init__(self) -> None:
        """Draw the fleet and the deployments."""
        self.draw, kind = random.Random(f"burst {self.seed}"), self.kind
        pipeline = [Step(fresh_copy().answer, input=self.input or None)]
        self.plane = ControlPlane({"ModelDeployment": pipeline}, "2.3", kind.queue, seed=self.seed)
        self.plane.listener, self.plane.hearer = self._listen, self._hear
        self.sizes: dict[Pool, int] = {}
        self.by_charges = self.input.get("capacity") == "Published"
        for number in range(kind.clusters):
            nodes, name = self.draw.choice(kind.nodes), f"c{number:02}"
            cluster = build.cluster(name, [build.pool("p", nodes)])
            self.sizes[name, "p"] = nodes
            self.plane.write(with_charges(cluster, []) if self.by_charges else cluster)
            if self.by_charges:
                self.plane.after(self.draw.uniform(0, SETTLED), lambda cluster=cluster: self._read(cluster))
        names = [f"model-{number:02}" for number in range(kind.deployments)]
        self.draw.shuffle(names)
        for number, name in enumerate(names):
            self.plane.after(number * kind.within / len(names), lambda name=name: self._create(name))

    def _read(self, cluster: Plain) -> None:
        """Let a cluster take its snapshot; what it publishes is applied when its turn has come."""
        name = cluster["metadata"]["name"]
        here = [plain for plain in self.replicas.values() if plain["spec"]["clusterName"] == name]
        published = with_charges(cluster, here)
        self.plane.after(self.draw.uniform(*self.kind.queue), lambda: self._publish(cluster, published))

    def _publish(self, cluster: Plain, published: Plain) -> None:
        self.plane.patch(
            Name("InferenceCluster", "", cluster["metadata"]["name"]), status=published["status"]
        )
        life = PENDING if "givesWay" in published["status"]["gpuPools"][0]["charged"] else SETTLED
        self.plane.after(life * self.draw.uniform(0.9, 1.1), lambda: self._read(cluster))

    def _create(self, name: str) -> None:
        members = [build.member(devices=[build.request("gpu", 8)])]
        engine = build.engine(members=members, copies=self.draw.choice(self.kind.copies))
        plain = build.deployment(name, self.draw.choice(self.kind.replicas), [engine])
        for given in ("uid", "creationTimestamp", "generation"):
            plain["metadata"].pop(given, None)
        self.wanted[name], self.passes[name], self.reasons[name] = plain["spec"], Counter(), set()
        self.plane.write(plain)

    def _hear(self, name: Name, answer: Answer) -> None:
        self.answers[name.name] = answer
        self.reasons[name.name] |= {reason for _, reason, _ in answer.conditions.values()}

    def _listen(self, event: str, plain: Plain) -> None:
        """Follow replicas: when they come, leave and are gone."""
        name = plain["metadata"]["name"]
        if plain["kind"] != "ModelReplica" or (event == "MODIFIED" and name in self.leaving):
            return
        if event == "ADDED":
            self.quiet_since = self.plane.now
            if self.kind.start is not None:
                self.plane.after(self.draw.expovariate(1 / self.kind.start), lambda: self._start(name))
        elif event == "DELETED":
            self.running.pop(name, None)
            self.leaving.discard(name)
        elif "deletionTimestamp" in plain["metadata"]:
            self.leaving.add(name)
            self.quiet_since = self.plane.now
            self.passes[deployment_of(plain)][self.plane.now] += 1
            self.ready_removed += [name] if is_ready(plain) else []

    def _start(self, name: str) -> None:
        """Make a replica Ready if its pool has nodes left for it; else try again."""
        plain = self.replicas.get(name)
        if plain is None or is_ready(plain):
            return
        cluster, pool, nodes = held(plain)
        used = sum(count for where, of, count in self.running.values() if (where, of) == (cluster, pool))
        if used + nodes > self.sizes[cluster, pool]:
            self.plane.after(self.draw.uniform(1, 5), lambda: self._start(name))
            return
        self.running[name] = cluster, pool, nodes
        status = {"conditions": [build.condition("Ready", status=True)]}
        self.plane.patch(Name("ModelReplica", plain["metadata"]["namespace"], name), status=status)

    def play(self) -> Burst:
        """Play until nothing has been created or deleted for some time, or time is up.

        That is as long as it takes until a change is noticed: three settled times to live, or five where a
        cluster must notice it first and each waits for its turn in the queue.
        """
        rest = (5 if self.by_charges else 3) * SETTLED
        while self.plane.now < min(END, self.quiet_since + rest):
            self.plane.run(1.0)
        return self

    @property
    def replicas(self) -> dict[str, Plain]:
        """The replicas, those that leave among them."""
        return {name.name: plain for name, plain in self.plane.objects.of_kind("ModelReplica").items()}

    def charged(self) -> Counter[Pool]:
        """Nodes that living replicas hold, by pool."""
        nodes: Counter[Pool] = Counter()
        for name, replica in self.replicas.items():
            cluster, pool, number = held(replica)
            nodes[cluster, pool] += number * (name not in self.leaving)
        return nodes

    def excess(self) -> dict[Pool, int]:
        """Nodes that pools hold beyond what they have, where they do."""
        beyond = {pool: nodes - self.sizes[pool] for pool, nodes in self.charged().items()}
        return {pool: nodes for pool, nodes in sorted(beyond.items()) if nodes > 0}

    def missing(self) -> set[str]:
        """The deployments of which a replica has no place."""
        living = Counter(
            deployment_of(plain) for name, plain in self.replicas.items() if name not in self.leaving
        )
        return {name for name, spec in self.wanted.items() if living[name] < spec["replicas"]}


def deployment_of(replica: Plain) -> str:
    """Return the name of the deployment of a replica."""
    return str(replica["metadata"]["labels"]["modelplane.ai/deployment"])
