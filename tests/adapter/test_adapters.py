"""An adapter from its manifest to requests: both handlers in a played namespace, and every doubt."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from function import dispatch
from function.adapter.snapshot import fleet
from function.boundary import PlainDocument, Request
from tests.adapter.plane import Plane, adapter, replica
from tests.fuzz.mutate import mutated
from tests.replica.build import cluster
from tests.support import drive
from tests.support.scale import seeds

SUPPORT = "support"


def settled(**options: Any) -> Plane:
    plane = Plane.of(
        [replica("chat-1"), replica("chat-2", "cluster-b"), replica("chat-3", slots=None)],
        [adapter(SUPPORT, **{"replicas": 2, **options})],
    )
    plane.settle()
    return plane


def lists(plane: Plane, name: str) -> tuple[list[str], list[str]]:
    """Return what the loader of a replica is told to have, and not to have."""
    (text,) = plane.composed[name]["adapters"]["spec"]["forProvider"]["manifest"]["data"].values()
    content = json.loads(text)["vLLMLoRAConfig"]
    return tuple(
        [one["id"] for one in content[field]["models"]] for field in ("ensureExist", "ensureNotExist")
    )  # type: ignore[return-value]


def test_it_is_placed_configured_and_routed() -> None:
    plane = settled()
    assert plane.where(SUPPORT) == ["chat-1", "chat-2"]
    assert lists(plane, "chat-1") == ([SUPPORT], [])
    status = plane.adapters[SUPPORT]["status"]
    assert status["replicas"] == {"total": 2, "ready": 2}
    assert [(one["type"], one["status"], one["reason"]) for one in status["conditions"]] == [
        ("AdapterScheduled", "True", "FullyScheduled"),
        ("AdapterReady", "True", "Configured"),
    ]
    endpoint = plane.composed[SUPPORT]["adapter-endpoint-chat-1"]
    assert endpoint["spec"] == plane.way_to("chat-1")["spec"]
    assert endpoint["metadata"]["labels"] == {
        "modelplane.ai/adapter": SUPPORT,
        "modelplane.ai/replica": "chat-1",
    }


def test_a_settled_adapter_asks_for_its_own_replicas_by_name_and_in_two_calls() -> None:
    plane = settled()
    before = plane.calls
    answer = plane.reconcile(SUPPORT)
    assert plane.calls - before == 2
    assert sorted(one["name"] for one in answer.requirements) == [
        "endpoint/chat-1",
        "endpoint/chat-2",
        "replica/chat-1",
        "replica/chat-2",
    ]
    assert answer.settled


def test_an_adapter_is_not_settled_while_a_replica_that_serves_it_has_no_endpoint() -> None:
    """Its deployment may make that endpoint only now, and an open circuit breaker hides it."""
    plane = settled()
    required = delivered(plane)
    way = required["endpoint/chat-2"]
    required["endpoint/chat-2"] = []
    kept = drive.of_core(dispatch.run(request_of(plane, required)))
    assert kept.settled, "one that is there stays as it is"
    del plane.composed[SUPPORT]["adapter-endpoint-chat-2"]
    missing = drive.of_core(dispatch.run(request_of(plane, required)))
    assert "adapter-endpoint-chat-2" not in missing.desired
    text = "No endpoint leads to support on chat-2 yet"
    assert missing.conditions["AdapterReady"] == (False, "NoEndpoint", text)
    assert not missing.settled
    back = drive.of_core(dispatch.run(request_of(plane, {**required, "endpoint/chat-2": way})))
    assert "adapter-endpoint-chat-2" in back.desired
    assert back.settled


def test_an_edit_of_the_list_changes_a_config_map_and_no_pod_template() -> None:
    plane = settled()
    workload = copy.deepcopy(plane.composed["chat-1"]["model-serving-main"]["spec"]["forProvider"])
    plane.adapters["code"] = adapter("code")
    plane.adapters[SUPPORT]["spec"]["replicas"] = 0
    plane.settle()
    assert lists(plane, "chat-1") == (["code"], [SUPPORT])
    assert plane.composed["chat-1"]["model-serving-main"]["spec"]["forProvider"] == workload


def test_a_replica_that_is_being_deleted_hands_its_adapter_over_before_it_goes() -> None:
    plane = settled(replicas=1)
    (first,) = plane.where(SUPPORT)
    plane.replicas[first]["metadata"]["deletionTimestamp"] = "2026-02-01T00:00:00Z"
    plane.reconcile(SUPPORT)
    assert plane.where(SUPPORT) == ["chat-1", "chat-2"]
    plane.settle()
    assert plane.where(SUPPORT) == ["chat-2"]


def test_two_adapters_that_take_the_last_slot_at_once_end_on_two_replicas() -> None:
    plane = Plane.of([replica("chat-1", slots=1), replica("chat-2", slots=1)], [adapter("a"), adapter("b")])
    answers = [plane.ask(plane.adapters[name], name) for name in "ab"]
    assert [sorted(answer.desired) for answer in answers] == [["placement-chat-1"]] * 2
    plane.reconcile("a")
    late = copy.deepcopy(plane.composed["a"]["placement-chat-1"])
    late["metadata"] |= {"name": "b-late", "creationTimestamp": "2026-01-01T09:00:00Z"}
    late["metadata"]["labels"]["modelplane.ai/adapter"] = late["spec"]["adapter"] = "b"
    late["metadata"]["ownerReferences"][0]["uid"] = "uid-of-b"
    plane.composed["b"] = {"placement-chat-1": late}
    plane.settle()
    assert (plane.where("a"), plane.where("b")) == (["chat-1"], ["chat-2"])
    assert lists(plane, "chat-1")[0] == ["a"]


def test_it_says_why_no_other_replica_takes_it() -> None:
    plane = settled(replicas=3)
    scheduled = plane.adapters[SUPPORT]["status"]["conditions"][0]
    assert scheduled["reason"] == "PartiallyScheduled"
    assert scheduled["message"] == (
        "Placed on 2 of 3 replicas; 0/3 replicas of the base can take it: 1 without room for adapters"
        " (chat-3 has no room for adapters), 2 already with this adapter"
    )
    plane.adapters[SUPPORT]["spec"]["minReplicas"] = 2
    plane.settle(1)
    assert plane.adapters[SUPPORT]["status"]["conditions"][0]["status"] == "True"


@pytest.mark.parametrize(
    ("reason", "wanted", "minimum", "given", "available"),
    [
        ("FullyScheduled", 2, 1, "True", 2),
        ("PartiallyScheduled", 3, 1, "True", 2),
        ("NotScheduled", 3, 3, "False", 0),
    ],
)
def test_the_three_states_are_conditions(
    reason: str, wanted: int, minimum: int, given: str, available: int
) -> None:
    """Two of the three replicas have room: enough, enough for the minimum, or not even that."""
    status = settled(replicas=wanted, minReplicas=minimum).adapters[SUPPORT]["status"]
    scheduled = status["conditions"][0]
    assert (scheduled["reason"], scheduled["status"]) == (reason, given)
    assert status["replicas"]["total"] == available


def test_one_that_has_to_leave_all_of_its_replicas_is_not_said_to_be_on_none() -> None:
    plane = settled()
    plane.adapters[SUPPORT]["spec"]["rank"] = 512
    plane.settle(1)
    assert plane.where(SUPPORT) == ["chat-1", "chat-2"]
    scheduled, ready = plane.adapters[SUPPORT]["status"]["conditions"]
    assert (scheduled["reason"], ready["reason"]) == ("ReplacementBlocked", "NoReplicas")
    assert ready["message"] == "It has to leave every replica that it is on"


def test_a_full_base_gets_a_hint_that_was_tried() -> None:
    plane = Plane.of([replica("chat-1", slots=1)], [adapter("a"), adapter("b")])
    plane.settle()
    message = plane.adapters["b"]["status"]["conditions"][0]["message"]
    assert "1 without a free slot (chat-1 1 of 1 taken)" in message
    assert message.endswith("with one slot more on each replica 1 more would be placed")


def test_overcommitted_slots_take_more_adapters_and_say_so_to_the_engine() -> None:
    plane = Plane.of([replica("chat-1", slots=1, overcommit=2)], [adapter("a"), adapter("b")])
    plane.settle()
    assert lists(plane, "chat-1")[0] == ["a", "b"]
    pod = plane.composed["chat-1"]["model-serving-main"]["spec"]["forProvider"]["manifest"]["spec"][
        "template"
    ]
    assert pod["spec"]["containers"][0]["args"][-4:] == [
        "--enable-lora",
        "--max-loras=1",
        "--max-lora-rank=16",
        "--max-cpu-loras=2",
    ]


def test_an_engine_without_room_is_as_it_always_was() -> None:
    plane = Plane.of([replica("chat-1", slots=None)], [])
    answer = plane.serve("chat-1")
    assert {one["name"] for one in answer.requirements} == {"cluster"}
    assert "adapters" not in answer.desired
    assert "adapters" not in answer.status
    pod = answer.desired["model-serving-main"]["spec"]["forProvider"]["manifest"]["spec"]["template"]["spec"]
    assert "initContainers" not in pod
    assert [volume["name"] for volume in pod["volumes"]] == ["dshm"]


def request_of(plane: Plane, required: dict[str, list[Any]]) -> Request:
    return Request(
        composite=PlainDocument(plane.adapters[SUPPORT]),
        observed={key: PlainDocument(item) for key, item in plane.composed[SUPPORT].items()},
        required={key: tuple(map(PlainDocument, items)) for key, items in required.items()},
    )


def delivered(plane: Plane) -> dict[str, list[Any]]:
    names = [
        requirement
        for name in (SUPPORT,)
        for requirement in plane.ask(plane.adapters[name], name).requirements
    ]
    return {requirement.name: plane.deliver(requirement) for requirement in names}


@pytest.mark.parametrize("missing", ["replica/chat-1", "endpoint/chat-1", "replica/chat-2"])
def test_what_is_not_delivered_removes_nothing(missing: str) -> None:
    plane = settled()
    required = delivered(plane)
    del required[missing]
    answer = drive.of_core(dispatch.run(request_of(plane, required)))
    assert sorted(answer.desired) == sorted(plane.composed[SUPPORT])
    assert answer.conditions["AdapterScheduled"][:2] == (False, "InputsUnresolved")


def test_law_2_no_mutation_of_what_is_delivered_removes_a_placement() -> None:
    plane = settled()
    required = delivered(plane)
    for seed in seeds(300):
        draw = random.Random(seed)
        changed = copy.deepcopy(required)
        name = draw.choice(sorted(changed))
        changed[name] = [mutated(draw, item) for item in changed[name]]
        answer = drive.of_core(dispatch.run(request_of(plane, changed)))
        placements = {key for key in plane.composed[SUPPORT] if key.startswith("placement-")}
        assert placements <= set(answer.desired), (seed, name)


def spoilt(draw: random.Random, plane: Plane, required: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return what is delivered with parts of it undelivered, wrong, late, or an emptied list."""
    changed = {}
    for name, items in copy.deepcopy(required).items():
        fate = draw.choice(("as it is", "as it is", "undelivered", "wrong", "late", "emptied"))
        if fate == "wrong":
            changed[name] = [mutated(draw, item) for item in items]
        elif fate == "late":  # As it was before its handler ever ran.
            changed[name] = [{key: item[key] for key in item if key != "status"} for item in items]
        elif fate == "emptied" and "/chat-" not in name:  # That of one name is evidence: it is gone.
            changed[name] = []
        elif fate != "undelivered":
            changed[name] = items
    return changed


def test_law_2_whatever_is_undelivered_late_or_wrong_removes_no_placement() -> None:
    """Of a settled adapter that is short of a place, so that every pass reads the whole base."""
    plane = settled(replicas=3)
    required = delivered(plane)
    required |= {item.name: plane.deliver(item) for item in fleet(request_of(plane, required))}
    placements = {key for key in plane.composed[SUPPORT] if key.startswith("placement-")}
    assert len(required) == 6
    for seed in seeds(400):
        draw = random.Random(seed)
        changed = spoilt(draw, plane, required)
        answer = drive.of_core(dispatch.run(request_of(plane, changed)))
        assert placements <= set(answer.desired), seed
        for key in placements:
            assert answer.desired[key]["metadata"]["name"] == plane.composed[SUPPORT][key]["metadata"]["name"]
            assert answer.desired[key]["spec"] == plane.composed[SUPPORT][key]["spec"], seed


def test_law_c_whatever_is_wrong_with_a_replica_takes_nothing_from_its_cluster() -> None:
    """The list, the workload and the claims stay, and the pods' template is the one that runs."""
    plane = settled()
    composite, name = plane.replicas["chat-1"], "chat-1"
    required = {item.name: plane.deliver(item) for item in plane.ask(composite, name).requirements}
    before = plane.composed[name]
    for seed in seeds(200, 5_000):
        draw = random.Random(seed)
        changed = {
            key: items if draw.random() < 0.5 else [mutated(draw, item) for item in items]
            for key, items in copy.deepcopy(required).items()
            if draw.random() < 0.8
        }
        request = Request(
            composite=PlainDocument(composite),
            observed={key: PlainDocument(item) for key, item in before.items()},
            required={key: tuple(map(PlainDocument, items)) for key, items in changed.items()},
        )
        answer = drive.of_core(dispatch.run(request))
        assert set(before) <= set(answer.desired), seed
        head = answer.desired["adapters"]["spec"]["forProvider"]["manifest"]["metadata"]
        assert head == before["adapters"]["spec"]["forProvider"]["manifest"]["metadata"], seed


def test_at_rest_more_than_is_asked_for_changes_nothing() -> None:
    plane = settled()
    required = delivered(plane)
    everything = required | {
        requirement.name: plane.deliver(requirement) for requirement in fleet(request_of(plane, required))
    }
    assert len(everything) == len(required) + 2
    answers = [drive.of_core(dispatch.run(request_of(plane, items))) for items in (required, everything)]
    for field in ("desired", "conditions", "status", "requirements"):
        one, other = (getattr(answer, field) for answer in answers)
        assert one == other, field


def test_an_adapter_that_cannot_be_read_keeps_everything() -> None:
    plane = settled()
    required = delivered(plane)
    plane.adapters[SUPPORT]["spec"]["replicas"] = "two"
    answer = drive.of_core(dispatch.run(request_of(plane, required)))
    assert sorted(answer.desired) == sorted(plane.composed[SUPPORT])
    status, reason, message = answer.conditions["AdapterScheduled"]
    assert (status, reason) == (False, "Malformed")
    assert 'spec.replicas: expected a whole number, found "two"' in message


def test_a_name_that_is_no_label_is_named() -> None:
    plane = Plane.of([replica("chat-1")], [adapter("a.b")])
    message = plane.reconcile("a.b").conditions["AdapterScheduled"][2]
    assert 'expected a DNS label of at most 63 characters as its name, found "a.b"' in message


def test_undelivered_placements_keep_the_list_of_a_replica() -> None:
    plane = settled()
    request = Request(
        composite=PlainDocument(plane.replicas["chat-1"]),
        observed={key: PlainDocument(item) for key, item in plane.composed["chat-1"].items()},
        required={"cluster": (PlainDocument(cluster()),)},
    )
    answer = drive.of_core(dispatch.run(request))
    assert set(answer.desired) >= set(plane.composed["chat-1"])
    assert answer.conditions["ModelAccepted"][:2] == (False, "WaitingForAdapters")
    assert answer.status["adapters"] == [{"name": SUPPORT}]
