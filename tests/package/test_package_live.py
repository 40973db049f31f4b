"""`make live` where there is nothing to run it on: one sentence, and no failure. And the table it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from example.caller import ROOT
from tests.live.day import Day, Step, read, table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("folder", ["/nonexistent", str(ROOT)], ids=["no folder", "a folder without scripts"])
def test_without_a_control_plane_it_is_skipped_in_one_sentence(folder: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.live"],
        env={**os.environ, "CONTROLPLANE": folder},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    assert line.startswith("make live is skipped: no control plane: ")
    assert f"{folder}/up.sh" in line


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "up.sh").touch()
    ran = subprocess.run(
        [sys.executable, "-m", "tests.live"],
        env={**os.environ, "CONTROLPLANE": str(tmp_path), "PATH": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "etcd, Debian package etcd-server" in ran.stdout


def test_steps_are_kept_and_shown(tmp_path: Path) -> None:
    day = Day()
    with day.step("scale", "more replicas"):
        pass
    with pytest.raises(ValueError), day.step("fail", "nothing"):
        raise ValueError
    day.record("taint", "moved", 55.26)
    path = tmp_path / "folder" / "live.json"
    day.write(path)
    steps = read(path)
    assert [(step.action, step.seen) for step in steps] == [("scale", "more replicas"), ("taint", "moved")]


def test_versions_stand_beside_each_other_and_a_step_that_one_lacks_is_empty() -> None:
    twice = [Step("taint", "moved", 55.26), Step("taint", "moved", 1.0)]
    assert table({"2.3.4": twice, "2.4.0": [Step("taint", "moved", 0.94), Step("scale", "more", 2.0)]}) == (
        "step   seen   s, 2.3.4  s, 2.4.0\n"
        "taint  moved  55.3      0.9\n"
        "taint  moved  1.0\n"
        "scale  more             2.0\n"
    )
