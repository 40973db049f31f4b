"""`class` and `drift`, as a person calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cli.command import run
from tests.cli.describe import published_memory
from tests.support.slices import H200, devices, node, resource_slice

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    path = tmp_path / "seen.yaml"
    path.write_text(yaml.safe_dump_all([resource_slice("n1", devices(H200, 2)), node("n1")]))
    return path


def test_a_machine_type_is_printed_as_a_class() -> None:
    ran = run("class", "aws/p5en.48xlarge")
    assert ran.code == 0
    assert yaml.safe_load(ran.out)["metadata"]["name"] == "aws-p5en-48xlarge"


def test_slices_become_a_class(seen: Path) -> None:
    ran = run("class", seen, "--name", "h200")
    assert ran.code == 0, ran.err
    (entry,) = yaml.safe_load(ran.out)["spec"]["devices"]
    assert (entry["name"], entry["count"], entry["capacity"]) == ("gpu", 2, H200["capacity"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(("class",), "name a machine type"), (("class", "aws/none"), "no such file")],
)
def test_wrong_input_is_one_clear_line(arguments: tuple[str, ...], expected: str) -> None:
    ran = run(*arguments)
    assert ran.code == 1
    assert expected in ran.err


@pytest.mark.parametrize(("memory", "code"), [("143771Mi", 0), ("141Gi", 2)])
def test_drift_says_what_would_never_bind(tmp_path: Path, seen: Path, memory: str, code: int) -> None:
    ran = run("drift", published_memory(tmp_path / "cluster.yaml", memory), seen)
    assert ran.code == code, ran.out
    assert ("CapacityShort memory: class 141Gi" in ran.out) is (code == 2)
    data = run("drift", published_memory(tmp_path / "cluster.yaml", memory), seen, "-o", "json").data
    assert [pool["name"] for pool in data["pools"]] == ["h200"]
