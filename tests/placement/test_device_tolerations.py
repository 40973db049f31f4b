"""taints of devices and tolerations of requests: what is new keeps off, what runs stays, claims have them."""

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


TAINT: Plain = {"key": "gpu.example.com/burn-in", "effect": "NoSchedule"}
EVICTING: Plain = {"key": "xid", "value": "79", "effect": "NoExecute"}
PLACED: list[tuple[list[Plain], list[Plain], str, str]] = [
    ([build.gpu(8) | {"taints": [TAINT]}], [], "UntoleratedDeviceTaint", "nobody tolerates it"),
    ([build.gpu(8) | {"taints": [TAINT]}], [BURN_IN], "", "the request tolerates it"),
    ([build.gpu(8) | {"taints": [TAINT]}], [{"operator": "Exists"}], "", "it tolerates everything"),
    ([build.gpu(8) | {"taints": [EVICTING]}], [], "UntoleratedDeviceTaint", "whatever its effect"),
    ([build.gpu(8) | {"taints": [EVICTING]}], [SOON], "", "with its value"),
    (
        [build.gpu(8) | {"taints": [EVICTING]}],
        [{**SOON, "value": "80"}],
        "UntoleratedDeviceTaint",
        "another value",
    ),
    (
        [build.gpu(8) | {"taints": [TAINT, EVICTING]}],
        [BURN_IN],
        "UntoleratedDeviceTaint",
        "one of two is tolerated",
    ),
    ([build.gpu(4, name="old") | {"taints": [TAINT]}, build.gpu(4)], [], "", "another entry will do"),
    (
        [build.gpu(4, name="old") | {"taints": [TAINT]}, build.gpu(3)],
        [],
        "UntoleratedDeviceTaint",
        "three are left of seven",
    ),
    ([build.gpu(3) | {"taints": [TAINT]}], [], "DeviceCountShort", "there are too few, tainted or not"),
    ([], [], "NoMatchingDevice", "none"),
]


def placed(devices: list[Plain], tolerations: list[Plain], accounting: str = "Node", **more: Any) -> Any:
    stated = build.request("gpu", 4) | ({"tolerations": tolerations} if tolerations else {})
    asked = build.deployment(engines=[build.engine(members=[build.member(devices=[stated])])], **more)
    pool = build.pool("p0", 2, devices) | {"accounting": accounting}
    return run(World(asked, [build.cluster("a", [pool])]))


@pytest.mark.parametrize(("devices", "tolerations", "code", "reason"), PLACED, ids=[row[3] for row in PLACED])
@pytest.mark.parametrize("accounting", ["Node", "Device"])
def test_a_tainted_device_is_no_candidate_for_what_does_not_tolerate_it(
    devices: list[Plain], tolerations: list[Plain], code: str, reason: str, accounting: str
) -> None:
    answer = placed(devices, tolerations, accounting)
    rejected = answer.decision.rejections
    assert len(answer.replicas) == (not code), reason
    assert (rejected["a"].reason.name if rejected else "") == code, reason


def test_pods_that_may_hold_a_tainted_device_are_counted_as_if_they_did() -> None:
    """4 + 4 GPUs of one class serve two pods of 4; with a taint on four of them, one."""
    entries = [build.gpu(4, name="a"), build.gpu(4, name="b")]
    assert len(placed(entries, [], "Device", replicas=4).replicas) == 4
    entries[0]["taints"] = [TAINT]
    assert len(placed(entries, [], "Device", replicas=4).replicas) == 2


def test_what_runs_on_a_device_that_is_tainted_later_stays() -> None:
    """Law 2: a new taint is doubt on a pinned pool, and no mismatch, though another cluster has room."""
    asked = ask(engines=[build.engine(members=[build.member(devices=[build.request("gpu", 4)])])])
    tainted = [build.pool("p0", 2, [build.gpu(8) | {"taints": [EVICTING]}])]
    fleet = [build.cluster("a", tainted), build.cluster("b", [build.pool("p0", 2)])]
    running = build.replica(asked, "a", 0, pools="p0", ready=True)
    answer = run(World(asked, fleet, [running], build.observed(running)))
    assert [replica["spec"]["clusterName"] for replica in answer.replicas.values()] == ["a"]
    assert not answer.decision.dropped
