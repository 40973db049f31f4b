"""Deployments created within seconds, as in a living control plane: read early, applied late.

Crossplane takes the snapshot of a reconcile when it starts, up to a hundred at a time; then the calls and
the applies queue for processor time and for the API server. So an answer may be applied most of a minute
after what it was computed from, and everybody's at once. That is `tests.support.crossplane` with a long
queue. Here are the deployments, and the clusters: a node runs one replica at a time, and which of those that
wait for it is up to its cluster. The clusters read and publish in the same way, which pools hold too much.
With `capacity: Published` they publish what is held, and that is all that deployments are told of others.

Days (`swarm`) have the settings of the shipped Composition. Here each is played without the others, and
several deployments pass a quota at once.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import yaml

from example.caller import COMPOSITION
from function.api import replica as replica_api
from function.boundary import PlainDocument
from function.cluster.publish import charge, flag
from tests.simulate.episode import BrokenPromise
from tests.simulate.sights import owner
from tests.simulate.swarm import held, is_ready
from tests.support import build
from tests.support.crossplane import ControlPlane, Name, Step, fresh_copy, name_of

if TYPE_CHECKING:
    from function.api.replica import ModelReplica
    from tests.support.drive import Answer

Plain = dict[str, Any]
Pool = tuple[str, str]

PENDING, SETTLED = 15.0, 60.0
"""Times to live, in seconds."""
SHIPPED: Plain = yaml.safe_load(COMPOSITION.read_text())["spec"]["pipeline"][0]["input"]
END = 1_800.0
"""Seconds after which an episode is over, at rest or not."""
PASSES = 4, 12
"""How often one deployment gives something up, at most; more often where it reads what clusters publish."""
QUIET = 360.0, 1_200.0
"""Seconds from the last disturbance until nothing is created or deleted, likewise.

They are a few times the longest queue and time to live. What clusters publish is read in a reconcile of its
own, so each step of mending waits for two.
"""
DISTURBED = 120.0
"""Seconds in which somebody interferes."""


@dataclass(frozen=True)
class Kind:
    """What kind of burst."""

    deployments: int = 10
    replicas: tuple[int, ...] = (1, 2, 3)
    clusters: int = 12
    pools: tuple[int, ...] = (1,)
    nodes: tuple[int, ...] = (2,)
    copies: tuple[int, ...] = (1,)
    within: float = 4.0
    queue: tuple[float, float] = (1.0, 50.0)
    start: float | None = None
    """Mean seconds until a replica that has its nodes is Ready; None: none ever is."""
    disturbances: int = 0
    """How often somebody deletes a replica or wants one more."""


SMALL = Kind(4, (1, 1, 2, 3), 3, (1, 2), (1, 1, 2, 3), (1, 1, 2), within=0.0, start=8.0)
CHURN = replace(SMALL, within=4.0, disturbances=5)


@dataclass
class Burst:
    """One episode."""

    seed: int
    input: Plain
    kind: Kind = field(default_factory=Kind)
    left_out: frozenset[int] = frozenset()
    """Numbers of the deployments that are not created, and of the disturbances that do not happen."""
    happened: list[str] = field(default_factory=list)
    """What a failing seed is read by."""
    wanted: dict[Name, Plain] = field(default_factory=dict)
    """The specs of the deployments."""
    answers: dict[Name, Answer] = field(default_factory=dict)
    """What each was answered last."""
    reasons: dict[Name, set[str]] = field(default_factory=dict)
    """Every reason that a condition of it had."""
    events: Counter[str] = field(default_factory=Counter)
    """In how many answers there was an event of a reason."""
    passes: dict[Name, Counter[float]] = field(default_factory=dict)
    """How many replicas it gave up, by when."""
    leaving: set[Name] = field(default_factory=set)
    """Replicas that were deleted."""
    running: dict[Name, tuple[str, str, int]] = field(default_factory=dict)
    """What has its nodes: cluster, pool and nodes by replica."""
    by_hand: set[Name] = field(default_factory=set)
    """Those that somebody deleted."""
    ready_removed: list[Name] = field(default_factory=list)
    """Replicas that were Ready when they were given up."""
    overcommitted: set[Pool] = field(default_factory=set)
    """Pools that held more than they have at some time."""
    disturbed: float = 0.0
    """When somebody interfered last."""
    quiet_since: float = 0.0
    """When a replica was created or deleted last."""

    def __post_init__(self) -> None:
        """Draw the fleet and the deployments."""
        self.draw, kind = random.Random(f"burst {self.seed}"), self.kind
        pipeline = [Step(fresh_copy().answer, input=self.input or None)]
        self.plane = ControlPlane({"ModelDeployment": pipeline}, "2.3", kind.queue, seed=self.seed)
        self.plane.listener, self.plane.hearer = self.listen, self.hear
        self.sizes: dict[Pool, int] = {}
        self.by_charges = self.input.get("capacity") == "Published"
        for number in range(kind.clusters):
            name = f"c{number:02}"
            pools = {f"p{of}": self.draw.choice(kind.nodes) for of in range(self.draw.choice(kind.pools))}
            cluster = build.cluster(name, [build.pool(pool, nodes) for pool, nodes in pools.items()])
            self.sizes |= {(name, pool): nodes for pool, nodes in pools.items()}
            self.plane.write(self.published(cluster))
            self.plane.after(self.draw.uniform(0, SETTLED), lambda cluster=cluster: self._read(cluster))
        names = [f"model-{number:02}" for number in range(kind.deployments)]
        self.draw.shuffle(names)
        moments = [number * kind.within / len(names) for number in range(len(names))]
        created = [partial(self.create, name) for name in names]
        moments += [self.draw.uniform(kind.within, DISTURBED) for _ in range(kind.disturbances)]
        self.chances = len(moments)
        for number, moment in enumerate(moments):
            if number not in self.left_out:
                self.plane.after(moment, created[number] if number < len(names) else self.interfere)

    def _read(self, cluster: Plain) -> None:
        """Let a cluster take its snapshot; what it publishes is applied when its turn has come."""
        published = self.published(cluster)
        self.plane.after(self.draw.uniform(*self.kind.queue), lambda: self._publish(cluster, published))

    def published(self, cluster: Plain) -> Plain:
        """Return a cluster with what it publishes: what is held, or which pools hold too much."""
        summed = charge if self.by_charges else flag
        replicas = map(parsed, self.plane.objects.of_kind("ModelReplica").values())
        pools = summed(cluster["metadata"]["name"], cluster["status"]["gpuPools"], replicas)
        return cluster | {"status": cluster["status"] | {"gpuPools": pools}}

    def _publish(self, cluster: Plain, published: Plain) -> None:
        where, status = Name("InferenceCluster", "", cluster["metadata"]["name"]), published["status"]
        self.plane.patch(where, status=status)
        mends = status.get("givesWay") or any(
            "givesWay" in pool.get("charged", ()) for pool in status["gpuPools"]
        )
        life = PENDING if mends else SETTLED
        self.plane.after(life * self.draw.uniform(0.9, 1.1), lambda: self._read(cluster))

    def interfere(self) -> None:
        """Let somebody interfere, once there is anything to interfere with."""
        if self.wanted:
            self.disturbed = self.plane.now
            self.disturb()

    def note(self, words: str) -> None:
        """Write down what somebody did."""
        self.happened.append(f"{self.plane.now:.0f} s {words}")

    def disturb(self) -> None:
        """Let somebody delete a replica, or want one more."""
        standing = sorted(self.replicas())
        if standing and self.draw.random() < 0.6:
            name = self.draw.choice(standing)
            self.by_hand.add(name)
            self.note(f"{name.name} is deleted")
            self.plane.delete(name, by_hand=True)
        else:
            self.scale(self.draw.choice(sorted(self.wanted)), 1)

    def scale(self, name: Name, by: int) -> None:
        """Let a deployment want more or fewer replicas, and one at least."""
        self.wanted[name] = {**self.wanted[name], "replicas": max(1, self.wanted[name]["replicas"] + by)}
        self.note(f"{name.name} wants {self.wanted[name]['replicas']}")
        self.plane.patch(name, spec=self.plane.objects[name]["spec"] | self.wanted[name])

    def create(self, name: str) -> None:
        """Create a deployment."""
        self.admit(self.wish(name))

    def admit(self, plain: Plain) -> None:
        """Write a new deployment."""
        for given in ("uid", "creationTimestamp", "generation"):
            plain["metadata"].pop(given, None)
        where = name_of(plain)
        self.wanted[where], self.passes[where], self.reasons[where] = plain["spec"], Counter(), set()
        self.note(f"{where.name} is created, and wants {plain['spec']['replicas']}")
        self.plane.write(plain)

    def wish(self, name: str) -> Plain:
        """Return a deployment as somebody wants it."""
        members = [build.member(devices=[build.request("gpu", 8)])]
        engine = build.engine(members=members, copies=self.draw.choice(self.kind.copies))
        return build.deployment(name, self.draw.choice(self.kind.replicas), [engine])

    def hear(self, name: Name, answer: Answer) -> None:
        """Note what is answered."""
        self.answers[name] = answer
        self.reasons[name] |= {reason for _, reason, _ in answer.conditions.values()}
        self.events.update({reason for _, reason, _ in answer.events})

    def listen(self, event: str, plain: Plain) -> None:
        """Follow replicas: when they come, leave and are gone."""
        name = name_of(plain)
        if name.kind != "ModelReplica" or (event == "MODIFIED" and name in self.leaving):
            return
        if event == "ADDED":
            self.quiet_since = self.plane.now
            self.overcommitted |= self.excess().keys()
            self.start(name)
        elif event == "DELETED":
            self.running.pop(name, None)
            self.leaving.discard(name)
            self.by_hand.discard(name)
        elif "deletionTimestamp" in plain["metadata"]:
            self.leaving.add(name)
            self.quiet_since = self.plane.now
            if name not in self.by_hand:
                self.passes[deployment_of(plain)][self.plane.now] += 1
                self.ready_removed += [name] if is_ready(plain) else []

    def start(self, name: Name) -> None:
        """Let a replica become Ready after some time."""
        if self.kind.start is not None:
            self.plane.after(self.draw.expovariate(1 / self.kind.start), lambda: self._start(name))

    def _start(self, name: Name) -> None:
        """Make a replica Ready if its pool has nodes left for it; else try again."""
        plain = self.plane.objects.get(name)
        if plain is None or is_ready(plain):
            return
        cluster, pool, nodes = held(plain)
        others = [where for other, where in self.running.items() if other != name]
        used = sum(count for where, of, count in others if (where, of) == (cluster, pool))
        if used + nodes > self.sizes[cluster, pool]:
            self.plane.after(self.draw.uniform(1, 5), lambda: self._start(name))
            return
        self.running[name] = cluster, pool, nodes
        self.plane.patch(name, status={"conditions": [build.condition("Ready", status=True)]})

    def live(self) -> Self:
        """Play to the end. Raises BrokenPromise."""
        if complaints := self.play().broken():
            raise BrokenPromise("\n".join([f"seed {self.seed}", *self.happened, *complaints]))
        return self

    def play(self) -> Self:
        """Play until nothing has been created or deleted for some time, or time is up.

        That is as long as it takes until a change is noticed, by a cluster first, and each waits for its turn
        in the queue.
        """
        while self.plane.now < min(END, max(self.quiet_since, self.disturbed) + 5 * SETTLED):
            self.plane.run(1.0)
        return self

    def replicas(self) -> dict[Name, Plain]:
        """Return the replicas that nobody deleted."""
        of_kind = self.plane.objects.of_kind("ModelReplica")
        return {name: plain for name, plain in of_kind.items() if name not in self.leaving}

    def charged(self) -> Counter[Pool]:
        """Nodes that living replicas hold, by pool."""
        nodes: Counter[Pool] = Counter()
        for cluster, pool, number in map(held, self.replicas().values()):
            nodes[cluster, pool] += number
        return nodes

    def excess(self) -> dict[Pool, int]:
        """Nodes that pools hold beyond what they have, where they do."""
        beyond = {pool: nodes - self.sizes[pool] for pool, nodes in self.charged().items()}
        return {pool: nodes for pool, nodes in sorted(beyond.items()) if nodes > 0}

    def missing(self) -> dict[Name, int]:
        """Return the deployments of which a replica has no place, and the nodes that one needs."""
        living = Counter(map(deployment_of, self.replicas().values()))
        return {
            name: spec["template"]["spec"]["engines"][0]["copies"]
            for name, spec in sorted(self.wanted.items())
            if living[name] < spec["replicas"]
        }

    def unsettled(self, quiet: float) -> list[str]:
        """Return which pools are overcommitted at rest, and that it was late."""
        moved = self.quiet_since - self.disturbed
        complaints = [f"{pool} holds {nodes} too many" for pool, nodes in self.excess().items()]
        return complaints + [f"it moved {moved:.0f} s after the last event"] * (moved >= quiet)

    def broken(self) -> list[str]:
        """Return what must not be in the end, and what must not have been."""
        complaints = self.unsettled(QUIET[self.by_charges])
        complaints += [f"{name} was Ready, and was given up" for name in self.ready_removed]
        for name, passes in self.passes.items():
            if len(passes) > PASSES[self.by_charges]:
                complaints.append(f"{name} gave something up {len(passes)} times")
        used = self.charged()
        for quota in self.input.get("quotas", ()):
            if used.total() > quota["atMost"]["nodes"] and not all(map(is_ready, self.replicas().values())):
                complaints.append(f"{used.total()} nodes are held, and somebody who is not Ready stays")
        most = max(size - used[pool] for pool, size in self.sizes.items())
        for name, nodes in self.missing().items() if "quotas" not in self.input else ():
            if most >= nodes:
                complaints.append(f"{name} has no place, and a pool has {most} free")
        return complaints


def deployment_of(replica: Plain) -> Name:
    """Return the deployment of a replica."""
    return Name("ModelDeployment", *owner(replica))


def parsed(replica: Plain) -> ModelReplica:
    """Return a replica as the function reads it."""
    return replica_api.parse(PlainDocument(replica))


def limited(nodes: int) -> Plain:
    """Return settings in which everybody together may hold so many nodes."""
    quota = {"name": "few", "namespaces": [build.NAMESPACE], "atMost": {"nodes": nodes}}
    return {"overcommit": "Yield", "quotas": [quota]}
