"""Pods: what their templates have, and what a platform can ask of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from function.replica.workloads import QUEUE_LABEL
from tests.replica.build import (
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

Plain = dict[str, Any]


def templates(scene: Scene) -> dict[str, Plain]:
    """Return the pod templates by role, of a replica of one engine called main."""
    spec = manifests(run(scene))["model-serving-main"]["spec"]
    if "template" in spec:
        return {"Standalone": spec["template"]}
    both = spec["leaderWorkerTemplate"]
    return {"Leader": both["leaderTemplate"], "Worker": both["workerTemplate"]}


def container(template: Plain) -> Plain:
    return dict(template["spec"]["containers"][0])


GANG = Scene(replica(gang("main")))
SINGLE = Scene(replica())


def test_only_the_pod_that_serves_has_port_probe_and_label() -> None:
    made = templates(GANG)
    assert "ports" in container(made["Leader"])
    assert made["Leader"]["metadata"]["labels"]["modelplane.ai/serving"]
    assert not {"ports", "readinessProbe"} & container(made["Worker"]).keys()
    assert "metadata" not in made["Worker"]


def test_a_name_that_the_user_sets_too_stands_once() -> None:
    variable = {"name": "MODELPLANE_RANK", "value": "7"}
    made = templates(Scene(replica(gang("main", env=[variable]))))
    assert container(made["Worker"])["env"] == [
        {"name": "MODELPLANE_LEADER_ADDRESS", "value": "$(LWS_LEADER_ADDRESS)"},
        variable,
    ]


CACHED = [
    ("no model named", member(args=["--max-model-len=8"]), ["--max-model-len=8", "--model=/mnt/models"]),
    ("nothing given", member(args=[]), ["--model=/mnt/models"]),
    ("a command decides for itself", member(args=[], command=["vllm"]), []),
    ("a model named", member(args=["--model=x"]), ["--model=x"]),
    ("a model named apart", member(args=["--model", "x"]), ["--model", "x"]),
    (
        "another flag that begins alike",
        member(args=["--model-path=x"]),
        ["--model-path=x", "--model=/mnt/models"],
    ),
]


@pytest.mark.parametrize(("reason", "made", "expected"), CACHED)
def test_an_engine_without_a_model_gets_the_cached_one(reason: str, made: Plain, expected: list[str]) -> None:
    template = templates(Scene(replica(engine("main", made), cache="weights")))["Standalone"]
    assert container(template)["args"] == expected, reason


def test_followers_never_get_the_cached_model() -> None:
    made = templates(Scene(replica(gang("main", args=[]), cache="weights")))
    assert container(made["Leader"])["args"] == ["--model=/mnt/models"]
    assert "args" not in container(made["Worker"])


PORTS = [
    ("the default", (), 8001),
    ("joined", ("--port=9000",), 9000),
    ("apart", ("--port", "9000"), 9000),
    ("the last one counts", ("--port=9000", "--port=9001"), 9001),
    ("the lowest", ("--port=1",), 1),
    ("the highest", ("--port=65535",), 65535),
    ("no number", ("--port=http",), 8001),
    ("a digit, and no number", ("--port=²",), 8001),
    ("below the lowest", ("--port=0",), 8001),
    ("above the highest", ("--port=65536",), 8001),
    ("longer than the highest", ("--port=008001",), 8001),
    ("nothing behind it", ("--port",), 8001),
]


@pytest.mark.parametrize(("reason", "args", "port"), PORTS)
def test_a_decode_engine_listens_behind_its_sidecar(reason: str, args: tuple[str, ...], port: int) -> None:
    engines = engine("prefill", phase="Prefill"), engine("main", member(args=args), phase="Decode")
    template = templates(Scene(replica(*engines, mode="PrefillDecode")))["Standalone"]
    served, sidecar = template["spec"]["containers"]
    assert served["ports"] == [{"containerPort": port}], reason
    assert sidecar["ports"] == [{"containerPort": 8000}]
    assert f"--vllm-port={port}" in sidecar["args"]


def test_a_side_channel_that_the_user_sets_stays() -> None:
    variable = {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "6000"}
    engines = engine("main", member(env=[variable]), phase="Prefill"), engine("decode", phase="Decode")
    made = container(templates(Scene(replica(*engines, mode="PrefillDecode")))["Standalone"])
    assert [manifest["name"] for manifest in made["env"]] == [
        "VLLM_NIXL_SIDE_CHANNEL_PORT",
        "VLLM_NIXL_SIDE_CHANNEL_HOST",
    ]


BLOCKS = [
    ((), 16),
    (("--block-size=32",), 32),
    (("--page-size", "1"), 1),
    (("--page-size=1", "--block-size=64"), 64),
    (("--block-size=auto",), 16),
    (("--block-size=0",), 16),
    (("--block-size=1000000",), 1_000_000),
    (("--block-size=1000001",), 16),
]


@pytest.mark.parametrize(("args", "size"), BLOCKS)
def test_the_picker_counts_in_blocks_of_the_engine(args: tuple[str, ...], size: int) -> None:
    made = manifests(run(Scene(replica(engine("main", member(args=args)), engine("b")))))
    assert f"blockSizeTokens: {size}\n" in made["epp-config"]["data"]["epp-config.yaml"]


def test_nodes_of_a_pool_are_found_by_the_labels_that_it_declares() -> None:
    toleration = {"key": "dedicated", "operator": "Exists"}
    gke = {
        "name": "frontier",
        "nodeSelector": {"cloud.google.com/gke-nodepool": "a3"},
        "tolerations": [toleration],
    }
    gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    gke["tolerations"] = [gpu, toleration]
    for template in templates(GANG.but(cluster=cluster(gke))).values():
        assert template["spec"]["nodeSelector"] == {"cloud.google.com/gke-nodepool": "a3"}
        assert template["spec"]["tolerations"] == [gpu, toleration], "the GPU's stands there once"


def test_every_pod_is_stamped_for_the_scheduler_of_its_cluster() -> None:
    stamps = {
        "schedulerName": "kai-scheduler",
        "priorityClassName": "serving",
        "labels": {"kai.scheduler/queue": "ml", "modelplane.ai/serving": "somebody-else"},
        "annotations": {"a": "b"},
    }
    scene = GANG.but(cluster=cluster(scheduling=stamps))
    made = manifests(run(scene))
    pods = [*templates(scene).values(), made["epp"]["spec"]["template"]]
    for template in pods:
        assert template["spec"]["schedulerName"] == "kai-scheduler"
        assert template["spec"]["priorityClassName"] == "serving"
        assert template["metadata"]["labels"]["kai.scheduler/queue"] == "ml"
        assert template["metadata"]["annotations"]["a"] == "b"
        assert template["metadata"]["labels"].get("modelplane.ai/serving") != "somebody-else"
    assert made["model-serving-main"]["metadata"]["labels"] == {"kai.scheduler/queue": "ml"}


@pytest.mark.parametrize(("phase", "other"), [("Prefill", "Decode"), ("Decode", "Prefill")])
def test_a_pod_of_a_phase_keeps_the_labels_of_its_template_and_of_its_cluster(phase: str, other: str) -> None:
    """Those by which pods are selected, too: a Deployment whose selector misses its own pods is refused."""
    main = engine("main", member(metadata={"labels": {"team": "search"}}), phase=phase)
    scene = Scene(replica(main, engine("other", phase=other), mode="PrefillDecode"))
    made = manifests(run(scene.but(cluster=cluster(scheduling={"labels": {"queue": "ml"}}))))
    workload = made["model-serving-main"]
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert labels == {
        "team": "search",
        "queue": "ml",
        "modelplane.ai/serving": labels["app"],
        "modelplane.ai/workload": workload["metadata"]["name"],
        "app": labels["app"],
        "llm-d.ai/inference-serving": "true",
        "llm-d.ai/role": phase.lower(),
    }
    assert workload["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("user", [{}, {"labels": {QUEUE_LABEL: "mine", "team": "search"}}])
def test_of_a_gang_the_workload_alone_names_the_queue(user: Plain) -> None:
    """Kueue joins no pod to the group of its gang that names a queue already."""
    on_kueue = cluster(scheduling={"labels": {QUEUE_LABEL: "team", "cost": "ml"}})
    leader, worker = (member(role, metadata=user) for role in ("Leader", "Worker"))
    scene = GANG.but(replica=replica(engine("main", leader, worker)), cluster=on_kueue)
    made = manifests(run(scene))["model-serving-main"]
    assert made["metadata"]["labels"] == {QUEUE_LABEL: "team", "cost": "ml"}
    for template in templates(scene).values():
        assert QUEUE_LABEL not in template["metadata"]["labels"]
        assert template["metadata"]["labels"]["cost"] == "ml"
    bare = templates(GANG.but(cluster=cluster(scheduling={"labels": {QUEUE_LABEL: "team"}})))["Worker"]
    assert bare == templates(GANG)["Worker"], "without the queue nothing is left to say"
    single = manifests(run(SINGLE.but(cluster=on_kueue)))["model-serving-main"]
    for labelled in (single, single["spec"]["template"]):
        assert labelled["metadata"]["labels"][QUEUE_LABEL] == "team"


RESERVED = {"modelplane.ai/mine": "x"}


@pytest.mark.parametrize(
    ("reserved", "passed_on"),
    [({}, {}), (RESERVED, RESERVED), (RESERVED, {})],
    ids=["no reserved key", "of a release that passed it on", "of a release that left it out"],
)
def test_a_gang_that_runs_with_its_queue_on_its_pods_stays_until_its_next_edit(
    reserved: Plain, passed_on: Plain
) -> None:
    def gang_of(image: str, copies: int) -> Plain:
        members = (member(role, image=image, metadata={"labels": reserved}) for role in ("Leader", "Worker"))
        return engine("main", *members, copies=copies)

    on_kueue = cluster(scheduling={"labels": {QUEUE_LABEL: "team"}})
    scene = GANG.but(replica=replica(gang_of("v1", 1)), cluster=on_kueue)
    answer = run(scene)
    composed = copy.deepcopy(answer.desired["model-serving-main"])
    running = composed["spec"]["forProvider"]["manifest"]
    group = running["spec"]["leaderWorkerTemplate"]
    for part in ("leaderTemplate", "workerTemplate"):
        metadata = group[part].setdefault("metadata", {})
        metadata["labels"] = {**passed_on, **metadata.get("labels", {}), QUEUE_LABEL: "team"}
    seen = observed("model-serving-main", composed)
    scene = scene.but(observed={**applied(answer), "model-serving-main": seen})
    assert manifests(run(scene))["model-serving-main"] == running
    scaled = manifests(run(scene.edited(engines=[gang_of("v1", 3)])))["model-serving-main"]["spec"]
    assert (scaled["replicas"], scaled["leaderWorkerTemplate"]) == (3, group)
    edited = manifests(run(scene.edited(engines=[gang_of("v2", 1)])))["model-serving-main"]["spec"]
    for part in ("leaderTemplate", "workerTemplate"):
        labels = edited["leaderWorkerTemplate"][part].get("metadata", {}).get("labels", {})
        assert not {QUEUE_LABEL, *reserved} & labels.keys()


def test_pods_of_one_engine_go_to_different_nodes() -> None:
    scene = SINGLE.but(input=config(podsAcrossNodes="Required"))
    made = manifests(run(scene))["model-serving-main"]
    rule = made["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    (term,) = rule["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"] == {"matchLabels": {"modelplane.ai/workload": made["metadata"]["name"]}}


@pytest.mark.parametrize("scene", [SINGLE, GANG])
def test_pods_on_a_pool_that_keeps_them_apart_go_to_different_nodes(scene: Scene) -> None:
    """Of a gang all pods of all groups, whatever else is preferred."""
    pool = {"name": "frontier", "acrossNodes": "Required"}
    for template in templates(
        scene.but(cluster=cluster(pool), input=config(podsAcrossNodes="Preferred"))
    ).values():
        rule = template["spec"]["affinity"]["podAntiAffinity"]
        (term,) = rule["requiredDuringSchedulingIgnoredDuringExecution"]
        assert sorted(term) == ["labelSelector", "topologyKey"]
        assert list(term["labelSelector"]) == ["matchLabels"]
        assert len(rule) == 1


def test_a_pool_that_leaves_the_declaration_lets_no_pod_restart() -> None:
    apart = SINGLE.but(cluster=cluster({"name": "frontier", "acrossNodes": "Required"}))
    running = templates(apart)["Standalone"]["spec"]
    gone = apart.but(cluster=cluster({"name": "other"}), observed=applied(run(apart)))
    assert templates(gone)["Standalone"]["spec"]["affinity"] == running["affinity"]


def test_pods_of_one_group_go_to_different_nodes() -> None:
    for template in templates(GANG.but(input=config(podsAcrossNodes="Preferred"))).values():
        rule = template["spec"]["affinity"]["podAntiAffinity"]
        (weighted,) = rule["preferredDuringSchedulingIgnoredDuringExecution"]
        assert weighted["weight"] == 100
        assert weighted["podAffinityTerm"]["matchLabelKeys"] == ["leaderworkerset.sigs.k8s.io/group-key"]


def test_requests_leave_before_a_container_stops() -> None:
    engines = engine("prefill", phase="Prefill"), engine("main", phase="Decode")
    scene = Scene(replica(*engines, mode="PrefillDecode"), input=config(drainSeconds=120))
    spec = templates(scene)["Standalone"]["spec"]
    assert [item["lifecycle"] for item in spec["containers"]] == [
        {"preStop": {"sleep": {"seconds": 120}}}
    ] * 2
    assert spec["terminationGracePeriodSeconds"] == 150


def test_a_pod_names_pull_secrets_only_where_its_template_does() -> None:
    assert "imagePullSecrets" not in templates(SINGLE)["Standalone"]["spec"]
    made = templates(Scene(replica(engine("main", member(secrets=["pull"])))))["Standalone"]
    assert made["spec"]["imagePullSecrets"] == [{"name": "pull"}]


def test_mirrored_secrets_are_found_under_their_own_name() -> None:
    token = {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "k", "optional": True}}}
    scene = Scene(
        replica(engine("main", member(env=[token], secrets=["pull"]))), input=config(secrets="Mirror")
    )
    answer = run(scene)
    made = manifests(answer)
    spec = made["model-serving-main"]["spec"]["template"]["spec"]
    hf, pull = (made[f"secret-{name}"]["metadata"]["name"] for name in ("hf", "pull"))
    assert spec["imagePullSecrets"] == [{"name": pull}]
    reference = spec["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"]
    assert reference == {"name": hf, "key": "k", "optional": True}
    source = {"apiVersion": "v1", "kind": "Secret", "name": "hf", "namespace": "ml-team"}
    assert answer.desired["secret-hf"]["spec"]["references"] == [
        {"patchesFrom": {**source, "fieldPath": path}, "toFieldPath": path} for path in ("data", "type")
    ]
    assert made["secret-hf"].keys() == {"apiVersion", "kind", "metadata"}
