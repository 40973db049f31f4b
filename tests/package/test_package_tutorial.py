"""The first screen and the tutorial: what they show is what the files say and what the commands print.

Of the part on a control plane, no test runs the blocks; the drain is held to be the command that was printed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from example.caller import ROOT, objects
from hack import picture

if TYPE_CHECKING:
    from pathlib import Path

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
HERE, THERE = TUTORIAL.split("\n## On a control plane\n")
"""What needs this repository only, and what needs Crossplane."""
BLOCK = re.compile(r"```console\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
INSTALLS = "make venv\n"
"""The block that installs what these tests run on."""
README = (ROOT / "README.md").read_text()


def manifests(text: str) -> list[dict[str, Any]]:
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return [plain for block in blocks for plain in yaml.safe_load_all(block)]


def test_the_manifests_of_the_tutorial_are_its_files() -> None:
    folder = ROOT / "docs" / "tutorial"
    written = [*objects(folder / "fleet.yaml"), *objects(folder / "model.yaml")]
    assert manifests(TUTORIAL) == [
        plain for plain in written if plain["metadata"]["name"] != "tutorial-south"
    ]


def test_every_block_of_the_first_part_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    blocks = BLOCK.findall(HERE)
    assert blocks[0][0].startswith(INSTALLS)
    environment = os.environ | {
        "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
        "COLUMNS": "120",
        "NO_COLOR": "1",
    }
    for command, shown in blocks[1:]:
        ended = subprocess.run(
            [str(shutil.which("bash")), "-ec", command.replace("-o fleet.html", f"-o {tmp_path}/fleet.html")],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, (command, ended.stderr)
        assert "".join(f"{line.rstrip()}\n" for line in ended.stdout.splitlines()) == shown, command
    assert (tmp_path / "fleet.html").exists()


def test_the_drain_is_the_command_that_whatif_printed() -> None:
    (drain,) = re.findall(r"^kubectl patch inferenceclusters.*$", THERE, re.MULTILINE)
    assert f"  {drain}\n" in HERE


def within(part: Any, whole: Any) -> bool:
    """Whether all that a part says stands in the whole."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(within(value, whole.get(key)) for key, value in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(within(item, other) for other in whole) for item in part)
    return bool(part == whole)


def test_the_deployment_of_the_readme_is_an_excerpt_of_the_example_it_plans() -> None:
    (shown,) = manifests(README)
    (planned,) = objects(ROOT / "example" / "small-model" / "xr.yaml")
    assert within(shown, planned)
    assert "```console\nfleet-scheduler plan example/fleet example/small-model\n```" in README


@pytest.mark.parametrize("scheme", picture.SCHEMES)
def test_the_picture_is_of_the_decision_that_is_shown(scheme: str) -> None:
    assert (picture.IMAGES / f"placed-{scheme}.svg").read_text() == picture.drawn(scheme)
