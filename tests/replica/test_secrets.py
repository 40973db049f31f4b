"""What a Secret holds is in no answer; a literal value of a variable is in its pod and nowhere else."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from function import dispatch, wire
from function.fail_static import internal_error
from function.replica import names
from tests.replica.build import (
    PROVIDER_CONFIG,
    REPLICA,
    Scene,
    config,
    engine,
    gang,
    member,
    replica,
    run,
    run_bytes,
)
from tests.replica.provider import applied

CANARY = "canary-5b1f0c"
DATA = {"token": "Y2FuYXJ5LTViMWYwYw=="}
ENV = [
    {"name": "LITERAL", "value": CANARY},
    {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
]


def mirrored() -> Scene:
    """Return a replica whose mirrored Secret was filled by the provider, in the spec and in what it saw."""
    scene = Scene(replica(engine("main", member(env=ENV))), input=config(secrets="Mirror", status="Engines"))
    observed = applied(run(scene))
    held = observed["secret-hf"]
    for manifest in (held["spec"]["forProvider"]["manifest"], held["status"]["atProvider"]["manifest"]):
        manifest |= {"data": DATA, "stringData": {"token": CANARY}}
    return scene.but(observed=observed)


def referring(role: str, at: int) -> dict[str, Any]:
    """Return a member that refers to three Secrets and, by an empty name, to none."""
    env = [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": f"env-{at}", "key": "k"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "", "key": "k", "optional": True}}},
        {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    made = member(role, env=env, secrets=[f"pull-{at}"])
    made["template"]["spec"]["volumes"] = [
        {"name": "a", "secret": {"secretName": f"volume-{at}"}},
        {"name": "b", "secret": {"secretName": "", "optional": True}},
        {"name": "c", "emptyDir": {}},
    ]
    return made


def test_every_secret_that_any_member_refers_to_is_mirrored_once() -> None:
    """A pod whose Secret is not there does not start."""
    engines = [
        engine("a", referring("Leader", 1), referring("Worker", 2)),
        engine("b", referring("Standalone", 2), copies=2),
    ]
    answer = run(Scene(replica(*engines), input=config(secrets="Mirror", budget=True)))
    mirrors = {f"secret-{kind}-{at}" for kind in ("env", "pull", "volume") for at in (1, 2)}
    assert answer.desired.keys() == run(Scene(replica(*engines))).desired.keys() | mirrors | {"budget-b"}
    on = {made["spec"]["providerConfigRef"]["name"] for made in answer.desired.values()}
    assert on == {PROVIDER_CONFIG}
    for key in mirrors:
        manifest = answer.desired[key]["spec"]["forProvider"]["manifest"]
        name = names.part_name(REPLICA, names.SECRET, key.removeprefix("secret-"))
        metadata = {"name": name, "namespace": "default"}
        assert manifest == {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


DOUBTS: list[dict[str, Any]] = [
    {},
    {"cluster": None},
    {"input": config(secrets="Mirror", watch="x")},
    {"input": None},
    {"replica": {"apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelReplica", "metadata": {"name": "x"}}},
]


@pytest.mark.parametrize("switch", ["the namespace", "the kind of the workload"])
def test_a_mirrored_secret_stays_while_the_workload_that_refers_to_it_serves(switch: str) -> None:
    """Its pods start again when a node fails, and without their Secret they would not."""
    engines = [gang("main", env=ENV)]
    scene = Scene(replica(*engines), input=config(secrets="Mirror"))
    scene = scene.but(observed=applied(run(scene)))
    if switch == "the namespace":
        switched = scene.but(input=config(secrets="Mirror", remoteNamespace="Same"))
    else:
        switched = scene.edited(engines=[engine("main", member(claims=[]))])
    for stage in ("nothing", "created", "started"):
        switched = switched.but(observed={**applied(run(switched), stage), **scene.observed})
        assert "secret-hf" in run(switched).desired, "the workload of before serves, and refers to it"
    for _ in range(3):
        answer = run(switched)
        assert "secret-hf" in answer.desired or "model-serving-main" not in switched.observed
        switched = switched.but(observed=applied(answer))
    assert ("secret-hf" in switched.observed) == ("model-serving-main" in switched.observed)


@pytest.mark.parametrize("change", DOUBTS)
def test_what_a_secret_holds_is_in_no_answer(change: dict[str, Any]) -> None:
    scene = mirrored().but(**change)
    answer = run(scene)
    assert "secret-hf" in answer.desired
    assert DATA["token"] not in run_bytes(scene).decode(errors="replace")
    assert answer.desired["secret-hf"]["spec"]["forProvider"]["manifest"]["metadata"]["name"]


@pytest.mark.parametrize("change", DOUBTS)
def test_a_literal_value_is_in_its_pod_only(change: dict[str, Any]) -> None:
    answer = run(mirrored().but(**change))
    said = [answer.conditions, answer.events, answer.status, answer.counts, answer.requirements]
    assert CANARY not in json.dumps(said, default=str)
    for key, manifest in answer.desired.items():
        assert (CANARY in json.dumps(manifest)) == (key == "model-serving-main"), key


def test_a_fault_does_not_quote_what_stands_in_a_template() -> None:
    made = copy.deepcopy(replica(engine("main", member(env=ENV))))
    made["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][0]["args"] = {CANARY: CANARY}
    made["spec"]["engines"][0]["members"][0]["template"]["metadata"] = {"labels": {"a": [CANARY]}}
    made["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][0]["command"] = CANARY
    answer = run(Scene(made))
    assert answer.reason("ModelAccepted") == "Malformed"
    assert CANARY not in json.dumps([answer.conditions, answer.events])


def test_an_error_of_our_own_keeps_a_mirror_without_what_it_holds() -> None:
    scene = mirrored().but(cluster=None)
    call = wire.decode(scene.message().SerializeToString())
    handler = dispatch.handler_of(call.request)
    assert handler is not None
    error = internal_error(
        call.request, handler.declared(call.request), handler.condition_types(call.request)
    )
    content = wire.encode_internal_error(call, error, wire.Ttl())
    assert b"secret-hf" in content
    assert DATA["token"].encode() not in content


def test_dropped_secrets_are_not_held_against_all_that_is_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that drops a thousand mirrored Secrets at once took ten seconds."""
    reads = []
    original = names.read_key

    def work(number: int) -> int:
        env = [
            {"name": f"V{at}", "valueFrom": {"secretKeyRef": {"name": f"s{at}", "key": "k"}}}
            for at in range(number)
        ]
        before = Scene(replica(engine("main", member(env=env))), input=config(secrets="Mirror"))
        after = Scene(replica(), input=config(secrets="Mirror"))
        observed = {**applied(run(before)), **applied(run(after))}
        reads.clear()
        assert not [key for key in run(after.but(observed=observed)).desired if key.startswith("secret-")]
        return len(reads)

    monkeypatch.setattr(names, "read_key", lambda key: reads.append(key) or original(key))
    few, many = work(20), work(40)
    assert many < 2.5 * few
