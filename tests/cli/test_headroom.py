"""`headroom` promises what `plan` keeps: exactly so many more, and not one more."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.command import run, write
from tests.cli.fleets import SEEDS, fleet, planned, settled
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]
CAP = 12
"""Small fleets have room for fewer than this."""


def _only(objects: list[Plain], name: str, replicas: int, cluster: str | None) -> list[Plain]:
    """Want so many replicas of one deployment, where only one cluster (or any) takes new ones."""
    changed = copy.deepcopy(objects)
    for manifest in changed:
        if manifest["kind"] == "ModelDeployment" and manifest["metadata"]["name"] == name:
            manifest["spec"]["replicas"] = replicas
            manifest["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
        if manifest["kind"] == "InferenceCluster" and cluster not in (None, manifest["metadata"]["name"]):
            manifest["status"].pop("conditions", None)
    return changed


def _placed(path: Path, objects: list[Plain], name: str) -> int:
    """How many replicas `plan` gives a deployment."""
    desired = planned(path, objects).values()
    return sum(
        (manifest["kind"], manifest["metadata"]["labels"]["modelplane.ai/deployment"])
        == ("ModelReplica", name)
        for manifest in desired
    )


@pytest.mark.parametrize("seed", [number for number in SEEDS if number < 6 or len(SEEDS) > 100])
def test_a_cluster_takes_exactly_its_headroom(seed: int, tmp_path: Path) -> None:
    objects = fleet(seed)
    said = run("headroom", write(tmp_path / "fleet.yaml", objects), "-o", "json")
    assert said.code in (0, 2), said.err
    still, _ = settled(tmp_path / "settled.yaml", objects)
    for deployment in said.data["deployments"]:
        name, total = deployment["deployment"].partition("/")[2], deployment["placed"]
        rooms = {room["cluster"]: room["more"] for room in deployment["clusters"]}
        for cluster, more in ((None, deployment["more"]), *rooms.items()):
            wanted = _only(still, name, total + CAP, cluster)
            assert _placed(tmp_path / "more.yaml", wanted, name) == total + more, (seed, name, cluster)


def _fleet(nodes: int = 3, **spec: Any) -> list[Plain]:
    parent = build.deployment("chat", 1)
    parent["spec"].update(spec)
    return [build.cluster("east", [build.pool("h100", nodes)]), parent]


def test_what_runs_out_first_is_said(tmp_path: Path) -> None:
    ran = run("headroom", write(tmp_path / "f.yaml", _fleet()))
    assert ran.code == 0
    assert "1 of 1 placed, 2 more would fit" in ran.out
    assert "InsufficientNodes" in ran.out
    assert "needs 1, 0 free of 3" in ran.out


def test_no_room_anywhere_is_exit_code_2(tmp_path: Path) -> None:
    assert run("headroom", write(tmp_path / "f.yaml", _fleet(nodes=1))).code == 2


def test_a_policy_can_run_out_before_the_nodes_do(tmp_path: Path) -> None:
    objects = _fleet(placement={"maxReplicasPerCluster": 2})
    ran = run("headroom", write(tmp_path / "f.yaml", objects), "-o", "json")
    (east,) = ran.data["deployments"][0]["clusters"]
    assert (east["more"], east["reason"]) == (1, "MaxReplicasPerCluster")


def test_room_without_end_is_said_to_be_more(tmp_path: Path) -> None:
    ran = run("headroom", write(tmp_path / "f.yaml", _fleet(nodes=5_000)))
    assert "200+ more would fit" in ran.out


def test_a_deployment_that_cannot_place_says_why(tmp_path: Path) -> None:
    objects = _fleet()
    selector = objects[1]["spec"]["template"]["spec"]["engines"][0]["members"][0]["nodeSelector"]
    selector["devices"][0]["selectors"][0]["cel"] = "device.driver =="
    ran = run("headroom", write(tmp_path / "f.yaml", objects))
    assert ran.code == 1
    assert "nothing new is placed" in ran.out


def test_one_deployment_can_be_asked_for(tmp_path: Path) -> None:
    objects = [*_fleet(), build.deployment("search", 1)]
    path = write(tmp_path / "f.yaml", objects)
    deployments = run("headroom", path, "-d", "search", "-o", "json").data["deployments"]
    assert [item["deployment"] for item in deployments] == [f"{build.NAMESPACE}/search"]
    wrong = run("headroom", path, "-d", "serach")
    assert wrong.code == 1
    assert "did you mean search" in wrong.err
