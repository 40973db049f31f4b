"""What people read, for the examples: `why` and the conditions, word for word.

`UPDATE_GOLDEN=1 pytest tests/explain/test_golden.py` writes the texts anew; read them before you commit them.
"""

from __future__ import annotations

import json
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
RUNNING = (EXAMPLE / "fleet", EXAMPLE / "scale-drain" / "observed.yaml")
"""The fleet with everything that runs on it."""
PLACED, SHORTFALL = 0, 2


def _selectors(made: Plain) -> list[Plain]:
    """Return every device selector of a deployment."""
    engines = made["spec"]["template"]["spec"]["engines"]
    members = [one for engine in engines for one in engine["members"]]
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


def explained(name: str, where: Path, *more: str) -> tuple[int, str]:
    """Return exit code and output of `why` for a case."""
    example, edit, options, _ = CASES[name]
    made = yaml.safe_load((EXAMPLE / example / "xr.yaml").read_text())
    edit(made)
    file = where / "xr.yaml"
    file.write_text(yaml.safe_dump(made))
    call = ["why", made["metadata"]["name"], *map(str, RUNNING), str(file), *options, *more]
    ended = CliRunner().invoke(main, call, env={"COLUMNS": "120"})
    return ended.exit_code, ended.output


def compare(name: str, text: str) -> None:
    """Compare a text with the reviewed one."""
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.parametrize("name", CASES)
def test_why_reads_as_reviewed(name: str, tmp_path: Path) -> None:
    code, output = explained(name, tmp_path)
    assert code == CASES[name][3], output
    compare(name, "".join(f"{line.rstrip()}\n" for line in output.splitlines()))


def test_the_conditions_read_as_reviewed(tmp_path: Path) -> None:
    lines = []
    for name in CASES:
        answer = json.loads(explained(name, tmp_path, "-o", "json")[1])
        lines += [
            f"{name}: {one['type']}={one['status']} {one['reason']}: {one['message']}\n"
            for one in answer["conditions"]
        ]
    compare("conditions", "".join(lines))


def test_json_says_why_one_cluster_is_not_chosen(tmp_path: Path) -> None:
    answer = json.loads(explained("why-not-there", tmp_path, "-o", "json")[1])
    [cluster] = answer["placement"]["clusters"]
    assert (cluster["name"], cluster["verdict"], cluster["reason"]) == (
        "gke-us-central1",
        "Rejected",
        "UntoleratedTaint",
    )
    assert [pool["name"] for pool in cluster["pools"]] == ["h100", "l4"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--cluster", "gke-us-centrall"), "did you mean gke-us-central1"),
        (("--pool", "h100x"), 'no node pool "h100x"; did you mean'),
    ],
)
def test_what_is_not_there_is_refused_with_the_nearest(options: tuple[str, ...], complaint: str) -> None:
    files = [str(EXAMPLE / "fleet"), str(EXAMPLE / "small-model")]
    ended = CliRunner().invoke(main, ["why", "qwen3-8b", *files, *options])
    assert ended.exit_code == 1
    assert complaint in ended.output


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {*CASES, "conditions"}
