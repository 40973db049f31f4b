"""On a cluster with KServe a replica is one LLMInferenceService; what must be equal to our own stack is."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from function.api.workload import digest_of
from function.objects import NOTE
from function.replica.compose import COUNTS
from function.replica.kserve import WANTED
from tests.replica import generate, kserve_cluster, schemas
from tests.replica.build import (
    CLUSTER,
    IMAGE,
    NAMESPACE,
    PROVIDER_CONFIG,
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
from tests.replica.provider import applied
from tests.support.scale import BATCHES, batch

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]
KSERVE = cluster(stack="KServe")
SERVICE = "model-serving"
LOOK = "see-serving-main"
BEHIND = {"type": "Synced", "status": "True", "observedGeneration": 1}
FAILED = {"type": "Synced", "status": "False", "message": "no route to host", "observedGeneration": 2}
LATE = "its controller has not reported on this spec yet"
TIMELESS = "what its pods run is not evident: provider-kubernetes leaves out metadata.managedFields"
OUT_OF_TIME = {
    "type": "Progressing",
    "status": "False",
    "reason": "ProgressDeadlineExceeded",
    "message": "late",
}
QUOTA = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}


def serving(made: Plain, **fields: Any) -> Plain:
    """Return a replica whose `serving` has these fields too."""
    made = copy.deepcopy(made)
    made["spec"].setdefault("serving", {}).update(fields)
    return made


SINGLE = Scene(serving(replica(), model={"uri": "hf://org/m"}), KSERVE)
PIPELINE = serving(
    replica(gang("main", nodes=1, copies=2), cache="weights"), parallelism={"tensor": 8, "pipeline": 2}
)
GANG = Scene(PIPELINE, KSERVE)
APART = Scene(
    serving(
        replica(
            gang("p", phase="Prefill", args=("--data-parallel-size=16", "--data-parallel-size-local=8")),
            engine("d", member(args=("--enable-expert-parallel",)), phase="Decode", copies=3),
            mode="PrefillDecode",
            cache="weights",
        )
    ),
    KSERVE,
)


def service(scene: Scene) -> Plain:
    """Return the service of a scene."""
    return manifests(run(scene))[SERVICE]


# ------------------------------------------------------------------------------------------ what is composed


def test_one_service_stands_for_workloads_and_routing() -> None:
    answer = run(GANG)
    assert sorted(answer.desired) == [
        SERVICE,
        "resource-claim-main-leader",
        "resource-claim-main-worker",
        "see-serving-main",
    ]
    made = service(GANG)
    assert (made["apiVersion"], made["kind"]) == ("serving.kserve.io/v1alpha1", "LLMInferenceService")
    assert made["metadata"] == {"name": REPLICA, "namespace": "default"}
    assert made["spec"]["replicas"] == 2
    assert made["spec"]["parallelism"] == {"tensor": 8, "pipeline": 2}
    assert made["spec"]["model"] == {"uri": "pvc://modelcache-ml-team-weights-124df"}


def test_prefill_has_a_section_and_decode_the_top() -> None:
    spec = service(APART)["spec"]
    assert (spec["replicas"], spec["parallelism"]) == (3, {"expert": True})
    assert "worker" not in spec
    assert spec["prefill"]["parallelism"] == {"data": 16, "dataLocal": 8}
    assert {"template", "worker"} < spec["prefill"].keys()
    [decode] = spec["template"]["containers"]
    assert decode["ports"] == [{"containerPort": 8001, "protocol": "TCP"}]
    channel = {variable["name"] for variable in decode["env"]}
    assert {"VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDE_CHANNEL_PORT"} <= channel


def test_the_path_of_a_replica_is_the_same_on_every_stack() -> None:
    """The endpoint of a replica is `/<namespace>/<replica>/`, whoever serves it."""
    [ours] = manifests(run(SINGLE.but(cluster=cluster())))["model-route"]["spec"]["rules"]
    route = service(SINGLE)["spec"]["router"]["route"]["http"]["spec"]
    [theirs] = route["rules"]
    assert theirs["matches"] == ours["matches"]
    assert theirs["filters"] == ours["filters"]
    assert theirs["matches"][0]["path"]["value"] == f"/{NAMESPACE}/{REPLICA}/"
    assert [parent["name"] for parent in route["parentRefs"]] == ["inference-gateway"]
    assert theirs["backendRefs"][0]["name"] == f"{REPLICA}-inference-pool"


def test_claims_are_those_of_our_own_stack() -> None:
    on_kserve, ours = manifests(run(GANG)), manifests(run(GANG.but(cluster=cluster())))
    claims = {key for key in ours if key.startswith("resource-claim")}
    assert {key: on_kserve[key] for key in claims} == {key: ours[key] for key in claims}
    for section in ("template", "worker"):
        pod = on_kserve[SERVICE]["spec"][section]
        assert pod["resourceClaims"][0]["resourceClaimTemplateName"].startswith(REPLICA)
        assert pod["containers"][0]["resources"] == {"claims": [{"name": "devices"}]}


VLLM = ["python3", "-m", "vllm.entrypoints.openai.api_server"]


@pytest.mark.parametrize(
    ("reason", "options", "command", "args"),
    [
        ("a known image", {"args": ["--seed=1"]}, VLLM, ["--seed=1", "--model=/mnt/models"]),
        ("that says its model", {"args": ["--model=x"]}, VLLM, ["--model=x"]),
        ("a command of its own", {"command": ["vllm", "serve"], "args": ["x"]}, ["vllm", "serve"], ["x"]),
        ("all of it in the command", {"command": ["sh", "-c", "x"], "args": []}, ["sh"], ["-c", "x"]),
        ("braces are no template", {"command": ["sh"], "args": ["{{ x }}"]}, ["sh"], ["{{`{{`}} x }}"]),
    ],
)  # fmt: skip
def test_no_preset_decides_what_runs(
    reason: str, options: Plain, command: list[str], args: list[str]
) -> None:
    made = serving(replica(engine("main", member(**options))), model={"uri": "hf://org/m"})
    [container] = service(Scene(made, KSERVE))["spec"]["template"]["containers"]
    assert (container["command"], container["args"]) == (command, args), reason


def pod_of(claim: str, args: list[str], env: list[Plain], port: int = 0) -> Plain:
    """Return the pod of a member, with every field. `port`: 0 for one that takes no requests."""
    probe: Plain = {"httpGet": {"path": "/health", "port": port, "scheme": "HTTP"}}
    probe |= {"periodSeconds": 10, "timeoutSeconds": 5}
    served = {
        "ports": [{"containerPort": port, "protocol": "TCP"}],
        "startupProbe": {**probe, "failureThreshold": 61},
        "readinessProbe": {**probe, "initialDelaySeconds": 30, "failureThreshold": 3},
    }
    container = {
        "name": "main",
        "image": IMAGE,
        "command": VLLM,
        "args": args,
        **({"env": env} if env else {}),
    }
    container |= {
        **(served if port else {}),
        "resources": {"claims": [{"name": "devices"}]},
        "volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}],  # noqa: S108 - a mount
    }
    return {
        "containers": [container],
        "nodeSelector": {"modelplane.ai/pool": "frontier"},
        "resourceClaims": [{"name": "devices", "resourceClaimTemplateName": claim}],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}],
    }


def test_every_field_of_a_service_is_what_kserve_reads() -> None:
    """Metadata is passed on to pods; rank and address are a gang's, the side channel both phases'."""
    said = {
        "labels": {"kueue.x-k8s.io/queue-name": "ml"},
        "annotations": {"k8s.v1.cni.cncf.io/networks": "r"},
    }
    stamps = {"labels": {"kueue.x-k8s.io/priority": "high"}, "annotations": {"example.com/a": "b"}}
    scene = copy.deepcopy(APART).but(cluster=cluster(stack="KServe", scheduling=stamps))
    for one in scene.replica["spec"]["engines"]:
        for item in one["members"]:
            item["template"]["metadata"] = said
    answer = run(scene.but(input=config(progressDeadlineSeconds=601, watch=True)))
    names = {key: made["metadata"]["name"] for key, made in manifests(answer).items()}
    gang_env = [
        {"name": "MODELPLANE_LEADER_ADDRESS", "value": "$(LWS_LEADER_ADDRESS)"},
        {"name": "MODELPLANE_RANK", "value": "$(LWS_WORKER_INDEX)"},
    ]
    channel = [
        {
            "name": "VLLM_NIXL_SIDE_CHANNEL_HOST",
            "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
        },
        {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "5557"},
    ]
    ranks, model = ["--data-parallel-size=16", "--data-parallel-size-local=8"], "--model=/mnt/models"
    expert = ["--enable-expert-parallel", model]
    leader, worker, decode = (
        names[f"resource-claim-{which}"] for which in ("p-leader", "p-worker", "d-standalone")
    )
    pool = {"group": "inference.networking.x-k8s.io", "kind": "InferencePool", "port": 8000, "weight": 1}
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": f"/{NAMESPACE}/{REPLICA}/"}}],
        "filters": [{"type": "URLRewrite", "urlRewrite": rewrite}],
        "timeouts": {"request": "0s", "backendRequest": "0s"},
        "backendRefs": [{**pool, "name": f"{REPLICA}-inference-pool"}],
    }
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "inference-gateway"}
    parent["namespace"] = "modelplane-system"
    route = {"http": {"spec": {"parentRefs": [parent], "rules": [rule]}}}
    prefill = {
        "replicas": 1,
        "parallelism": {"data": 16, "dataLocal": 8},
        "template": pod_of(leader, [*ranks, model], [*gang_env, *channel], port=8000),
        "worker": pod_of(worker, ranks, gang_env),
    }
    metadata = {"name": REPLICA, "namespace": "default"}
    metadata |= {field: said[field] | stamps[field] for field in ("labels", "annotations")}
    made = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LLMInferenceService",
        "metadata": metadata,
        "spec": {
            "model": {"uri": "pvc://modelcache-ml-team-weights-124df"},
            "replicas": 3,
            "parallelism": {"expert": True},
            "template": pod_of(decode, expert, channel, port=8001),
            "prefill": prefill,
            "router": {"scheduler": {}, "route": route},
        },
    }
    ready = 'exists(c, c.type == "Ready" && c.status == "True")'
    query = f"has(object.status.conditions) && object.status.conditions.{ready}"
    read = {"policy": "DeriveFromCelQuery", "celQuery": query}
    reference = {"kind": "ClusterProviderConfig", "name": PROVIDER_CONFIG}
    spec = {"providerConfigRef": reference, "watch": True}
    assert answer.desired[SERVICE]["spec"] == {**spec, "forProvider": {"manifest": made}, "readiness": read}
    seen = (
        ("p", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "kserve-mn-prefill"),
        ("d", "apps/v1", "Deployment", "kserve"),
    )
    for which, api_version, kind, suffix in seen:
        head = {"apiVersion": api_version, "kind": kind}
        head["metadata"] = {"name": f"{REPLICA}-{suffix}", "namespace": "default"}
        looks = {"forProvider": {"manifest": head}, "readiness": {"policy": "SuccessfulCreate"}}
        assert answer.desired[f"see-serving-{which}"]["spec"] == {
            **spec,
            **looks,
            "managementPolicies": ["Observe"],
        }


def test_a_model_of_hugging_face_is_loaded_by_name_on_our_own_stack() -> None:
    made = serving(replica(engine("main", member(args=["--seed=1"]))), model={"uri": "hf://org/m:v2"})
    container = manifests(run(Scene(made)))["model-serving-main"]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["--seed=1", "--model=org/m", "--revision=v2"]


@pytest.mark.parametrize(
    ("pods", "replicas", "keys"),
    [
        ("Required", None, {"required": ["matchLabelKeys"]}),
        (None, "Preferred", {"preferred": ["mismatchLabelKeys"]}),
        ("Required", "Required", {"required": ["matchLabelKeys", "mismatchLabelKeys"]}),
        ("Preferred", "Required", {"required": ["mismatchLabelKeys"], "preferred": ["matchLabelKeys"]}),
    ],
)
@pytest.mark.parametrize("stack", ["KServe", "Standard"])
def test_pods_of_a_group_and_groups_stay_apart(
    stack: str, pods: str | None, replicas: str | None, keys: dict[str, list[str]]
) -> None:
    wishes = {"podsAcrossNodes": pods, "replicasAcrossNodes": replicas}
    scene = GANG.but(
        cluster=cluster(stack=stack), input=config(**{key: wish for key, wish in wishes.items() if wish})
    )
    made = manifests(run(scene))
    if stack == "KServe":
        pod, name = made[SERVICE]["spec"]["template"], f"{REPLICA}-kserve-mn"
    else:
        head = made["model-serving-main"]
        pod, name = head["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"], head["metadata"]["name"]
    composed_keys: dict[str, list[str]] = {}
    for kind, terms in pod["affinity"]["podAntiAffinity"].items():
        for entry in terms:
            term = entry.get("podAffinityTerm", entry)
            assert term["labelSelector"] == {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": name}}
            composed_keys.setdefault(kind.partition("During")[0], []).extend(
                key for key in term if key.endswith("Keys")
            )
    assert composed_keys == keys


def test_copies_of_one_pod_stay_apart_by_what_kserve_labels_them() -> None:
    scene = SINGLE.but(input=config(podsAcrossNodes="Preferred", replicasAcrossNodes="Required"))
    rules = service(scene)["spec"]["template"]["affinity"]["podAntiAffinity"]
    [term] = rules.pop("requiredDuringSchedulingIgnoredDuringExecution")
    assert not rules, "one term is not both"
    assert term["labelSelector"]["matchLabels"] == {
        "app.kubernetes.io/name": REPLICA,
        "app.kubernetes.io/component": "llminferenceservice-workload",
    }


@pytest.mark.parametrize("name", ["a" * 63, "1abc", "my.model", "x" * 29, "x" * 28])
def test_everything_that_kserve_names_after_it_is_valid(name: str) -> None:
    scene = Scene(
        serving(
            replica(gang("p", phase="Prefill"), gang("d", phase="Decode"), name=name, mode="PrefillDecode"),
            model={"uri": "hf://o/m"},
            parallelism={"pipeline": 2},
        ),
        KSERVE,
    )
    made = service(scene)
    assert len(made["metadata"]["name"]) <= 28
    assert made["metadata"]["name"][0].isalpha()
    assert set(kserve_cluster.workloads(made)) == {
        ("LeaderWorkerSet", f"{made['metadata']['name']}-kserve-mn{role}") for role in ("", "-prefill")
    }


# ------------------------------------------------------------------------------------------ for all replicas


@pytest.mark.parametrize("number", range(BATCHES))
def test_every_service_is_valid_and_runs_what_is_wanted(number: int) -> None:
    """The real schema, the webhook's rules, and what the controller makes of it."""
    for seed in batch(number, quick=200, gate=2_000):
        scene = generate.kserve_scene(seed)
        answer = run(scene)
        assert SERVICE in answer.desired, (seed, answer.conditions)
        for key, resource in answer.desired.items():
            looked_at = resource["spec"].get("managementPolicies") == ["Observe"]
            problems = schemas.findings(resource) if looked_at else tuple(schemas.composed(resource))
            assert not problems, (seed, key)
        made = manifests(answer)[SERVICE]
        assert not list(kserve_cluster.refused(made)), seed
        kserve_cluster.runs_what_is_wanted(
            scene.replica["spec"], kserve_cluster.workloads(made), made["metadata"]["name"], seed
        )


def spelt_before(observed: dict[str, Plain]) -> dict[str, Plain]:
    """Return what is observed of services, as they were spelt before v0.20."""
    made = copy.deepcopy(observed)
    pods = []
    for key, resource in made.items():
        remote, manifest = resource["status"]["atProvider"]["manifest"], resource["spec"]["forProvider"]
        if key == SERVICE:
            for one in (remote, manifest["manifest"]):
                for _, section in kserve_cluster.sections(one["spec"]):
                    section.setdefault("parallelism", {"expert": False})
                    pods += [section[field] for field in ("template", "worker") if field in section]
        elif key.startswith("see-"):
            group = remote["spec"].get("leaderWorkerTemplate", {})
            templates = (
                remote["spec"].get("template"),
                group.get("leaderTemplate"),
                group.get("workerTemplate"),
            )
            pods += [template["spec"] for template in templates if template]
    for pod in pods:
        pod["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 30}}}
    return made


OF_EACH_PHASE = replica(
    engine("p", phase="Prefill"), engine("d", phase="Decode"), mode="PrefillDecode", cache="weights"
)
SPELT = [
    ("a pod", serving(replica(), model={"uri": "hf://o/m"}, parallelism={"expert": False})),
    ("a pod of each phase", serving(OF_EACH_PHASE, parallelism={"expert": False})),
    ("a gang of each phase", serving(APART.replica, parallelism={"expert": False})),
    ("a gang", PIPELINE),
]


@pytest.mark.parametrize(("reason", "base"), SPELT, ids=[case[0] for case in SPELT])
def test_what_runs_is_not_restarted_for_a_newer_spelling(reason: str, base: Plain) -> None:
    """Law C 6: v0.20 wants other words for the same, and those come with the next edit."""
    scene = Scene(base, KSERVE, input=config(drainSeconds=30))
    first = run(scene)
    newer = manifests(first)[SERVICE]["spec"]
    assert not list(kserve_cluster.refused(manifests(first)[SERVICE])), reason
    pods = [pod for _, one in kserve_cluster.sections(newer) for pod in (one["template"], one.get("worker"))]
    for pod in filter(None, pods):
        stop = {"preStop": {"exec": {"command": ["/bin/sleep", "30"]}}}
        assert pod["containers"][0]["lifecycle"] == stop, reason
    assert run(scene.but(observed=applied(first))).reason("ModelUpdated") == "UpToDate"
    earlier = spelt_before(applied(first))
    runs = scene.but(observed=earlier)
    answer = run(runs)
    assert answer.desired[SERVICE] == {
        key: value for key, value in earlier[SERVICE].items() if key not in ("metadata", "status")
    }, reason
    assert answer.reason("ModelUpdated") == "UpToDate", reason
    scaled = copy.deepcopy(base)
    scaled["spec"]["engines"][0]["copies"] = 4
    kept = manifests(run(runs.but(replica=scaled)))[SERVICE]["spec"]
    before = earlier[SERVICE]["spec"]["forProvider"]["manifest"]["spec"]
    copies = {"prefill": {**before["prefill"], "replicas": 4}} if "prefill" in before else {"replicas": 4}
    assert kept == {**before, **copies}, "copies restart nothing"
    after = manifests(run(edited(runs)))[SERVICE]
    assert not list(kserve_cluster.refused(after)), "an edit restarts the pods anyway"


# -------------------------------------------------------------------------------- another version of its API


NEWER = cluster(stack="KServe", kserve={"apiVersion": "v1alpha2"})


def labelled(scene: Scene, **labels: str) -> Scene:
    """Return a scene whose pods have labels, and an annotation that a template would read."""
    made = copy.deepcopy(scene.replica)
    for one in (one for item in made["spec"]["engines"] for one in item["members"]):
        one["template"]["metadata"] = {"labels": labels, "annotations": {"example.com/a": "{{ x }}"}}
    return scene.but(replica=made)


def in_the_older(manifest: Plain) -> Plain:
    """Return a service in v1alpha1, without what only v1alpha2 has."""
    made = copy.deepcopy(manifest)
    for _, section in kserve_cluster.sections(made["spec"]):
        for what in ("labels", "annotations"):
            section.pop(what, None)
    return made | {"apiVersion": "serving.kserve.io/v1alpha1"}


@pytest.mark.parametrize("base", [SINGLE, GANG, APART], ids=["pod", "gang", "apart"])
def test_in_v1alpha2_pods_have_the_labels_of_their_engine(base: Scene) -> None:
    older = service(base)
    made = service(labelled(base.but(cluster=NEWER), team="ml"))
    assert made["apiVersion"] == "serving.kserve.io/v1alpha2"
    assert in_the_older(made) == older, "the rest is the same in both"
    for _, section in kserve_cluster.sections(made["spec"]):
        assert section["labels"] == {"team": "ml"}
        assert section["annotations"] == {"example.com/a": "{{`{{`}} x }}"}, "KServe reads it as a template"
    assert run(labelled(base, team="ml")).reason("ModelAccepted") == "StackCannotExpress"


@pytest.mark.parametrize(
    ("reason", "metadata", "said"),
    [
        (
            "KServe's own",
            {"labels": {"app.kubernetes.io/name": "x"}},
            "keeps labels like app.kubernetes",
        ),
        (
            "its router's",
            {"annotations": {"serving.kserve.io/x": "y"}},
            "keeps annotations like serving",
        ),
        ("of the leader alone", {"labels": {"team": "ml"}}, "gives all pods of an engine the same labels"),
    ],
)
def test_what_v1alpha2_cannot_express(reason: str, metadata: Plain, said: str) -> None:
    made = copy.deepcopy(PIPELINE)
    made["spec"]["engines"][0]["members"][0]["template"]["metadata"] = metadata
    status, name, message = run(Scene(made, NEWER)).conditions["ModelAccepted"]
    assert (status, name) == (False, "StackCannotExpress"), reason
    assert said in message, reason


@pytest.mark.parametrize("base", [SINGLE, GANG, APART], ids=["pod", "gang", "apart"])
@pytest.mark.parametrize("pair", [(KSERVE, NEWER), (NEWER, KSERVE)], ids=["on", "back"])
def test_what_runs_keeps_its_version_until_its_pods_are_edited(
    base: Scene, pair: tuple[Plain, Plain]
) -> None:
    """Law C 6, and the pods of an edit are up to date only when those of the new words are seen."""
    first, second = pair
    before = run(base.but(cluster=first))
    runs = base.but(cluster=second, observed=applied(before))
    assert run(runs).desired[SERVICE] == before.desired[SERVICE]
    assert run(runs).reason("ModelUpdated") == "UpToDate"
    scaled = copy.deepcopy(base.replica)
    scaled["spec"]["engines"][0]["copies"] = 5
    kept = manifests(run(runs.but(replica=scaled)))[SERVICE]
    assert kept["spec"].get("prefill", kept["spec"])["replicas"] == 5
    assert kept["apiVersion"] == service(base.but(cluster=first))["apiVersion"]
    rolled = edited(runs)
    after = run(rolled)
    assert manifests(after)[SERVICE]["apiVersion"] == service(base.but(cluster=second))["apiVersion"]
    assert after.reason("ModelUpdated") == "Updating"
    assert run(rolled.but(observed=applied(after))).reason("ModelUpdated") == "UpToDate"


def test_an_edit_of_labels_rolls_a_gang_and_is_refused_of_single_pods() -> None:
    """KServe 0.20 selects the pods of a Deployment by all of their labels, and no selector can be edited."""
    before = labelled(GANG.but(cluster=NEWER), team="ml")
    observed = applied(run(before))
    asked = labelled(before, team="search").but(observed=observed)
    answer = run(asked)
    assert manifests(answer)[SERVICE]["spec"]["labels"] == {"team": "search"}
    unseen = {**applied(answer), "see-serving-main": observed["see-serving-main"]}
    assert run(asked.but(observed=unseen)).reason("ModelUpdated") == "Updating", (
        "the pods are those of before"
    )
    assert run(asked.but(observed=applied(answer))).reason("ModelUpdated") == "UpToDate"

    pod = labelled(SINGLE.but(cluster=NEWER), team="ml")
    observed = applied(run(pod))
    refused = run(labelled(pod, team="search").but(observed=observed))
    assert refused.reason("ModelAccepted") == "StackCannotExpress"
    assert "engine main: the label team of single pods is for life" in refused.conditions["ModelAccepted"][2]
    assert refused.desired[SERVICE]["spec"] == observed[SERVICE]["spec"], "what runs goes on"


def of_two(p: Plain, d: Plain, queue: str = "q") -> Scene:
    """Return a replica of two engines of single pods with these labels, on a cluster that adds one."""
    made = serving(
        replica(engine("p", phase="Prefill"), engine("d", phase="Decode"), mode="PrefillDecode", cache="w")
    )
    for one, labels in zip(made["spec"]["engines"], (p, d), strict=True):
        one["members"][0]["template"]["metadata"] = {"labels": labels}
    scheduling = {"labels": {"queue": queue}}
    return Scene(made, cluster(stack="KServe", kserve={"apiVersion": "v1alpha2"}, scheduling=scheduling))


A, B = {"team": "a"}, {"team": "b"}
FOR_LIFE = [
    ("nothing changes", of_two(A, B), ""),
    ("of the one that prefills", of_two(B, B), "engine p: the label team"),
    ("of the one that decodes", of_two(A, A), "engine d: the label team"),
    ("one is added", of_two({**A, "more": "x"}, B), "engine p: the label more"),
    ("one is taken away", of_two(A, {}), "engine d: the label team"),
    ("of the cluster", of_two(A, B, "other"), "engine p: the label queue"),
]


@pytest.mark.parametrize(("reason", "scene", "said"), FOR_LIFE, ids=[case[0] for case in FOR_LIFE])
def test_labels_of_single_pods_are_for_life(reason: str, scene: Scene, said: str) -> None:
    """The Deployment of each engine selects by its own, and by those of the cluster."""
    observed = applied(run(of_two(A, B)))
    answer = run(scene.but(observed=observed))
    assert answer.desired[SERVICE]["spec"] == observed[SERVICE]["spec"], reason
    text = f"KServe: {said} of single pods is for life; everything running is kept"
    wanted = (False, "StackCannotExpress", text) if said else (True, "Accepted", "")
    assert answer.conditions["ModelAccepted"] == wanted, reason


@pytest.mark.parametrize("number", range(BATCHES))
def test_every_service_in_v1alpha2_runs_what_is_wanted(number: int) -> None:
    """Valid against the schema of v1alpha1, but for labels and annotations, which that one does not have."""
    for seed in batch(number, quick=100, gate=1_000):
        scene = labelled(generate.kserve_scene(seed), team="ml")
        assert scene.cluster is not None, seed
        scene.cluster["spec"]["kserve"] = {"apiVersion": "v1alpha2"}
        made = manifests(run(scene))[SERVICE]
        assert not schemas.findings(in_the_older(made)), seed
        assert not list(kserve_cluster.refused(made)), seed
        workloads = kserve_cluster.workloads(made)
        kserve_cluster.runs_what_is_wanted(scene.replica["spec"], workloads, made["metadata"]["name"], seed)


# ------------------------------------------------------------------------------------------------ conditions


def test_it_serves_when_kserve_says_so_and_is_up_to_date_when_the_pods_are() -> None:
    asked = GANG.but(input=config(status="Engines"))
    first = run(asked)
    assert first.reason("ModelAccepted") == "Deploying"
    starting = run(asked.but(observed=applied(first, "started")))
    assert starting.reason("ModelAccepted") == "Accepted"
    assert starting.reason("ModelReady") == "ModelStarting"
    assert starting.status["engines"] == [{"name": "main", "copies": 2, "available": 0, "updated": 0}]
    served = run(asked.but(observed=applied(first)))
    assert [served.reason(kind) for kind in ("ModelAccepted", "ModelReady", "ModelUpdated")] == [
        *("Accepted", "Serving", "UpToDate")
    ]
    assert served.settled
    assert served.ready == served.desired.keys()
    assert served.status["engines"] == [{"name": "main", "copies": 2, "available": 2, "updated": 2}]
    assert served.status["servingDigest"]


def edited(scene: Scene, image: str = "registry.example.com/vllm/vllm-openai:v2") -> Scene:
    """Return a scene with another image."""
    made = copy.deepcopy(scene.replica)
    for one in made["spec"]["engines"][0]["members"]:
        one["template"]["spec"]["containers"][0]["image"] = image
    return scene.but(replica=made)


def test_a_renamed_engine_keeps_its_claims_until_its_pods_are_replaced() -> None:
    """One service has the pods of all engines, so those of a name that is gone run on for a while."""
    before = run(SINGLE)
    renamed = SINGLE.edited(engines=[engine("other")])
    first = run(renamed.but(observed=applied(before)))
    assert {"resource-claim-main-standalone", "resource-claim-other-standalone"} < first.desired.keys()
    behind = applied(first)
    behind[SERVICE]["status"] = applied(before)[SERVICE]["status"]
    assert "resource-claim-main-standalone" in run(renamed.but(observed=behind)).desired
    assert "resource-claim-main-standalone" not in run(renamed.but(observed=applied(first))).desired


@pytest.mark.parametrize("base", [SINGLE, GANG], ids=["pod", "gang"])
def test_an_edit_is_rolled_out_only_when_the_new_pods_are_seen(base: Scene) -> None:
    """The service is seen first, its workload later: what is seen of the old pods does not count."""
    asked = base.but(input=config(status="Engines"))
    before = run(asked)
    settled = edited(asked).but(observed=applied(before))
    answer = run(settled)
    assert answer.reason("ModelReady") == "Serving"
    assert answer.reason("ModelUpdated") == "Updating"
    after = applied(answer)
    stale = {**after, "see-serving-main": applied(before)["see-serving-main"]}
    early = run(settled.but(observed=stale))
    assert early.reason("ModelUpdated") == "Updating"
    assert early.status.get("servingDigest") is None
    done = run(settled.but(observed=after))
    assert done.reason("ModelUpdated") == "UpToDate"
    assert done.status["servingDigest"] != run(asked.but(observed=applied(before))).status["servingDigest"]


STALE = [
    ("as wanted", lambda pod: None, "UpToDate"),
    ("a preset's variable", lambda pod: pod["containers"][0]["env"].append({"name": "HOME"}), "UpToDate"),
    ("a preset's volume", lambda pod: pod["volumes"].append({"name": "home"}), "UpToDate"),
    ("a sidecar", lambda pod: pod["containers"].append({"name": "sidecar"}), "UpToDate"),
    ("another container alone", lambda pod: pod["containers"][0].update(name="x"), "Updating"),
    ("no image", lambda pod: pod["containers"][0].pop("image"), "Updating"),
    ("other words", lambda pod: pod["containers"][0]["args"].append("x"), "Updating"),
    ("another value", lambda pod: pod["containers"][0].update(env=[{"name": "A", "value": "1"}]), "Updating"),
    ("no variable", lambda pod: pod["containers"][0].update(env=[]), "Updating"),
    ("another probe", lambda pod: pod["containers"][0]["startupProbe"].pop("httpGet"), "Updating"),
    ("other nodes", lambda pod: pod.update(nodeSelector={}), "Updating"),
    ("another claim", lambda pod: pod["resourceClaims"].clear(), "Updating"),
    ("no volume", lambda pod: pod["volumes"].clear(), "Updating"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "change", "said"), STALE, ids=[case[0] for case in STALE])
def test_pods_are_updated_when_they_have_what_is_wanted(
    reason: str, change: Callable[[Plain], None], said: str
) -> None:
    """What a preset adds is no difference."""
    item = member(env=[{"name": "A", "value": "2"}])
    asked = Scene(serving(replica(engine("main", item)), model={"uri": "hf://org/m"}), KSERVE)
    observed = applied(run(asked))
    change(observed[LOOK]["status"]["atProvider"]["manifest"]["spec"]["template"]["spec"])
    assert run(asked.but(observed=observed)).reason("ModelUpdated") == said, reason


@pytest.mark.parametrize("base", [SINGLE, GANG, APART], ids=["pod", "gang", "apart"])
def test_a_pool_that_leaves_the_declaration_lets_no_pod_of_kserve_restart(base: Scene) -> None:
    labels = cluster(
        {"name": "frontier", "nodeSelector": {"a": "b"}, "acrossNodes": "Required"}, stack="KServe"
    )
    first = run(base.but(cluster=labels))
    gone = base.but(cluster=cluster({"name": "other"}, stack="KServe"), observed=applied(first))
    assert run(gone).desired[SERVICE] == first.desired[SERVICE]


def looked(observed: dict[str, Plain], generation: int, seen: int) -> dict[str, Plain]:
    """Return what is observed, where the provider looked at the workload when its Object had a generation."""
    made = copy.deepcopy(observed)
    made["see-serving-main"]["metadata"]["generation"] = generation
    made["see-serving-main"]["status"]["conditions"][0]["observedGeneration"] = seen
    return made


@pytest.mark.parametrize("base", [SINGLE, GANG], ids=["pod", "gang"])
def test_what_was_seen_before_an_edit_is_not_what_became_of_it(base: Scene) -> None:
    """Taken back an hour later: the pods of before are wanted again, and were last seen before the edit."""
    asked = base.but(input=config(status="Engines"))
    first = run(asked)
    away = run(edited(asked).but(observed=applied(first)))
    back = run(asked.but(observed=applied(away)))
    looks = [answer.desired["see-serving-main"]["spec"] for answer in (first, away, back)]
    assert looks[0] != looks[1] != looks[2], "another generation of the Object, which the provider acts on"
    after = applied(back)
    assert run(asked.but(observed=looked(after, 3, 1))).reason("ModelUpdated") == "Updating"
    assert run(asked.but(observed=looked(after, 3, 3))).reason("ModelUpdated") == "UpToDate"
    at_rest = run(asked.but(observed=looked(after, 3, 3))).desired
    assert at_rest["see-serving-main"]["spec"] == looks[2], "it is looked at anew for an edit only"


NOTED = [
    ("nothing is edited", GANG, [], {}, ""),
    ("at rest", GANG, ["image"], {}, "{template} {status}"),
    ("copies restart no pod", GANG, ["copies"], {}, "{template}"),
    (
        "KServe has not seen the service",
        GANG,
        ["image"],
        {SERVICE: {"generation": 2}},
        "unknown;{template} 1 AT",
    ),
    ("nor for other copies", GANG, ["copies"], {SERVICE: {"generation": 2}}, "unknown"),
    (
        "the provider has not written it",
        GANG,
        ["image"],
        {SERVICE: {"synced": BEHIND}},
        "unknown;{template} 1 AT",
    ),
    ("it has not looked again", GANG, ["image"], {LOOK: {"synced": BEHIND}}, "unknown;{template} 1 AT"),
    (
        "it cannot look, and it was updated",
        GANG,
        ["image"],
        {LOOK: {"synced": FAILED}},
        "{template} {status}",
    ),
    (
        "it cannot write, and it was updated",
        GANG,
        ["image"],
        {SERVICE: {"synced": FAILED}},
        "{template} {status}",
    ),
    ("it cannot look", GANG, ["image", "stale"], {LOOK: {"synced": FAILED}}, "unknown;{template} 1 AT"),
    ("it cannot write", GANG, ["image", "stale"], {SERVICE: {"synced": FAILED}}, "unknown;{template} 1 AT"),
    (
        "what may run by now is noted",
        GANG,
        ["image", "stale"],
        {LOOK: {"generation": 2}},
        "unknown;{template} 2 AT",
    ),
    ("the controller of Deployments says what it saw", SINGLE, ["image"], {}, ""),
]


@pytest.mark.parametrize(("reason", "base", "edits", "seen", "note"), NOTED, ids=[case[0] for case in NOTED])
def test_an_edit_notes_what_is_evident_of_the_pods_before(
    reason: str, base: Scene, edits: list[str], seen: dict[str, Plain], note: str
) -> None:
    """`seen`, by key: the generation of the remote object, and Synced of an Object that was edited once."""
    settled = base.but(observed=applied(run(base)))
    more = copy.deepcopy((edited(base) if "image" in edits else base).replica)
    more["spec"]["engines"][0]["copies"] += "copies" in edits
    updated = {"type": "ModelUpdated", "status": str("stale" not in edits)}
    more["status"] = {"conditions": [updated]}
    for key, changes in seen.items():
        made = settled.observed[key]
        made["status"]["atProvider"]["manifest"]["metadata"]["generation"] = changes.get("generation", 1)
        if "synced" in changes:
            made["metadata"]["generation"] = 2
            made["status"]["conditions"][0] = changes["synced"]
    remote = settled.observed[LOOK]["status"]["atProvider"]["manifest"]
    written = {"time": "AT", "fieldsV1": {"f:spec": {"f:leaderWorkerTemplate": {}}}}
    remote["metadata"]["managedFields"] = [written]
    digests = {
        "template": digest_of({key: value for key, value in remote["spec"].items() if key != "replicas"}),
        "status": digest_of(remote["status"]),
    }
    answer = run(settled.but(replica=more))
    metadata = manifests(answer)[LOOK]["metadata"]
    wanted = manifests(answer)[SERVICE]
    del wanted["spec"]["replicas"]
    said = {WANTED: digest_of(wanted) if "image" in edits else "", NOTE: note.format(**digests)}
    assert metadata.get("annotations", {}) == {key: value for key, value in said.items() if value}, reason
    assert metadata["name"] == manifests(run(base))[LOOK]["metadata"]["name"], reason


def test_what_was_wanted_last_stays_noted_when_copies_are_edited() -> None:
    """Another annotation would be another look, for nothing."""
    away = edited(GANG).but(observed=applied(run(GANG)))
    observed = applied(run(away))
    more = copy.deepcopy(away.replica)
    more["spec"]["engines"][0]["copies"] = 7
    before, after = (
        manifests(run(away.but(replica=one, observed=observed)))[LOOK]["metadata"]["annotations"]
        for one in (away.replica, more)
    )
    assert before[WANTED] == after[WANTED]


def test_a_gang_of_kserve_needs_evidence_like_one_of_ours() -> None:
    asked = GANG.but(input=config(status="Engines"))
    observed = applied(run(asked))
    seen = observed["see-serving-main"]["status"]["atProvider"]["manifest"]
    assert run(asked.but(observed=observed)).reason("ModelUpdated") == "UpToDate"
    seen["metadata"]["generation"] = 2
    assert run(asked.but(observed=observed)).reason("ModelUpdated") == "Updating"


def test_a_service_that_is_ready_by_what_it_was_serves_nothing_without_a_copy() -> None:
    """KServe writes a workload and reports on it as it was, in one breath."""
    observed = applied(run(SINGLE))
    status = observed["see-serving-main"]["status"]["atProvider"]["manifest"]["status"]
    status.pop("availableReplicas")
    answer = run(SINGLE.but(observed=observed))
    assert answer.reason("ModelReady") == "ModelStarting"
    assert SERVICE not in answer.ready


WRITTEN: Plain = {"generation": 2, "managedFields": [{"time": "AT"}]}
STATES = [
    ("the provider cannot write", SINGLE, ({SERVICE: FAILED}, {}), "True", 1, ""),
    ("and it was not updated", SINGLE, ({SERVICE: FAILED}, {}), "False", 0, "main: no route to host"),
    ("it has not written", GANG, ({SERVICE: BEHIND}, {}), "True", 0, "main 0 of 2 copies"),
    ("it cannot look", SINGLE, ({LOOK: FAILED}, {}), "True", 1, ""),
    ("nor did it before", SINGLE, ({LOOK: FAILED}, {}), "False", 0, "main 0 of 1 copies (no route to host)"),
    (
        "what ran out of time then",
        *(SINGLE, ({LOOK: FAILED}, {"status": OUT_OF_TIME}), "False"),
        *(0, "main 0 of 1 copies (no route to host)"),
    ),
    (
        "what Synced says when it is true",
        *(SINGLE, ({SERVICE: {**FAILED, "status": "True"}}, {"counts": {"replicas": 2}}), "True"),
        *(1, "main 1 of 1 copies"),
    ),
    (
        "the rollout ran out of time",
        *(SINGLE, ({}, {"status": OUT_OF_TIME, "counts": {"replicas": 2}}), "True", 1, "main: late"),
    ),
    (
        "no pod may be created",
        *(SINGLE, ({}, {"status": QUOTA, "counts": {"updatedReplicas": 0}}), "True"),
        *(0, "main 0 of 1 copies (exceeded quota)"),
    ),
    ("the controller is late", GANG, ({}, WRITTEN), "False", 0, f"main 0 of 2 copies ({LATE})"),
    ("nobody says when", GANG, ({}, {"generation": 2}), "False", 0, f"main 0 of 2 copies ({TIMELESS})"),
    ("it was updated before", GANG, ({}, WRITTEN), "True", 2, ""),
    ("what its pods run is noted", GANG, ({}, {**WRITTEN, "note": True}), "False", 2, ""),
    (
        "there is no pod",
        *(SINGLE, ({}, {"counts": {"replicas": 0, "updatedReplicas": 0}}), "True", 0, "main 0 of 1 copies"),
    ),
]


@pytest.mark.parametrize(
    ("reason", "base", "seen", "was", "updated", "said"), STATES, ids=[case[0] for case in STATES]
)
def test_what_is_evident_of_the_pods(
    reason: str, base: Scene, seen: tuple[dict[str, Plain], Plain], was: str, updated: int, said: str
) -> None:
    """`seen`: Synced by key, and of the workload. `said`: by ModelUpdated, "" where it is True."""
    synced, remote = seen
    asked = base.but(input=config(status="Engines"), replica=copy.deepcopy(base.replica))
    asked.replica["status"] = {"conditions": [{"type": "ModelUpdated", "status": was}]}
    observed = applied(run(asked))
    for key, condition in synced.items():
        observed[key]["metadata"]["generation"] = 2
        observed[key]["status"]["conditions"][0] = condition
    workload = observed[LOOK]["status"]["atProvider"]["manifest"]
    workload["metadata"] |= {
        key: value for key, value in remote.items() if key in ("generation", "managedFields")
    }
    if "status" in remote:
        others = [one for one in workload["status"]["conditions"] if one["type"] != remote["status"]["type"]]
        workload["status"]["conditions"] = [*others, remote["status"]]
    if "note" in remote:
        template = {key: value for key, value in workload["spec"].items() if key != "replicas"}
        noted = {"annotations": {NOTE: digest_of(template)}}
        observed[LOOK]["spec"]["forProvider"]["manifest"]["metadata"] |= noted
    workload["status"] |= remote.get("counts", {})
    answer = run(asked.but(observed=observed))
    assert answer.conditions["ModelUpdated"][0::2] == (not said, said), reason
    assert answer.status["engines"][0]["updated"] == updated, reason
    assert ("servingDigest" in answer.status) is (said == ""), reason


@pytest.mark.parametrize(
    ("reason", "synced", "stage", "copies", "kept"),
    [
        ("it is not ready", {}, "started", 1, {SERVICE}),
        ("the provider has not written it", BEHIND, "available", 1, {SERVICE}),
        ("no copy takes requests", {}, "available", 0, {SERVICE}),
        ("it takes requests", {}, "available", 1, set()),
    ],
)
def test_a_service_of_another_name_stays_until_its_successor_serves(
    reason: str, synced: Plain, stage: str, copies: int, kept: set[str]
) -> None:
    observed = applied(run(SINGLE))
    for one in (observed[SERVICE]["spec"]["forProvider"], observed[SERVICE]["status"]["atProvider"]):
        one["manifest"]["metadata"]["name"] = "before"
    first = run(SINGLE.but(observed=observed))
    [key] = first.desired.keys() - observed.keys()
    assert manifests(first)[key] == service(SINGLE)
    assert first.reason("ModelReady") == "Serving"
    assert first.conditions["ModelAccepted"][::2] == (False, f"Not on {CLUSTER} yet: main")
    asked = SINGLE.but(input=config(status="Engines"), observed=observed)
    assert run(asked).status["engines"] == [{"name": "main", "copies": 1, "available": 0, "updated": 0}]
    beside = {key: applied(first, stage)[key], LOOK: applied(first)[LOOK]}
    beside[LOOK]["status"]["atProvider"]["manifest"]["status"]["availableReplicas"] = copies
    if synced:
        beside[key]["metadata"]["generation"] = 2
        beside[key]["status"]["conditions"][0] = synced
    answer = run(SINGLE.but(observed=observed | beside))
    assert answer.desired.keys() & {SERVICE} == kept, reason


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("PresetsCombined", "ModelStarting"),
        ("MainWorkloadReady", "ModelStarting"),
        ("HTTPRoutesReady", "RouteRejected"),
        ("GatewaysReady", "RouteRejected"),
        ("InferencePoolReady", "PickerStarting"),
        ("SchedulerWorkloadReady", "PickerStarting"),
    ],
)
def test_what_kserve_waits_for_is_said_in_its_words(kind: str, reason: str) -> None:
    observed = applied(run(SINGLE), "started")
    remote = observed[SERVICE]["status"]["atProvider"]["manifest"]
    remote["status"]["conditions"] = [{"type": kind, "status": "False", "message": "not found: x"}]
    condition = run(SINGLE.but(observed=observed)).conditions["ModelReady"]
    assert condition == (False, reason, "not found: x")


def test_of_what_kserve_says_nothing_the_engines_are_named() -> None:
    observed = applied(run(SINGLE), "started")
    observed[SERVICE]["status"]["atProvider"]["manifest"]["status"]["conditions"] = []
    condition = run(SINGLE.but(observed=observed)).conditions["ModelReady"]
    assert condition == (False, "ModelStarting", "Not serving yet: main")
    doubted = run(SINGLE.but(cluster=None, observed={SERVICE: observed[SERVICE]}))
    assert doubted.conditions["ModelUpdated"][2] == "model 0 of 1 copies", "no engine was looked at"


def test_a_workload_that_is_gone_has_no_copies() -> None:
    """The provider leaves what it saw last in the status."""
    asked = SINGLE.but(input=config(status="Engines"))
    observed = applied(run(asked))
    said = {"status": "False", "message": "observe failed: external resource does not exist"}
    observed["see-serving-main"]["status"]["conditions"][0] |= said
    answer = run(asked.but(observed=observed))
    assert answer.status["engines"] == [{"name": "main", "copies": 1, "available": 0, "updated": 0}]
    assert answer.reason("ModelUpdated") == "Updating"


def test_what_the_webhook_refuses_is_said_and_the_old_pods_serve() -> None:
    observed = applied(run(GANG))
    observed[SERVICE]["status"]["conditions"][0] |= {"status": "False", "message": "size is immutable"}
    more = copy.deepcopy(GANG.replica)
    more["spec"]["engines"][0]["members"][1]["worker"] = {"nodes": 3}
    more["spec"]["serving"]["parallelism"]["pipeline"] = 4
    answer = run(GANG.but(replica=more, observed=observed))
    assert answer.reason("ModelReady") == "Serving"
    assert answer.conditions["ModelUpdated"] == (False, "RolloutStalled", "main: size is immutable")
    assert list(kserve_cluster.refused(manifests(answer)[SERVICE], service(GANG)))


def test_pods_that_wait_are_seen_and_named() -> None:
    scene = SINGLE.but(input=config(diagnose="Pods", budget=True))
    first = run(scene)
    annotations = first.desired["pods-main"]["spec"]["objectTemplate"]["metadata"]["annotations"]
    assert annotations[COUNTS] == "0 made, 0 updated, 0 available", "there is no service yet"
    answer = run(scene.but(observed=applied(first, "started")))
    selector = answer.desired["pods-main"]["spec"]["observeObjects"]["selector"]["matchLabels"]
    assert selector["app.kubernetes.io/component"] == "llminferenceservice-workload"


def test_a_service_stays_in_its_namespace_whatever_the_input_wants_now() -> None:
    """Its successor elsewhere would need the devices that its pods hold."""
    first, asked = run(SINGLE), SINGLE.but(input=config(remoteNamespace="Same"))
    assert manifests(run(asked))[SERVICE]["metadata"]["namespace"] == NAMESPACE, "a new one goes there"
    more = copy.deepcopy(SINGLE.replica)
    more["spec"]["engines"][0]["members"][0]["deviceRequests"][0]["count"] = 4
    after = manifests(run(asked.but(replica=more, observed=applied(first))))
    made = [after[key] for key in after if key == SERVICE or key.startswith("resource-claim")]
    assert len(made) == 3, "the service, and the claims of before and after the edit"
    assert {manifest["metadata"]["namespace"] for manifest in made} == {"default"}


def test_budgets_select_what_kserve_labels() -> None:
    budgets = manifests(run(APART.but(input=config(budget=True))))
    assert budgets["budget-d"]["spec"]["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": REPLICA,
        "app.kubernetes.io/component": "llminferenceservice-workload",
    }
    assert "budget-p" not in budgets


# ----------------------------------------------------------------------------------------------------- doubt


@pytest.mark.parametrize(("now", "before"), [("KServe", "Standard"), ("Standard", "KServe")])
def test_a_cluster_of_another_stack_moves_nothing(now: str, before: str) -> None:
    ran = SINGLE.but(cluster=cluster(stack=before))
    observed = applied(run(ran))
    answer = run(SINGLE.but(cluster=cluster(stack=now), observed=observed))
    assert answer.desired.keys() == observed.keys()
    for key in observed:
        assert answer.desired[key]["spec"] == observed[key]["spec"]
    assert answer.reason("ModelAccepted") == "StackChanged"
    assert before in answer.conditions["ModelAccepted"][2]
    assert answer.reason("ModelReady") == "Serving"
    assert not answer.unready


def test_an_edit_that_kserve_cannot_express_changes_nothing() -> None:
    observed = applied(run(SINGLE))
    answer = run(edited(SINGLE, "sglang:v1").but(observed=observed))
    assert {key: resource["spec"] for key, resource in answer.desired.items()} == {
        key: resource["spec"] for key, resource in observed.items()
    }
    assert answer.reason("ModelAccepted") == "StackCannotExpress"
    assert "engine main: a command is needed" in answer.conditions["ModelAccepted"][2]
    assert answer.reason("ModelReady") == "Serving"


def test_a_stack_that_nobody_knows_is_doubt() -> None:
    observed = applied(run(SINGLE))
    answer = run(SINGLE.but(cluster=cluster(stack="Knative"), observed=observed))
    assert answer.desired.keys() == observed.keys()
    assert answer.reason("ModelAccepted") == "WaitingForCluster"
    assert CLUSTER in answer.conditions["ModelAccepted"][2]


@pytest.mark.parametrize("base", [SINGLE, GANG, APART], ids=["pod", "gang", "apart"])
@pytest.mark.parametrize("was", ["True", "False"])
@pytest.mark.parametrize(
    ("reason", "late", "status"),
    [
        ("settled", {}, {}),
        ("no look since", {LOOK: BEHIND}, {}),
        ("not written yet", {SERVICE: BEHIND}, {}),
        ("not to be written", {SERVICE: FAILED}, {}),
        ("not to be looked at", {LOOK: FAILED}, {}),
        ("not there", {LOOK: {**FAILED, "message": "external resource does not exist"}}, {}),
        ("no pod may be created", {}, {"conditions": [QUOTA]}),
        ("no time is left", {}, {"conditions": [OUT_OF_TIME], "replicas": 5}),
        ("no look since, and no time left", {LOOK: BEHIND}, {"conditions": [OUT_OF_TIME]}),
        ("nothing is counted", {}, {"conditions": [], "replicas": 0, "updatedReplicas": 0}),
        ("no copy takes requests", {}, {"availableReplicas": 0, "readyReplicas": 0}),
    ],
)
def test_in_doubt_no_condition_but_the_first_changes(
    reason: str, base: Scene, late: dict[str, Plain], status: Plain, was: str
) -> None:
    settled = base.but(observed=applied(run(base)), replica=copy.deepcopy(base.replica))
    settled.replica["status"] = {"conditions": [{"type": "ModelUpdated", "status": was}]}
    for key in late.keys() & settled.observed:
        settled.observed[key]["metadata"]["generation"] = 2
        settled.observed[key]["status"]["conditions"][0] = late[key]
    for key in settled.observed:
        if key.startswith("see-"):
            settled.observed[key]["status"]["atProvider"]["manifest"]["status"] |= status
    before, doubted = run(settled), run(settled.but(cluster=None))
    assert doubted.reason("ModelAccepted") == "WaitingForCluster"
    # Nobody says in which order the engines are, nor how many copies one has whose workload is gone.
    parts = 2 if base is APART or reason == "not there" else 3
    said = before.conditions["ModelReady"], before.conditions["ModelUpdated"]
    if said[1][0] and was == "False":
        # In doubt nothing tells which spec it is that all copies run.
        said = said[0], (False, "Updating", doubted.conditions["ModelAccepted"][2])
    for kind, expected in zip(("ModelReady", "ModelUpdated"), said, strict=True):
        assert doubted.conditions[kind][:parts] == expected[:parts], reason
    assert doubted.ready == before.ready, reason


def test_a_service_that_was_left_to_another_team_makes_nobody_ready_until_it_is_written_again() -> None:
    """Until then what is seen of it is what the other team's pods did."""
    labels = {"modelplane.ai/deployment": "my-model", "modelplane.ai/cluster": CLUSTER}
    ours, theirs = copy.deepcopy(SINGLE.replica), copy.deepcopy(SINGLE.replica)
    for one, namespace in ((ours, NAMESPACE), (theirs, "a-team")):
        stamps = {"creationTimestamp": "2026-03-01T08:00:00Z", "labels": labels}
        one["metadata"] |= {"namespace": namespace, "uid": f"uid-in-{namespace}", **stamps}
    free, taken = {"namesakes": [ours]}, {"namesakes": [ours, theirs]}
    alone = SINGLE.but(replica=ours, input=config(namesakes="Refuse"), more=free)
    both = alone.but(observed=applied(run(alone)), more=taken)
    left = both.but(observed=applied(run(both)), more=free)
    answer = run(left)
    assert answer.conditions["ModelReady"][:2] == (False, "NameTaken")
    assert run(left.but(observed=applied(answer))).reason("ModelReady") == "Serving"
