"""Parts of the control plane hang, or are killed, while one deployment scales and another one rolls.

Whatever was away and for how long: nothing that ran is deleted (Law 2), and all is as wanted in the end.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.live import faults, fleet
from tests.live.plane import condition, name_of, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.day import Day
    from tests.live.plane import ControlPlane

pytestmark = [pytest.mark.live, faults.LONG]

Plain = dict[str, Any]

NAMESPACE = GROUP = "outages"
CLUSTERS = ("outages-1", "outages-2")
AWAY = 15.0
"""Seconds. Requests that wait so long have begun before, and end after."""
PATIENCE = 420.0
"""Seconds until all is well again: a call of two minutes that fails, a pause of two, and a busy machine."""
NEW = "vllm/vllm-openai:v0.12.0"
PARTS = ("etcd", "apiserver", "core", "function")


@pytest.fixture(scope="module", autouse=True)
def clusters(living: ControlPlane) -> Iterator[None]:
    fleet.create_namespace(living, NAMESPACE)
    fleet.create_fleet(living, [fleet.small_cluster(name, GROUP, nodes=8) for name in CLUSTERS])
    yield
    fleet.leave(living, NAMESPACE)
    living.kubectl("delete", "inferencecluster", *CLUSTERS, "--wait=false")


def serving(living: ControlPlane, name: str, replicas: int) -> Plain:
    """Create a deployment that rolls one by one, and make it serve."""
    made = fleet.small_deployment(name, GROUP, replicas, NAMESPACE)
    made["spec"]["placement"] = {"rollout": {"maxUnavailable": 1}}
    living.apply(made)
    standing = fleet.until_placed(living, made, replicas, PATIENCE)
    for replica in standing:
        fleet.say_ready(living, replica)
    names = {name_of(replica) for replica in standing}
    until(lambda: set(map(name_of, fleet.endpoints(living, made))) == names, "an endpoint of each", PATIENCE)
    return made


def uids(living: ControlPlane, *deployments: Plain) -> set[str]:
    """What runs of some deployments: their replicas and endpoints, without those that are leaving."""
    running = [
        plain
        for deployment in deployments
        for plain in (*fleet.replicas(living, deployment), *fleet.endpoints(living, deployment))
    ]
    return {plain["metadata"]["uid"] for plain in running if "deletionTimestamp" not in plain["metadata"]}


def is_rolled(living: ControlPlane, deployment: Plain) -> bool:
    """Make Ready what was updated, and look whether every replica serves the new image."""
    replicas = fleet.replicas(living, deployment)
    for replica in replicas:
        ready = condition(replica, "Ready")
        if ready.get("observedGeneration") != replica["metadata"]["generation"]:
            fleet.say_ready(living, replica)
    reason = fleet.reason(living, deployment, "ReplicasUpdated")
    return reason == "AllReplicasUpdated" and {fleet.image(replica) for replica in replicas} == {NEW}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("fault", [faults.hung, faults.killed], ids=lambda fault: fault.__name__)
def test_nothing_that_runs_is_lost(living: ControlPlane, day: Day, part: str, fault: Any) -> None:
    how = fault.__name__
    scales, rolls = serving(living, f"scales-{part}-{how}", 2), serving(living, f"rolls-{part}-{how}", 3)
    before = uids(living, scales, rolls)
    assert len(before) == 10, "five replicas and their endpoints"
    template = rolls["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]
    template["spec"]["containers"][0]["image"] = NEW
    scales["spec"]["replicas"] = 4
    with day.step(f"{part} {how} for {AWAY:.0f} s, one deployment scales, one rolls", "done, nothing lost"):
        living.apply(scales, rolls)
        with fault(living, part):
            time.sleep(AWAY)
        faults.until_it_answers(living)
        fleet.until_placed(living, scales, 4, PATIENCE)
        until(lambda: is_rolled(living, rolls), "the rollout", PATIENCE)
    assert before - uids(living, scales, rolls) == set()
    for made in (scales, rolls):
        words = ("delete", "modeldeployment", name_of(made), "-n", NAMESPACE, "--wait=false")
        living.kubectl(*words)
