"""A replica that is about to leave says so, and its adapters move before it does."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from function.api.replica import LEAVING_ANNOTATION
from function.scheduler.outcomes import OUTDATED, Mismatch
from tests.adapter.plane import Plane, adapter
from tests.replica.build import cluster as host
from tests.support import build, drive
from tests.support.cases import clusters
from tests.support.rollouts import NEW, OLD, Seen, deployment, running
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from function.boundary import Requirement

Plain = dict[str, Any]

SURGE: Plain = {"disruption": {"maxUnavailable": 0, "maxSurge": 1}}
BUDGET: Plain = {"disruption": {"maxUnavailable": 1}}
BY_SURGE: Plain = SURGE | {"rollout": {"maxUnavailable": 0}}
DRAIN = "drain (x:NoExecute)"
DRAINED: Plain = {"nodes": 9, "taints": [build.taint("x", "NoExecute")]}
A_LEAVES: Plain = {"a": DRAINED, "b": 9}
ON_A = [Seen("a", 0), Seen("a", 1)]
MARKED: Plain = {"metadata": {"annotations": {LEAVING_ANNOTATION: DRAIN}}}


def roomy(made: Plain, slots: int = 4) -> Plain:
    """Return a deployment, or a replica, whose engine has room for adapters."""
    spec = made["spec"].get("template", made)["spec"]
    spec["engines"][0]["adapters"] = {"slots": slots}
    return made


class Case(NamedTuple):
    """Replicas as they are observed, and those that are marked in the answer."""

    reason: str
    seen: Sequence[Seen]
    marks: Mapping[str, str]
    fleet: Mapping[str, Any] = A_LEAVES
    placement: Plain = SURGE
    image: str = OLD
    gpus: int = 8


CASES = [
    Case("the first whose replacement is placed beside it", ON_A, {"a-1": DRAIN}),
    Case("and while that starts", [*ON_A, Seen("b", 0, ready=False)], {"a-1": DRAIN}),
    Case("then the next", [Seen("a", 0), Seen("b", 0)], {"a-0": DRAIN}),
    Case("no place beside it: it stays, and so do its adapters", ON_A, {}, {"a": DRAINED}),
    Case("nothing leaves", ON_A, {}, {"a": 9}),
    Case("the drain is taken back", [Seen("a", 0, more=MARKED), Seen("a", 1)], {}, {"a": 9}),
    Case(
        "a rollout by surge: the next, and none of those behind it",
        ON_A,
        {"a-1": OUTDATED},
        {"a": 9},
        BY_SURGE,
        NEW,
    ),
    Case(
        "one that no longer matches",
        ON_A,
        {"a-1": Mismatch.RequestsChanged.value},
        {"a": 9},
        gpus=4,
    ),
    Case("without surge, those that wait for the budget", ON_A, {"a-0": DRAIN}, placement=BUDGET),
    Case("without a budget they leave at once", ON_A, {}, placement={}),
]


def marks(answer: drive.Answer) -> dict[str, str]:
    """Return the marks of an answer by cluster and index."""
    return {
        key.removeprefix("replica-"): text
        for key, replica in answer.replicas.items()
        if (text := replica["metadata"].get("annotations", {}).get(LEAVING_ANNOTATION)) is not None
    }


def asked(case: Case, made: Plain, **more: Any) -> drive.Answer:
    own_replicas = [roomy(item) if "adapters" in str(made) else item for item in running(*case.seen)]
    for item in own_replicas:
        item["spec"]["engines"][0]["members"][0]["deviceRequests"][0]["count"] = 8
    fleet = more.pop("fleet", clusters(**case.fleet))
    return drive.run(World(made, fleet, own_replicas, build.observed(*own_replicas), **more))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_the_next_to_leave_is_marked_where_it_has_room(case: Case) -> None:
    made = deployment(2, case.image, case.placement, gpus=case.gpus)
    assert marks(asked(case, roomy(copy.deepcopy(made)))) == case.marks
    assert marks(asked(case, made)) == {}, "without room nothing is written"


def test_doubt_keeps_a_mark_and_sets_none() -> None:
    case = Case("", [Seen("a", 0, more=MARKED), Seen("a", 1)], {})
    made = roomy(deployment(2, OLD, SURGE))
    assert marks(asked(case, made, fleet=None)) == {"a-0": DRAIN}


class Fleet(Plane):
    """A namespace with a deployment too: its handler places the replicas, and Crossplane does as it says."""

    deployment: Plain
    clusters: dict[str, Plain]

    @classmethod
    def with_base(cls, made: Plain, fleet: Sequence[Plain], adapters: Sequence[Plain]) -> Fleet:
        """Return a settled namespace."""
        self = cls.of([], adapters)
        assert isinstance(self, Fleet)
        self.deployment, self.clusters = made, {item["metadata"]["name"]: item for item in fleet}
        for _ in range(2):  # At the second the replicas are Ready, and get endpoints.
            self.roll(ready=True)
            self.settle()
        return self

    def deliver(self, requirement: Requirement) -> list[Plain]:
        """Deliver real clusters, which the deployment and the replicas read."""
        if requirement.kind != "InferenceCluster":
            return super().deliver(requirement)
        served = copy.deepcopy([*self.clusters.values()])
        for item in served:
            item["status"] |= host()["status"] | item["status"]
        return [item for item in served if requirement.match_name in (None, item["metadata"]["name"])]

    def listed(self, kind: str) -> list[Plain]:
        """List the endpoints that the deployment composed, and no others."""
        if kind != "ModelEndpoint":
            return super().listed(kind)
        return [item for made in self.composed.values() for item in made.values() if item["kind"] == kind]

    def roll(self, *, ready: bool) -> None:
        """Reconcile the deployment, and apply it. `ready`: whether what is new serves at once."""
        name = self.deployment["metadata"]["name"]
        response = self.ask(self.deployment, name)
        applied = {}
        for key, desired in response.desired.items():
            item = applied[key] = copy.deepcopy(desired.resource)
            if item["kind"] == "ModelReplica":
                before = self.replicas.get(item["metadata"]["name"])
                item["status"] = (before or {"status": {}})["status"]
                if before is None and ready:
                    item["status"]["conditions"] = [build.condition("Ready", status=True)]
        self.composed[name] = applied
        standing = [item for item in applied.values() if item["kind"] == "ModelReplica"]
        for gone in self.replicas.keys() - {item["metadata"]["name"] for item in standing}:
            self.drop(gone)
        self.replicas = {item["metadata"]["name"]: item for item in standing}

    def start(self) -> None:
        """Let every replica be Ready."""
        for item in self.replicas.values():
            item["status"]["conditions"] = [build.condition("Ready", status=True)]

    def reached(self, name: str) -> list[str]:
        """Return the replicas that a request for an adapter reaches, and that have it."""
        return [
            replica
            for replica, item in self.replicas.items()
            if self.is_ready(item)
            and name in {one["name"] for one in item["status"].get("adapters", ())}
            and f"adapter-endpoint-{replica}" in self.composed[name]
        ]


def test_a_drained_base_hands_its_adapters_over_before_it_goes() -> None:
    """At every moment from the drain on each adapter is reached somewhere, and answers there."""
    names = [f"lora-{number}" for number in range(6)]
    made = roomy(deployment(2, OLD, SURGE), slots=6)
    plane = Fleet.with_base(
        made, clusters(a=9), [adapter(name, base=made["metadata"]["name"]) for name in names]
    )
    start = set(plane.replicas)
    assert all(plane.reached(name) for name in names)
    plane.clusters = {item["metadata"]["name"]: item for item in clusters(**A_LEAVES)}
    for number in range(24):
        plane.roll(ready=False)
        if number % 3 == 2:  # What is new starts, with the adapters that were placed on it meanwhile.
            plane.start()
        for name in names:
            plane.reconcile(name)
            assert plane.reached(name), (number, name)
            assert plane.adapters[name]["status"]["replicas"] == {"total": 1, "ready": 1}, (number, name)
        for replica in [*plane.replicas]:
            plane.serve(replica)
            assert all(plane.reached(name) for name in names), number
    assert not start & set(plane.replicas)
    assert {item["spec"]["clusterName"] for item in plane.replicas.values()} == {"b"}
    loads = [len(item["status"]["adapters"]) for item in plane.replicas.values()]
    assert sorted(loads) == [3, 3], "they followed the replacements one by one"
    for name in names:
        reasons = {one["type"]: one["reason"] for one in plane.adapters[name]["status"]["conditions"]}
        assert reasons == {"AdapterScheduled": "FullyScheduled", "AdapterReady": "Configured"}


def test_without_room_elsewhere_it_is_said_which_replica_takes_it_along() -> None:
    made = roomy(deployment(2, OLD, SURGE), slots=1)
    names = ["lora-0", "lora-1"]
    plane = Fleet.with_base(
        made, clusters(a=9), [adapter(name, base=made["metadata"]["name"]) for name in names]
    )
    plane.clusters = {item["metadata"]["name"]: item for item in clusters(**A_LEAVES)}
    plane.adapters["lora-2"] = adapter("lora-2", base=made["metadata"]["name"])
    plane.adapters["lora-2"]["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    plane.roll(ready=False)
    plane.reconcile("lora-2")  # It takes the only slot beside, on the replacement.
    said = []
    for name in names:
        plane.reconcile(name)
        scheduled = plane.adapters[name]["status"]["conditions"][0]
        said.append((scheduled["status"], scheduled["reason"], scheduled["message"]))
    ((status, _, text),) = [line for line in said if line[1] == "ReplacementBlocked"]
    (leaving,) = (
        item["metadata"]["name"] for item in plane.replicas.values() if "annotations" in item["metadata"]
    )
    assert status == "True", "it serves until then"
    assert f"goes with its replica: {leaving} is about to leave: {DRAIN}" in text
    assert "0/3 replicas of the base can take it" in text
    assert "with one slot more on each replica 1 more would be placed" in text
