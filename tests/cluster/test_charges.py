"""What clusters publish of their charges, and that it tells a deployment what the list of replicas tells."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from function.api import ModelReplica, replica as replica_api
from function.api.charge import UNKNOWN, Charged, digest
from function.api.replica import StampedConstraint, StampedEngine, StampedMember, StampedRequest
from function.boundary import PlainDocument
from function.cluster.publish import MAX_SELECTORS, NAMED, YIELDING, charge, flag
from function.deployment.handler import run
from function.scheduler.device_accounting import PodClaims
from tests.cluster.build import Case
from tests.schema.admission import refusals
from tests.schema.crds import schema_of
from tests.support import build, generate
from tests.support.generate import TASTE
from tests.support.scale import BATCHES, batch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.boundary import Response
    from tests.support.world import World

Plain = dict[str, Any]
GPU = "gpu.nvidia.com"
CREATED = "2026-01-01T00:00:00Z"
STATUS = {"type": "object", "properties": {"status": schema_of("InferenceCluster")["properties"]["status"]}}


def replica(deployment: str, nodes: int = 1, **more: Any) -> ModelReplica:
    """Return a replica on pool p of cluster east that claims whole nodes."""
    requests = (StampedRequest("gpu", GPU, 8),)
    engine = StampedEngine("main", nodes, (StampedMember("Standalone", "p", 1, requests),))
    made = ModelReplica(f"{deployment}-0", "ml", deployment=deployment, cluster="east", engines=(engine,))
    return made._replace(**{"nodes": {"p": nodes}, **more})


def published(replicas: Iterable[ModelReplica], nodes: int = 100, **pool: Any) -> Plain:
    """Return the charge of the one pool of cluster east."""
    (made,) = charge("east", [{"name": "p", "nodes": nodes, "devices": [], **pool}], replicas)
    charged: Plain = made["charged"]
    return charged


def test_a_pool_that_holds_more_than_it_has_is_marked_and_nothing_else_is_said_of_it() -> None:
    pools = [{"name": "p", "nodes": 2, "devices": []}, {"name": "q", "nodes": 2, "overcommitted": True}]
    within, beyond = ([replica(f"of-{number}") for number in range(held)] for held in (2, 3))
    unmarked = {"name": "q", "nodes": 2}
    assert flag("east", pools, within) == [pools[0], unmarked]
    assert flag("east", pools, beyond) == [{**pools[0], "overcommitted": True}, unmarked]
    leaving = [*within, replica("gone", deleting=True)]
    assert flag("east", pools, leaving) == [pools[0], unmarked], "what is being deleted counts no longer"
    assert flag("east", pools, [replica("west", cluster="west"), *within]) == [pools[0], unmarked]
    assert flag("east", [{"name": 7}], beyond) == [{"name": 7}], "one that cannot be read has no ledger"


def test_the_mark_is_written_when_it_turns_and_kept_in_doubt() -> None:
    """A placement that changes nothing of it changes nothing of the status: it would wake everybody there."""
    made = Case(input={"publish": "Attributes", "charges": "Overcommitted"})
    (nodes,) = (pool["nodes"] for pool in made.answer().status["gpuPools"])
    statuses = []
    for held in (0, nodes, nodes + 1, nodes + 2):
        made.replicas = [on_it(number) for number in range(held)]
        statuses.append(made.answer().status["gpuPools"])
    assert statuses[0] == statuses[1]
    assert statuses[2] == statuses[3] == [{**statuses[0][0], "overcommitted": True}]
    assert not made.answer().settled, "the next reading comes soon"
    made.cluster = {**made.cluster, "status": {"gpuPools": statuses[2]}}
    made.replicas = None
    assert made.answer().status["gpuPools"] == statuses[2]


def on_it(number: int) -> Plain:
    """Return a replica that takes a node of the cluster's pool."""
    cluster = Case().cluster
    deployment = build.deployment(f"model-{number}")
    return build.replica(deployment, cluster["metadata"]["name"], 0, pools="gpu")


def test_a_pool_that_nobody_holds_is_charged_nothing() -> None:
    assert published([]) == {"nodes": 0}


def test_equal_replicas_of_one_deployment_are_one_share() -> None:
    made = published([replica("chat", 2), replica("chat", 2), replica("chat", 1), replica("draft")])
    assert made == {
        "nodes": 6,
        "by": [
            {"deployment": "ml/chat", "replicas": 1, "nodes": 1},
            {"deployment": "ml/chat", "replicas": 2, "nodes": 4},
            {"deployment": "ml/draft", "replicas": 1, "nodes": 1},
        ],
    }


@pytest.mark.parametrize(
    ("change", "expected", "reason"),
    [
        (
            {"deleting": True},
            {"deployment": "ml/chat", "leaving": True},
            "it holds its node until it is gone",
        ),
        ({"deployment": ""}, {"replica": "ml/chat-0"}, "it names no deployment"),
    ],
)
def test_what_else_a_share_tells(change: Plain, expected: Plain, reason: str) -> None:
    (share,) = published([replica("chat")._replace(**change)])["by"]
    assert share == {"replicas": 1, "nodes": 1, **expected}, reason


def test_a_replica_that_names_another_cluster_is_charged_there() -> None:
    assert published([replica("chat", cluster="west")]) == {"nodes": 0}


def test_the_largest_holders_are_named_and_all_others_told_by_digest() -> None:
    small = [replica(f"m-{number:02}") for number in range(NAMED + 3)]
    made = published([replica("big", 5), *small, replica("pair", 2)])
    assert [share["deployment"] for share in made["by"]][:3] == ["ml/big", "ml/pair", "ml/m-00"]
    assert len(made["by"]) == NAMED
    hidden = sorted(digest(f"ml/m-{number:02}") for number in range(NAMED - 2, NAMED + 3))
    assert made["others"] == [{"replicas": 1, "nodes": 1, "digests": " ".join(hidden)}]


def test_its_size_is_bounded_by_the_replicas_on_the_pool() -> None:
    """13 bytes for a holder that is not named, whatever it is called."""
    holders = 3_000
    made = published([replica(f"{'long' * 10}-{number}") for number in range(holders)], nodes=holders)
    assert len(str(made)) < 13 * holders + 1_500


def test_where_devices_are_charged_a_share_says_what_is_claimed() -> None:
    made = published([replica("chat", 2)], accounting="Device")
    requests = [{"deviceClassName": GPU, "count": 8}]
    assert made["by"][0]["engines"] == [{"copies": 2, "members": [{"pods": 1, "requests": requests}]}]
    assert "engines" not in published([replica("chat", 2)])["by"][0]


def test_selectors_and_constraints_are_told_where_a_class_has_several_entries() -> None:
    """What is read from the share binds the same as the replica itself; long selectors are left out."""
    entries = [build.gpu(4, name="old", memory="40Gi"), build.gpu(4, name="new", memory="80Gi")]
    large = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0'
    for selectors, constraints, published_all in (
        ((large,), (StampedConstraint("gpu.nvidia.com/numa", ("gpu",)),), True),
        ((large + " " * MAX_SELECTORS,), (), False),
    ):
        request = StampedRequest("gpu", GPU, 2, selectors)
        engine = StampedEngine("main", 1, (StampedMember("Standalone", "p", 1, (request,), constraints),))
        held = replica("chat")._replace(engines=(engine,), nodes={"p": 1})
        [share] = Charged.parse(published([held], accounting="Device", devices=entries)).shares
        [member] = share.engines[0].stamped("p").members
        read = PodClaims.of(member.requests, member.constraints)
        assert (read == PodClaims.of([request], constraints)) == published_all
        assert (read.claims[0].selectors == UNKNOWN) != published_all
        [plain] = published([held], accounting="Device", devices=entries[:1])["by"][0]["engines"][0][
            "members"
        ]
        assert plain == {"pods": 1, "requests": [{"deviceClassName": GPU, "count": 2}]}


def test_who_gives_way_is_the_last_created_that_never_was_ready() -> None:
    replicas = [
        replica("old", name="old-0", created="2026-01-01T00:00:00Z"),
        replica("late", name="late-0", created="2026-01-03T00:00:00Z", uid="u"),
        replica("running", name="running-0", created="2026-01-04T00:00:00Z", ready=True),
    ]
    giving_way = published(replicas, nodes=2)["givesWay"]
    assert giving_way == [
        {"replica": "ml/late-0", "deployment": "late", "uid": "u", "created": "2026-01-03T00:00:00Z"}
    ]
    assert "givesWay" not in published(replicas, nodes=3)


def test_many_that_give_way_are_told_in_turns_the_last_created_first() -> None:
    replicas = [replica("many", name=f"many-{number:04}") for number in range(YIELDING + 60)]
    giving_way = published(replicas, nodes=10)["givesWay"]
    assert [item["replica"] for item in giving_way] == [
        f"ml/many-{number:04}" for number in range(60, YIELDING + 60)
    ]


def test_it_is_what_the_xrd_declares() -> None:
    many = [replica(f"m-{number}", name=f"m-{number}", created=CREATED, uid="u") for number in range(40)]
    stray = replica("chat", 2)._replace(deployment="", deleting=True)
    devices = [build.gpu()]
    made = published([*many, stray], nodes=10, accounting="Device", devices=devices)
    assert {"by", "others", "givesWay"} < made.keys()
    pool = {"name": "p", "nodes": 10, "devices": devices, "charged": made}
    assert refusals({"status": {"gpuPools": [pool]}}, STATUS) == []


@pytest.mark.parametrize(
    ("plain", "fault"),
    [
        ({"nodes": 2, "by": [{"deployment": "ml/a", "nodes": 1}]}, "the sum of the shares"),
        ({"nodes": 3, "by": [{"deployment": "ml/a", "replicas": 2, "nodes": 3}]}, "equal replicas"),
        ({"nodes": 1, "others": [{"nodes": 1, "digests": "short"}]}, "12 hex digits"),
        ({"nodes": -1.5}, "whole number"),
        ({"nodes": 1, "by": "all"}, "list"),
    ],
)
def test_a_charge_that_does_not_add_up_is_refused(plain: Plain, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Charged.parse(plain)


def by_charges(made: World) -> World:
    """Return a world as it is told where clusters publish their charges, from all that there is."""
    listed = [] if made.replicas is None else list(made.replicas)
    name = made.deployment["metadata"]["name"]
    own_replicas = [
        manifest for manifest in listed if (manifest["metadata"].get("labels") or {}).get(OF) == name
    ]
    newest = {
        (manifest["metadata"]["namespace"], manifest["metadata"]["name"]): manifest for manifest in listed
    }
    for manifest in made.observed.values():
        key = (manifest["metadata"]["namespace"], manifest["metadata"]["name"])
        if (
            manifest["kind"] == "ModelReplica"
            and "deletionTimestamp" not in newest.get(key, manifest)["metadata"]
        ):
            newest[key] = manifest
    everything = list(newest.values())
    return replace(
        made,
        clusters=None
        if made.clusters is None
        else [_charged(cluster, everything) for cluster in made.clusters],
        replicas=None,
        input={**(made.input or {}), "capacity": "Published"},
        more={} if made.replicas is None else {"own-replicas": own_replicas},
    )


OF, ON = "modelplane.ai/deployment", "modelplane.ai/cluster"


def _charged(cluster: Plain, listed: list[Plain]) -> Plain:
    name, status = cluster["metadata"]["name"], cluster.get("status") or {}
    here = [manifest for manifest in listed if (manifest["metadata"].get("labels") or {}).get(ON) == name]
    declared = {pool["name"]: pool for pool in cluster["spec"].get("nodePools") or ()}
    pools = [
        {"accounting": declared.get(pool["name"], {}).get("accounting"), **pool}
        for pool in status.get("gpuPools") or ()
    ]
    made = charge(name, pools, [replica_api.parse(PlainDocument(item)) for item in here])
    return {**cluster, "status": {**status, "gpuPools": made}} if pools else cluster


def _comparable(text: str) -> str:
    """Return a message without what differs: at rest only charges say what others hold."""
    text = text.replace("fleet-replicas/my-model", "fleet-replicas")
    return re.sub(r"; PoolOvercommitted: [^;]*", "", text)


def essence(answer: Response) -> Plain:
    """Return what an answer decides and says, digests and the texts of undelivered requirements aside."""
    status = {key: value for key, value in answer.status.items() if key != "placement"}
    placement = dict(answer.status.get("placement") or {})
    placement.pop("inputDigest", None)
    if "summary" in placement:
        placement["summary"] = _comparable(placement["summary"])
    said = [
        (
            condition.type,
            condition.status,
            condition.reason,
            _comparable(condition.message),
        )
        for condition in answer.conditions
        if condition.type != "CapacityRespected"
    ]
    return {"desired": answer.desired, "status": status, "placement": placement, "said": said}


@pytest.mark.parametrize("number", range(BATCHES))
def test_a_decision_from_charges_is_the_decision_from_all_replicas(number: int) -> None:
    compared = 0
    for seed in batch(number, quick=160, gate=8_000):
        made = generate.world(seed, replace(TASTE, opted=seed % 2 == 0))
        stated = made.input or {}
        if stated.get("coordination") == "GlobalOrder" or stated.get("quotas"):
            continue  # Neither can be combined with charges: both read the replicas of others.
        charges = by_charges(made)
        full, charged = essence(run(made.request())), essence(run(charges.request()))
        if "givesWay" in str(charges.clusters):  # Who gives way is told: no other number of nodes undoes it.
            full["placement"].pop("hints", None)
            charged["placement"].pop("hints", None)
        for part, value in full.items():
            assert charged[part] == value, (seed, part)
        compared += bool(made.replicas)
    assert compared
