"""`capacity: Published`: what others hold is what the clusters say of it, and our own replicas are listed."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from function.api import replica as replica_api
from function.boundary import PlainDocument
from function.cluster.publish import charge
from function.deployment.requirements import everything
from tests.support import build
from tests.support.drive import run
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.drive import Answer

Plain = dict[str, Any]
PUBLISHED = {"capacity": "Published"}
YIELD = PUBLISHED | {"overcommit": "Yield"}


def chat(replicas: int = 1, copies: int | None = None, namespace: str = build.NAMESPACE) -> Plain:
    """Return the deployment that is asked about: every pod of it takes a node."""
    member = build.member(devices=[build.request("gpu", 8)])
    return build.deployment(
        "chat", replicas, [build.engine(members=[member], copies=copies)], namespace=namespace
    )


def other(name: str, nodes: int = 1) -> Plain:
    """Return another deployment, of `nodes` nodes a replica."""
    return build.deployment(name, 1, [build.engine(copies=nodes)])


def on(cluster: str, *of: Plain, ready: bool | None = None, index: int = 0) -> list[Plain]:
    """Return one replica of each deployment on a cluster."""
    return [build.replica(item, cluster, index, pools="p", ready=ready) for item in of]


def cluster(name: str, nodes: int, held: Sequence[Plain] = (), **pool: Any) -> Plain:
    """Return a cluster of one pool that publishes what these replicas hold of it."""
    made = build.cluster(name, [build.pool("p", nodes) | pool])
    replicas = [replica_api.parse(PlainDocument(manifest)) for manifest in held]
    made["status"]["gpuPools"] = charge(name, made["status"]["gpuPools"], replicas)
    return made


def world(
    deployment: Plain,
    clusters: Sequence[Plain],
    listed: Sequence[Plain] | None = (),
    observed: Sequence[Plain] | None = None,
    settings: Plain | None = None,
) -> World:
    """Return a request; what is listed is observed too unless it is said otherwise. None: not delivered."""
    seen = listed if observed is None else observed
    return World(
        deployment,
        clusters,
        None,
        build.observed(*(seen or ())),
        input=settings or PUBLISHED,
        more={} if listed is None else {"own-replicas": listed},
    )


def answered(*args: Any, **more: Any) -> Answer:
    return run(world(*args, **more), level="plain")


def placed(answer: Answer) -> list[str]:
    """The keys of the replicas that are desired."""
    return sorted(key for key in answer.desired if key.startswith("replica-"))


def said(answer: Answer, kind: str = "ReplicasScheduled") -> tuple[str, str]:
    """Return reason and message of a condition."""
    _, reason, message = answer.conditions[kind]
    return reason, message


def test_only_the_clusters_and_the_replicas_of_its_name_are_required() -> None:
    requirements = everything(world(chat(), [cluster("a", 1)]).request())
    label = (("modelplane.ai/deployment", "chat"),)
    assert [(entry.name, entry.kind, entry.match_labels, entry.namespace) for entry in requirements] == [
        ("fleet-clusters", "InferenceCluster", (), None),
        ("fleet-replicas/chat", "ModelReplica", label, None),
        ("own-replicas/chat", "ModelReplica", label, build.NAMESPACE),
    ]


def test_what_others_hold_is_not_given_out() -> None:
    held = on("a", other("big", 3))
    assert placed(answered(chat(2), [cluster("a", 4, held), cluster("b", 1)])) == [
        "replica-a-0",
        "replica-b-0",
    ]
    full = answered(chat(3), [cluster("a", 4, held), cluster("b", 1)])
    assert said(full)[0] == "PartiallyScheduled"


@pytest.mark.parametrize(
    ("summed", "listed", "free", "reason"),
    [
        (1, 1, 3, "the sum has it: its own share is taken out and it is charged once"),
        (0, 1, 3, "the sum is older than the replica: it is charged all the same"),
        (2, 1, 3, "one is gone since: it is charged no more"),
        (2, 0, 4, "all are gone since"),
    ],
)
def test_own_replicas_are_charged_once_however_old_the_sum_is(
    summed: int, listed: int, free: int, reason: str
) -> None:
    own_replicas = [replica for index in range(2) for replica in on("a", chat(), index=index)]
    here = cluster("a", 4, own_replicas[:summed])
    answer = answered(chat(9), [here], own_replicas[:listed])
    assert len(placed(answer)) == listed + free, reason


def test_what_is_leaving_is_charged_until_it_is_gone() -> None:
    (leaving,) = on("a", chat())
    leaving["metadata"]["deletionTimestamp"] = build.CREATED
    answer = answered(chat(2), [cluster("a", 2, [leaving])], [leaving], observed=[])
    assert placed(answer) == ["replica-a-1"]


def test_replicas_that_are_not_delivered_keep_everything() -> None:
    own_replicas = on("a", chat(), ready=True)
    answer = answered(chat(2), [cluster("a", 4, own_replicas)], None, observed=own_replicas)
    assert placed(answer) == ["replica-a-0"]
    reason, message = said(answer)
    assert reason == "InputsUnresolved"
    assert "own-replicas" in message


@pytest.mark.parametrize(
    ("charged", "fault", "reason"),
    [
        (None, "no charge", "its handler does not publish any"),
        ({"nodes": 3}, "expected the sum of the shares", "it does not add up"),
        ("three", "expected a map", "it is no charge at all"),
    ],
)
def test_a_cluster_whose_charge_is_not_known_takes_nothing_new(charged: Any, fault: str, reason: str) -> None:
    unknown = build.cluster("a", [build.pool("p", 4) | ({} if charged is None else {"charged": charged})])
    own_replicas = on("a", chat(), ready=True)
    answer = answered(chat(3), [unknown, cluster("b", 1)], own_replicas)
    assert placed(answer) == ["replica-a-0", "replica-b-0"], reason
    message = said(answer)[1]
    assert "charge not published" in message
    assert fault in message


@pytest.mark.parametrize(
    ("pool", "doubt"),
    [
        (build.pool("p", 4), ""),
        ({"name": "p", "nodes": 4}, "pool p does not publish its devices; "),
    ],
)
def test_an_edit_that_grows_a_replica_waits_while_the_charge_is_not_known(pool: Plain, doubt: str) -> None:
    own_replicas = on("a", chat(copies=1), ready=True)
    answer = answered(chat(copies=2), [build.cluster("a", [pool]), cluster("b", 4)], own_replicas)
    unknown = "cluster a does not publish what is charged to it"
    assert [kept.doubt for kept in answer.decision.kept] == [f"{doubt}{unknown}"]
    assert placed(answer) == ["replica-a-0"], "it is neither replaced nor grown"
    assert answer.desired["replica-a-0"]["spec"]["engines"][0]["copies"] == 1
    assert "edits are withheld until cluster a publishes what is charged to it" in said(answer)[1]


def test_a_pool_that_charges_devices_needs_a_charge_that_says_them() -> None:
    held = on("a", other("half"))
    by_nodes = cluster("a", 1, held)
    by_nodes["status"]["gpuPools"][0]["accounting"] = "Device"
    assert "does not say which devices" in said(answered(chat(), [by_nodes]))[1]
    small = build.deployment(
        "chat", 1, [build.engine(members=[build.member(devices=[build.request("gpu", 7)])])]
    )
    by_devices = cluster("a", 1, held, accounting="Device")
    assert placed(answered(small, [by_devices])) == ["replica-a-0"], "one of eight is taken"
    assert placed(answered(chat(), [by_devices])) == []


def test_it_cannot_be_combined_with_one_order_for_all() -> None:
    own_replicas = on("a", chat(), ready=True)
    answer = answered(
        chat(2),
        [cluster("a", 4, own_replicas)],
        own_replicas,
        settings=PUBLISHED | {"coordination": "GlobalOrder"},
    )
    reason, message = said(answer)
    assert reason == "InvalidInput"
    assert "capacity: Published cannot be combined with coordination: GlobalOrder" in message
    assert placed(answer) == ["replica-a-0"], "what runs is kept, nothing new is placed"
    assert answer.requirements == (), "what is read instead of all replicas was delivered"


def test_explanations_name_the_holders() -> None:
    held = on("a", other("big", 3), *(other(f"m-{number:02}") for number in range(12)))
    answer = answered(chat(), [cluster("a", 15, held)], settings=PUBLISHED | {"explain": "Status"})
    (pool,) = answer.status["placement"]["clusters"][0]["pools"]
    assert pool["heldBy"][0] == {"deployment": "ml-team/big", "nodes": 3}
    assert pool["heldBy"][-1] == {"deployment": "8 others", "nodes": 8}
    assert pool["free"] == 0


def test_nobody_is_told_to_free_nodes_who_is_not_named() -> None:
    held = on("a", *(other(f"m-{number:02}") for number in range(30)))
    answer = answered(chat(), [cluster("a", 30, held)], settings=PUBLISHED | {"explain": "Status"})
    freed = [hint for hint in answer.status["placement"]["hints"] if hint["change"] == "FreeNodes"]
    assert [item["heldBy"] for item in freed] == ["ml-team/m-00"]


def test_a_namesake_keeps_its_object_name() -> None:
    """Pods of both would go by one name in the cluster's default namespace."""
    namesake = on("a", chat(namespace="ads"))
    answer = answered(chat(), [cluster("a", 4, namesake)], namesake, observed=[])
    assert placed(answer) == ["replica-a-1"]


def crowded(own_replicas: Sequence[Plain]) -> Plain:
    """Return a cluster of one node that an older replica of another deployment and ours hold."""
    (older,) = on("a", other("older"))
    older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return cluster("a", 1, [older, *own_replicas])


def test_who_gives_way_is_read_from_the_cluster() -> None:
    own_replicas = on("a", chat())
    answer = answered(chat(), [crowded(own_replicas), cluster("b", 1)], own_replicas, settings=YIELD)
    assert placed(answer) == ["replica-b-0"]
    assert said(answer, "CapacityRespected")[1].endswith("1 of its replicas gives way")
    assert answer.conditions["CapacityRespected"][0] is False
    reported = answered(chat(), [crowded(own_replicas), cluster("b", 1)], own_replicas)
    assert placed(reported) == ["replica-a-0"], "Report takes nothing away"
    assert said(reported, "CapacityRespected") == ("PoolOvercommitted", "a/p holds 2 of 1 node")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": {"conditions": [build.condition("Ready", status=True)]}}, "it became Ready meanwhile"),
        ({"metadata": {"uid": "another"}}, "another object of that name was meant"),
        ({"metadata": {"annotations": {"modelplane.ai/was-ready": "true"}}}, "it was Ready once"),
    ],
)
def test_what_was_told_of_another_state_takes_nothing_away(change: Plain, reason: str) -> None:
    own_replicas = on("a", chat())
    here = crowded(own_replicas)
    (now,) = copy.deepcopy(own_replicas)
    for part, fields in change.items():
        now[part] = {**now.get(part, {}), **fields}
    answer = answered(chat(), [here, cluster("b", 1)], [now], settings=YIELD)
    assert placed(answer) == ["replica-a-0"], reason


def test_those_who_give_way_before_us_get_their_places_first() -> None:
    """All that leave a pool at once would meet on the next one."""
    (older,) = on("a", other("older"))
    own_replicas = on("a", chat())
    own_replicas[0]["metadata"]["creationTimestamp"] = "2026-03-02T00:00:00Z"
    (first,) = on("a", other("zeroth"))
    clusters = [cluster("a", 1, [older, first, *own_replicas]), cluster("b", 1), cluster("c", 1)]
    assert placed(answered(chat(), clusters, own_replicas, settings=YIELD)) == ["replica-c-0"]
