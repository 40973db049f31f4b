"""A new user's folder, and the mistakes that new users make: each is answered in the first line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from hack.mistakes_table import PAGE, refreshed
from tests.cli.command import run, write
from tests.cli.mistakes import MISTAKES, Mistake, folder
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path


def test_the_folder_is_right_without_a_mistake(tmp_path: Path) -> None:
    assert run("lint", folder(tmp_path)).code == 0
    ran = run("plan", tmp_path)
    assert ran.code == 0
    assert ran.err.splitlines() == [
        f"note: 12 clusters {what} (c01, c02, c03, 9 more)"
        for what in (
            "have no status: assumed Ready, with a placeholder gateway",
            "publish no pools: derived from nodePools and their classes",
        )
    ]


@pytest.mark.parametrize("command", [("plan",), ("lint",), ("headroom",), ("whatif", "--drain", "c02")])
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.reason)
def test_a_mistake_is_answered_in_the_first_line(
    mistake: Mistake, command: tuple[str, ...], tmp_path: Path
) -> None:
    if mistake.warned and command != ("lint",):
        pytest.skip("what the fleet does not have, the answers say in their own words")
    ran = run(command[0], folder(tmp_path, mistake), *command[1:])
    first = (ran.out if command == ("lint",) else ran.err).splitlines()[0]
    assert mistake.said in first
    assert mistake.file in first
    assert ran.code == (2 if mistake.warned else 1)


def test_a_model_that_its_gpu_does_not_hold_is_no_good_plan(tmp_path: Path) -> None:
    mistake = next(one for one in MISTAKES if one.reason == "a model that its GPU does not hold")
    ran = run("plan", folder(tmp_path, mistake))
    assert ran.code == 2
    assert "has about 131 GiB of weights for each GPU (TP 1, PP 1), too much for what matches" in ran.err


@pytest.mark.parametrize("command", [("plan",), ("lint",), ("headroom",), ("whatif", "--drain", "c02")])
def test_a_selector_that_does_not_compile_is_answered_whatever_is_known_of_the_model(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    """The pools of a model whose weights are known are looked for, to compare their memory with it."""
    mistake = next(one for one in MISTAKES if one.reason == "one ampersand in a selector")
    path = folder(tmp_path, mistake) / "chat.yaml"
    path.write_text(path.read_text().replace("mistralai/Mixtral-8x22B-v0.1", "BAAI/bge-m3"))
    ran = run(command[0], tmp_path, *command[1:])
    assert ran.code == 1
    assert mistake.said in ran.out + ran.err


COMMAND_LINES = (
    ("[--model=a/b, --tensor_parallel_size=16]", "count on 16 GPUs", "vLLM takes underscores, too"),
    ("['--model=a/b', '--tensor-parallel-size=$(TP)']", "count on 16 GPUs", "a variable of Kubernetes"),
    ('["--model=a/b", "-tp", "${TP}"]', "count on 16 GPUs", "a variable of a shell"),
    ('["--model=a/b --port 8080\\\\\\n --enforce-eager"]', "listens on 8080", "a line that goes on"),
    ("[--model=a/b, --host, localhost]", "only its own pod reaches it", "the same by name"),
    ("[--model=a/b, --port=$(ELSEWHERE)]", "", "a value that the manifest does not state"),
    ("[--model=a/b, --host=0.0.0.0, --port=8000]", "", "as it should be"),
    (
        "[--model=meta-llama/llama-3.3-70b-instruct, --gpu-memory-utilization=0.95]",
        "has about 131 GiB of weights for each GPU",
        "more than a GPU has, in whatever case and share",
    ),
)


@pytest.mark.parametrize(("args", "said", "reason"), COMMAND_LINES, ids=[case[-1] for case in COMMAND_LINES])
def test_a_command_line_is_read_as_its_engine_reads_it(
    args: str, said: str, reason: str, tmp_path: Path
) -> None:
    environment = (
        'env: [{name: TP, value: "16"}, {name: ELSEWHERE, valueFrom: {secretKeyRef: {name: a, key: b}}}]'
    )
    written = Mistake(
        reason,
        "args: [--model=mistralai/Mixtral-8x22B-v0.1]",
        f"{environment}\n                args: {args}",
        "",
    )
    assert said in run("lint", folder(tmp_path, written)).out
    assert said or run("lint", tmp_path).code == 0


def test_lenient_takes_an_unknown_field_for_a_warning(tmp_path: Path) -> None:
    ran = run("plan", "--lenient", folder(tmp_path, MISTAKES[0]))
    assert ran.err.startswith("warning: ")
    assert ran.code == 0
    assert run("lint", "--lenient", tmp_path).code == 2


def test_what_a_control_plane_admitted_is_only_warned_about(tmp_path: Path) -> None:
    path = folder(tmp_path, MISTAKES[0]) / "chat.yaml"
    path.write_text(path.read_text().replace("  namespace: ml", "  namespace: ml\n  uid: 1b7c"))
    ran = run("plan", tmp_path)
    assert ran.err.startswith("warning: ")
    assert ran.code == 0


def test_a_missing_class_costs_its_pools_and_nothing_else(tmp_path: Path) -> None:
    mistake = next(rejection for rejection in MISTAKES if "class that is not there" in rejection.reason)
    ran = run("plan", folder(tmp_path, mistake), "-o", "json")
    (deployment,) = ran.data["deployments"]
    placed = {replica["cluster"] for replica in deployment["placement"]["replicas"]}
    assert placed == {"c04", "c07", "c10"}


def test_the_table_in_the_docs_is_what_the_command_says() -> None:
    text = PAGE.read_text()
    assert refreshed(text) == text, "run `python -m hack.mistakes_table`"


def test_what_runs_on_a_pool_without_its_class_stays(tmp_path: Path) -> None:
    mistake = next(rejection for rejection in MISTAKES if "class that is not there" in rejection.reason)
    folder(tmp_path, mistake)
    parent = yaml.safe_load((tmp_path / "chat.yaml").read_text())
    parent["metadata"]["uid"] = "1b7c"
    write(tmp_path / "chat.yaml", [parent, build.replica(parent, "c01", 0, pools="h100", ready=True)])
    (deployment,) = run("plan", tmp_path, "-o", "json").data["deployments"]
    actions = {row["cluster"]: row["action"] for row in deployment["placement"]["replicas"]}
    assert actions["c01"] == "Retained"
    assert deployment["placement"]["dropped"] == []
