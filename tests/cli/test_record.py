"""A recording holds what a decision reads: a canary in any other field of the request never gets there."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as pb
from google.protobuf import json_format, struct_pb2
from google.protobuf.descriptor import FieldDescriptor

from function import wire
from function.api.names import PAUSED_ANNOTATION
from function.cli.commands.replay import answer
from function.operations.handler import WATCHED
from function.recording import loaded
from function.runner import Function
from function.server.services import Recorder
from function.wire.request import REQUIREMENTS_STATED
from tests.fuzz.mutate import mutated_bytes, mutated_world
from tests.support import build, generate, scale
from tests.support.recordings import Log
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CANARY = "canary-4e1d07"
READ = ("observed", "desired", "input", "required_resources")
"""Fields of a request that a decision reads something of. Of the others it reads nothing."""
EXPLAINED = {
    "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
    "kind": "SchedulerConfig",
    "explain": "Status",
}


def recorded(folder: Path, request: bytes) -> tuple[bytes, bytes]:
    """Answer a request with a recorder; return the request and the response of its one recording."""
    log = Log()
    Function(Log(), recorder=Recorder(folder, log, "tested")).answer(request)
    assert log.said == []
    (file,) = folder.glob("*.json")
    assert CANARY.encode() not in file.read_bytes()
    recording = loaded(file.read_bytes())
    assert answer(recording) == recording.response, "the replay says the same"
    return recording.request, recording.response


def secret_template() -> dict[str, Any]:
    header = {"name": "Authorization", "value": CANARY}
    return {
        "metadata": {"annotations": {"note": CANARY}},
        "spec": {
            "containers": [
                {
                    "name": "engine",
                    "args": CANARY,
                    "command": {"run": CANARY},
                    "env": {"HF_TOKEN": CANARY},
                    "readinessProbe": {"httpGet": {"httpHeaders": [header]}},
                },
                {"name": "side", "args": [CANARY], "env": [{"name": "T", "value": CANARY}]},
            ],
            "imagePullSecrets": [{"name": CANARY}],
            CANARY: CANARY,
        },
    }


def engines_of(parent: dict[str, Any]) -> list[dict[str, Any]]:
    return list(parent["spec"]["template"]["spec"]["engines"])


def secret_world() -> World:
    """A world with a canary in everything that is passed on, added by others, or of a later version."""
    parent = build.deployment("chat", 3)
    for engine in engines_of(parent):
        engine["members"][0]["template"] = secret_template()
    parent["metadata"] |= {"labels": {"team": CANARY}, "managedFields": [{"manager": CANARY}]}
    running = build.replica(parent, "east", 0, ready=True)
    running["metadata"]["labels"]["team"] = CANARY
    pinned = build.replica(build.deployment("other", 1, namespace="them"), "east", 0)
    parent["spec"]["template"]["spec"]["serving"] = {"key": CANARY}
    parent["spec"]["template"]["metadata"] = {"labels": {"team": CANARY}}
    east, cache = build.cluster("east", [build.pool("h100", 9)]), build.cache("weights")
    for made in (parent, running, pinned, east, cache):
        made["metadata"]["annotations"] = {"note": CANARY}
        made["data"] = {"password": CANARY}
        made["spec"]["later"] = {"field": [CANARY]}
        made.setdefault("status", {})["later"] = CANARY
    odd = build.cluster("odd", [build.pool("h100", 1)])
    odd["status"]["gpuPools"] = CANARY
    return World(
        parent,
        [east, odd],
        [running, pinned, {"metadata": {"name": "x"}, "spec": CANARY}],
        {**build.observed(running), "secret": {"kind": "Secret", "data": {"password": CANARY}}},
        [cache],
        input=EXPLAINED | {"metadata": {"annotations": {"note": CANARY}}},
        more={"others": [{"kind": "Secret", "data": {"password": CANARY}}]},
    )


def fill(message: Any, depth: int = 0) -> None:
    """Put the canary into every text, byte string and key of a message, whatever fields it has."""
    if isinstance(message, struct_pb2.Struct):
        message.update({CANARY: {"deep": [CANARY]}})
        return
    for field in message.DESCRIPTOR.fields if depth < 8 else ():
        held = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            if value.message_type is not None:
                fill(held[CANARY], depth + 1)
            else:
                held[CANARY] = CANARY.encode() if value.type == FieldDescriptor.TYPE_BYTES else CANARY
        elif field.is_repeated:
            fill(held.add(), depth + 1) if field.message_type else None
        elif field.message_type is not None:
            held.SetInParent()
            fill(held, depth + 1)
        elif field.type == FieldDescriptor.TYPE_STRING:
            setattr(message, field.name, CANARY)
        elif field.type == FieldDescriptor.TYPE_BYTES:
            setattr(message, field.name, CANARY.encode())


def secret_request() -> pb.RunFunctionRequest:
    """A request with a canary in every field of the message of the SDK."""
    message = secret_world().message()
    for field in message.DESCRIPTOR.fields:
        if field.name not in READ:
            empty = pb.RunFunctionRequest()
            fill(empty)
            message.ClearField(field.name)
            message.MergeFrom(pb.RunFunctionRequest(**{field.name: getattr(empty, field.name)}))
    filled = pb.RunFunctionRequest()
    fill(filled)
    message.desired.MergeFrom(filled.desired)
    message.observed.resources[CANARY].MergeFrom(filled.observed.resources[CANARY])
    message.required_resources[CANARY].MergeFrom(filled.required_resources[CANARY])
    resources = [message.observed.composite, message.desired.resources["replica-west-0"]]
    resources += message.observed.resources.values()
    resources += [item for listed in message.required_resources.values() for item in listed.items]
    for resource in resources:
        resource.connection_details[CANARY] = CANARY.encode()
    message.desired.resources["replica-west-0"].resource.update({"kind": "Secret", "data": {"p": CANARY}})
    return message


def test_the_canary_is_in_every_field_of_the_request() -> None:
    """A field that a later version of the SDK adds is in this test by itself."""
    message = secret_request()
    assert [f.name for f in message.DESCRIPTOR.fields if CANARY not in str(getattr(message, f.name))] == []


def test_no_field_of_a_request_is_recorded_but_what_a_decision_reads(tmp_path: Path) -> None:
    request, response = recorded(tmp_path, secret_request().SerializeToString())
    assert CANARY.encode() not in request + response
    assert {b"replica-east-0", b"replica-west-0", b"h100"} == {
        text for text in (b"replica-east-0", b"replica-west-0", b"h100") if text in request
    }


@pytest.mark.parametrize("number", [6, 7, 9, 10, 2_000])
def test_fields_that_the_message_does_not_declare_are_not_recorded(number: int, tmp_path: Path) -> None:
    content = CANARY.encode()
    tag = wire.write.varint(number << 3 | 2)
    unknown = tag + wire.write.varint(len(content)) + content
    request = secret_world().message()
    nested = pb.Resource.FromString(request.observed.composite.SerializeToString() + unknown)
    request.observed.composite.CopyFrom(nested)
    recorded(tmp_path, request.SerializeToString() + unknown)


@pytest.mark.parametrize("kind", ["ModelReplica", None])
def test_what_asks_for_no_placement_is_not_recorded(kind: str | None, tmp_path: Path) -> None:
    """A composite of another kind, or a step of an Operation, which has none."""
    request = secret_world().message()
    if kind:
        request.observed.composite.resource["kind"] = kind
    else:
        request.ClearField("observed")
        request.required_resources[WATCHED].SetInParent()
    log = Log()
    Function(Log(), recorder=Recorder(tmp_path, log, "tested")).answer(request.SerializeToString())
    assert (list(tmp_path.iterdir()), log.said) == ([], [])


@pytest.mark.parametrize(
    "without",
    [
        {"metadata": {"annotations": {PAUSED_ANNOTATION: "true"}}},
        {
            "status": {
                "conditions": [
                    {"type": "Synced", "status": "False", "message": "cannot fetch Composition: no secret"}
                ]
            }
        },
    ],
    ids=["paused", "no Composition"],
)
def test_a_deployment_that_places_nothing_is_recorded_as_one(tmp_path: Path, without: dict[str, Any]) -> None:
    """It holds no node back from those that come later in the common order."""
    ours = build.deployment("later", 2)
    ours["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    other = build.deployment("earlier", 2)
    other["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z"} | without.get("metadata", {})
    other["status"] = without.get("status", {})
    made = World(
        ours,
        [build.cluster("east", [build.pool("h100", 2)])],
        (),
        input=EXPLAINED | {"coordination": "GlobalOrder"},
        more={"all-deployments": [ours, other], "all-caches": []},
    )
    _, response = recorded(tmp_path, made.message().SerializeToString())
    assert (
        sum(
            key.startswith("replica-")
            for key in pb.RunFunctionResponse.FromString(response).desired.resources
        )
        == 2
    )


def encoded(made: World) -> bytes:
    """The request in our own bytes: protobuf's Struct does not take what nests too deep."""
    from tests.support.encode import encoded as written

    return written(random.Random(1), made)


def reconciled(content: bytes) -> bytes:
    """The request after an answer was applied: the composite has its status and conditions."""
    request = pb.RunFunctionRequest.FromString(content)
    answer = pb.RunFunctionResponse.FromString(Function(Log()).answer(content))
    status = request.observed.composite.resource.get_or_create_struct("status")
    status.update(json_format.MessageToDict(answer.desired.composite.resource).get("status", {}))
    status["conditions"] = [
        {
            "type": condition.type,
            "status": "True" if condition.status == pb.STATUS_CONDITION_TRUE else "False",
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": CANARY,
        }
        for condition in answer.conditions
    ]
    return request.SerializeToString(deterministic=True)


def requests(seed: int) -> Iterator[tuple[str, bytes]]:
    """A world, explained; the same, mutated; and its bytes, mutated."""
    made = generate.world(seed)
    made = made.but(input={**(made.input or {}), **EXPLAINED})
    draw = random.Random(seed)
    content = made.message().SerializeToString(deterministic=True)
    yield "world", content
    yield "the next reconcile", reconciled(content)
    later = pb.RunFunctionRequest.FromString(content)
    later.context.update({REQUIREMENTS_STATED: True})
    yield "a later call", later.SerializeToString(deterministic=True)
    yield "bytes", mutated_bytes(draw, content)
    yield "mutated", encoded(mutated_world(draw, made, draw.choice((1, 2, 3))))


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_a_recording_replays_to_the_same_bytes(number: int, tmp_path: Path) -> None:
    log = Log()
    function = Function(Log(), recorder=Recorder(tmp_path, log, "tested", max_files=1))
    replayed = 0
    for seed in scale.batch(number, quick=160, gate=5_000, soak=50_000):
        for what, content in requests(seed):
            try:
                function.answer(content)
            except wire.MalformedRequest:
                continue
            for file in tmp_path.glob("*.json"):
                recording = loaded(file.read_bytes())
                assert answer(recording) == recording.response, f"seed {seed}, {what}"
                file.unlink()
                replayed += 1
    # Mutations leave objects that cannot be decoded; nothing else keeps a call from being recorded.
    assert all(said == ("not recorded", {"reason": "Unreadable"}) for said in log.said)
    assert replayed


def test_what_replicas_say_of_themselves_is_in_no_recording(tmp_path: Path) -> None:
    """A deployment repeats it in ReplicasReady: in the answer, and in the composite of the next call."""
    wanted = build.deployment()
    wanted["status"] = {
        "conditions": [{"type": "ReplicasReady", "message": f"0 of 1 ready; replicas say: {CANARY}"}]
    }
    replica = build.replica(wanted, "a", 0, pools="p")
    said = {"type": "ModelReady", "status": "False", "reason": "FailedCreate", "message": CANARY}
    replica["status"] = {"conditions": [said]}
    world = World(wanted, [build.cluster("a", [build.pool("p", 4)])], [replica], build.observed(replica))
    request = world.message().SerializeToString()
    assert CANARY.encode() in Function(Log()).answer(request)
    _, response = recorded(tmp_path, request)
    assert b"0 of 1 ready" in response


def saying(message: str, *, ready: bool) -> dict[str, Any]:
    """Return a status of a replica whose condition ModelReady has a message."""
    model = {"type": "ModelReady", "status": "False", "reason": "FailedCreate", "message": message}
    return {"conditions": [{"type": "Ready", "status": str(ready)}, model]}


def test_what_replicas_say_of_themselves_is_in_no_event_of_a_recording(tmp_path: Path) -> None:
    """A cluster that is newly degraded is an event, with the message of ReplicasReady."""
    wanted = build.deployment(replicas=2)
    serving = build.replica(wanted, "a", 0, pools="p", ready=True)
    failing = build.replica(wanted, "a", 1, pools="p") | {"status": saying(CANARY, ready=False)}
    away = build.cluster("a", [build.pool("p", 4)], ready=False)
    world = World(wanted, [away], [serving, failing], build.observed(serving, failing))
    request = world.message().SerializeToString()
    answered = pb.RunFunctionResponse.FromString(Function(Log()).answer(request))
    assert CANARY in "".join(event.message for event in answered.results)
    _, response = recorded(tmp_path, request)
    assert CANARY.encode() not in response


@pytest.mark.parametrize("words", [CANARY, f"a) or b), c/d {CANARY} (e)"])
@pytest.mark.parametrize(("starting", "wanted"), [(1, 3), (2, 3), (5, 6), (2, 5)])
def test_what_a_rollout_waits_for_is_in_a_recording_without_its_words(
    words: str, starting: int, wanted: int, tmp_path: Path
) -> None:
    """One that waits to be placed, or more replicas than are named, stand behind those words."""
    old = build.deployment(replicas=wanted)
    new = copy.deepcopy(old)
    serving = engines_of(new)[0]["members"][0]["template"]["spec"]["containers"][0]
    serving["image"] = "example.com/new:1"
    new["spec"].setdefault("placement", {})["rollout"] = {"maxUnavailable": 1}
    said = {"status": saying(words, ready=False)}
    later = [build.replica(new, "a", index, pools="p") | said for index in range(1, starting + 1)]
    replicas = [build.replica(old, "a", 0, pools="p", ready=True), *later]
    world = World(new, [build.cluster("a", [build.pool("p", starting + 1)])], replicas)
    request = world.but(observed=build.observed(*replicas)).message().SerializeToString()
    answered = pb.RunFunctionResponse.FromString(Function(Log()).answer(request))
    (updated,) = (item.message for item in answered.conditions if item.type == "ReplicasUpdated")
    assert f"is in service (FailedCreate: {words})" in updated
    _, response = recorded(tmp_path, request)
    assert CANARY.encode() not in response
    assert b"is in service" in response
