"""Deployments of several priority classes on a fleet that is too small, with budgets, quotas and guarantees.

As `burst`, and beside it: clusters that arbitrate, lower classes that came first, replicas that fail. Whole
days with classes (`whole`) look at who gives way, and so does `sights` here. Here it is looked at what stands
at rest, too: who waits in vain for what a lower class or a borrower holds, and which note is not true.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from function.api import InferenceCluster
from function.cluster.arbiter import gives_way
from function.scheduler.ledger import Ledger
from tests.simulate.burst import CHURN, Burst, Kind, Pool, deployment_of, parsed
from tests.simulate.sights import CLASSES, VALUES, Sights, rank, standing
from tests.simulate.swarm import WINDOW, held
from tests.support import build
from tests.support.crossplane import Name

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.drive import Answer

Plain = dict[str, Any]
PREEMPTS = frozenset(row["name"] for row in CLASSES if row["preempts"])
ON = {"overcommit": "Yield", "priorityClasses": CLASSES}
CONTESTED = replace(CHURN, deployments=5, disturbances=6)
PRESSED = 100.0
"""Seconds until those that others make room for are created: what came first runs then."""
QUIET = 1_200.0
"""Seconds from the last disturbance until nothing is created or deleted: everybody waits for clusters."""


@dataclass
class Contest(Burst):
    """One episode."""

    kind: Kind = CONTESTED
    sights: Sights = field(default_factory=Sights)
    faults: list[str] = field(default_factory=list)
    """Replicas that were given up against a promise."""

    def create(self, name: str) -> None:
        """Create a deployment, later if others make room for it, which then wants more."""
        if self.plane.now < PRESSED and not self.comes_first(wish := self.wish(name)):
            wish["spec"]["replicas"] += self.draw.choice((1, 2))
            self.disturbed = PRESSED
            self.plane.after(PRESSED, lambda: self.admit(wish))
        else:
            self.admit(wish)

    def wish(self, name: str) -> Plain:
        """Let a deployment have a class and budgets, too."""
        plain, placement = super().wish(name), {}
        if named := self.draw.choice(("vip", "high", "low", "low", "")):
            placement["priorityClassName"] = named
        if self.draw.random() < 0.25:
            placement["disruption"] = {"maxUnavailable": self.draw.choice((1, 2))}
        plain["spec"] |= {"placement": placement}
        if self.draw.random() < 0.25:
            plain["spec"]["minReplicas"] = 1
        return plain

    def comes_first(self, deployment: Plain) -> bool:
        """Whether a deployment is there before others make room for themselves."""
        return class_of(deployment["spec"]) not in PREEMPTS

    def published(self, cluster: Plain) -> Plain:
        """Return a cluster with what it publishes, and who gives way on it."""
        made, ledger = super().published(cluster), Ledger([InferenceCluster.parse(cluster)])
        for plain in self.plane.objects.of_kind("ModelReplica").values():
            ledger.open(parsed(plain), plain["spec"]["clusterName"])
        ways = gives_way(ledger, cluster["metadata"]["name"])
        return made | {"status": made["status"] | {"givesWay": ways}}

    def disturb(self) -> None:
        """Let a replica fail, too, or somebody want one less."""
        standing, drawn = sorted(self.replicas()), self.draw.random()
        if standing and drawn < 0.5:
            name = self.draw.choice(standing)
            self.note(f"{name.name} fails")
            self.plane.patch(name, status={"conditions": [build.condition("Ready", status=False)]})
            self.start(name)
        elif drawn < 0.65:
            self.scale(self.draw.choice(sorted(self.wanted)), -1)
        else:
            super().disturb()

    def hear(self, name: Name, answer: Answer) -> None:
        """Hold what is given up against what could be known."""
        super().hear(name, answer)
        self.faults += self.sights.unfair(self, name, answer)

    def listen(self, event: str, plain: Plain) -> None:
        """Note who is Ready, and who waits for others to give way."""
        super().listen(event, plain)
        if plain["kind"] == "ModelReplica":
            self.sights.note(self, plain)

    def broken(self) -> list[str]:
        """Return what must not be in the end, and who was given up against a promise."""
        return self.unsettled(QUIET) + self.faults + self.wronged()

    def wronged(self) -> list[str]:
        """Return the deployments that wait for what one of a lower class holds that could be spared."""
        return [
            complaint
            for name in self.missing()
            if class_of(self.wanted[name]) in PREEMPTS
            for complaint in self.in_vain(
                name, lambda plain, name=name: rank(self, plain) < VALUES[class_of(self.wanted[name])]
            )
        ]

    def in_vain(self, name: Name, goes: Callable[[Plain], bool]) -> list[str]:
        """Return the pools with room for one more of a deployment, once those that may go have left them."""
        if self.wanted[name].get("minReplicas", 0) > 1:
            return []
        room, spent = Counter[Pool](self.sizes), Counter[tuple[Pool, Name]]()
        room.subtract(self.charged())
        for plain in sorted(self.replicas().values(), key=lambda plain: held(plain)[2]):
            cluster, pool, nodes = held(plain)
            notes, of = parsed(plain).notes, ((cluster, pool), deployment_of(plain))
            if goes(plain) and notes is not None:
                spent[of] += 1
                room[cluster, pool] += nodes * (spent[of] <= notes.spared)
        return [f"{name} waits for {pool}" for pool, nodes in room.items() if nodes >= self.missing()[name]]


def class_of(spec: Plain) -> str:
    """Return the class that a deployment names, "" for none."""
    return str(spec["placement"].get("priorityClassName", ""))


NAMESPACES = (build.NAMESPACE, "team-b", "third")


@dataclass
class Teams(Contest):
    """Three teams. The third is under no guarantee, or is guaranteed nothing."""

    stood: dict[Name, str] = field(default_factory=dict)
    """How every replica stands to what is guaranteed."""
    outside: dict[Name, float] = field(default_factory=dict)
    """When each was not within its guarantee last, or came."""

    def __post_init__(self) -> None:
        """Draw what is guaranteed, and at most, of a fleet of a dozen nodes."""
        draw = random.Random(f"teams {self.seed}")
        self.guaranteed = {NAMESPACES[0]: draw.choice((2, 3, 4)), NAMESPACES[1]: draw.choice((0, 1, 2))}
        if draw.random() < 0.5:
            self.guaranteed[NAMESPACES[2]] = 0
        self.most = draw.choice((None, None, 5))
        quotas: list[Plain] = [
            {"name": f"of-{team}", "namespaces": [team], "guaranteed": {"nodes": nodes}}
            for team, nodes in self.guaranteed.items()
        ]
        if self.most is not None:
            quotas[0]["atMost"] = {"nodes": self.most}
        self.input = self.input | {"quotas": quotas}
        super().__post_init__()

    def wish(self, name: str) -> Plain:
        """Let a deployment be of a team; those of others than the first want more, and few have a class."""
        plain = super().wish(name)
        plain["metadata"]["namespace"] = self.draw.choice(NAMESPACES)
        if class_of(plain["spec"]) == "high" or self.draw.random() < 0.6:
            plain["spec"]["placement"].pop("priorityClassName", None)
        plain["spec"]["replicas"] += 2 * self.comes_first(plain)
        return plain

    def comes_first(self, deployment: Plain) -> bool:
        """Tell who cannot preempt, but for the first team's without a class: these borrow what is its own."""
        named, team = class_of(deployment["spec"]), deployment["metadata"]["namespace"]
        return named not in PREEMPTS and (team != NAMESPACES[0] or named != "")

    def listen(self, event: str, plain: Plain) -> None:
        """Follow who is within its guarantee."""
        super().listen(event, plain)
        before, self.stood = self.stood, self.standings()
        for name, word in self.stood.items():
            if {word, before.get(name)} != {"Within"}:
                self.outside[name] = self.plane.now

    def hear(self, name: Name, answer: Answer) -> None:
        """Let a replica that has long been within its guarantee give way to nobody of another team."""
        since = self.plane.now - WINDOW
        self.sights.guaranteed = {of for of in self.stood if self.outside[of] < since}
        super().hear(name, answer)

    def wronged(self) -> list[str]:
        """Return notes that are not true, and who waits within its guarantee for what others borrow."""
        replicas, stands = self.replicas(), self.standings()
        wrong = [
            f"{name} notes {word}"
            for name, plain in replicas.items()
            if (word := standing(plain)) != stands.get(name, "")
        ]
        for name, nodes in self.missing().items():
            team = name.namespace
            holds = sum(held(plain)[2] for other, plain in replicas.items() if other.namespace == team)
            if holds + nodes <= self.guaranteed.get(team, -1):
                foreign = [one for one in replicas.values() if one["metadata"]["namespace"] != team]
                wrong += self.in_vain(
                    name, lambda plain, of=foreign: plain in of and standing(plain) == "Borrowed"
                )
        return wrong

    def standings(self) -> dict[Name, str]:
        """Return how every replica stands to what is guaranteed, by the sentences of docs/priority.md."""
        stands = {}
        for team, most in self.guaranteed.items():
            members = [
                (-rank(self, plain), plain["metadata"]["creationTimestamp"], name)
                for name, plain in self.replicas().items()
                if name.namespace == team
            ]
            total = 0
            for _, _, name in sorted(members):
                total += held(self.replicas()[name])[2]
                stands[name] = "Within" if total <= most else "Borrowed"
        return stands

    def passes_quota(self) -> bool:
        """Whether the first team holds more than it may: two passed it at once, and were Ready early."""
        of = [held(plain)[2] for name, plain in self.replicas().items() if name.namespace == NAMESPACES[0]]
        return self.most is not None and sum(of) > self.most
