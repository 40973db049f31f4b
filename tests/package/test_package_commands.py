"""Every command that a page shows is there: targets, modules, tests, verbs with their options, files."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import click
import pytest

from example.caller import ROOT
from function import cli
from hack.refresh_docs import pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = [*pages(), *sorted(ROOT.glob("*/README.md")), *sorted(ROOT.glob("tests/*.md"))]
FENCED = re.compile(r"^ *```(?:console|sh)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
ENDS = re.compile(r"\s(?:\||>|&&|#|;)(?:\s|$)|;\s")
"""Where another command begins, a file is written, or a remark."""
UNFINISHED = re.compile(r"\.\.\.|<\w+>|\b[A-Z]+=N\b|\bCOMMAND\b")
"""A form, and no command."""
LOCATED = re.compile(r"^(?:example|apis|docs|tests|bench|hack)/")


class Shown(NamedTuple):
    """A command as a page shows it, word by word, without what is set in its environment."""

    page: str
    words: tuple[str, ...]

    @property
    def line(self) -> str:
        """The command on one line."""
        return " ".join(self.words)


def shown(page: Path) -> Iterator[Shown]:
    """Yield the commands of a page, those of its blocks and those in its sentences."""
    text = page.read_text()
    blocks = "\n".join(FENCED.findall(text)).replace("\\\n", " ")
    for line in (*blocks.splitlines(), *INLINE.findall(text)):
        command = ENDS.split(line.strip().removeprefix("$ "))[0]
        if UNFINISHED.search(command):
            continue
        try:
            words = shlex.split(command)
        except ValueError:  # Half of a quoted text: no command line.
            continue
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if len(words) > 1:
            yield Shown(str(page.relative_to(ROOT)), tuple(words))


COMMANDS = [command for page in PAGES for command in shown(page)]


def those_of(*programs: str) -> list[Shown]:
    """Return the commands of a program, each once."""
    return [
        command
        for command in dict.fromkeys(COMMANDS)
        if command.words[0].removeprefix(".venv/bin/") in programs
    ]


def expanded(path: str) -> list[str]:
    """Expand the braces of a path, as a shell does."""
    parts = [part.split(",") for part in re.split(r"[{}]", path)]
    return ["".join(choice) for choice in product(*parts)]


@pytest.mark.parametrize("command", those_of("make"), ids=lambda command: f"{command.page}-{command.line}")
def test_the_target_is_there(command: Shown) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [word for word in command.words[1:] if "=" not in word and word not in targets] == []


@pytest.mark.parametrize("command", those_of("python"), ids=lambda command: f"{command.page}-{command.line}")
def test_the_module_or_the_tests_are_there(command: Shown) -> None:
    words = command.words
    if words[1] == "-c":
        return
    if words[1] != "-m":
        assert (ROOT / words[1]).is_file()
        return
    assert find_spec(words[2])
    if words[2] != "pytest":
        return
    given = [path for word in words[3:] if word.startswith("tests") for path in expanded(word)]
    assert given
    assert [path for path in given if not (ROOT / path).exists()] == []
    if "-k" in words:
        files = [file for path in given for file in (ROOT / path, *(ROOT / path).rglob("test_*.py"))]
        texts = [file.read_text() for file in files if file.is_file()]
        names = words[words.index("-k") + 1].split(" or ")
        assert [name for name in names if not any(name in text for text in texts)] == []


@pytest.mark.parametrize(
    "command",
    [command for command in those_of("fleet-scheduler", "kubectl") if "fleet" in "".join(command.words[:2])],
    ids=lambda command: f"{command.page}-{command.line}",
)
def test_the_verb_takes_these_options(command: Shown) -> None:
    words = command.words[1 + (command.words[0] == "kubectl") :]
    if not words or words[0].startswith("-"):
        return
    group = click.Context(cli.main, info_name="fleet-scheduler")
    verb = cli.main.get_command(group, words[0])
    assert verb is not None
    options = {option for parameter in verb.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= options | {"--help"}


@pytest.mark.parametrize(
    "command",
    those_of("fleet-scheduler", "kubectl", "crossplane", "sed"),
    ids=lambda command: f"{command.page}-{command.line}",
)
def test_the_files_are_there(command: Shown) -> None:
    named = [word.split("=")[-1] for word in command.words]
    located = [path for path in named if LOCATED.match(path)]
    assert [path for path in located if not list(ROOT.glob(path))] == []
