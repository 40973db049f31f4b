"""`plan` on files with adapters: they go to the replicas that are planned, and the exit code counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]


def adapter(name: str, created: str, **spec: Any) -> Plain:
    """Return a ModelAdapter of the deployment `chat`."""
    metadata = {"name": name, "namespace": "ml-team", "creationTimestamp": created}
    return {
        "apiVersion": build.API,
        "kind": "ModelAdapter",
        "metadata": metadata,
        "spec": {"base": {"deploymentName": "chat"}, "source": f"acme/{name}", **spec},
    }


def fleet(slots: int | None = 1) -> list[Plain]:
    """Return a deployment of two replicas that have a place, and its cluster."""
    parent = build.deployment("chat", 2)
    if slots is not None:
        parent["spec"]["template"]["spec"]["engines"][0]["adapters"] = {"slots": slots}
    return [build.cluster("east", [build.pool("h100", 2)]), parent]


OLDER, NEWER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_each_adapter_sees_the_slots_that_the_older_ones_took(tmp_path: Path) -> None:
    files = write(tmp_path / "f.yaml", [*fleet(), adapter("b", OLDER), adapter("a", NEWER)])
    ran = run("plan", files, "-o", "json")
    assert ran.code == 0
    first, second = ran.data["adapters"]
    assert (first["name"], second["name"]) == ("b", "a")
    places = [answer["replicas"][0]["name"] for answer in (first, second)]
    assert places == sorted(places)
    assert len(set(places)) == 2
    assert first["replicas"][0]["cluster"] == "east"


def test_an_adapter_without_a_place_is_said_and_counts(tmp_path: Path) -> None:
    ran = run("plan", write(tmp_path / "f.yaml", [*fleet(None), adapter("a", OLDER)]))
    assert ran.code == 2
    assert "ml-team/a (adapter)" in ran.out
    assert "2 without room for adapters" in " ".join(ran.out.split())


def test_what_would_be_applied_is_part_of_the_yaml(tmp_path: Path) -> None:
    ran = run("plan", write(tmp_path / "f.yaml", [*fleet(), adapter("a", OLDER)]), "-o", "yaml")
    kinds = [resource["kind"] for resource in yaml.safe_load_all(ran.out)]
    assert kinds == ["ModelReplica", "ModelReplica", "ModelAdapterPlacement"]


def test_files_without_adapters_are_answered_as_before(tmp_path: Path) -> None:
    ran = run("plan", write(tmp_path / "f.yaml", fleet(None)), "-o", "json")
    assert "adapters" not in ran.data
