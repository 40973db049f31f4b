"""Deployments of several priority classes on a fleet that is too small, read from lists that lag behind.

As `race`, and beside it: clusters that arbitrate, budgets of deployments, replicas that fail. It is recorded
which Ready replica the function gave up, and held against what was true at that moment.

Whole days with classes (`whole`) look at who gives way. Here it is looked at what stands at rest, too: who
waits in vain for what a lower class or a borrower holds, and which note is not true.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from function.api import InferenceCluster, replica as replica_api
from function.boundary import PlainDocument
from function.cluster.arbiter import gives_way
from function.scheduler.ledger import Ledger
from tests.simulate.race import Race, frozen, held, is_ready, label
from tests.support import build

if TYPE_CHECKING:
    from function.api.replica import ModelReplica

Plain = dict[str, Any]
VALUES = {"vip": 100, "high": 50, "low": 10, "": 0}
PREEMPTS = ("vip", "high")
CLASSES = [
    {"name": name, "value": value, "preempts": name in PREEMPTS} for name, value in VALUES.items() if name
]
SETTLE, QUIET = 10, 3
"""Reconciles of each after the last event, and those after them in which nothing may happen."""


@dataclass
class Contest(Race):
    """One episode."""

    faults: list[str] = field(default_factory=list)
    """Ready replicas that were given up against a promise."""
    gave_way: int = 0
    """Ready replicas that gave way to a higher class."""
    yielded: int = 0
    unneeded: int = 0
    """Ready replicas that gave way though nobody there needed it any more: the list was old."""
    listed: list[Plain] = field(default_factory=list)
    """The replicas as the deployment that is asked about sees them."""
    moves: list[tuple[int, str]] = field(default_factory=list)
    """What was placed and given up, by round of settling."""
    round: int = -1
    ran: set[str] = field(default_factory=set)
    """The uids of replicas that were Ready: one that fails has its nodes until it is gone."""

    def _deployment(self, number: int) -> Plain:
        made = super()._deployment(number)
        draw = self.draw
        named = draw.choice(("vip", "high", "low", "low", ""))
        placement: Plain = {"priorityClassName": named} if named else {}
        if draw.random() < 0.25:
            placement["disruption"] = {"maxUnavailable": draw.choice((1, 2))}
        if placement:
            made["spec"]["placement"] = placement
        if draw.random() < 0.25:
            made["spec"]["minReplicas"] = 1
        return made

    def play(self) -> Self:
        """Play the episode: a time of trouble, then of rest with lists that are fresh."""
        for number in range(45):
            if number == 15:  # Lower classes came first and run; now those that preempt want more.
                for deployment in self.deployments:
                    if not self.comes_first(deployment):
                        deployment["spec"]["replicas"] += self.draw.choice((1, 2))
            self._one_step()
        for self.round in range(SETTLE + QUIET):
            for number in range(len(self.clusters)):
                self.past.append(self._listed())
                self._publish([number], 0)
                for deployment in self.draw.sample(self.deployments, len(self.deployments)):
                    self.past.append(self._listed())
                    self._reconcile(deployment, self.past[-1])
                    self._tick()
        return self

    def _one_step(self) -> None:
        if self.step < 15 and self.draw.random() < 0.5:
            first = [deployment for deployment in self.deployments if self.comes_first(deployment)]
            if first:
                self.past.append(self._listed())
                self._reconcile(self.draw.choice(first), self.past[-1])
                self._tick()
                return
        super()._one_step()

    def _disturb(self) -> None:
        """A replica fails, or is deleted; or somebody wants one more, or one less."""
        alive = sorted(set(self.replicas) - set(self.dying))
        if alive and self.draw.random() < 0.5:
            replica = self.replicas[self.draw.choice(alive)]
            replica["status"] = {"conditions": [build.condition("Ready", status=False)]}
        elif self.draw.random() < 0.3:
            spec = self.draw.choice(self.deployments)["spec"]
            spec["replicas"] = max(1, spec["replicas"] - 1)
        else:
            super()._disturb()

    def _published(self, cluster: Plain, listed: Any) -> Plain:
        """The cluster, and who gives way on it by a list."""
        name = cluster["metadata"]["name"]
        made = super()._published(cluster, listed)
        ledger = Ledger([InferenceCluster.parse(cluster)])
        for item in listed:
            ledger.open(replica_api.parse(PlainDocument(item)), item["spec"]["clusterName"])
        return made | {"status": made["status"] | {"givesWay": gives_way(ledger, name)}}

    def _reconcile(self, deployment: Plain, listed: list[Plain]) -> None:
        before = set(self.replicas)
        self.listed = listed
        super()._reconcile(deployment, listed)
        if self.round >= 0:
            self.moves += [(self.round, f"placed {name}") for name in sorted(set(self.replicas) - before)]
        answer = self.answers[deployment["metadata"]["name"]]
        self.yielded += any(result.reason == "ReplicaYielded" for result in answer.results)

    def _apply(self, deployment: Plain, observed: Plain | None, resource: Plain) -> None:
        if observed is not None:
            before = self.replicas[observed["metadata"]["name"]]
            before["metadata"]["labels"] = dict(resource["metadata"]["labels"])
        super()._apply(deployment, observed, resource)

    def _give_up(self, replica: Plain) -> None:
        """Hold what the function gives up against what is true now."""
        name = replica["metadata"]["name"]
        if self.round >= 0:
            self.moves.append((self.round, f"given up {name}"))
        parent = next(
            deployment
            for deployment in self.deployments
            if deployment["metadata"]["name"] == label(replica, "deployment")
        )
        if is_ready(replica) and len(self.observed_of(parent)) <= parent["spec"]["replicas"]:
            self.gave_way += 1
            pool = held(replica)[:2]
            living = [other for key, other in self.replicas.items() if key not in self.dying]
            waiting, listed = self._waiting(living, pool), self._waiting(self.listed, pool)
            if not waiting or pool not in self.crowded():
                self.unneeded += 1
            elif not any(self.outranks(other, replica) for other in waiting):
                # Who waits may have ranked higher in the list, and stand otherwise now.
                if any(self.outranks(other, replica) for other in listed):
                    self.unneeded += 1
                else:
                    self.faults.append(f"{name} gave way to no higher class")
            spec = parent["spec"]
            serving = sum(map(is_ready, self.observed_of(parent).values())) - 1
            most = spec.get("placement", {}).get("disruption", {}).get("maxUnavailable")
            if serving < min(spec.get("minReplicas", 0), spec["replicas"]):
                self.faults.append(f"{name} gave way below minReplicas")
            if most is not None and spec["replicas"] - serving > most:
                self.faults.append(f"{name} gave way beyond maxUnavailable")
        super()._give_up(replica)

    @staticmethod
    def _waiting(replicas: list[Plain], pool: tuple[str, str]) -> list[Plain]:
        """Those that wait in a pool for others to give way."""
        return [
            other
            for other in replicas
            if held(other)[:2] == pool and not is_ready(other)
            if other["metadata"]["labels"].get("modelplane.ai/preempting")
        ]

    def comes_first(self, deployment: Plain) -> bool:
        """Tell whether a deployment is placed before others make room for themselves."""
        return class_of(deployment) not in PREEMPTS

    def outranks(self, other: Plain, replica: Plain) -> bool:
        """Tell whether a replica may make another give way."""
        return VALUES[class_of(self.parent_of(other))] > VALUES[class_of(self.parent_of(replica))]

    def has_nodes(self, replica: Plain) -> bool:
        """Tell whether a replica has nodes: once it ran, until it is gone."""
        if is_ready(replica):
            self.ran.add(replica["metadata"]["uid"])
        return replica["metadata"]["uid"] in self.ran

    def parent_of(self, replica: Plain) -> Plain:
        """The deployment of a replica."""
        name = label(replica, "deployment")
        return next(one for one in self.deployments if one["metadata"]["name"] == name)

    def in_vain(self) -> list[str]:
        """Deployments that wait for a place though one of a lower class that could be spared has it."""
        waiting = []
        parsed = [
            replica_api.parse(PlainDocument(frozen(item)))
            for name, item in self.replicas.items()
            if name not in self.dying
        ]
        for deployment in self.deployments:
            named = class_of(deployment)
            missing = deployment["spec"]["replicas"] - len(self.observed_of(deployment))
            if named not in PREEMPTS or missing <= 0 or deployment["spec"].get("minReplicas", 0) > 1:
                continue
            needs = deployment["spec"]["template"]["spec"]["engines"][0].get("copies", 1)
            for cluster in self.clusters:
                for pool in cluster["status"]["gpuPools"]:
                    where = (cluster["metadata"]["name"], pool["name"])
                    here = [one for one in parsed if one.cluster == where[0] and where[1] in one.nodes]
                    room = pool["nodes"] - sum(one.nodes[where[1]] for one in here)
                    if room + sum(could_go(here, VALUES[named], where[1])) >= needs:
                        waiting.append(f"{deployment['metadata']['name']} on {where}")
        return waiting


def could_go(here: list[ModelReplica], value: int, pool: str) -> list[int]:
    """Nodes of those that could give way to a value; of each deployment the fewest that it spares hold."""
    spent, nodes = Counter[str](), []
    for one in sorted(here, key=lambda one: one.nodes[pool]):
        if one.priority is None or one.priority >= value or one.notes is None:
            continue
        spent[one.deployment] += 1
        if spent[one.deployment] <= one.notes.spared:
            nodes.append(one.nodes[pool])
    return nodes


def class_of(deployment: Plain) -> str:
    """The class that a deployment names; empty for none."""
    return str(deployment["spec"].get("placement", {}).get("priorityClassName", ""))


NAMESPACES = ("ml-team", "team-b", "third")


@dataclass
class Teams(Contest):
    """Three teams. The third is under no guarantee, or is guaranteed nothing."""

    returned: int = 0
    """Ready replicas that were given back."""

    def __post_init__(self) -> None:
        """Draw what is guaranteed, and at most, of a fleet of a dozen nodes."""
        draw = random.Random(-1 - self.seed)
        self.guaranteed = {"ml-team": draw.choice((2, 3, 4)), "team-b": draw.choice((0, 1, 2))}
        if draw.random() < 0.5:
            self.guaranteed["third"] = 0
        quotas: list[Plain] = [
            {"name": f"of-{name}", "namespaces": [name], "guaranteed": {"nodes": nodes}}
            for name, nodes in self.guaranteed.items()
        ]
        self.most = draw.choice((None, None, 5))
        if self.most is not None:
            quotas[0]["atMost"] = {"nodes": self.most}
        self.input = self.input | {"quotas": quotas}
        super().__post_init__()

    def _deployment(self, number: int) -> Plain:
        made = super()._deployment(number)
        made["metadata"]["namespace"] = self.draw.choice(NAMESPACES) if number else NAMESPACES[0]
        if class_of(made) == "high" or self.draw.random() < 0.6:
            made["spec"].get("placement", {}).pop("priorityClassName", None)
        if self.comes_first(made):
            made["spec"]["replicas"] += 2
        return made

    def comes_first(self, deployment: Plain) -> bool:
        """Others than the first team come first, and borrow what it is guaranteed."""
        return deployment["metadata"]["namespace"] != NAMESPACES[0]

    def _give_up(self, replica: Plain) -> None:
        answer = self.answers[label(replica, "deployment")]
        self.returned += is_ready(replica) and any(one.reason == "ReplicaReturned" for one in answer.results)
        super()._give_up(replica)

    def outranks(self, other: Plain, replica: Plain) -> bool:
        """Also what is borrowed, by its note, gives way: to who reclaims, and to every class."""
        word, right = note_of(replica).partition(" ")[0], note_of(other).partition(" ")[0]
        if word == "Within" and other["metadata"]["namespace"] != replica["metadata"]["namespace"]:
            return False
        return word == "Borrowed" != right or (right != "Reclaims" and super().outranks(other, replica))

    def standings(self) -> dict[str, str]:
        """How every living replica stands to what is guaranteed, by the sentences of docs/priority.md."""
        said = {}
        for team, most in self.guaranteed.items():
            members = [
                (-VALUES[class_of(self.parent_of(one))], one["metadata"]["creationTimestamp"], name)
                for name, one in self.replicas.items()
                if name not in self.dying and one["metadata"]["namespace"] == team
            ]
            total = 0
            for _, _, name in sorted(members):
                total += held(self.replicas[name])[2]
                said[name] = "Within" if total <= most else "Borrowed"
        return said

    def unjust(self) -> list[str]:
        """Notes that are not true, and who waits within its guarantee in vain."""
        said = self.standings()
        living = {name: one for name, one in self.replicas.items() if name not in self.dying}
        words = {
            name: note_of(one).partition(" ")[0].replace("Reclaims", "Within") for name, one in living.items()
        }
        wrong = [f"{name} notes {word}" for name, word in words.items() if word != said.get(name, "")]
        for deployment in self.deployments:
            team = deployment["metadata"]["namespace"]
            nodes = sum(held(one)[2] for one in living.values() if one["metadata"]["namespace"] == team)
            needs = deployment["spec"]["template"]["spec"]["engines"][0].get("copies", 1)
            missing = deployment["spec"]["replicas"] - len(self.observed_of(deployment))
            entitled = nodes + needs <= self.guaranteed.get(team, -1)
            if missing > 0 and entitled and deployment["spec"].get("minReplicas", 0) <= 1:
                borrowed = [one for name, one in living.items() if said.get(name) == "Borrowed"]
                places = self._returnable([one for one in borrowed if one["metadata"]["namespace"] != team])
                name = deployment["metadata"]["name"]
                wrong += [f"{name} waits for {where}" for where, room in places.items() if room >= needs]
        return wrong

    def passes_quota(self) -> bool:
        """Tell whether the first team holds more than it may: two passed it at once, and were Ready early."""
        held_by_team = sum(
            held(one)[2]
            for name, one in self.replicas.items()
            if name not in self.dying and one["metadata"]["namespace"] == NAMESPACES[0]
        )
        return self.most is not None and held_by_team > self.most

    def _returnable(self, borrowed: list[Plain]) -> dict[tuple[str, str], int]:
        """Nodes of each pool that are free, or would be without what was borrowed and can be spared."""
        room = {
            (cluster["metadata"]["name"], pool["name"]): int(pool["nodes"])
            for cluster in self.clusters
            for pool in cluster["status"]["gpuPools"]
        }
        for name, one in self.replicas.items():
            if name not in self.dying:
                room[held(one)[:2]] -= held(one)[2]
        spent = Counter[tuple[tuple[str, str], str]]()
        for one in sorted(borrowed, key=lambda one: held(one)[2]):
            spent[held(one)[:2], label(one, "deployment")] += 1
            notes = replica_api.parse(PlainDocument(frozen(one))).notes
            if notes and spent[held(one)[:2], label(one, "deployment")] <= notes.spared:
                room[held(one)[:2]] += held(one)[2]
        return room


def note_of(replica: Plain) -> str:
    """What a replica notes of its standing to guarantees."""
    return str(replica["metadata"].get("annotations", {}).get("modelplane.ai/guarantee", ""))
