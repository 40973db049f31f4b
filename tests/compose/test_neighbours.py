"""Other steps of the pipeline, odd objects under our keys, what is declared: not ours to spoil."""

from __future__ import annotations

from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as pb

from tests.support import build
from tests.support.drive import plain, run, run_bytes
from tests.support.world import World

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"k": "v"}}
CLUSTER = build.cluster("a", [build.pool("p")])


def ask(message: pb.RunFunctionRequest) -> pb.RunFunctionResponse:
    return pb.RunFunctionResponse.FromString(run_bytes(message.SerializeToString()))


@pytest.mark.parametrize("observed", [False, True])
def test_a_key_that_an_earlier_step_desires_is_theirs(*, observed: bool) -> None:
    message = World(build.deployment(), [CLUSTER]).message()
    theirs = message.desired.resources["replica-a-0"]
    theirs.resource.update(CONFIG_MAP)
    theirs.ready = pb.READY_TRUE
    if observed:
        message.observed.resources["replica-a-0"].resource.update(CONFIG_MAP)
    desired = ask(message).desired.resources
    assert plain(desired["replica-a-0"].resource) == CONFIG_MAP
    assert desired["replica-a-0"].ready == pb.READY_TRUE
    assert plain(desired["replica-a-1"].resource)["kind"] == "ModelReplica"
    assert desired["replica-a-1"].ready == pb.READY_UNSPECIFIED


def test_an_endpoint_key_that_an_earlier_step_desires_is_theirs_too() -> None:
    deployment = build.deployment()
    own_replica = build.replica(deployment, "a", 0, pools="p", ready=True)
    message = World(deployment, [CLUSTER], [own_replica], build.observed(own_replica)).message()
    message.desired.resources["endpoint-a-0"].resource.update(CONFIG_MAP)
    desired = ask(message).desired.resources
    assert plain(desired["endpoint-a-0"].resource) == CONFIG_MAP
    assert "replica-a-0" in desired


def test_an_object_of_another_kind_under_our_key_stays_what_it_is() -> None:
    answer = run(World(build.deployment(), [CLUSTER], observed={"replica-a-0": CONFIG_MAP}))
    got = answer.desired["replica-a-0"]
    assert (got["kind"], got["data"]) == ("ConfigMap", {"k": "v"})


def _coordinated(**more: Any) -> dict[str, Any]:
    return {"coordination": "GlobalOrder", **more}


def test_an_answer_to_an_error_states_what_it_was_handed() -> None:
    """Else Crossplane would fetch, forget and fetch again, and from 2.4 on watch nothing meanwhile."""
    broken = build.deployment(cache="weights")
    broken["spec"]["replicas"] = 1.5
    for names in (
        ["cache/weights", "own-replicas/my-model"],
        ["cache/weights", "fleet-clusters", "fleet-replicas", "own-replicas/my-model"],
    ):
        answer = run(World(broken, None, None, more=dict.fromkeys((*names, "somebody-elses"), ())))
        assert sorted(item["name"] for item in answer.requirements) == names
        assert answer.fatal


def test_an_invalid_input_asks_for_no_less() -> None:
    asked = [
        run(World(build.deployment(cache="weights"), None, None, input=given)).requirements
        for given in (_coordinated(), _coordinated(explian="x"))
    ]
    assert asked[0] == asked[1]


def test_an_unreadable_deployment_still_tells_of_its_cache() -> None:
    deployment = build.deployment(cache="weights")
    deployment["spec"]["replicas"] = 1.5
    answer = run(World(deployment, [CLUSTER], cache=[]))
    assert list(answer.conditions) == ["ModelCacheResolved", "ReplicasScheduled", "ReplicasReady"]
    assert answer.reason("ModelCacheResolved") == "ModelCacheNotFound"


def test_a_deployment_scaled_to_zero_needs_no_cluster() -> None:
    answer = run(World(build.deployment(replicas=0), []))
    assert answer.conditions["ReplicasScheduled"][:2] == (True, "ReplicasCreated")
    assert answer.conditions["ReplicasReady"][:2] == (True, "AllReplicasReady")
    assert (answer.unready, answer.events) == (False, ())


def test_a_missing_cache_is_asked_for_again_soon_and_spoils_no_readiness() -> None:
    deployment = build.deployment(cache="weights")
    own_replica = build.replica(deployment, "a", 0, pools="p", ready=True)
    observed = build.observed(own_replica, endpoints=[build.endpoint(own_replica)])
    answer = run(World(deployment, [CLUSTER], [own_replica], observed, cache=[]))
    assert (answer.unready, answer.settled) == (False, False)


def test_a_replica_that_is_only_listed_is_not_settled() -> None:
    deployment = build.deployment()
    own_replica = build.replica(deployment, "a", 0, pools="p", ready=True)
    assert run(World(deployment, [CLUSTER], [own_replica])).settled is False


def test_an_endpoint_of_a_replica_that_may_only_be_listed_waits_for_the_list() -> None:
    own_replica = build.replica(build.deployment(), "a", 0, pools="p", ready=True)
    observed = build.observed(endpoints=[build.endpoint(own_replica)])
    late = World(build.deployment(), [CLUSTER], None, observed)
    assert set(run(late).desired) == {"endpoint-a-0"}
    assert "endpoint-a-0" not in run(late.but(replicas=[])).desired
