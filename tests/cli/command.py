"""Runs the command line in this process, and writes the files it reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from function.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Plain = dict[str, Any]


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The answer of `-o json`."""
        return json.loads(self.out)


def run(*arguments: object, stdin: str | None = None) -> Ran:
    """Run one command; an exception that is no exit is an error of ours, and raised."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def completed(arguments: list[str], incomplete: str) -> list[str]:
    """Complete a word after others, as a shell would."""
    items = ShellComplete(main, {}, "fleet-scheduler", "_X").get_completions(arguments, incomplete)
    return [item.value for item in items]


def write(path: Path, objects: Iterable[Plain]) -> Path:
    """Write objects into one YAML file."""
    path.write_text(yaml.safe_dump_all(list(objects), sort_keys=False))
    return path
