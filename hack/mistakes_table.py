"""Write the tables of docs/mistakes.md anew: `python -m hack.mistakes_table`.

Each row is a folder of twelve clusters, a class and a deployment with one mistake, and the first line that
`fleet-scheduler lint` prints about it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner

from function.cli import main as command_line
from hack import section
from tests.cli.mistakes import MISTAKES, ROLES, Mistake, folder

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "mistakes.md"
START, END = "<!-- mistakes -->", "<!-- /mistakes -->"


def table() -> str:
    """Every mistake by who makes it, and the first line about it."""
    parts = [f"{len(MISTAKES)} mistakes."]
    for role in ROLES:
        rows = [f"| {mistake.reason} | `{_said(mistake)}` |" for mistake in MISTAKES if mistake.role == role]
        head = ["| the mistake | the first line |", "|---|---|"]
        parts.append("\n".join([f"## As {'an' if role[0] == 'M' else 'a'} {role}", "", *head, *rows]))
    return "\n\n".join(parts)


def _said(mistake: Mistake) -> str:
    with TemporaryDirectory() as path:
        folder(Path(path), mistake)
        before = Path.cwd()
        os.chdir(path)
        try:
            ended = CliRunner().invoke(command_line, ["lint", "."])
        finally:
            os.chdir(before)
    return ended.stdout.splitlines()[0].replace("|", "\\|")


def refreshed(text: str) -> str:
    """The page with the tables as they are now."""
    return section.replaced(text, START, table(), END)


if __name__ == "__main__":
    sys.exit(section.write(PAGE, refreshed))
