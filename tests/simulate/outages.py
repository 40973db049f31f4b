"""Days on which clusters are cut off and come back, clocks are wrong, and time goes on.

Every step is ten minutes. A cluster that is reached publishes a heartbeat that is up to a quarter of an hour
old; one that is cut off publishes nothing new, and everything it has said of itself and of its replicas
stays. A replica is Ready twenty minutes after it was placed, where its cluster is reached. Whole days have
neither heartbeats nor hours to wait for, so evacuation is proven here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function.api.text import seconds_of, text_of
from tests.simulate.driven import CLUSTER, DEPLOYMENT, REPLICA, Driven
from tests.simulate.episode import BrokenPromise
from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.crossplane import VERSIONS, name_of

if TYPE_CHECKING:
    from tests.support.drive import Answer
    from tests.support.parts import Source
    from tests.support.world import World

Plain = dict[str, Any]

STEP, LAG, COARSE, STARTS = 600, 900, 300, 1_200
"""Seconds of a step, of the oldest heartbeat of a cluster that is reached, of a step of heartbeats, and of a
replica's start."""
AFTER = 3_600
WRONG = (365 * 86_400, 3_000, -365 * 86_400)
"""By how much a clock may be wrong."""


@dataclass
class Outages:
    """A fleet, one deployment, and the true time."""

    draw: Source
    names: str
    wanted: int
    now: int = field(default=(seconds_of(build.CREATED) or 0) + 86_400)
    cut: dict[str, int] = field(default_factory=dict)
    """Clusters that are cut off, and since when."""
    wrong: dict[str, int] = field(default_factory=dict)
    """Clusters whose clock is wrong, and by how much."""
    born: dict[str, int] = field(default_factory=dict)
    """When each replica was placed."""
    given_up: int = 0

    def __post_init__(self) -> None:
        """Make the fleet and the deployment."""
        placement = {"evacuate": {"afterSeconds": AFTER}, "disruption": {"maxUnavailable": 1}}
        fleet = clusters(**dict.fromkeys(self.names, 9))
        version = self.draw.choice(VERSIONS)
        self.plane = Driven([*fleet, ask(self.wanted, placement=placement)], self._look, version=version)
        (self.of,) = self.plane.living(DEPLOYMENT)

    @property
    def running(self) -> dict[str, Plain]:
        """The replicas that exist, by key."""
        composed = self.plane.composed(self.of)
        return {key: manifest for key, manifest in composed.items() if manifest["kind"] == REPLICA}

    def step(self) -> None:
        """Let ten minutes pass."""
        self.now += STEP
        for name, cluster in self.plane.living(CLUSTER).items():
            if name.name not in self.cut:
                seen = self.now - self.draw.randrange(LAG - COARSE) + self.wrong.get(name.name, 0)
                heartbeat = text_of(seen - seen % COARSE)
                self.plane.patch(name, status={**cluster["status"], "heartbeat": heartbeat})
        for key, replica in self.running.items():
            placed = self.born.setdefault(replica["metadata"]["uid"], self.now)
            if key.split("-")[1] not in self.cut:
                ready = build.condition("Ready", status=self.now >= placed + STARTS)
                since = placed + STARTS if ready["status"] == "True" else placed
                condition = ready | {"lastTransitionTime": text_of(since)}
                self.plane.patch(name_of(replica), status={"conditions": [condition]})
        self.plane.reconcile(self.of)
        self.plane.age()

    def _look(self, world: World, answer: Answer) -> None:
        if len(answer.replicas) > self.wanted:
            raise BrokenPromise(f"{len(answer.replicas)} replicas for {self.wanted} wanted")
        for key in self.running.keys() - answer.desired.keys():
            cluster = key.split("-")[1]
            self.given_up += 1
            long = self.now - self.cut.get(cluster, self.now) >= AFTER - LAG
            if not long and self.wrong.get(cluster, 0) >= -AFTER:
                raise BrokenPromise(f"{key} was given up, and {cluster} is well\n{world.dump()}")
