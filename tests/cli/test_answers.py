"""What `-o json` prints keeps to its published schema, for every command that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import jsonschema
import pytest
import yaml

from function.cli import COMMANDS, main
from tests.cli.answers import SCHEMA, VALIDATOR, held
from tests.cli.command import run, write
from tests.cli.describe import published_memory
from tests.cli.mistakes import MISTAKES, folder
from tests.schema.crds import ROOT
from tests.support import build
from tests.support.recordings import recorded, secret_request
from tests.support.slices import H200, devices, node, resource_slice

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = ROOT / "example"
CASES: tuple[tuple[str, tuple[object, ...], str], ...] = (
    ("plan", (EXAMPLE,), "some placed, some not"),
    ("why", ("kimi-k2", EXAMPLE), "one that is short"),
    ("why", ("ml-chat/chat", EXAMPLE, "--cluster", "aks-eastus"), "one cluster of one that is placed"),
    ("whatif", (EXAMPLE, "--drain", "aks-eastus"), "somebody is worse off"),
    ("headroom", (EXAMPLE,), "room and no room"),
    ("advise", (EXAMPLE,), "a move, and one that is stuck"),
    ("verify", (EXAMPLE,), "nothing is broken"),
    ("lint", (EXAMPLE,), "nothing is wrong"),
    ("history", ("ml-chat/chat", EXAMPLE), "what objects keep"),
    ("size", ("llama-3.1-70b", EXAMPLE), "with a fleet"),
    ("size", ("llama-3.1-70b",), "without one"),
)
OTHERS = {
    "class": "prints an InferenceClass",
    "drift": "below",
    "replay": "below",
    "watch": "in test_watch, a line for each change",
}


def _has_json(name: str) -> bool:
    command = main.get_command(click.Context(main), name)
    choices = [param.type for param in (command.params if command else ()) if param.name == "output"]
    return any(isinstance(choice, click.Choice) and "json" in choice.choices for choice in choices)


def test_every_command_that_answers_in_json_is_tried() -> None:
    assert {name for name in COMMANDS if _has_json(name)} == {name for name, *_ in CASES} | OTHERS.keys()


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(("command", "arguments", "reason"), CASES)
def test_an_answer_keeps_to_the_schema(
    command: str, arguments: tuple[object, ...], reason: str, form: str
) -> None:
    if (command, form) in (("plan", "yaml"), ("lint", "yaml")):
        pytest.skip("resources, or no such form")
    ran = run(command, *arguments, "-o", form)
    held(yaml.safe_load(ran.out))
    assert ran.code in (0, 2), reason


def test_a_rollout_keeps_to_the_schema(tmp_path: Path) -> None:
    parent = build.deployment("chat", 2)
    running = [build.replica(parent, "east", index, ready=True) for index in range(2)]
    path = write(tmp_path / "f.yaml", [build.cluster("east", [build.pool("h100", 4)]), parent, *running])
    member = build.member(devices=[build.request()], image="a.example/b:2")
    edited = build.deployment("chat", 2, [build.engine(members=[member])])
    ran = run("whatif", path, "--apply", write(tmp_path / "edit.yaml", [edited]), "-o", "json")
    assert ran.out, ran.err
    held(ran.data)


def test_a_lint_with_problems_keeps_to_the_schema(tmp_path: Path) -> None:
    for number, mistake in enumerate(MISTAKES):
        path = tmp_path / str(number)
        path.mkdir()
        held(run("lint", folder(path, mistake), "-o", "json").data)


def test_a_replay_keeps_to_the_schema(tmp_path: Path) -> None:
    recorded(tmp_path / "calls", secret_request())
    held(run("replay", tmp_path / "calls", "-o", "json").data)


def test_a_drift_keeps_to_the_schema(tmp_path: Path) -> None:
    seen = tmp_path / "seen.yaml"
    seen.write_text(yaml.safe_dump_all([resource_slice("n1", devices(H200, 2)), node("n1")]))
    cluster = published_memory(tmp_path / "cluster.yaml", "150Gi")
    held(run("drift", cluster, seen, "-o", "json").data)


def test_the_schema_is_a_schema_and_refuses_what_is_none_of_its_kinds() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert not VALIDATOR.is_valid({"apiVersion": "v1", "kind": "Plan", "deployments": [], "assumptions": []})
    assert not VALIDATOR.is_valid({"deployments": []})
