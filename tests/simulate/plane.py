"""A control plane that behaves as Crossplane does, as far as a composition function can tell.

- A reconcile sends what is observed, asks again for what the function requires (one to three calls), deletes
  what is observed and not desired, and only then applies what is desired.
- What is deleted leaves the observed state at once and lives on, terminating, in the list of all replicas.
- An object keeps the name it has under its key.
- Reads come from caches: the list of all replicas may lag behind, and a requirement may fail to arrive.

`tests.support.crossplane` has clock and queue besides. Here a test decides who reconciles next and how old
the list is that it reads, and looks at each settled request with its answer.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support import build, drive
from tests.support.apply import edited
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.parts import Source

Plain = dict[str, Any]
Place = tuple[str, str]
"""Namespace and name."""

WITHHELD = {"clusters": "InferenceCluster", "all-replicas": "ModelReplica", "cache": "ModelCache"}
"""The kind that does not arrive, under any name, while a requirement is withheld."""
ROUNDS = 5
"""How often Crossplane calls a function in one reconcile while its requirements change."""


def place(manifest: Plain) -> Place:
    """Return where an object is."""
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


@dataclass
class Deployment:
    """One composite and what it composes."""

    plain: Plain
    observed: dict[str, Plain] = field(default_factory=dict)
    desired: dict[str, Plain] | None = None
    """What the latest answer desired."""
    calls: int = 0
    """Calls of the latest reconcile."""
    earlier: dict[str, Plain] | None = None
    """Its observed replicas as they were before, by key; None: they are read as they are."""

    @property
    def read(self) -> dict[str, Plain]:
        """The observed resources as Crossplane reads them: what was just created is in no cache yet."""
        earlier = self.earlier or {}
        return copy.deepcopy({key: earlier.get(key, made) for key, made in self.observed.items()})


@dataclass
class Plane:
    """All that the control plane knows."""

    clusters: dict[str, Plain]
    deployments: list[Deployment]
    caches: list[Plain] = field(default_factory=list)
    others: dict[Place, Plain] = field(default_factory=dict)
    """Replicas of no deployment of ours."""
    dying: dict[Place, tuple[Plain, int]] = field(default_factory=dict)
    """Objects on their way out, and the steps they have left."""
    cached: list[Plain] | None = None
    """A list of all replicas from earlier; None: reads are fresh."""
    withheld: frozenset[str] = frozenset()
    """Requirements that do not arrive at the moment."""
    fails: Source | None = None
    """While it is there Crossplane fails on its way: it applies some of what is desired, and no status."""
    born: int = 0
    input: Plain | None = None
    """The function's input."""

    def replicas(self) -> list[Plain]:
        """Return every ModelReplica there is."""
        live = [
            manifest
            for one in self.deployments
            for manifest in one.observed.values()
            if manifest["kind"] == "ModelReplica"
        ]
        return copy.deepcopy([*live, *self.others.values(), *(item for item, _ in self.dying.values())])

    def reconcile(self, of: Deployment, check: Callable[[World, drive.Answer], None]) -> drive.Answer:
        """Reconcile one composite, and let `check` look at the settled request and its answer."""
        required = self.block()
        for of.calls in range(1, ROUNDS + 1):
            world = self.request(of, required)
            answer = drive.run(world)
            kinds = {WITHHELD[name] for name in self.withheld}
            arrived = {
                requirement["name"]: self.fetched(requirement, of)
                for requirement in answer.requirements
                if requirement["kind"] not in kinds
            }
            arrived |= self.block()
            if arrived.keys() == required.keys():
                break
            required = arrived
        check(world, answer)
        if not answer.fatal:
            self.collect(of, answer)
            self.apply(of, answer)
            if self.fails is None:
                self.report(of, answer)
        return answer

    def block(self) -> dict[str, Any]:
        """Return what the bootstrap block of the Composition hands over in every call."""
        listed = self.replicas() if self.cached is None else self.cached
        held = {"clusters": list(self.clusters.values()), "all-replicas": listed}
        return {name: copy.deepcopy(held[name]) for name in held if name not in self.withheld}

    def request(self, of: Deployment, required: dict[str, Any]) -> World:
        """Return the request for one composite."""
        return World(
            deployment=copy.deepcopy(of.plain),
            observed=of.read,
            clusters=required.get("clusters"),
            replicas=required.get("all-replicas"),
            input=self.input,
            more={name: required[name] for name in required.keys() - {"clusters", "all-replicas"}},
        )

    def fetched(self, requirement: Plain, of: Deployment) -> list[Plain]:
        """Return what a requirement selects."""
        kind = requirement["kind"]
        if kind == "InferenceCluster":
            return copy.deepcopy(list(self.clusters.values()))
        if kind == "ModelReplica":
            return copy.deepcopy(self.cached) if self.cached is not None else self.replicas()
        if kind == "ModelDeployment":
            return copy.deepcopy([deployment.plain for deployment in self.deployments])
        if not requirement["matchName"]:
            return copy.deepcopy(self.caches)
        wanted = requirement["namespace"] or of.plain["metadata"]["namespace"], requirement["matchName"]
        return copy.deepcopy([cache for cache in self.caches if place(cache) == wanted])

    def collect(self, of: Deployment, answer: drive.Answer) -> None:
        """Delete what is observed and not desired."""
        for key in [key for key in of.observed if key not in answer.desired]:
            gone = of.observed.pop(key)
            if gone["kind"] == "ModelReplica":
                gone["metadata"] |= {"deletionTimestamp": build.CREATED}
                self.dying[place(gone)] = gone, 3

    def apply(self, of: Deployment, answer: drive.Answer) -> None:
        """Apply what is desired."""
        for key, desired in answer.desired.items():
            if self.fails is not None and self.fails.odds(0.5):
                continue
            before = of.observed.get(key)
            made = copy.deepcopy(desired)
            name = made["metadata"]["name"] if before is None else before["metadata"]["name"]
            if before is None and made["kind"] == "ModelReplica":
                before = self.existing(key, (made["metadata"]["namespace"], name))
            of.observed[key] = self.merged(of, made, before, name)
        of.desired = copy.deepcopy(dict(answer.desired))

    def existing(self, key: str, where: Place) -> Plain | None:
        """Return the object that a new key's name already has: only a stale read may lead there."""
        assert where not in self.others, f"{key} would be applied to another deployment's object"
        if where not in self.dying:
            return None
        assert self.cached is not None, f"{key} would be applied to an object that is being deleted"
        return self.dying[where][0]

    def merged(self, of: Deployment, made: Plain, before: Plain | None, name: str) -> Plain:
        """Return an object after a server side apply."""
        self.born += before is None
        head = dict(before["metadata"]) if before else {"uid": build.uid(name, self.born)}
        version = str(int(head.get("resourceVersion", "0")) + 1)
        fixed = {"name": name, "resourceVersion": version, "creationTimestamp": build.CREATED}
        head |= made["metadata"] | fixed | {"ownerReferences": [build.owner(of.plain)]}
        status = {"status": before["status"]} if before and "status" in before else {}
        merged = made | {"metadata": head} | status
        return edited(merged) if before and before["spec"] != made["spec"] else merged

    @staticmethod
    def report(of: Deployment, answer: drive.Answer) -> None:
        """Write conditions and status of the answer to the composite."""
        conditions = [
            build.condition(kind, status=status, reason=reason) | {"message": message}
            for kind, (status, reason, message) in answer.conditions.items()
        ]
        of.plain["status"] = copy.deepcopy(answer.status) | {"conditions": conditions}

    def age(self) -> bool:
        """Let what is being deleted come nearer its end. Says whether something went."""
        for of in self.deployments:
            ended = {where for where, (_, left) in self.dying.items() if left <= 1}
            of.observed = {
                key: manifest
                for key, manifest in of.observed.items()
                if manifest["kind"] != "ModelReplica" or place(manifest) not in ended
            }
        aged = {where: (value, left - 1) for where, (value, left) in self.dying.items()}
        self.dying = {where: held for where, held in aged.items() if held[1] > 0}
        return len(self.dying) < len(aged)
