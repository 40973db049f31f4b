"""claimSelectors: what only the claim selects by, such as the uuid of one GPU."""

from __future__ import annotations

from typing import Any

import pytest

from function.api import ModelDeployment
from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.drive import Answer, run
from tests.support.world import World

Plain = dict[str, Any]
UUID = 'device.attributes["gpu.nvidia.com"].uuid == "GPU-4f5e-0001"'
WHERE = 'node.name == "p0"'


def picking(*cels: str, **more: Any) -> Plain:
    """Return a request of one GPU that the claim selects by `cels`."""
    stated = {"claimSelectors": [{"cel": cel} for cel in cels]} if cels else {}
    return build.request("gpu", 1) | stated | more


def asking(request: Plain, **more: Any) -> Plain:
    """Return a deployment of one pod with a request."""
    return ask(engines=[build.engine(members=[build.member(devices=[request])])], **more)


def claims(answer: Answer) -> list[Plain]:
    """Return the stamped requests of the only member of every replica."""
    engines = [replica["spec"]["engines"][0] for replica in answer.replicas.values()]
    return [request for engine in engines for request in engine["members"][0]["deviceRequests"]]


def test_they_are_stamped_after_the_selectors_and_choose_no_cluster() -> None:
    """No class publishes a uuid: matched in the fleet, nothing would ever fit."""
    answer = run(World(asking(picking(UUID)), clusters(a=1), []))
    (request,) = claims(answer)
    assert request["selectors"] == [{"cel": build.GPUS}, {"cel": UUID}]
    assert set(request) == {"name", "deviceClassName", "count", "selectors"}, "no field v0.3 does not know"


def test_one_gpu_is_picked_by_cluster_pool_and_uuid() -> None:
    selector = {"cel": ['cluster.name == "b"']}
    made = asking(picking(UUID), selector=selector)
    member = made["spec"]["template"]["spec"]["engines"][0]["members"][0]
    member["nodeSelector"]["selectors"] = [{"cel": WHERE}]
    pools = [build.pool("other", 4), build.pool("p0", 1)]
    answer = run(World(made, clusters(a=4, b={"pools": pools}), []))
    (replica,) = answer.replicas.values()
    assert replica["spec"]["clusterName"] == "b"
    assert replica["spec"]["engines"][0]["members"][0]["nodePoolName"] == "p0"
    assert claims(answer)[0]["selectors"][-1] == {"cel": UUID}


def test_every_way_of_a_list_has_its_own() -> None:
    ways = [
        build.request("huge", 64) | {"claimSelectors": [{"cel": "false"}]},
        build.request("one", 1) | {"claimSelectors": [{"cel": UUID}]},
    ]
    answer = run(World(asking({"name": "gpu", "firstAvailable": ways}), clusters(a=1), []))
    assert claims(answer)[0]["selectors"] == [{"cel": build.GPUS}, {"cel": UUID}]


def test_beside_a_list_they_would_belong_to_nothing() -> None:
    request = {"name": "gpu", "claimSelectors": [{"cel": UUID}], "firstAvailable": [picking()]}
    with pytest.raises(ValueError, match="claimSelectors: not beside firstAvailable"):
        ModelDeployment.parse(asking(request))


TYPOS = [
    ("device.attributes[", "does not parse"),
    ('devise.driver == "gpu.nvidia.com"', "names what there is not"),
    ("device.driver", "is no bool"),
    ('node.name == "p0"', "is about the pool, which a claim does not see"),
]


@pytest.mark.parametrize(("cel", "reason"), TYPOS, ids=[typo[1] for typo in TYPOS])
def test_a_typo_is_invalid_input_and_keeps_what_runs(cel: str, reason: str) -> None:
    """Placed, it would be a claim that no API server takes: pods that never start."""
    made = asking(picking(UUID, cel), replicas=2)
    running = build.replica(made, "a", 0, pools="p0", ready=True)
    answer = run(World(made, clusters(a=4), [running], build.observed(running)))
    assert set(answer.replicas) == {"replica-a-0"}, reason
    _, said, message = answer.conditions["ReplicasScheduled"]
    assert said == "InvalidNodeSelector"
    assert ".nodeSelector.devices[0].claimSelectors[1]: " in message


def test_an_edit_leaves_a_running_replica_as_it_was_stamped() -> None:
    """Its claim template is immutable, and its pool satisfies the request as before."""
    made = asking(picking())
    running = build.replica(made, "a", 0, pools="p0", ready=True)
    answer = run(World(asking(picking(UUID)), clusters(a=4), [running], build.observed(running)))
    stamped = running["spec"]["engines"][0]["members"][0]["deviceRequests"]
    assert claims(answer) == stamped


def test_without_them_a_replica_is_what_it_was() -> None:
    plain = run(World(asking(picking()), clusters(a=1), []))
    assert claims(plain)[0]["selectors"] == [{"cel": build.GPUS}]
