"""`cluster` writes what a cluster has: its pools, their classes, labels and tolerations; and it plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.command import Ran, run, write
from tests.support import build, slices

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]
GROUP = "eks.amazonaws.com/nodegroup"


def _node(name: str, kind: Plain, labels: dict[str, str], *taints: Plain, count: int = 8) -> list[Plain]:
    node = slices.node(name, None)
    node["metadata"]["labels"] = labels
    node["spec"] = {"taints": [*taints]}
    published = slices.resource_slice(name, slices.devices(kind, count))
    published["metadata"] = {"name": slices.slice_name(published)}
    return [node, published]


def _written(tmp_path: Path, *nodes: list[Plain], more: tuple[str, ...] = ()) -> tuple[Ran, list[Plain]]:
    path = write(tmp_path / "seen.yaml", [plain for pair in nodes for plain in pair])
    ran = run("cluster", "gpu-east", path, *more)
    return ran, list(yaml.safe_load_all(ran.out))


def test_nodes_of_two_groups_are_two_pools(tmp_path: Path) -> None:
    gpu_taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
    cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    ran, objects = _written(
        tmp_path,
        _node("a", slices.H200, {GROUP: "Big_One"}, gpu_taint, cordoned),
        _node("b", slices.H200, {GROUP: "Big_One"}, gpu_taint),
        _node("c", slices.AMD, {GROUP: "amd"}, count=4),
        more=("--gateway", "203.0.113.10", "--secret", "east/config"),
    )
    assert (ran.code, ran.err) == (0, "")
    first, second, cluster = objects
    assert [first["metadata"]["name"], second["metadata"]["name"]] == ["gpu-east-big-one", "gpu-east-amd"]
    assert first["spec"]["devices"][0]["count"] == 8
    assert cluster["metadata"] == {"name": "gpu-east"}
    assert cluster["spec"] == {
        "cluster": {
            "source": "Existing",
            "existing": {
                "secretRef": {"name": "east", "key": "config"},
                "gateway": {"address": "203.0.113.10"},
            },
        },
        "nodePools": [
            {
                "name": "big-one",
                "className": "gpu-east-big-one",
                "nodeCount": 2,
                "nodeSelector": {GROUP: "Big_One"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            },
            {"name": "amd", "className": "gpu-east-amd", "nodeCount": 1, "nodeSelector": {GROUP: "amd"}},
        ],
    }


@pytest.mark.parametrize(
    ("labels", "expected", "reason"),
    [
        (({"modelplane.ai/pool": "x"},) * 2, None, "the label that we use needs no selector"),
        (
            ({"node.kubernetes.io/instance-type": "p5"},) * 2,
            {"node.kubernetes.io/instance-type": "p5"},
            "a type",
        ),
        (({GROUP: "x"}, {}), None, "not every node has it"),
        (({GROUP: "a b"}, {GROUP: "a.b"}), None, "two values make one name"),
    ],
)
def test_the_label_that_every_node_has_selects(
    labels: tuple[dict[str, str], ...], expected: Plain | None, reason: str, tmp_path: Path
) -> None:
    nodes = [_node(f"n{at}", slices.H200, given) for at, given in enumerate(labels)]
    _, objects = _written(tmp_path, *nodes)
    [pool] = objects[-1]["spec"]["nodePools"]
    assert pool.get("nodeSelector") == expected, reason
    assert pool["nodeCount"] == 2


def test_nodes_that_no_label_tells_apart_are_to_be_labelled(tmp_path: Path) -> None:
    same = {"node.kubernetes.io/instance-type": "p5"}
    ran, objects = _written(tmp_path, _node("a", slices.H200, same), _node("b", slices.AMD, same))
    assert ran.code == 2
    names = [pool["name"] for pool in objects[-1]["spec"]["nodePools"]]
    assert names == ["pool-1", "pool-2"]
    assert ran.err.count("kubectl label nodes ") == 2
    assert "kubectl label nodes b modelplane.ai/pool=pool-" in ran.err
    assert "--overwrite" not in ran.err


def test_a_node_that_has_the_label_gets_another_value(tmp_path: Path) -> None:
    """Without --overwrite kubectl refuses to change a label, and the commands would stop half way."""
    same = {"modelplane.ai/pool": "gpus"}
    ran, _ = _written(tmp_path, _node("a", slices.H200, same), _node("b", slices.AMD, same))
    commands = [line for line in ran.err.splitlines() if line.startswith("kubectl label nodes ")]
    assert len(commands) == 2
    assert all(command.endswith(" --overwrite") for command in commands)


def test_an_address_is_one_as_the_composition_reads_it(tmp_path: Path) -> None:
    ran, objects = _written(tmp_path, _node("a", slices.H200, {}), more=("--gateway", "http://gpu-east"))
    assert (ran.code, objects) == (1, [])
    assert "InferenceCluster gpu-east: spec.cluster.existing.gateway.address: expected a host" in ran.err


@pytest.mark.parametrize("verb", [("cluster", "gpu-east"), ("class",)])
def test_what_a_class_cannot_hold_is_named(verb: tuple[str, ...], tmp_path: Path) -> None:
    """A slice of no one node says nothing of a node, and ways to cut one GPU are not there at once."""
    node, published = _node("a", slices.H200, {})
    published["spec"]["devices"][0]["consumesCounters"] = [{"counterSet": "gpu-0"}]
    everywhere = slices.resource_slice("b", slices.devices(slices.AMD, 1))
    del everywhere["spec"]["nodeName"]
    everywhere["spec"]["allNodes"] = True
    ran = run(*verb, write(tmp_path / "seen.yaml", [node, published, everywhere]))
    driver = everywhere["spec"]["driver"]
    assert f"left out: devices of {driver} in slices that name no node" in ran.err
    assert "gpu.nvidia.com cuts devices in several ways" in ran.err


def test_equal_nodes_share_a_class(tmp_path: Path) -> None:
    _, objects = _written(
        tmp_path, _node("a", slices.H200, {GROUP: "x"}), _node("b", slices.H200, {GROUP: "y"})
    )
    assert [plain["kind"] for plain in objects] == ["InferenceClass", "InferenceCluster"]
    assert {pool["className"] for pool in objects[-1]["spec"]["nodePools"]} == {"gpu-east-x"}


def test_what_it_writes_is_planned_on(tmp_path: Path) -> None:
    _, objects = _written(tmp_path, _node("a", slices.H200, {GROUP: "x"}))
    fleet = write(tmp_path / "fleet.yaml", [*objects, build.deployment("chat", 1)])
    ran = run("plan", fleet, "-o", "json")
    assert "error" not in ran.err
    assert run("lint", write(tmp_path / "written.yaml", objects)).code == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "name a cluster with --context, or files"),
        (("empty.yaml",), "there is no ResourceSlice in the files"),
        (("empty.yaml", "--context", "x"), "leave the files out"),
    ],
)
def test_what_it_needs_is_said(
    words: tuple[str, ...], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "empty.yaml", [build.deployment("chat", 1)])
    monkeypatch.chdir(tmp_path)
    ran = run("cluster", "gpu-east", *words)
    assert (ran.code, error in ran.err) == (1, True)


def test_a_node_whose_slices_are_not_all_there_is_left_out(tmp_path: Path) -> None:
    node, published = _node("b", slices.H200, {GROUP: "x"})
    published["spec"]["pool"]["resourceSliceCount"] = 2
    ran, objects = _written(tmp_path, _node("a", slices.H200, {GROUP: "x"}), [node, published])
    assert "left out, as not all of their slices are there: b" in ran.err
    assert objects[-1]["spec"]["nodePools"][0]["nodeCount"] == 1
    alone, _ = _written(tmp_path, [node, published])
    assert (alone.code, "no node has a complete set of ResourceSlices" in alone.err) == (1, True)
