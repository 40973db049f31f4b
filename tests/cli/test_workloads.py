"""`plan --workloads` and `why` below the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from example.compare import command_line
from tests.cli.command import run
from tests.replica import schemas
from tests.replica.provider import observed
from tests.schema.crds import ROOT

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]


@pytest.mark.parametrize(
    ("example", "kind", "number"),
    [
        ("small-model", "Deployment", 1),
        ("tensor-pipeline", "LeaderWorkerSet", 1),
        ("prefill-decode", "Deployment", 2),
    ],
)
def test_every_manifest_of_an_example_is_printed_and_valid(example: str, kind: str, number: int) -> None:
    code, text = command_line("plan", "--workloads", "example/fleet", f"example/{example}")
    assert code in (0, 2)
    documents = list(yaml.safe_load_all(text))
    assert not [finding for one in documents for finding in schemas.findings(one)]
    routes = [document for document in documents if document["kind"] == "HTTPRoute"]
    serving = [
        document
        for document in documents
        if document["kind"] == kind and not document["metadata"]["name"].endswith("-epp")
    ]
    assert len(serving) == number * len(routes)
    assert f"# {_cluster(text)}: " in text


def test_what_is_assumed_of_a_cluster_is_said_once() -> None:
    """However many replicas it has, and in one line for all clusters of which the same is assumed."""
    said = run("plan", ROOT / "example", "--workloads").err
    lines = [line for line in said.splitlines() if "providerConfigRef" in line]
    assert lines == ["note: cluster gpu-east has no providerConfigRef: assumed one of its name"]


def test_kimi_k2_is_served_both_ways() -> None:
    """The same deployment is a LeaderWorkerSet on one cluster and an LLMInferenceService on the other."""
    files = ("example/kserve/fleet.yaml", "example/kserve/deployment.yaml")
    code, text = command_line("plan", "--workloads", *files)
    assert code == 0
    documents = list(yaml.safe_load_all(text))
    assert not [finding for one in documents for finding in schemas.findings(one)]
    kinds = [document["kind"] for document in documents]
    assert [kinds.count(kind) for kind in ("LLMInferenceService", "LeaderWorkerSet", "HTTPRoute")] == [
        1,
        1,
        1,
    ]
    assert kinds.count("ResourceClaimTemplate") == 4
    [service] = [document for document in documents if document["kind"] == "LLMInferenceService"]
    [gang] = [document for document in documents if document["kind"] == "LeaderWorkerSet"]
    assert service["spec"]["parallelism"] == {"tensor": 8, "pipeline": 2, "expert": True}
    for section, template in (("template", "leaderTemplate"), ("worker", "workerTemplate")):
        [main] = service["spec"][section]["containers"]
        [engine] = gang["spec"]["leaderWorkerTemplate"][template]["spec"]["containers"]
        assert all(main[field] == engine[field] for field in ("image", "command", "args", "env", "resources"))


def _cluster(text: str) -> str:
    return text.splitlines()[1].removeprefix("# ").partition(":")[0]


def composed(example: str) -> list[Plain]:
    """Return the desired resources of an example, as the control plane would hold them."""
    _, text = command_line("plan", "-o", "yaml", "example/fleet", f"example/{example}")
    return list(yaml.safe_load_all(text))


def below(tmp_path: Path, stage: str) -> str:
    """Write one replica of the small model and its Objects at a stage, and ask why."""
    from tests.replica.build import Scene, config, run

    replica = next(manifest for manifest in composed("small-model") if manifest["kind"] == "ModelReplica")
    cluster = next(
        document
        for path in sorted(_fleet())
        for document in yaml.safe_load_all(path.read_text())
        if document["metadata"]["name"] == replica["spec"]["clusterName"]
    )
    scene = Scene({**replica, "kind": "ModelReplica"}, cluster, input=config(diagnose="Pods"))
    desired = run(scene).desired
    objects = [_held(replica, key, observed(key, manifest, stage)) for key, manifest in desired.items()]
    collection = next(manifest for manifest in objects if manifest["kind"] == "ObservedObjectCollection")
    pod = {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "metadata": {
            "name": "a-pod",
            "namespace": replica["metadata"]["namespace"],
            "labels": {"kubernetes.crossplane.io/owned-by-collection": collection["metadata"]["name"]},
        },
        "spec": {
            "forProvider": {"manifest": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p-0"}}}
        },
        "status": {
            "atProvider": {
                "manifest": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "p-0"},
                    "status": {
                        "conditions": [
                            {
                                "type": "PodScheduled",
                                "status": "False",
                                "message": "cannot allocate all claims",
                            }
                        ]
                    },
                }
            }
        },
    }
    pod["spec"]["forProvider"]["manifest"]["metadata"] |= {"namespace": "default"}
    held = tmp_path / "below.yaml"
    held.write_text(yaml.safe_dump_all([replica, *objects, pod]))
    return str(held)


def _fleet() -> list[Path]:
    from example.caller import FLEET

    return list(FLEET.glob("cluster-*.yaml"))


def _held(replica: Plain, key: str, manifest: Plain) -> Plain:
    """Return an Object as Crossplane labels it."""
    manifest["metadata"] |= {
        "namespace": replica["metadata"]["namespace"],
        "labels": {"crossplane.io/composite": replica["metadata"]["name"]},
        "annotations": {"crossplane.io/composition-resource-name": key},
    }
    return manifest


def test_why_says_what_a_pending_pod_waits_for(tmp_path: Path) -> None:
    held = below(tmp_path, "started")
    _, text = command_line("why", "qwen3-8b", "example/fleet", "example/small-model", held)
    assert "Below the cluster" in text
    assert "ModelReady: Unschedulable: cannot allocate all claims" in text
    assert "pod p-0 waits: cannot allocate all claims" in text


def test_the_same_as_data(tmp_path: Path) -> None:
    held = below(tmp_path, "started")
    _, text = command_line("why", "-o", "yaml", "qwen3-8b", "example/fleet", "example/small-model", held)
    (workloads,) = yaml.safe_load(text)["workloads"]
    assert workloads["pendingPods"] == [{"name": "p-0", "waits": "cannot allocate all claims"}]


def test_without_objects_why_ends_at_the_cluster() -> None:
    _, text = command_line("why", "qwen3-8b", "example/fleet", "example/small-model")
    assert "Below the cluster" not in text
