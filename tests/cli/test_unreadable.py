"""A deployment that cannot be read: every command says so, once, and none says that all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.command import Ran, run, write
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

FAULT = 'spec.replicas: expected a whole number, found "three"'


def ran_on_fault(tmp_path: Path, *command: str) -> Ran:
    deployment = build.deployment("chat", 1, [build.engine()])
    deployment["spec"]["replicas"] = "three"
    return run(
        *command, write(tmp_path / "f.yaml", [deployment, build.cluster("a", [build.pool("h100", 4)])])
    )


@pytest.mark.parametrize("command", [("plan",), ("advise",), ("headroom",), ("verify",), ("why", "chat")])
def test_nothing_is_called_well(command: tuple[str, ...], tmp_path: Path) -> None:
    ran = ran_on_fault(tmp_path, *command)
    assert ran.code == 1
    assert ran.err.count(FAULT) == 1
    assert "✓" not in ran.out
    assert "0 of 0" not in ran.out


def test_what_is_known_is_told_as_such(tmp_path: Path) -> None:
    assert "? Nothing is missing" in ran_on_fault(tmp_path, "advise").out
    assert "nothing is overcommitted, as far as the files can be read" in ran_on_fault(tmp_path, "verify").out
