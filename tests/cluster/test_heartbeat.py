"""status.heartbeat: when something on the cluster last renewed its lease, in coarse steps."""

from __future__ import annotations

from typing import Any

import pytest

from function.api import InferenceCluster
from function.cluster import names
from tests.cluster.build import LEASE, Case, cluster, looked_at

Plain = dict[str, Any]
INPUT: Plain = {
    "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
    "kind": "ClusterConfig",
    "heartbeat": LEASE,
}
BEFORE = "2026-03-01T11:55:00Z"


def renewed(time: Any, *, synced: bool = True) -> dict[str, Plain]:
    """Return the observed Object that looks at the lease."""
    return looked_at(names.HEARTBEAT, synced=synced, remote={"spec": {"renewTime": time}})


def published(case: Case) -> Any:
    """Return what is published of the heartbeat."""
    return case.answer().status.get("heartbeat")


def with_status(**status: Any) -> Plain:
    """Return a cluster that has published something."""
    return {**cluster(), "status": status}


def test_nothing_is_looked_at_or_published_unless_asked_for() -> None:
    """A Lease changes every few seconds, and Modelplane's XRD has no such field."""
    case = Case(with_status(heartbeat=BEFORE), observed=renewed("2026-03-01T12:00:00Z"))
    assert names.HEARTBEAT not in case.answer().desired
    assert published(case) is None


def test_the_lease_is_looked_at_and_never_watched_or_touched() -> None:
    made = Case(input=INPUT).answer().desired[names.HEARTBEAT].resource
    assert made["spec"]["managementPolicies"] == ["Observe"]
    assert "watch" not in made["spec"], "each renewal would reconcile the cluster"
    manifest = made["spec"]["forProvider"]["manifest"]
    assert manifest == {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": LEASE}


STEPS = [
    ("2026-03-01T12:00:00.000000Z", "2026-03-01T12:00:00Z", "on the step"),
    ("2026-03-01T12:04:59.999999Z", "2026-03-01T12:00:00Z", "cut, never rounded up: nobody is alive earlier"),
    ("2026-03-01T12:05:00.000001Z", "2026-03-01T12:05:00Z", "the next step"),
    ("2026-03-01T14:01:00+02:00", "2026-03-01T12:00:00Z", "published in one zone"),
    ("2027-03-01T12:00:00Z", "2027-03-01T12:00:00Z", "a wrong clock too: who reads it has others to compare"),
]


@pytest.mark.parametrize(("time", "expected", "why"), STEPS, ids=[step[2] for step in STEPS])
def test_it_moves_in_steps_of_five_minutes(time: str, expected: str, why: str) -> None:
    assert published(Case(input=INPUT, observed=renewed(time))) == expected, why


ODD = ["soon", "", None, 7, ["2026-03-01T12:00:00Z"], {}, "0001-01-01T00:00:00Z", "x" * 10_000]


@pytest.mark.parametrize("time", ODD, ids=[str(number) for number in range(len(ODD))])
def test_what_is_no_time_leaves_the_last_one(time: Any) -> None:
    """Law C 3: what another kind relies on stays until it is observed to be different."""
    assert published(Case(with_status(heartbeat=BEFORE), input=INPUT, observed=renewed(time))) == BEFORE
    assert published(Case(input=INPUT, observed=renewed(time))) is None


def test_the_last_one_stays_while_nothing_is_seen() -> None:
    assert published(Case(with_status(heartbeat=BEFORE), input=INPUT)) == BEFORE
    cut_off = looked_at(names.HEARTBEAT, synced=False, message="connection refused")
    assert published(Case(with_status(heartbeat=BEFORE), input=INPUT, observed=cut_off)) == BEFORE
    unreadable = with_status(heartbeat=BEFORE) | {"spec": {"cluster": 7}}
    assert published(Case(unreadable, input=INPUT)) == BEFORE
    assert published(Case(with_status(heartbeat=BEFORE), input={"heartbeat": 7})) == BEFORE


def test_what_is_published_is_what_the_scheduler_reads() -> None:
    answer = Case(input=INPUT, observed=renewed("2026-03-01T12:03:00Z")).answer()
    assert InferenceCluster.parse({**cluster(), "status": answer.status}).heartbeat == 1_772_366_400
