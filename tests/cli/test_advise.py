"""`advise` says what would help; doing it really helps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from function.cli.commands import advise
from function.cli.worlds import moves
from tests.cli.answers import held
from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

    from function.cli.worlds.moves import Resident
    from function.cli.worlds.world import World

Plain = dict[str, Any]


def _fleet(spare: int) -> list[Plain]:
    """Return a gang that needs both nodes of east, one of which a small one holds; west has some to spare."""
    small = build.deployment("small", 1)
    big = build.deployment("big", 1, [build.gang(nodes=1)])
    big["metadata"]["creationTimestamp"] = "2027-01-01T00:00:00Z"
    east, west = (
        build.cluster("east", [build.pool("h100", 2)]),
        build.cluster("west", [build.pool("l4", spare)]),
    )
    west["status"]["gpuPools"][0]["devices"] = [build.gpu(4)]
    return [east, west, small, big, build.replica(small, "east", 0, ready=True)]


def test_one_move_makes_room(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _fleet(spare=1))
    ran = run("advise", path, "-o", "json")
    assert ran.code == 2
    assert ran.data["stuck"] == []
    (advice,) = ran.data["advice"]
    assert (advice["deployment"], advice["gains"]) == ("ml-team/big", ["east/h100"])
    (move,) = advice["moves"]
    assert (move["deployment"], move["from"], move["to"]) == ("ml-team/small", "east/h100", "west/l4")


def test_doing_what_is_advised_places_what_was_missing(tmp_path: Path) -> None:
    objects = _fleet(spare=1)
    move = run("advise", write(tmp_path / "f.yaml", objects), "-o", "json").data["advice"][0]["moves"][0]
    cordoned = [manifest for manifest in objects if manifest["metadata"]["name"] != move["replica"]]
    cordoned[0]["spec"]["taints"] = [build.taint("moving")]
    small = cordoned[2]["metadata"]["name"]
    moved = run("plan", write(tmp_path / "moved.yaml", cordoned), "-o", "yaml")
    assert small == "small"
    assert "clusterName: west" in moved.out
    cordoned[0]["spec"]["taints"] = []
    cordoned.append(build.replica(cordoned[2], "west", 0, pools="l4", ready=True))
    done = run("plan", write(tmp_path / "done.yaml", cordoned))
    assert done.code == 0, done.out


def test_without_another_place_there_is_no_advice(tmp_path: Path) -> None:
    ran = run("advise", write(tmp_path / "f.yaml", _fleet(spare=0)), "-o", "json")
    assert ran.code == 2
    assert ran.data["advice"] == []
    (stuck,) = ran.data["stuck"]
    assert stuck["deployment"] == "ml-team/big"
    assert stuck["hints"][-1] == "add 1 node to pool h100 of cluster east (2 to 3)", "what else would help"


def test_fewest_moves_come_first(tmp_path: Path) -> None:
    objects = _fleet(spare=2)
    small = objects[2]
    small["spec"]["replicas"] = 2
    crowded = build.replica(small, "east", 1, ready=True)
    ran = run("advise", write(tmp_path / "f.yaml", [*objects, crowded]), "-o", "json")
    assert [len(item["moves"]) for item in ran.data["advice"]] == [2]
    single = run("advise", write(tmp_path / "f.yaml", [*objects, crowded]), "--max-moves", "1", "-o", "json")
    assert single.data["advice"] == []


def test_an_alternative_that_could_be_better_is_named(tmp_path: Path) -> None:
    parent = build.deployment(
        "chat", 1, [build.engine(members=[build.member(devices=[build.request("gpu", 8)])])]
    )
    lesser = build.engine(members=[build.member(devices=[build.request("gpu", 4)])])
    parent["spec"]["template"]["spec"]["alternatives"] = [{"name": "half", "engines": [lesser]}]
    running = build.replica(parent, "east", 0, [lesser], pools="h100", ready=True)
    running["metadata"]["labels"]["modelplane.ai/alternative"] = "half"
    objects = [build.cluster("east", [build.pool("h100", 2)]), parent, running]
    ran = run("advise", write(tmp_path / "f.yaml", objects), "-o", "json")
    assert ran.code == 0
    (upgrade,) = ran.data["upgrades"]
    assert (upgrade["alternative"], upgrade["better"]) == ("half", "the primary engines")


def _crowded(config: Plain | None, spare: int, *, ready: bool) -> list[Plain]:
    """Return three replicas on the two nodes of east, the youngest Ready or not; west has some to spare."""
    chat, late = build.deployment("chat", 2), build.deployment("late", 1)
    replicas = [
        build.replica(chat, "east", 0, ready=True),
        build.replica(chat, "east", 1, ready=True),
        build.replica(late, "east", 0, ready=ready),
    ]
    replicas[2]["metadata"]["creationTimestamp"] = "2027-01-01T00:00:00Z"
    head = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}
    clusters = [
        build.cluster("east", [build.pool("h100", 2)]),
        build.cluster("west", [build.pool("h100", spare)]),
    ]
    return [*clusters, chat, late, *replicas, *([{**head, **config}] if config else [])]


@pytest.mark.parametrize(
    ("config", "spare", "ready", "says", "reason"),
    [
        (None, 1, True, "late-", "of those that are Ready the youngest moves"),
        (None, 1, False, "late-", "what is not Ready moves first"),
        (None, 0, True, "nobody on it finds another place: add 1 node, or scale", "only nodes would help"),
        ({"overcommit": "Yield"}, 1, False, "gives way by itself: it never was Ready", "nothing to do"),
        ({"overcommit": "Yield"}, 1, True, "To relieve it:", "what was Ready never gives way by itself"),
    ],
)
def test_an_overcommitted_pool_is_named_with_what_to_do(
    config: Plain | None, spare: int, ready: object, says: str, reason: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "f.yaml", _crowded(config, spare, ready=bool(ready)))
    ran = run("advise", path)
    assert ran.code == 2, reason
    assert "Overcommitted: east/h100 holds 3 of 2 nodes: ml-team/chat (2), ml-team/late (1)\n" in ran.out
    assert says in ran.out, reason
    held(run("advise", path, "-o", "json").data)
    chosen = run("advise", path, "-d", "late", "-o", "json").data
    assert [entry["pool"] for entry in chosen["overcommitted"]] == ["h100"]


def test_doing_what_is_advised_relieves_the_pool(tmp_path: Path) -> None:
    objects = _crowded(None, 1, ready=True)
    path = write(tmp_path / "f.yaml", objects)
    (relief,) = run("advise", path, "-o", "json").data["overcommitted"]
    (move,) = relief["moves"]
    assert (relief["heldAfter"], move["to"]) == (None, "west/h100")
    assert relief["commands"]["apply"] == [
        f"kubectl delete modelreplicas.modelplane.ai {move['replica']} -n ml-team"
    ]
    left = [plain for plain in objects if plain["metadata"]["name"] != move["replica"]]
    ran = run("advise", write(tmp_path / "left.yaml", left))
    assert (ran.code, "Nothing is missing" in ran.out) == (0, True)


def test_a_fleet_where_nothing_is_missing(tmp_path: Path) -> None:
    objects = [build.cluster("east", [build.pool("h100", 2)]), build.deployment("chat", 2)]
    ran = run("advise", write(tmp_path / "f.yaml", objects))
    assert ran.code == 0
    assert "Nothing is missing" in ran.out


def test_many_overcommitted_pools_ask_once_who_could_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counting(world: World) -> list[Resident]:
        asked.append(world)
        return moves.movable(world)

    monkeypatch.setattr(advise, "movable", counting)
    clusters = [build.cluster(f"c{number:02}", [build.pool("h100", 1)]) for number in range(20)]
    parents = [build.deployment(name, 20) for name in ("one", "two")]
    placed = [
        build.replica(parent, cluster["metadata"]["name"], index, pools="h100", ready=True)
        for parent in parents
        for index, cluster in enumerate(clusters)
    ]
    ran = run("advise", write(tmp_path / "f.yaml", [*clusters, *parents, *placed]), "-o", "json")
    assert len(ran.data["overcommitted"]) == len(clusters)
    assert len(asked) == 2
