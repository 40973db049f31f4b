"""Where commands have their objects from: the table of docs/tools.md is what their options say."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from function.cli import COMMANDS, main

TABLE = Path(__file__).parents[2] / "docs" / "tools.md"
NOT_ASKED = {"serve", "completion"}
"""Commands that have no objects."""


def _rows() -> dict[str, tuple[str, ...]]:
    section = (
        TABLE.read_text().partition("Where each command has its objects from:")[2].partition("What is")[0]
    )
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if "|" in line)
    return {name: (*row[1:],) for row in cells for name in re.findall(r"`([a-z]+)`", row[0])}


def _command(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


def test_every_command_is_in_the_table() -> None:
    assert set(_rows()) == set(COMMANDS) - NOT_ASKED


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - NOT_ASKED))
def test_the_options_are_those_of_the_table(name: str) -> None:
    files, none, context = _rows()[name]
    parameters = {parameter.name: parameter for parameter in _command(name).params}
    takes = next((of for of in parameters.values() if "FILE" in (of.metavar or "") and of.nargs == -1), None)
    assert bool(files) == (takes is not None)
    assert {key in parameters for key in ("context", "kubeconfig", "seconds")} == {bool(context)}
    shown = [key for key, of in parameters.items() if not getattr(of, "hidden", False)]
    assert ("live" in shown) == ("`--live`" in none)
    if takes is not None:
        assert not (takes.required and none), "without files it does something"
