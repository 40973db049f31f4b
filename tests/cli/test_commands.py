"""The group of commands: what there is, what starting costs, and `serve`, which is the function itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from function import cli
from function.main import main as function
from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]

PAGES = ["README.md", "CONTRIBUTING.md", "example/README.md", "example/functions.yaml", "docs"]
MODULES = (
    "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    "sys.argv[0] = 'fleet-scheduler'; from function.start import fleet_scheduler; fleet_scheduler()"
)
HEAVY = (
    "celpy",
    "jinja2",
    "kubernetes",
    "jsonschema",
    "structlog",
    "grpc",
    "pydantic",
    "rich",
    "yaml",
    "function.deployment.handler",
    "function.scheduler",
)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_manual_page(name: str) -> None:
    ran = run(name, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: main {name} ")


def test_the_group_lists_every_command() -> None:
    listed = re.findall(r"^  ([a-z]+)  ", run("--help").out, re.MULTILINE)
    assert listed == list(cli.COMMANDS)


def test_the_page_of_tools_has_every_command_and_its_question() -> None:
    page = (ROOT / "docs" / "tools.md").read_text().partition("Where each command")[0]
    rows = dict(re.findall(r"^\| `([a-z]+)` \| (.*?) \|$", page, re.MULTILINE))
    assert list(rows) == list(cli.COMMANDS)
    for name, lazy in cli.COMMANDS.items():
        assert rows[name].startswith(lazy.summary), name


def test_serve_has_the_flags_of_function() -> None:
    assert cli.main.get_command(click.Context(cli.main), "serve") is function
    ended = _started("-c", "from function.cli import main; main()", "serve", "--address", "127.0.0.1:0")
    assert ended.returncode == 1
    assert ended.stderr == (
        "fleet-scheduler serve: cannot start: neither --tls-certs-dir nor --insecure was given\n"
    )


def test_serve_reads_the_environment_of_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_SCHEDULER_MAX_CONCURRENCY", "none")
    assert "'none' is not a valid integer" in run("serve", "--insecure").err


@pytest.mark.parametrize(
    "more",
    [
        {"words": "--version"},
        {"words": "--help"},
        {"words": "completion bash"},
        {"complete": "fleet-scheduler "},
        {"complete": "fleet-scheduler whatif fleet.yaml --dr"},
        {"complete": "fleet-scheduler plan -o j"},
        {"complete": "fleet-scheduler size llama fleet.yaml --dtype "},
        {"complete": "fleet-scheduler size qwen"},
        {"complete": "fleet-scheduler serve --max"},
    ],
    ids=["version", "help", "completion", "command", "option", "output", "choice", "model", "serve"],
)
def test_starting_imports_nothing_that_takes_long(more: dict[str, str]) -> None:
    """A tenth of a second of CPU, where importing the scheduler takes most of one."""
    words, typed = more.get("words", "").split(), more.get("complete", "")
    if typed:
        at = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
        more = {**at, "_FLEET_SCHEDULER_COMPLETE": "bash_complete"}
    loaded = _started("-c", MODULES, *words, env=os.environ | more).stderr.split()
    assert "function.cli.group" in loaded
    assert {name for name in loaded if name.startswith(HEAVY)} == set()


@pytest.mark.parametrize("words", ["lint", "why chat", "size qwen3-8b"])
def test_a_verb_on_files_imports_no_client_and_no_protobuf(words: str, tmp_path: Path) -> None:
    """They would take a tenth of the time of a small command."""
    objects = [build.deployment("chat"), build.cluster("east", [build.pool("h100", 4)])]
    fleet = write(tmp_path / "fleet.yaml", objects)
    loaded = set(_started("-c", MODULES, *words.split(), str(fleet)).stderr.split())
    assert "function.scheduler.schedule" in loaded
    assert loaded.isdisjoint(("function.wire", "function.recording", "google.protobuf", "grpc", "kubernetes"))
    assert loaded.isdisjoint(("logging", "socket", "email", "zipfile", "importlib.resources"))
    assert ("yaml" in loaded) is words.startswith("size"), "size prints a selector as PyYAML does"


def test_the_metadata_of_packages_is_read_when_it_is_asked_for() -> None:
    program = """
import sys
from function.start import _starting
with _starting():
    from importlib.metadata import entry_points
print("email" in sys.modules, len(entry_points(group="console_scripts")) > 0, "email" in sys.modules)
import importlib.metadata
print(importlib.metadata.version("click") == importlib.metadata.distribution("click").version)
import importlib.metadata._text, importlib.metadata._meta
"""
    ended = _started("-c", program)
    assert (ended.stdout, ended.stderr) == ("False True True\nTrue\n", "")


def test_importing_every_command_builds_no_validator() -> None:
    """A command builds those that it uses: to build all of them took as long as a small command."""
    program = """
from importlib import import_module
from function.api.model import Model
from function.cli import COMMANDS
for lazy in COMMANDS.values():
    import_module(lazy.where.partition(":")[0])
def below(model):
    return [name for one in model.__subclasses__() for name in ([one] if one.__pydantic_complete__ else [])
            + below(one)]
print(below(Model))
"""
    assert _started("-c", program).stdout == "[]\n"


def test_a_shell_takes_every_command_line_of_the_pages() -> None:
    """`function` is a word of bash: `function --insecure` is a syntax error there."""
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash")
    text = "\n".join(_text(ROOT / page) for page in PAGES)
    lines = re.findall(r"`((?:fleet-scheduler|function|\.venv/bin/\w+)(?: [^`\n]*)?)`", text)
    assert any(line.startswith("fleet-scheduler serve") for line in lines)
    commands = [line for line in lines if " -" in line and "<" not in line]
    for line in commands:
        checked = subprocess.run([bash, "-n", "-c", line], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, f"{line}: {checked.stderr}"


def _text(path: Path) -> str:
    files = sorted(path.rglob("*.md")) if path.is_dir() else [path]
    return "\n".join(file.read_text() for file in files)


def _started(*words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with these words in a process of its own."""
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=env)


def test_a_command_without_the_extra_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['rich'] = None; from function.cli import main; main(['plan', 'fleet.yaml'])"
    )
    ended = _started("-c", program)
    message = "fleet-scheduler plan: needs rich: pip install 'function-fleet-scheduler[cli]'\n"
    assert (ended.returncode, ended.stderr) == (1, message)
