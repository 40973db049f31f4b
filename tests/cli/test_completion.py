"""Shells complete commands, options and the names in the files."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

from function.cli import COMMANDS, main
from function.cli.group import HELP, TABLE, Manual
from hack.completions import table
from tests.cli.command import completed, run, write
from tests.schema.crds import ROOT
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_every_shell(shell: str) -> None:
    ran = run("completion", shell)
    assert ran.code == 0
    assert "_FLEET_SCHEDULER_COMPLETE" in ran.out


def test_another_shell_is_bad_input() -> None:
    assert run("completion", "tcsh").code == 1


def test_the_table_is_what_the_commands_take() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(), "run `python -m hack.completions`"


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("name", COMMANDS)
def test_the_manual_page_of_the_table_is_the_one_of_the_command(name: str, width: int) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    facts = json.loads(TABLE.read_text(encoding="utf-8"))[name]
    pages = [
        click.Context(
            shown,
            parent=click.Context(main, info_name="fleet-scheduler"),
            info_name=name,
            terminal_width=width,
            **{**command.context_settings, "help_option_names": HELP},
        ).get_help()
        for shown in (command, Manual(name, facts))
    ]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("words", [["replay", "--help"], ["plan", "-h"], ["lint", "--help"]])
def test_a_manual_page_needs_no_scheduler(words: list[str]) -> None:
    program = (
        f"import sys\nfrom function.cli import main\nsys.argv = ['fleet-scheduler', *{words!r}]\n"
        "try: main()\nfinally: print('MODULES', *sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    page, _, modules = ran.stdout.partition("MODULES ")
    assert "Usage: fleet-scheduler" in page
    assert {name for name in modules.split() if name.startswith("function.")} == {
        "function.cli",
        "function.cli.group",
        "function.cli.patience",
    }
    assert not {"pydantic", "rich", "yaml"} & set(modules.split())


def test_commands_and_options() -> None:
    assert sorted(completed([], "wh")) == ["whatif", "why"]
    assert completed(["whatif"], "--dr") == ["--drain"]
    assert completed(["plan", "-o"], "j") == ["json"]


def test_names_come_from_the_files_given_so_far(tmp_path: Path) -> None:
    objects = [build.cluster("east", []), build.cluster("west", []), build.deployment("chat", 1)]
    path = str(write(tmp_path / "f.yaml", objects))
    assert completed(["whatif", path, "--drain"], "") == ["east", "west"]
    assert completed(["whatif", path, "--delete"], "w") == ["west"]
    assert completed(["whatif", path, "--replicas"], "") == ["ml-team/chat="]
    assert completed(["headroom", path, "-d"], "") == ["ml-team/chat"]
    assert completed(["whatif", "/nowhere", "--drain"], "") == []


def test_names_are_read_without_schemas_and_scheduler(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", [build.cluster("east", []), build.deployment("chat", 1)])
    program = (
        "import sys\nfrom function.cli.worlds.manifests import load\n"
        f"print(len(load([{str(path)!r}], checked=False)['ModelDeployment']), *sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    number, *modules = ran.stdout.split()
    assert number == "1"
    assert {"function.scheduler", "function.api", "function.cel", "pydantic", "lark"}.isdisjoint(modules)
