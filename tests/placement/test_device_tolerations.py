"""tolerations of a device request: they reach the claim, and choose no cluster."""

from __future__ import annotations

from typing import Any

import pytest

from function.api import ModelDeployment
from function.api.workload import ClaimedRequest
from function.replica.workloads import claimed
from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.drive import run
from tests.support.world import World

Plain = dict[str, Any]
BURN_IN: Plain = {"key": "gpu.example.com/burn-in", "operator": "Exists", "effect": "NoSchedule"}
SOON: Plain = {"key": "xid", "value": "79", "effect": "NoExecute", "tolerationSeconds": 300}


def requests(stated: Plain, existing: int = 0) -> list[Plain]:
    """Return the stamped requests of the only member of every replica."""
    before = ask(engines=[build.engine(members=[build.member(devices=[build.request("gpu", 1)])])])
    after = ask(engines=[build.engine(members=[build.member(devices=[stated])])])
    replicas = [build.replica(before, "a", index, pools="p0", ready=True) for index in range(existing)]
    answer = run(World(after, clusters(a=1), replicas, build.observed(*replicas)))
    engines = [replica["spec"]["engines"][0] for replica in answer.replicas.values()]
    return [request for engine in engines for request in engine["members"][0]["deviceRequests"]]


def test_they_are_stamped_as_they_are() -> None:
    (request,) = requests(build.request("gpu", 1) | {"tolerations": [BURN_IN, SOON]})
    assert request["tolerations"] == [BURN_IN, SOON]


def test_without_them_no_field_is_stamped_that_v03_does_not_know() -> None:
    assert "tolerations" not in requests(build.request("gpu", 1))[0]


def test_of_several_ways_the_chosen_one_has_its_own() -> None:
    ways = [
        build.request("huge", 64) | {"tolerations": [SOON]},
        build.request("one", 1) | {"tolerations": [BURN_IN]},
    ]
    (request,) = requests({"name": "gpu", "firstAvailable": ways})
    assert request["tolerations"] == [BURN_IN]


def test_a_running_replica_keeps_the_claim_that_it_has() -> None:
    """A claim never changes, and an edit of what it tolerates is no reason to start anew (Law 2)."""
    (request,) = requests(build.request("gpu", 1) | {"tolerations": [BURN_IN]}, existing=1)
    assert "tolerations" not in request


def test_the_claim_on_the_cluster_has_them() -> None:
    stamped = {
        "name": "gpu",
        "deviceClassName": "g",
        "count": 2.0,
        "tolerations": [{**SOON, "tolerationSeconds": 300.0}],
    }
    made = claimed(ClaimedRequest.parse(stamped))
    assert made == {"name": "gpu", "exactly": {"deviceClassName": "g", "count": 2, "tolerations": [SOON]}}
    assert isinstance(made["exactly"]["tolerations"][0]["tolerationSeconds"], int)


BAD: list[tuple[Plain, str]] = [
    ({"tolerations": [{"value": "x"}]}, "operator Equal needs a key"),
    ({"tolerations": [{"operator": "Exists", "value": "x"}]}, "operator Exists must not have a value"),
    ({"tolerations": [{**BURN_IN, "effect": "None"}]}, "NoSchedule"),
    ({"tolerations": [{**SOON, "tolerationSeconds": 1.5}]}, "whole number"),
    ({"tolerations": [BURN_IN] * 17}, "16"),
    ({"tolerations": [BURN_IN], "firstAvailable": [build.request("a", 1)]}, "every way has its own"),
]


@pytest.mark.parametrize(("stated", "said"), BAD, ids=[row[1] for row in BAD])
def test_what_is_wrong_is_named(stated: Plain, said: str) -> None:
    request = {"name": "gpu", **stated} if "firstAvailable" in stated else build.request("gpu", 1) | stated
    with pytest.raises(ValueError, match=said):
        ModelDeployment.parse(ask(engines=[build.engine(members=[build.member(devices=[request])])]))
