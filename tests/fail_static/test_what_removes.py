"""The list of reasons for which a replica leaves the desired state, each proved, and nothing else on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import build
from tests.support.calm import settled
from tests.support.drive import run
from tests.support.world import World  # noqa: TC001 - tests build worlds at run time

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]


@dataclass(frozen=True)
class Case:
    reason: str
    change: Callable[[World], World]
    leaves: str
    event: str


def _drain(world: World) -> World:
    world.clusters[0]["spec"]["taints"] = [build.taint("maintenance", "NoExecute")]
    return world


def _terminate(world: World) -> World:
    world.observed["replica-a-0"]["metadata"]["deletionTimestamp"] = build.CREATED
    return world


def _scale(world: World) -> World:
    world.deployment["spec"]["replicas"] = 1
    return world


def _mismatch(world: World) -> World:
    world.clusters[0]["spec"]["nodePools"] = [{"name": "renamed"}]
    return world


def _evacuate(world: World) -> World:
    world.deployment["spec"]["placement"] = {"evacuate": {"afterSeconds": 3600}}
    heartbeats = ("2026-03-01T09:00:00Z", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z")
    for cluster, heartbeat in zip(world.clusters, heartbeats, strict=True):
        cluster["status"]["heartbeat"] = heartbeat
    return world


CASES = [
    Case(
        "its cluster is known to be gone: the list was delivered, is not empty and lacks it",
        lambda world: world.but(clusters=world.clusters[1:]),
        "replica-a-0",
        "ReplicaClusterGone",
    ),
    Case(
        "its cluster carries a NoExecute taint that is not tolerated",
        _drain,
        "replica-a-0",
        "ReplicaDrained",
    ),
    Case(
        "its pool is no longer declared and its replacement has a place in the same pass",
        _mismatch,
        "replica-a-0",
        "ReplicaReplaced",
    ),
    Case(
        "nothing was heard of its cluster for longer than asked, and its replacement has a place",
        _evacuate,
        "replica-a-0",
        "ReplicaEvacuated",
    ),
    Case("scale down: of equals, the later cluster name", _scale, "replica-b-0", "ReplicaScaledDown"),
    Case("it is already being deleted", _terminate, "replica-a-0", ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_a_replica_leaves_with_its_endpoint_for_a_listed_reason(case: Case) -> None:
    answer = run(case.change(settled()))
    stays = {"replica-a-0", "replica-b-0"} - {case.leaves}
    assert case.leaves not in answer.desired
    assert case.leaves.replace("replica", "endpoint") not in answer.desired
    assert stays <= set(answer.desired)
    leaving = [reason for _, reason, _ in answer.events if reason != "ReplicasPlaced"]
    assert leaving == [case.event] * bool(case.event)


def test_a_tolerated_taint_drains_nothing() -> None:
    world = _drain(settled())
    world.deployment["spec"]["template"]["spec"]["tolerations"] = [
        {"key": "maintenance", "operator": "Exists"}
    ]
    assert "replica-a-0" in run(world).desired


def test_drains_and_scale_down_happen_while_a_selector_is_invalid() -> None:
    """While the input is invalid nothing is placed, but what was asked to leave leaves."""
    world = _drain(settled())
    members = world.deployment["spec"]["template"]["spec"]["engines"][0]["members"]
    members[0]["nodeSelector"]["devices"][0]["selectors"] = [{"cel": "nonsense("}]
    answer = run(world)
    assert set(answer.replicas) == {"replica-b-0"}
    assert answer.reason() == "InvalidNodeSelector"


BUDGETS: Plain = {"placement": {"disruption": {"maxUnavailable": 1}, "rollout": {"maxUnavailable": 1}}}
UNREADABLE: list[tuple[Plain, Plain | None, bool, str]] = [
    ({"searchBudget": "many"}, None, True, "no budget is stated"),
    ({"searchBudget": "many", "defaults": BUDGETS}, None, False, "one is stated, beside the fault"),
    ({"defaults": {"placement": {"disruptoin": {}}}}, None, False, "the fault may be in it"),
    ({"searchBudget": "many", "defaults": BUDGETS}, {"maxUnavailable": 2}, True, "its own is known"),
]


@pytest.mark.parametrize(("given", "disruption", "drains", "reason"), UNREADABLE)
def test_an_invalid_input_updates_nothing_and_passes_no_budget_that_it_may_have(
    given: Plain, disruption: Plain | None, *, drains: bool, reason: str
) -> None:
    """Law 2: of the input's defaults a rollout and a drain would lose their pace, and be an outage."""
    world = _drain(settled())
    world.deployment["spec"]["placement"] = {"disruption": disruption} if disruption else {}
    edited = world.deployment["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]["spec"]
    running = world.observed["replica-b-0"]["spec"]["engines"][0]["members"][0]["template"]["spec"]
    edited["containers"][0]["image"] = "registry.example.com/edited"
    answer = run(world.but(input=given))
    assert answer.reason() == "InvalidInput"
    assert ("replica-a-0" not in answer.desired) is drains, reason
    for replica in answer.replicas.values():
        assert replica["spec"]["engines"][0]["members"][0]["template"]["spec"] == running


def test_a_replica_whose_key_cannot_be_read_is_kept_and_counts() -> None:
    world = settled()
    odd = dict(world.observed)
    odd["replica-without-an-index"] = odd.pop("replica-b-0")
    answer = run(world.but(observed=odd))
    assert "replica-without-an-index" in answer.desired
    assert answer.status["replicas"]["total"] == 2
    assert len(answer.replicas) == 2


def test_an_observed_replica_is_known_by_its_key_whatever_its_labels_say() -> None:
    world = settled()
    world.observed["replica-a-0"]["metadata"]["labels"] = {"modelplane.ai/cluster": "b"}
    assert {"replica-a-0", "replica-b-0"} == set(run(world).replicas)


def test_nothing_observed_by_other_steps_is_ours() -> None:
    """A resource of another step is theirs: we neither keep it nor count it."""
    world = settled()
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {}}
    answer = run(world.but(observed={**world.observed, "config": other}))
    assert "config" not in answer.desired


def test_an_endpoint_is_withdrawn_only_when_its_replica_is_observed_not_ready() -> None:
    world = settled()
    world.observed["replica-a-0"]["status"] = {"conditions": [build.condition("Ready", status=False)]}
    world.observed["replica-b-0"]["status"] = {"conditions": [build.condition("Ready", status="Unknown")]}
    assert set(run(world).endpoints) == {"endpoint-b-0"}


def test_an_unreadable_composite_is_fatal_and_names_the_field() -> None:
    world = settled()
    world.deployment["spec"]["replicas"] = 1.5
    answer = run(world)
    assert answer.fatal
    assert any("spec.replicas" in message and "1.5" in message for _, _, message in answer.events)
    assert set(answer.desired) == set(world.observed)


def test_an_unreadable_composite_is_not_fatal_before_the_requirements_were_delivered() -> None:
    """Crossplane stops fetching after a fatal result."""
    world = settled().but(clusters=None, replicas=None)
    world.deployment["spec"]["replicas"] = "two"
    answer = run(world)
    assert not answer.fatal
    assert [requirement["name"] for requirement in answer.requirements] == [
        "cluster/a",
        "cluster/b",
        "own-replicas/my-model",
    ]
    assert set(answer.desired) == set(world.observed)
