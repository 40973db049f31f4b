"""A snapshot holds everything a decision reads and nothing that may be secret."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from function.recording import KINDS, redacted_object
from tests.cli.command import run, write
from tests.cli.fleets import SEEDS, fleet
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "canary-5f2c"


@pytest.mark.parametrize("stdin", ["", '{"kind": "List", "apiVersion": "v1", "items": []}'])
@pytest.mark.parametrize("words", [("snapshot", "-"), ("reconcile", "-", "--all")])
def test_a_pipe_that_brings_nothing_is_no_success(words: tuple[str, ...], stdin: str) -> None:
    """The first half of a pipe may fail, and its exit code is lost: `kubectl get ... | ...`."""
    ran = run(*words, stdin=stdin)
    assert (ran.code, ran.out) == (1, "")
    assert "there is no " in ran.err


def _with_secrets() -> list[dict[str, Any]]:
    parent = build.deployment("chat", 2)
    container = parent["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]["spec"][
        "containers"
    ][0]
    container["env"] = [
        {"name": "HF_TOKEN", "value": CANARY},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": CANARY, "key": CANARY}}},
    ]
    container["args"] = [f"--api-key={CANARY}"]
    container["command"] = ["sh", "-c", f"serve {CANARY}"]
    container["readinessProbe"] = {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": CANARY}]}}
    parent["spec"]["template"]["metadata"] = {"labels": {"team": CANARY}}
    parent["spec"]["template"]["spec"]["serving"] = {"key": CANARY}
    parent["data"] = {"password": CANARY}
    parent["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": CANARY}
    parent["metadata"]["managedFields"] = [{"manager": CANARY}]
    cluster = build.cluster("east", [build.pool("h100", 3)])
    cluster["spec"]["cluster"]["credentials"] = {"secret": CANARY}
    cluster["spec"]["cluster"]["apiToken"] = CANARY
    cluster["spec"]["cluster"]["kubeconfig"] = CANARY
    cluster["status"]["gpuPools"][0]["later"] = [CANARY]
    return [cluster, parent, build.replica(parent, "east", 0, ready=True)]


def test_no_secret_is_left(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _with_secrets())
    assert CANARY in path.read_text()
    ran = run("snapshot", path)
    assert ran.code == 0
    assert CANARY not in ran.out
    assert [document["kind"] for document in yaml.safe_load_all(ran.out)] == [
        "ModelDeployment",
        "InferenceCluster",
        "ModelReplica",
    ]


def test_what_no_placement_depends_on_is_left_out_and_said(tmp_path: Path) -> None:
    parent = build.deployment("chat", 2)
    group = "kubernetes.m.crossplane.io"
    others = [
        {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "Object",
            "metadata": {"name": "pods", "namespace": "ml"},
        },
        {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "RoutingConfig"},
    ]
    ran = run("snapshot", write(tmp_path / "f.yaml", [parent, *others]))
    assert ran.code == 0
    assert [document["kind"] for document in yaml.safe_load_all(ran.out)] == ["ModelDeployment"]
    assert "left out: 1 object of kind Object" in ran.err
    assert "left out: 1 object of kind RoutingConfig" in ran.err


@pytest.mark.parametrize("seed", SEEDS)
def test_the_decision_on_a_snapshot_is_the_same(seed: int, tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", fleet(seed))
    stripped = tmp_path / "stripped.yaml"
    stripped.write_text(run("snapshot", path).out)
    for output in ("table", "json"):  # The second with the digest of the input.
        before, after = (run("plan", item, "-o", output) for item in (path, stripped))
        # What a replica says of itself decides nothing, and a snapshot leaves it out.
        expected = before.out.replace("Ready: Tested", "Ready")
        assert (before.code, expected) == (after.code, after.out.replace(str(stripped), str(path)))


def test_a_cluster_without_a_status_is_completed_from_a_snapshot_as_from_its_files(tmp_path: Path) -> None:
    device = build.gpu(8, architecture="Hopper")
    pool = {"name": "h100", "className": "h100", "nodeCount": 1}
    bare = build.cluster("east", [build.pool("h100", 1)])
    del bare["status"]
    bare["spec"]["cluster"] = {"source": "Existing", "existing": {"gateway": {"address": "192.0.2.1"}}}
    bare["spec"]["nodePools"] = [pool]
    node_class = {**build.cluster("h100", []), "kind": "InferenceClass", "spec": {"devices": [device]}}
    del node_class["status"]
    config = {
        "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
        "kind": "ClusterConfig",
        "publish": "Attributes",
        "accounting": "Device",
    }
    engine = build.engine(members=[build.member(devices=[build.request("gpu", 2, build.GPUS)])])
    path = write(tmp_path / "f.yaml", [bare, node_class, config, build.deployment("chat", 3, [engine])])
    stripped = tmp_path / "stripped.yaml"
    stripped.write_text(run("snapshot", path).out)
    before, after = (run("plan", item, "-o", "json") for item in (path, stripped))
    assert "3 of 3" in before.out, "the pool is charged by devices: a node takes three replicas"
    assert (before.code, before.out) == (after.code, after.out)
    assert before.err == after.err, "the same is assumed"


def test_what_a_stack_cannot_express_is_said_to_be_unknown(tmp_path: Path) -> None:
    cluster = build.cluster("east", [build.pool("h100", 1)])
    objects = [cluster, build.deployment("chat", 1)]
    assert "stack" not in run("snapshot", write(tmp_path / "plain.yaml", objects)).err
    cluster["spec"]["stack"] = "KServe"
    said = run("snapshot", write(tmp_path / "f.yaml", objects)).err
    assert "what the stack cannot express is not known on east" in said


def test_redacting_twice_changes_nothing_and_leaves_the_original_alone() -> None:
    for secret in _with_secrets():
        original = copy.deepcopy(secret)
        once = redacted_object(secret, KINDS[secret["kind"]])
        assert redacted_object(once, KINDS[secret["kind"]]) == once
        assert secret == original


def test_annotations_that_decide_stay() -> None:
    kept = {"crossplane.io/composition-resource-name": "replica-a-0", "modelplane.ai/was-ready": "true"}
    made = {"metadata": {"annotations": {**kept, "note": CANARY}}}
    assert redacted_object(made, KINDS["ModelReplica"]) == {"metadata": {"annotations": kept}}


def test_without_files_it_prints_the_command_line_and_reads_nothing() -> None:
    ran = run("snapshot", "--context", "production", "--file", "prod.yaml")
    assert ran.code == 0
    assert ran.out.startswith("kubectl --context production get modeldeployments.modelplane.ai,")
    assert "secrets" not in ran.out
    assert ran.out.rstrip().endswith("| fleet-scheduler snapshot - > prod.yaml")


def test_a_list_of_kubectl_is_read_from_standard_input() -> None:
    listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": _with_secrets()})
    ran = run("snapshot", "-", stdin=listed)
    assert ran.code == 0
    assert CANARY not in ran.out
