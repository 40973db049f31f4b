"""What people read, for the examples: `why` and the conditions, word for word.

`UPDATE_GOLDEN=1 pytest tests/explain/test_golden.py` writes the texts anew; read them before you commit them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from function.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
EXAMPLE = HERE.parents[1] / "example"
PLACED, SHORTFALL = 0, 2


def _selectors(made: Plain) -> list[Plain]:
    """Return every device selector of a deployment."""
    engines = made["spec"]["template"]["spec"]["engines"]
    members = [one for each in engines for one in each["members"]]
    requests = [asked for one in members for asked in one.get("nodeSelector", {}).get("devices", ())]
    return [selector for asked in requests for selector in asked["selectors"]]


def _as_it_is(_: Plain) -> None:
    """Leave the example as it is."""


def _more(replicas: int) -> Callable[[Plain], None]:
    def edit(made: Plain) -> None:
        made["spec"]["replicas"] = replicas

    return edit


def _by_the_box(made: Plain) -> None:
    """Ask for the number on the box, which drivers do not report."""
    for selector in _selectors(made):
        selector["cel"] = selector["cel"].replace('quantity("22Gi")', 'quantity("24Gi")')


def _misspelt(made: Plain) -> None:
    """Misspell an attribute."""
    for selector in _selectors(made):
        selector["cel"] = selector["cel"].replace(".architecture", ".architecure")


CASES: dict[str, tuple[str, Callable[[Plain], None], tuple[str, ...], int]] = {
    "small-model": ("small-model", _as_it_is, (), PLACED),
    "tensor-pipeline": ("tensor-pipeline", _as_it_is, (), PLACED),
    "prefill-decode": ("prefill-decode", _as_it_is, (), PLACED),
    "kimi-k2": ("kimi-k2", _as_it_is, (), PLACED),
    "scale-drain": ("scale-drain", _as_it_is, (), PLACED),
    "too-many": ("tensor-pipeline", _more(9), (), SHORTFALL),
    "why-not-there": ("tensor-pipeline", _more(9), ("--cluster", "gke-us-central1"), SHORTFALL),
    "why-not-on-that-pool": (
        "scale-drain",
        _as_it_is,
        ("--cluster", "eks-us-east-1", "--pool", "l4"),
        PLACED,
    ),
    "by-the-box": ("small-model", _by_the_box, (), SHORTFALL),
    "misspelt": ("small-model", _misspelt, (), SHORTFALL),
}


@pytest.mark.parametrize("name", CASES)
def test_why_reads_as_reviewed(name: str, tmp_path: Path) -> None:
    example, edit, options, code = CASES[name]
    made = yaml.safe_load((EXAMPLE / example / "xr.yaml").read_text())
    edit(made)
    file = tmp_path / "xr.yaml"
    file.write_text(yaml.safe_dump(made))
    asked = ["why", made["metadata"]["name"], str(EXAMPLE / "fleet"), str(file), *options]
    told = CliRunner().invoke(main, asked)
    assert told.exit_code == code, told.output
    text = "".join(f"{line.rstrip()}\n" for line in told.output.splitlines())
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


def test_no_golden_is_left_over() -> None:
    assert {each.stem for each in GOLDEN.glob("*.txt")} == set(CASES)
