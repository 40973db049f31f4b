"""Write the table of docs/ci.md anew: `python -m hack.mistakes_table`.

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
from tests.cli.mistakes import MISTAKES, Mistake, folder

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "ci.md"
START, END = "<!-- mistakes -->", "<!-- /mistakes -->"


def table() -> str:
    """Every mistake, and the first line about it."""
    lines = ["| the mistake | the first line |", "|---|---|"]
    return "\n".join([*lines, *(f"| {mistake.reason} | `{_said(mistake)}` |" for mistake in MISTAKES)])


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
    """The page with the table as it is now."""
    return section.replaced(text, START, table(), END)


if __name__ == "__main__":
    sys.exit(section.write(PAGE, refreshed))
