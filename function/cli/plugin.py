"""The kubectl plugin: `kubectl fleet why chat` is `fleet-scheduler why chat`, and kubectl completes it.

kubectl runs `kubectl-fleet` for `kubectl fleet`, and `kubectl_complete-fleet` with the words typed so far to
complete them. It expects what cobra prints: a line for each candidate, then a colon and what else to do.
The candidates are those of the program itself, so a verb needs nothing here.
"""

from __future__ import annotations

import sys

import click
from click.shell_completion import ShellComplete

from function.cli import main as commands

PROGRAM = "kubectl fleet"
COMPLETE_FILES, COMPLETE_NOTHING_ELSE = 0, 4
"""cobra's directives: let the shell complete files; complete nothing beside the candidates."""


def main() -> None:
    """Run a command, named as it was typed."""
    commands(prog_name=PROGRAM)


def complete() -> None:
    """Print the candidates for the last word."""
    *before, incomplete = sys.argv[1:] or [""]
    items = ShellComplete(commands, {}, PROGRAM, "").get_completions(before, incomplete)
    for item in items:
        if item.type == "plain":
            click.echo(item.value + (f"\t{item.help}" if item.help else ""))
    files = any(item.type != "plain" for item in items)
    click.echo(f":{COMPLETE_FILES if files else COMPLETE_NOTHING_ELSE}")
