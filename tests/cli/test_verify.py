"""`verify` certifies what `plan` decides, and finds every rule that a tampered decision breaks."""

from __future__ import annotations

import ast
import copy
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from function.api import SchedulerConfig
from function.cli.worlds import world
from tests.cli.command import run, write
from tests.cli.fleets import SEEDS, fleet
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seed", range(len(SEEDS) * 3))
def test_every_plan_is_certified(seed: int, tmp_path: Path) -> None:
    ran = run("verify", write(tmp_path / "f.yaml", fleet(seed)), "-o", "json")
    assert ran.data["decision"] == [], seed


def test_the_example_is_certified() -> None:
    ran = run("verify", ROOT / "example")
    assert ran.code == 0
    assert "every placement follows the rules" in ran.out


def test_a_decision_without_replicas_is_named(tmp_path: Path) -> None:
    """It may be the right one, and is more often the wrong file."""
    file = write(tmp_path / "f.yaml", [build.deployment("chat", 1), build.cluster("a", [build.pool("h100")])])
    ran = run("verify", file, "--decision", file)
    assert ran.code == 2
    assert f"{file} has no ModelReplica" in ran.err


def test_a_minimum_above_what_is_wanted_asks_for_all_of_it(tmp_path: Path) -> None:
    deployment = build.deployment("chat", 2, [build.engine()])
    deployment["spec"]["minReplicas"] = 5
    file = write(tmp_path / "f.yaml", [deployment, build.cluster("a", [build.pool("h100", 4)])])
    assert run("plan", file, "-o", "json").data["deployments"][0]["replicas"]["total"] == 2
    assert run("verify", file).code == 0


def test_policy_of_the_function_s_input_is_known(tmp_path: Path) -> None:
    """It gives a replica up, or limits a cluster, as if the deployment had said so itself."""
    config: Plain = {
        "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
        "kind": "SchedulerConfig",
        "defaults": {"placement": {"evacuate": {"afterSeconds": 3600}}},
    }
    fleet = [build.cluster(name, [build.pool("h100", 4)]) for name in "abc"]
    for cluster, beat in zip(fleet, ("09:00", "12:00", "12:00"), strict=True):
        cluster["status"]["heartbeat"] = f"2026-03-01T{beat}:00Z"
    deployment = build.deployment("chat", 1)
    running = build.replica(deployment, "a", 0, ready=True)
    file = write(tmp_path / "f.yaml", [config, deployment, running, *fleet])
    assert "its cluster has not been heard of for too long" in run("plan", file).out
    assert run("verify", file).code == 0
    stays = write(tmp_path / "g.yaml", [deployment, running, *fleet])
    assert run("verify", stays, "--decision", write(tmp_path / "d.yaml", [])).code != 0


def test_it_shares_no_code_with_the_scheduler() -> None:
    allowed = ("function.verify", "function.api", "function.cel", "function.boundary")
    for file in sorted((ROOT / "function" / "verify").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            name = node.module if isinstance(node, ast.ImportFrom) else ""
            assert not (name or "").startswith("function.") or (name or "").startswith(allowed), (
                file.name,
                name,
            )


def _fleet() -> list[Plain]:
    """Return two clusters and four replicas wanted, one of which runs already."""
    mixed = [build.pool("h100", 3), build.pool("l4", 2, [build.gpu(architecture="Ada")])]
    closed = build.cluster("closed", [build.pool("h100", 9)], taints=[build.taint("maintenance")])
    engine = build.engine(members=[build.member(devices=[build.request("gpu", 8, build.HOPPER)])])
    parent = build.deployment("chat", 4, [engine])
    running = build.replica(parent, "west", 0, ready=True)
    return [
        build.cluster("east", mixed),
        build.cluster("west", [build.pool("h100", 2)]),
        closed,
        parent,
        running,
    ]


def _new(decision: list[Plain]) -> Plain:
    return next(manifest for manifest in decision if manifest["spec"]["clusterName"] == "east")


def _member(manifest: Plain) -> Plain:
    member: Plain = manifest["spec"]["engines"][0]["members"][0]
    return member


def _called(decision: list[Plain], cluster: str, index: int) -> Plain:
    name = build.composed_name("chat", cluster, index)
    return next(manifest for manifest in decision if manifest["metadata"]["name"] == name)


def _lose(decision: list[Plain]) -> None:
    decision.remove(_called(decision, "west", 0))


def _on(pool: str) -> Callable[[list[Plain]], None]:
    def change(decision: list[Plain]) -> None:
        _member(_new(decision))["nodePoolName"] = pool

    return change


def _claim(**fields: Any) -> Callable[[list[Plain]], None]:
    def change(decision: list[Plain]) -> None:
        _member(_new(decision))["deviceRequests"][0].update(fields)

    return change


def _unclaim(decision: list[Plain]) -> None:
    del _member(_new(decision))["deviceRequests"]


def _move(decision: list[Plain]) -> None:
    _called(decision, "west", 0)["spec"]["clusterName"] = "east"


def _send(cluster: str) -> Callable[[list[Plain]], None]:
    def change(decision: list[Plain]) -> None:
        _new(decision)["spec"]["clusterName"] = cluster

    return change


def _rename(decision: list[Plain]) -> None:
    _new(decision)["metadata"]["name"] = "chat-00000"


def _pack(decision: list[Plain]) -> None:
    """Put two more on east instead of one on west, which came next."""
    decision.remove(_called(decision, "west", 1))
    for index in (2, 3):
        extra = copy.deepcopy(_new(decision))
        extra["metadata"]["name"] = build.composed_name("chat", "east", index)
        extra["metadata"]["labels"]["modelplane.ai/replica-index"] = str(index)
        decision.append(extra)


def _leave_out(decision: list[Plain]) -> None:
    decision.remove(_new(decision))


def _same_index(decision: list[Plain]) -> None:
    _called(decision, "west", 1)["metadata"]["labels"]["modelplane.ai/replica-index"] = "0"


def _copies(decision: list[Plain]) -> None:
    _new(decision)["spec"]["engines"][0]["copies"] = 5


@pytest.mark.parametrize(
    ("tamper", "rule", "reason"),
    [
        (_lose, "Lost", "a running replica leaves for no reason"),
        (_leave_out, "LeftOut", "a replica is missing while a cluster has room"),
        (_on("l4"), "NoMatch", "the pool's devices do not satisfy the selector"),
        (_on("none"), "Pool", "the cluster has no such pool"),
        (_claim(count=4), "Claim", "another count than is asked for"),
        (_claim(deviceClassName="other"), "Claim", "another device class than the pool publishes"),
        (_unclaim, "NothingClaimed", "its pods would bind no device"),
        (_unclaim, "Stranded", "a member that could bind a device binds none"),
        (_move, "Moved", "a replica never changes its cluster"),
        (_send("closed"), "Gate", "the cluster's taint is not tolerated"),
        (_send("nowhere"), "Gate", "there is no such cluster"),
        (_rename, "Name", "the name is not the digest's"),
        (_pack, "Spread", "the other cluster had fewer and room"),
        (_pack, "TooMany", "more are desired than wanted"),
        (_pack, "Overcommit", "four nodes of a pool that has three"),
        (_same_index, "Identity", "an identity is never used twice"),
        (_copies, "Shape", "another number of copies than is wanted"),
        (_copies, "Overcommit", "five nodes of a pool that has three"),
    ],
)
def test_a_tampered_decision_is_found_out(
    tamper: Callable[[list[Plain]], None], rule: str, reason: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "f.yaml", _fleet())
    desired = yaml.safe_load_all(run("plan", path, "-o", "yaml").out)
    decision = [manifest for manifest in desired if manifest["kind"] == "ModelReplica"]
    fair = write(tmp_path / "fair.yaml", decision)
    assert run("verify", path, "--decision", fair).code == 0
    tamper(decision)
    ran = run("verify", path, "--decision", write(tmp_path / "tampered.yaml", decision), "-o", "json")
    assert ran.code == 2, reason
    assert rule in {item["rule"] for item in ran.data["decision"]}, (reason, ran.data)


def test_a_shape_that_a_stack_cannot_express_is_placed_nowhere_on_it(tmp_path: Path) -> None:
    """The first shape fits nowhere but on KServe, which cannot express it; the second fits on neither."""
    on_kserve, other = (build.cluster(name, [build.pool("h100", 2)]) for name in ("east", "west"))
    on_kserve["spec"]["stack"] = "KServe"
    made = build.deployment("chat", 3, [build.engine("main"), build.engine("draft")])
    inner = made["spec"]["template"]["spec"]
    inner["serving"] = {"model": {"uri": "hf://org/model"}}
    large = build.engine(members=[build.member(devices=[build.request("gpu", 64)])])
    inner["alternatives"] = [{"name": "large", "engines": [large]}]
    path = write(tmp_path / "f.yaml", [on_kserve, other, made])
    desired = yaml.safe_load_all(run("plan", path, "-o", "yaml").out)
    decision = [manifest for manifest in desired if manifest["kind"] == "ModelReplica"]
    assert [manifest["spec"]["clusterName"] for manifest in decision] == ["west"]
    fair = run("verify", path, "--decision", write(tmp_path / "fair.yaml", decision), "-o", "json")
    assert fair.data["decision"] == []
    decision[0]["spec"]["clusterName"] = "east"
    decision[0]["metadata"]["labels"]["modelplane.ai/cluster"] = "east"
    ran = run("verify", path, "--decision", write(tmp_path / "tampered.yaml", decision), "-o", "json")
    assert "cannot express its shape" in str(ran.data["decision"])


def test_an_overcommitted_fleet_is_named_with_who_holds_it(tmp_path: Path) -> None:
    parent = build.deployment("chat", 3)
    running = [build.replica(parent, "east", index, ready=True) for index in range(3)]
    path = write(tmp_path / "f.yaml", [build.cluster("east", [build.pool("h100", 2)]), parent, *running])
    ran = run("verify", path, "--standing")
    assert ran.code == 2
    assert "Overcommitted east/h100: 3 nodes held, 2 published, by ml-team/chat-" in ran.out
    assert "The decision" not in ran.out


@pytest.mark.parametrize("accounting", ["Node", "Device"])
@pytest.mark.parametrize(
    ("yields", "leaves", "reason"),
    [
        ("Yield", None, "the last one that never was Ready gives way, as the scheduler decides"),
        ("Yield", 0, "one that is Ready never gives way"),
        ("Report", 2, "nobody gives way unasked"),
    ],
)
def test_who_gives_way_in_an_overcommitted_pool(
    accounting: str, yields: str, leaves: int | None, reason: str, tmp_path: Path
) -> None:
    """Three replicas of a GPU node each stand on two nodes, the first of them Ready."""
    config = {
        "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
        "kind": "SchedulerConfig",
        "overcommit": yields,
    }
    whole = build.engine(members=[build.member(devices=[build.request("gpu", 8)])])
    parent = build.deployment("chat", 3, [whole])
    running = [build.replica(parent, "east", index, ready=index == 0) for index in range(3)]
    for manifest, hour in zip(running, ("08", "09", "10"), strict=True):
        manifest["metadata"]["creationTimestamp"] = f"2026-03-01T{hour}:00:00Z"
    cluster = build.cluster("east", [build.pool("h100", 2)])
    cluster["spec"]["nodePools"][0]["accounting"] = accounting
    path = write(tmp_path / "f.yaml", [config, parent, *running, cluster])
    stay = [manifest for index, manifest in enumerate(running) if index != leaves]
    decision = ["--decision", write(tmp_path / "d.yaml", stay)] if leaves is not None else []
    ran = run("verify", path, *decision, "-o", "json")
    names = [manifest["metadata"]["name"] for manifest in running]
    lost = [] if leaves is None else [f"ml-team/{names[leaves]}"]
    assert [item["where"] for item in ran.data["decision"] if item["rule"] == "Lost"] == lost, reason
    if leaves is None:
        planned = run("plan", path, "-o", "yaml").out
        assert names[2] not in planned, "somebody gives way, so the test tells something"
        assert names[1] in planned


def test_replicas_of_nowhere_are_named(tmp_path: Path) -> None:
    parent = build.deployment("chat", 2)
    gone, lost = build.replica(parent, "gone", 0), build.replica(parent, "east", 0, pools="old")
    path = write(tmp_path / "f.yaml", [build.cluster("east", [build.pool("h100", 2)]), parent, gone, lost])
    rules = {item["rule"] for item in run("verify", path, "--standing", "-o", "json").data["state"]}
    assert rules == {"NoSuchCluster", "NoSuchPool"}


def test_a_pool_that_is_not_there_is_one_line_and_every_replica_in_the_data(tmp_path: Path) -> None:
    """At a cluster that publishes nothing yet, everybody who runs there is pinned to nothing."""
    parent = build.deployment("chat", 6)
    running = [build.replica(parent, "east", index, pools="h100") for index in range(5)]
    running.append(build.replica(parent, "west", 5, pools="old"))
    silent = build.cluster("east", [build.pool("h100", 5)])
    silent["status"] = {"conditions": [build.condition("Ready", status=False)]}
    del silent["spec"]["nodePools"]
    fleet = [silent, build.cluster("west", [build.pool("h100", 2)]), parent, *running]
    path = write(tmp_path / "f.yaml", fleet)
    lines = [line.strip() for line in run("verify", path, "--standing").out.splitlines()]
    names = sorted(f"ml-team/{manifest['metadata']['name']}" for manifest in running[:5])
    nothing = "pinned to east/h100, and the cluster publishes no pools"
    assert lines == [
        "The fleet as it stands",
        f"✗ NoSuchPool {', '.join(names[:3])}, 2 more: {nothing}",
        f"✗ NoSuchPool ml-team/{running[5]['metadata']['name']}: pinned to west/old, which is not published",
    ]
    assert len(run("verify", path, "--standing", "-o", "json").data["state"]) == 6


CONFIG: Plain = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}


@pytest.mark.parametrize(("configs", "times"), [([], 0), ([CONFIG], 1)], ids=["none", "one"])
def test_the_function_s_input_is_parsed_once_and_not_for_every_deployment(
    configs: list[Plain], times: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parsed: list[object] = []
    real = SchedulerConfig.parse
    counting = SimpleNamespace(
        parse=lambda plain: parsed.append(plain) or real(plain),
        model_construct=SchedulerConfig.model_construct,
    )
    monkeypatch.setattr(world, "SchedulerConfig", counting)
    parents = [build.deployment(f"chat-{number}", 1) for number in range(3)]
    path = write(tmp_path / "f.yaml", [*configs, *parents, build.cluster("east", [build.pool("h100", 3)])])
    assert run("verify", path).code == 0
    assert len(parsed) == times


def test_terminating_replicas_overcommit_nothing(tmp_path: Path) -> None:
    parent = build.deployment("chat", 1)
    running = [build.replica(parent, "east", index, terminating=index > 0) for index in range(3)]
    path = write(tmp_path / "f.yaml", [build.cluster("east", [build.pool("h100", 1)]), parent, *running])
    assert run("verify", path, "--standing").code == 0


def test_standing_and_decision_exclude_each_other(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _fleet())
    assert run("verify", path, "--standing", "--decision", path).code == 1


def test_a_fleet_without_deployments_is_checked_as_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path / "fleet.yaml", [build.cluster("use1", [build.pool("h100", 1)])])
    ran = run("verify", path)
    assert ran.code == 0, ran.err
    assert "there is no ModelDeployment in the files: only the fleet as it stands is checked" in ran.err
    assert "0 replicas on 1 cluster: nothing is overcommitted" in ran.out
