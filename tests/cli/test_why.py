"""`why` opens with the line that matters, and with what else is wrong with the replicas that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]


def _why(tmp_path: Path, *objects: Plain) -> list[str]:
    return run("why", "chat", write(tmp_path / "f.yaml", objects)).out.split("\n\n")[0].splitlines()


def _asking(selector: str = build.GPUS) -> Plain:
    request = build.request("gpu", 1, selector)
    return build.deployment("chat", 1, [build.engine(members=[build.member(devices=[request])])])


def test_replicas_that_have_a_place_and_do_not_serve(tmp_path: Path) -> None:
    deployment = _asking()
    cluster = build.cluster("a", [build.pool("h100", 4)], ready=False)
    running = build.replica(deployment, "a", 0, ready=True)
    assert _why(tmp_path, deployment, cluster, running) == [
        "ml-team/chat: Scheduled 1 of 1 replica",
        "  ✗ ReplicasReady: ClusterDegraded: 1 of 1 ready; cluster a is not Ready",
    ]


def test_replicas_that_are_only_planned_are_not_said_to_be_missing(tmp_path: Path) -> None:
    lines = _why(tmp_path, _asking(), build.cluster("a", [build.pool("h100", 4)]))
    assert lines == ["ml-team/chat: Scheduled 1 of 1 replica"]


def test_held_replicas_do_not_read_as_if_all_were_well(tmp_path: Path) -> None:
    deployment = _asking('device.driver == "gpu.nvida.com"')
    running = build.replica(deployment, "a", 0, ready=True)
    [headline, *_] = _why(tmp_path, deployment, build.cluster("a", [build.pool("h100", 4)]), running)
    assert headline.startswith(
        "ml-team/chat: Scheduled 1 of 1 replica, 1 of them held, as their replacements have no place. "
        "Nearest way to one: correct the spelling"
    )
