"""Requests and responses, compared with the generated types of Crossplane's SDK."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as pb
from crossplane.function.proto.v1beta1 import run_function_pb2 as beta
from google.protobuf import json_format, struct_pb2

from function import wire
from function.boundary import Condition, Desired, InternalError, Requirement, Response, Result
from function.fail_static import internal_error
from function.wire import write
from tests.support.shuffle import shuffled_bytes

CLUSTERS = Requirement("clusters", "modelplane.ai/v1alpha1", "InferenceCluster")
CACHE = Requirement("cache", "modelplane.ai/v1alpha1", "ModelCache", match_name="weights", namespace="ml")
NOTHING = Response(requirements=())


def struct(content: dict[str, Any]) -> struct_pb2.Struct:
    return json_format.ParseDict(content, struct_pb2.Struct())


def request(**fields: Any) -> pb.RunFunctionRequest:
    return json_format.ParseDict(fields, pb.RunFunctionRequest())


def delimited(number: int, content: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + write.varint(len(content)) + content


def answered(asked: pb.RunFunctionRequest, response: Response = NOTHING) -> pb.RunFunctionResponse:
    call = wire.decode(asked.SerializeToString())
    return pb.RunFunctionResponse.FromString(wire.encode(call, response, wire.Ttl(15, 60)))


FULL = request(
    meta={"tag": "a-tag", "capabilities": ["CAPABILITY_CAPABILITIES", "CAPABILITY_CONDITIONS"]},
    observed={
        "composite": {"resource": {"kind": "ModelDeployment"}},
        "resources": {"replica-a-0": {"resource": {"kind": "ModelReplica", "spec": {"n": 1}}}},
    },
    desired={
        "composite": {"resource": {"status": {"theirs": {"a": 1}}}, "ready": "READY_TRUE"},
        "resources": {
            "bucket": {
                "resource": {"kind": "Bucket"},
                "connection_details": {"password": "aHVudGVyMg=="},
                "ready": "READY_FALSE",
            }
        },
    },
    input={"kind": "SchedulerConfig", "searchBudget": 10},
    context={"key": {"deep": [1, None, True]}},
    credentials={"secret": {"credential_data": {"data": {"token": "aHVudGVyMg=="}}}},
    required_resources={
        "clusters": {"items": [{"resource": {"kind": "InferenceCluster"}}, {"resource": {}}]},
        "cache": {"items": [{}]},
        "all-replicas": {},
    },
)


def test_a_request_is_sliced_as_the_sdk_reads_it() -> None:
    asked = wire.decode(FULL.SerializeToString()).request
    assert asked.composite.plain() == {"kind": "ModelDeployment"}
    assert {key: document.plain() for key, document in asked.observed.items()} == {
        "replica-a-0": {"kind": "ModelReplica", "spec": {"n": 1}}
    }
    assert asked.input == {"kind": "SchedulerConfig", "searchBudget": 10}
    assert asked.desired == {"bucket"}
    assert asked.desired_status == {"theirs": {"a": 1}}


def test_unresolved_absent_and_not_found_are_told_apart() -> None:
    required = wire.decode(FULL.SerializeToString()).request.required
    assert [cluster.plain() for cluster in required["clusters"]] == [{"kind": "InferenceCluster"}]
    assert required["cache"] == (), "an item that holds nothing says: not found"
    assert required["all-replicas"] == (), "delivered, and there is none"
    assert "clusters" not in wire.decode(b"").request.required, "not delivered yet"


def test_a_call_without_anything_can_be_answered() -> None:
    asked = wire.decode(b"").request
    assert (asked.composite.plain(), asked.input, dict(asked.observed)) == ({}, {}, {})
    assert answered(pb.RunFunctionRequest()).meta.ttl.seconds == 15


@pytest.mark.parametrize("content", [b"\xff", b"\x12\x05ab", b"not a request"])
def test_bytes_that_are_no_request_are_refused(content: bytes) -> None:
    with pytest.raises(wire.MalformedRequest):
        wire.decode(content)


def test_an_unreadable_input_is_one_that_no_reader_accepts() -> None:
    broken = wire.decode(b"\x22\x02\xff\xff").request.input
    assert broken is not None
    assert list(broken) == ["(unreadable)"]


def test_what_is_not_ours_is_copied() -> None:
    response = answered(FULL)
    assert response.meta.tag == "a-tag"
    assert response.context == FULL.context
    assert response.desired == FULL.desired


def test_a_context_is_there_only_if_it_was_sent() -> None:
    assert not answered(pb.RunFunctionRequest()).HasField("context")
    assert answered(request(context={})).HasField("context")


def test_ours_is_added_to_what_earlier_steps_desire() -> None:
    replica = Desired({"kind": "ModelReplica", "spec": {"copies": 2, "x": None}}, ready=True)
    endpoint = Desired({"kind": "ModelEndpoint"})
    response = answered(
        FULL,
        Response(
            requirements=(),
            desired={"replica-a-0": replica, "endpoint-a-0": endpoint},
            status={"replicas": {"total": 1}, "theirs": {"b": 2}},
            unready=True,
        ),
    )
    resources = response.desired.resources
    assert resources["bucket"] == FULL.desired.resources["bucket"]
    assert resources["replica-a-0"].resource == struct(replica.resource)
    assert [resources[key].ready for key in ("replica-a-0", "endpoint-a-0")] == [pb.READY_TRUE, 0]
    status = response.desired.composite.resource
    assert status == struct({"status": {"replicas": {"total": 1}, "theirs": {"a": 1, "b": 2}}})
    assert response.desired.composite.ready == pb.READY_FALSE


def test_nothing_is_said_of_the_composite_when_there_is_nothing_to_say() -> None:
    assert not answered(pb.RunFunctionRequest()).HasField("desired")


def test_requirements_select_everything_explicitly_or_by_name() -> None:
    response = answered(pb.RunFunctionRequest(), replace(NOTHING, requirements=(CLUSTERS, CACHE)))
    clusters, cache = (response.requirements.resources[name] for name in ("clusters", "cache"))
    assert clusters.WhichOneof("match") == "match_labels", "an empty matchLabels that is present"
    assert dict(clusters.match_labels.labels) == {}
    assert not clusters.HasField("namespace")
    assert (cache.match_name, cache.namespace, cache.kind) == ("weights", "ml", "ModelCache")


WRITTEN = Response(
    requirements=(CLUSTERS,),
    desired={"replica-a-0": Desired({"kind": "ModelReplica"}, ready=True)},
    status={"replicas": {"total": 1}},
    unready=True,
    conditions=(Condition("ReplicasReady", status=False, reason="ModelStarting"),),
)
DELIVERED = {"clusters": {"items": [{"resource": {"kind": "InferenceCluster"}}]}}
CALLS = [
    ({"meta": {"tag": "first"}}, "the first call"),
    ({"meta": {"tag": "second"}}, "another tag"),
    ({"meta": {"tag": "first"}, "desired": {}}, "earlier steps that desire nothing"),
    ({"meta": {"tag": "first"}, "required_resources": DELIVERED}, "everything came unasked"),
    ({"meta": {"tag": "first"}, "context": {"key": 1}}, "a context to pass on"),
    ({"desired": {"composite": {"resource": {"status": {"theirs": 1}}}}}, "a status to merge into"),
    ({"desired": {"resources": {"bucket": {"resource": {"kind": "Bucket"}}}}}, "an object of another step"),
]


def test_an_answer_given_again_is_the_same_bytes_as_one_written_anew() -> None:
    calls = [wire.decode(request(**fields).SerializeToString()) for fields, _ in CALLS * 2]
    for ttl in (wire.Ttl(15, 60), wire.Ttl(5, 60)):
        for call, (_, reason) in zip(calls, CALLS * 2, strict=True):
            assert wire.encode(call, WRITTEN, ttl) == wire.encode(call, replace(WRITTEN), ttl), reason


def test_conditions_and_results_keep_their_order() -> None:
    conditions = (
        Condition("ReplicasScheduled", status=True, reason="ReplicasCreated"),
        Condition("ReplicasReady", status=False, reason="ModelStarting", message="1 of 2"),
    )
    results = (Result("WARNING", "Lost", "w"), Result("NORMAL", "", "n"), Result("FATAL", "Broken", "f"))
    response = answered(pb.RunFunctionRequest(), replace(NOTHING, conditions=conditions, results=results))
    assert json_format.MessageToDict(response)["conditions"] == [
        {"type": "ReplicasScheduled", "status": "STATUS_CONDITION_TRUE", "reason": "ReplicasCreated"},
        {
            "type": "ReplicasReady",
            "status": "STATUS_CONDITION_FALSE",
            "reason": "ModelStarting",
            "message": "1 of 2",
        },
    ]
    assert [(result.severity, result.reason, result.message) for result in response.results] == [
        (pb.SEVERITY_WARNING, "Lost", "w"),
        (pb.SEVERITY_NORMAL, "", "n"),
        (pb.SEVERITY_FATAL, "Broken", "f"),
    ]


@pytest.mark.parametrize(
    ("settled", "composed", "asked", "seconds", "reason"),
    [
        (False, [], (None, None), 15, "something is pending"),
        (False, [True], (None, None), 15, "something is pending beside what is composed"),
        (True, [], (None, None), 60, "settled"),
        (True, [True, True], (None, None), 60, "settled, and all that is composed is ready"),
        (True, [True, False], (None, None), 15, "something that is composed is not ready"),
        (True, [False], (5, 600), 5, "something that is composed is not ready"),
        (False, [], (5, 600), 5, "the input asks for another time"),
        (True, [], (5, 600), 600, "the input asks for another time"),
        (True, [], (5, None), 60, "the input asks for the other one only"),
        (False, [], (0, None), 0, "zero is a time"),
        (False, [], (0.25, None), 0.25, "less than a second"),
    ],
)
def test_time_to_live(
    *,
    settled: bool,
    composed: list[bool],
    asked: tuple[float | None, float | None],
    seconds: float,
    reason: str,
) -> None:
    desired = {f"a-{number}": Desired({}, ready=ready) for number, ready in enumerate(composed)}
    response = replace(NOTHING, desired=desired, settled=settled, ttl=asked)
    ttl = answered(pb.RunFunctionRequest(), response).meta.ttl
    assert ttl.seconds + ttl.nanos / 1e9 == seconds, reason


def test_v1_and_v1beta1_are_the_same_on_the_wire() -> None:
    fields = FULL.SerializeToString(deterministic=True)
    again = beta.RunFunctionRequest.FromString(fields).SerializeToString(deterministic=True)
    call = wire.decode(again)
    response = replace(NOTHING, requirements=(CLUSTERS, CACHE), status={"a": 1})
    answer = wire.encode(call, response, wire.Ttl())
    assert beta.RunFunctionResponse.FromString(answer).SerializeToString(deterministic=True) == (
        pb.RunFunctionResponse.FromString(answer).SerializeToString(deterministic=True)
    )


def test_the_order_of_map_entries_in_the_request_does_not_show_in_the_answer() -> None:
    content = {"a": {"x": 1, "y": {"p": 1, "q": 2}}, "b": [{"c": 1, "d": 2}], "status": {"s": 1, "t": 2}}
    response = replace(NOTHING, status={"ours": {"z": 1, "w": 2}})
    answers = set()
    for seed in range(20):
        written = shuffled_bytes(content, random.Random(seed))
        state = delimited(1, delimited(1, written))
        asked = delimited(3, state) + delimited(5, written)
        answers.add(wire.encode(wire.decode(asked), response, wire.Ttl()))
    assert len(answers) == 1


def test_a_status_that_is_no_object_is_replaced() -> None:
    asked = request(desired={"composite": {"resource": {"kind": "X", "status": "odd"}}})
    response = answered(asked, replace(NOTHING, status={"a": 1}))
    assert response.desired.composite.resource == struct({"kind": "X", "status": {"a": 1}})


def failure(call: wire.ReceivedCall, *requirements: Requirement) -> InternalError:
    return replace(internal_error(call.request, requirements, ("ReplicasReady",)), message="sorry")


class TestAnErrorOfOurOwn:
    """Fatal once the requirements were delivered; before that, everything observed stays."""

    OBSERVED: dict[str, Any] = {  # noqa: RUF012 - read only
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {
            "name": "m-1",
            "namespace": "ml",
            "labels": {"a": "b"},
            "annotations": {"c": "d"},
            "uid": "u",
            "resourceVersion": "1",
            "managedFields": [{"manager": "crossplane"}],
        },
        "spec": {"clusterName": "a", "engines": [{"name": "main"}]},
        "status": {"conditions": []},
    }

    def answer(self, asked: pb.RunFunctionRequest) -> pb.RunFunctionResponse:
        call = wire.decode(asked.SerializeToString())
        kept = wire.encode_internal_error(call, failure(call, CLUSTERS, CACHE), wire.Ttl())
        return pb.RunFunctionResponse.FromString(kept)

    def asked(self, *delivered: str) -> pb.RunFunctionRequest:
        return request(
            meta={"tag": "t"},
            observed={"resources": {"replica-a-0": {"resource": self.OBSERVED}, "bucket": {"resource": {}}}},
            desired={"resources": {"bucket": {"resource": {"kind": "Bucket"}}}},
            required_resources={name: {"items": [{"resource": {"kind": "X"}}]} for name in delivered},
        )

    def test_is_fatal_when_everything_was_delivered(self) -> None:
        asked = self.asked("clusters", "cache")
        asked.required_resources["clusters"].items.add().resource.update({"kind": "InferenceCluster"})
        response = self.answer(asked)
        assert [(result.severity, result.message) for result in response.results] == [
            (pb.SEVERITY_FATAL, "sorry")
        ]
        assert set(response.requirements.resources) == {"clusters", "cache"}, "what is stated is watched"

    @pytest.mark.parametrize("delivered", [(), ("clusters", "cache")])
    def test_says_so_in_every_condition_and_is_not_ready(self, delivered: tuple[str, ...]) -> None:
        """What is not returned keeps its last value and lies; zero resources read as Ready to Crossplane."""
        response = self.answer(self.asked(*delivered))
        assert response.desired.composite.ready == pb.READY_FALSE
        (condition,) = response.conditions
        assert (condition.type, condition.reason) == ("ReplicasReady", "InternalError")
        assert condition.status == pb.STATUS_CONDITION_FALSE

    @pytest.mark.parametrize("delivered", [(), ("clusters",), ("cache",)])
    def test_keeps_everything_while_something_is_undelivered(self, delivered: tuple[str, ...]) -> None:
        response = self.answer(self.asked(*delivered))
        assert [result.severity for result in response.results] == [pb.SEVERITY_WARNING]
        assert set(response.requirements.resources) == {"clusters", "cache"}
        assert set(response.desired.resources) == {"replica-a-0", "bucket"}
        assert response.desired.resources["bucket"].resource == struct({"kind": "Bucket"})
        applied = json_format.MessageToDict(response.desired.resources["replica-a-0"].resource)
        metadata = {key: self.OBSERVED["metadata"][key] for key in ("name", "namespace", "labels")}
        assert applied == {
            "apiVersion": "modelplane.ai/v1alpha1",
            "kind": "ModelReplica",
            "metadata": metadata | {"annotations": {"c": "d"}},
            "spec": self.OBSERVED["spec"],
        }, "what server-side apply takes: no status, nothing that the server manages"

    def test_is_fatal_when_what_is_observed_cannot_be_kept(self) -> None:
        broken = b"\x12\x0a\x12\x08\x0a\x01k\x12\x03\x0a\x01\xff"
        call = wire.decode(broken)
        assert list(call.request.observed) == ["k"]
        response = pb.RunFunctionResponse.FromString(
            wire.encode_internal_error(call, failure(call, CLUSTERS), wire.Ttl())
        )
        assert [result.severity for result in response.results] == [pb.SEVERITY_FATAL]
