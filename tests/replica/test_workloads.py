"""Workloads and what stands beside them: rollouts, budgets, watches, the namespace."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from example.caller import ROOT
from function.api.inputs import WorkloadConfig
from function.boundary import PlainDocument
from function.fail_static import key_of
from function.objects import read_object
from function.replica.names import part_name
from tests.replica.build import (
    REPLICA,
    Scene,
    cluster,
    config,
    engine,
    gang,
    manifests,
    member,
    replica,
    run,
)
from tests.replica.provider import applied, observed

NO_SURGE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
SURGE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


@pytest.mark.parametrize(
    ("reason", "claims", "rollout", "expected"),
    [
        ("a surge pod needs devices", None, None, NO_SURGE),
        ("there are nodes to spare", None, "Surge", SURGE),
        ("what claims nothing may surge", [], None, None),
    ],
)
def test_an_update_takes_no_device_that_nobody_charged(
    reason: str, claims: list[object] | None, rollout: str | None, expected: object
) -> None:
    scene = Scene(
        replica(engine("main", member(claims=claims))),
        input=config(rollout=rollout) if rollout else None,
    )
    spec = manifests(run(scene))["model-serving-main"]["spec"]
    assert spec.get("strategy") == expected, reason


def test_a_start_may_take_as_long_as_the_input_says() -> None:
    scene = Scene(replica())
    assert manifests(run(scene))["model-serving-main"]["spec"]["progressDeadlineSeconds"] == 7200
    slow = scene.but(input=config(progressDeadlineSeconds=20_000))
    assert manifests(run(slow))["model-serving-main"]["spec"]["progressDeadlineSeconds"] == 20_000


@pytest.mark.parametrize(("nodes", "size"), [(None, 2), (1, 2), (3, 4)])
def test_a_gang_is_a_leader_and_its_workers(nodes: int | None, size: int) -> None:
    leader, worker = member("Leader"), member("Worker", nodes=nodes)
    made = manifests(run(Scene(replica(engine("main", leader, worker, copies=3)))))["model-serving-main"]
    assert made["kind"] == "LeaderWorkerSet"
    assert made["spec"]["replicas"] == 3
    assert made["spec"]["leaderWorkerTemplate"]["size"] == size


def test_copies_are_edited_in_place() -> None:
    scene = Scene(replica(engine("main")))
    before = run(scene)
    after = run(scene.edited(engines=[engine("main", copies=3)]).but(observed=applied(before)))
    assert after.desired.keys() == before.desired.keys()
    assert manifests(after)["model-serving-main"]["spec"]["replicas"] == 3


def test_only_engines_of_several_copies_get_a_budget() -> None:
    scene = Scene(replica(engine("a"), engine("b", copies=2), gang("c", copies=2)), input=config(budget=True))
    made = manifests(run(scene))
    budgets = {key: manifest for key, manifest in made.items() if manifest["kind"] == "PodDisruptionBudget"}
    assert budgets.keys() == {"budget-b", "budget-c"}
    labels = {"b": "modelplane.ai/workload", "c": "leaderworkerset.sigs.k8s.io/name"}
    for engine_name, label in labels.items():
        workload = made[f"model-serving-{engine_name}"]["metadata"]["name"]
        assert budgets[f"budget-{engine_name}"] == {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": part_name(REPLICA, engine_name, "budget"), "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {label: workload}}},
        }


def test_workloads_are_watched_on_request() -> None:
    watched = run(Scene(replica(), input=config(watch=True))).desired
    assert {key for key, manifest in watched.items() if manifest["spec"].get("watch")} == {
        "model-serving-main"
    }


def test_the_remote_namespace_may_be_the_replicas_own() -> None:
    answer = run(Scene(replica(), input=config(remoteNamespace="Same")))
    made = manifests(answer)
    assert made["namespace"] == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml-team"}}
    assert "Delete" not in answer.desired["namespace"]["spec"]["managementPolicies"]
    others = [manifest["metadata"]["namespace"] for key, manifest in made.items() if key != "namespace"]
    assert set(others) == {"ml-team"}
    assert "--pool-namespace=ml-team" in made["epp"]["spec"]["template"]["spec"]["containers"][0]["args"]


TOGGLES = [(None, "Same", "default"), ("Same", None, "ml-team"), ("Same", "Default", "ml-team")]


@pytest.mark.parametrize(("before", "now", "runs_in"), TOGGLES)
@pytest.mark.parametrize("made", [engine(), gang()], ids=["single", "gang"])
@pytest.mark.parametrize("stage", ["nothing", "created", "available"])
def test_a_replica_that_runs_stays_in_its_namespace(
    before: str | None, now: str | None, runs_in: str, made: dict[str, Any], stage: str
) -> None:
    """Its successor in another one would need the devices that it holds."""
    scene = Scene(replica(made), input=config(remoteNamespace=before) if before else None)
    toggled = scene.but(
        observed=applied(run(scene), stage), input=config(remoteNamespace=now) if now else None
    )
    answer = run(toggled)
    assert {key: one["spec"] for key, one in answer.desired.items()} == {
        key: one["spec"] for key, one in toggled.observed.items()
    }
    more = engine("another")
    added = manifests(run(toggled.edited(engines=[made, more])))["model-serving-another"]
    assert added["metadata"]["namespace"] == runs_in, "an engine that is added joins the others"


def test_a_replica_that_does_not_run_yet_goes_where_the_input_says() -> None:
    scene = Scene(replica())
    beside = applied(run(scene))
    del beside["model-serving-main"]
    moved = scene.but(input=config(remoteNamespace="Same"), observed=beside)
    first = run(moved)
    for key, manifest in beside.items():
        assert first.desired[key]["spec"] == manifest["spec"], "until its successor is in use"
    second = run(moved.but(observed=applied(first)))
    third = run(moved.but(observed=applied(second)))
    assert {manifest["metadata"].get("namespace") for manifest in manifests(third).values()} == {
        "ml-team",
        None,
    }
    assert third.settled


@pytest.mark.parametrize("stage", ["started", "available"])
def test_a_move_that_an_earlier_release_began_goes_on(stage: str) -> None:
    same = Scene(replica(), input=config(remoteNamespace="Same"))
    old, new = applied(run(same.but(input=None))), run(same)
    held = {key: read_object(PlainDocument(made)) for key, made in old.items()}
    both = dict(old)
    for key, made in new.desired.items():
        successor = key_of(key, made["spec"]["forProvider"]["manifest"], held)
        both[successor] = observed(successor, made, stage)
    answer = run(same.but(observed=both))
    gone = both.keys() - answer.desired.keys()
    assert "model-serving-main" in (gone if stage == "available" else answer.desired)
    assert {key: made["spec"] for key, made in answer.desired.items()} == {
        key: both[key]["spec"] for key in both.keys() - gone
    }


@pytest.mark.parametrize(
    ("reason", "spec"),
    [
        ("two Leaders", {"engines": [engine("main", member("Leader"), member("Leader"))]}),
        ("a Worker alone", {"engines": [engine("main", member("Worker"))]}),
        (
            "no template",
            {"engines": [{"name": "main", "members": [{"role": "Standalone", "nodePoolName": "p"}]}]},
        ),
        ("no pool", {"engines": [{"name": "main", "members": [{"template": member()["template"]}]}]}),
        ("one name twice", {"engines": [engine("main"), engine("main")]}),
        ("no engine", {"engines": []}),
        ("half a copy", {"engines": [{**engine("main"), "copies": 1.5}]}),
        ("a mode nobody knows", {"serving": {"mode": "Sideways"}}),
    ],
)
def test_a_replica_that_cannot_be_read_is_named_and_composes_nothing(
    reason: str, spec: dict[str, object]
) -> None:
    answer = run(Scene(replica()).edited(**spec))
    assert answer.conditions["ModelAccepted"][:2] == (False, "Malformed"), reason
    assert "spec" in answer.conditions["ModelAccepted"][2]
    assert not answer.desired
    assert answer.unready


CHOICES: dict[str, Any] = {
    "remoteNamespace": "Same",
    "namesakes": "Refuse",
    "rollout": "Surge",
    "progressDeadlineSeconds": 600,
    "readiness": "AvailableCopies",
    "podsAcrossNodes": "Required",
    "replicasAcrossNodes": "Preferred",
    "drainSeconds": 60,
    "budget": True,
    "watch": True,
    "secrets": "Mirror",
    "images": {"picker": "registry.example.com/epp:v1"},
    "diagnose": "Pods",
    "status": "Engines",
}
OF_THE_CLUSTER: dict[str, dict[str, Any]] = {
    "scheduling": cluster(scheduling={"schedulerName": "kai-scheduler"}),
    "nodeSelector": cluster({"name": "frontier", "className": "any", "nodeSelector": {"a": "b"}}),
    "tolerations": cluster({"name": "frontier", "className": "any", "tolerations": [{"operator": "Exists"}]}),
    "acrossNodes": cluster({"name": "frontier", "className": "any", "acrossNodes": "Required"}),
}


def test_the_page_names_the_choices_that_restart_pods_and_no_others() -> None:
    """Nothing paces them: no deployment was edited, so no rollout sees it."""
    fields = WorkloadConfig.model_json_schema(by_alias=True)["properties"].keys()
    assert CHOICES.keys() == fields - {"apiVersion", "kind", "metadata", "ttl"}, (
        "every field has a value here"
    )
    scene = Scene(replica(engine("a", member(secrets=("regcred",))), gang("b")), input=config())
    running = applied(run(scene))
    changed = {name: scene.but(observed=running, input=config(**{name: CHOICES[name]})) for name in CHOICES}
    changed |= {name: scene.but(observed=running, cluster=to) for name, to in OF_THE_CLUSTER.items()}
    before = manifests(run(scene.but(observed=running)))
    restarts = {
        name for name, edited in changed.items() if pods_of(manifests(run(edited))) != pods_of(before)
    }
    text = (ROOT / "docs" / "workloads.md").read_text()
    (section,) = re.findall(r"^### What restarts pods\n\n(.*?)To change one", text, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", section)) == restarts


PRIVATE = "registry.example.com:5000/llm-d/{}:v1@sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("which", "changed"),
    [
        ("picker", {"epp"}),
        ("sidecar", {"model-serving-decode"}),
        ("loader", {"model-serving-prefill"}),
    ],
)
def test_an_image_of_a_registry_of_ones_own_reaches_what_runs_it_and_nothing_else(
    which: str, changed: set[str]
) -> None:
    prefill = engine("prefill", phase="Prefill") | {"adapters": {"slots": 2, "maxRank": 8}}
    base = replica(prefill, engine("decode", phase="Decode"), mode="PrefillDecode")
    scene = Scene(base, input=config(), more={"adapters": []})
    before = run(scene)
    assert run(scene.but(input=config(images={}))).desired == before.desired, "nothing named is the release's"
    image = PRIVATE.format(which)
    edited = run(scene.but(input=config(images={which: image}), observed=applied(before)))
    made, was = manifests(edited), manifests(before)
    assert {key for key in made if made[key] != was[key]} == changed
    assert image in json.dumps([made[key] for key in changed])


def test_the_picker_is_pulled_with_the_secrets_that_the_input_names() -> None:
    scene = Scene(replica())
    observed, named = applied(run(scene)), {"images": {"pullSecrets": ["mirror", "mirror"]}}
    made = manifests(run(scene.but(input=config(**named), observed=observed)))
    assert made["epp"]["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "mirror"}]
    assert [key for key in made if made[key] != manifests(run(scene))[key]] == ["epp"], "no engine restarts"


def test_a_secret_that_the_picker_is_pulled_with_is_mirrored_where_the_picker_is_ours() -> None:
    asked = config(secrets="Mirror", images={"pullSecrets": ["mirror"]})
    made = manifests(run(Scene(replica(), input=asked)))
    (named,) = made["epp"]["spec"]["template"]["spec"]["imagePullSecrets"]
    assert made["secret-mirror"]["metadata"]["name"] == named["name"] != "mirror"
    assert "secret-mirror" not in run(Scene(replica(), cluster(stack="KServe"), input=asked)).desired


@pytest.mark.parametrize("image", ["epp:v1", "registry.example.com/epp", "https://registry/epp:v1", "", 5])
def test_an_image_that_no_kubelet_pulls_is_named(image: object) -> None:
    scene = Scene(replica(), input=config(images={"picker": image}))
    status, reason, message = run(scene).conditions["ModelAccepted"]
    assert (status, reason) == (False, "Malformed")
    assert "images.picker" in message


def pods_of(composed: dict[str, dict[str, Any]]) -> list[Any]:
    """Return the templates of the workloads among manifests."""
    specs = [composed[key]["spec"] for key in sorted(composed) if key.startswith("model-serving")]
    return [spec.get("leaderWorkerTemplate", spec.get("template")) for spec in specs]
