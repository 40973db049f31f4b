"""What is emitted: only what is set, retained replicas updated in place, endpoints behind gateways."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import build
from tests.support.drive import run
from tests.support.world import World

Plain = dict[str, Any]


def placed(engines: list[Plain], devices: list[Plain], **options: Any) -> Plain:
    """The spec of the one replica placed for these engines on a pool of these devices."""
    deployment = build.deployment("my-model", 1, engines, **options)
    cluster = build.cluster("a", [build.pool("h100", 8, devices)])
    cache = [build.cache()] if options.get("cache") else None
    answer = run(World(deployment, [cluster], cache=cache))
    return dict(answer.desired["replica-a-0"])


def test_a_new_replica_has_exactly_the_fields_that_are_set() -> None:
    leader = build.member(
        "Leader", [build.request("gpu", 8), build.request("nic", 1, 'device.driver == "dra.net"')]
    )
    worker = build.member("Worker", [build.request("gpu", 8)], nodes=2)
    got = placed(
        [build.engine("main", [leader, worker])], [build.gpu(8), build.nic(1)], labels={"team": "ml"}
    )
    gpu = {
        "name": "gpu",
        "deviceClassName": "gpu.nvidia.com",
        "count": 8,
        "selectors": [{"cel": build.GPUS}],
    }
    assert got == {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {
            "name": "my-model-" + got["metadata"]["name"][-5:],
            "namespace": build.NAMESPACE,
            "labels": {
                "team": "ml",
                "modelplane.ai/deployment": "my-model",
                "modelplane.ai/cluster": "a",
                "modelplane.ai/replica-index": "0",
            },
        },
        "spec": {
            "clusterName": "a",
            "engines": [
                {
                    "name": "main",
                    "copies": 1,
                    "members": [
                        {
                            "role": "Leader",
                            "nodePoolName": "h100",
                            "deviceRequests": [gpu],
                            "template": leader["template"],
                        },
                        {
                            "role": "Worker",
                            "nodePoolName": "h100",
                            "deviceRequests": [gpu],
                            "worker": {"nodes": 2},
                            "template": worker["template"],
                        },
                    ],
                }
            ],
        },
    }


def test_our_labels_win_over_the_templates() -> None:
    got = placed([build.engine()], [build.gpu()], labels={"modelplane.ai/cluster": "elsewhere"})
    assert got["metadata"]["labels"]["modelplane.ai/cluster"] == "a"


def test_a_member_that_claims_nothing_has_no_device_requests() -> None:
    engine = build.engine("main", [build.member("Leader", [build.request()]), build.member("Worker")])
    leader, worker = placed([engine], [build.gpu()])["spec"]["engines"][0]["members"]
    assert "deviceRequests" in leader
    assert "deviceRequests" not in worker
    assert "worker" not in worker
    assert worker["nodePoolName"] == "h100"


def test_the_cache_and_serving_are_copied_when_set() -> None:
    spec = placed([build.engine()], [build.gpu()], cache="weights")["spec"]
    assert spec["modelCacheRef"] == {"name": "weights"}
    assert "serving" not in spec


def running(**edit: Any) -> tuple[World, Plain]:
    """A Ready replica, and the world after an edit of its deployment's engine."""
    deployment = build.deployment("my-model", 1, [build.gang("main", nodes=1)])
    own_replica = build.replica(deployment, "a", 0, ready=True)
    deployment["spec"]["template"]["spec"]["engines"][0].update(edit)
    made = World(
        deployment, [build.cluster("a", [build.pool("h100", 8)])], [own_replica], build.observed(own_replica)
    )
    return made, own_replica


def test_a_retained_replica_is_updated_in_place() -> None:
    made, own_replicas = running()
    made.deployment["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"] = build.template(
        "new:1"
    )
    got = run(made).desired["replica-a-0"]
    leader, worker = got["spec"]["engines"][0]["members"]
    assert leader["template"] == build.template("new:1")
    assert worker["template"] == own_replicas["spec"]["engines"][0]["members"][1]["template"]
    assert got["metadata"]["name"] == own_replicas["metadata"]["name"]


def test_fields_of_a_template_that_nobody_here_knows_are_passed_through() -> None:
    made, _ = running()
    template = build.template("new:1")
    template["spec"] |= {"terminationGracePeriodSeconds": 90, "volumes": [{"name": "x", "emptyDir": {}}]}
    members = made.deployment["spec"]["template"]["spec"]["engines"][0]["members"]
    members[0]["template"] = template
    for world in (made, made.but(replicas=[], observed={})):
        got = run(world).desired["replica-a-0"]["spec"]["engines"][0]["members"][0]
        assert got["template"] == template


def test_a_retained_replica_keeps_the_requests_it_was_stamped_with() -> None:
    """ResourceClaimTemplates downstream are immutable; the pinned pool satisfies the edited selector too."""
    made, own_replicas = running()
    member = made.deployment["spec"]["template"]["spec"]["engines"][0]["members"][0]
    member["nodeSelector"]["devices"][0]["selectors"] = [{"cel": build.HOPPER}]
    got = run(made).desired["replica-a-0"]
    assert (
        got["spec"]["engines"][0]["members"][0]["deviceRequests"]
        == (own_replicas["spec"]["engines"][0]["members"][0]["deviceRequests"])
    )


def test_a_replica_that_needs_more_nodes_than_its_pool_has_is_held_or_replaced() -> None:
    made, own_replicas = running(copies=3)
    assert run(made).desired["replica-a-0"]["spec"]["engines"][0]["copies"] == 3
    made.clusters[0]["status"]["gpuPools"][0]["nodes"] = 5
    held = run(made)
    assert held.reason() == "ReplacementBlocked"
    assert held.desired["replica-a-0"]["spec"] == own_replicas["spec"]


@pytest.mark.parametrize(
    ("address", "url", "reason"),
    [
        ("10.0.0.1", "http://10.0.0.1/", "IPv4"),
        ("gateway.example.org", "http://gateway.example.org/", "a name"),
        ("10.0.0.1:8080", "http://10.0.0.1:8080/", "with a port"),
        ("2001:db8::1", "http://[2001:db8::1]/", "IPv6 is bracketed"),
        ("[2001:db8::1]", "http://[2001:db8::1]/", "once"),
        ("::1", "http://[::1]/", "however short"),
    ],
)
def test_an_endpoint_points_at_the_gateway(address: str, url: str, reason: str) -> None:
    made, own_replicas = running()
    made.clusters[0]["status"]["gateway"]["address"] = address
    spec = run(made).desired["endpoint-a-0"]["spec"]
    path = f"{build.NAMESPACE}/{own_replicas['metadata']['name']}"
    assert spec == {"url": f"{url}{path}/v1", "rewritePath": f"/{path}/"}, reason


def test_a_composed_object_is_ready_when_it_is_observed_ready() -> None:
    made, own_replicas = running()
    assert run(made).ready == {"replica-a-0"}
    observed = build.observed(own_replicas, endpoints=[build.endpoint(own_replicas)])
    assert run(made.but(observed=observed)).ready == {"replica-a-0", "endpoint-a-0"}


def test_an_answer_that_would_grow_too_large_stops_filling_and_says_so() -> None:
    deployment = build.deployment("my-model", 200)
    member = deployment["spec"]["template"]["spec"]["engines"][0]["members"][0]
    member["template"]["spec"]["containers"][0]["args"] = ["x" * 100_000]
    answer = run(World(deployment, [build.cluster("a", [build.pool("h100", 500)])]))
    assert 20 <= len(answer.replicas) <= 31
    assert "the response would grow too large" in answer.conditions["ReplicasScheduled"][2]
