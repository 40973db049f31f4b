"""Write the output blocks of the documentation: `python -m hack.refresh_docs`, or `--check` to only compare.

A block of kind `console` that is followed at once by one of kind `text` is a command and what it prints.
Commands of `fleet-scheduler` are run; those of `crossplane` too if the CLI is there (CROSSPLANE names it).
A CLI that renders with a Crossplane core is given the one that CROSSPLANE_CORE names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from example.caller import ROOT
from example.compare import command_line, serving

if TYPE_CHECKING:
    from pathlib import Path

PAIR = re.compile(r"(```console\n)([^`]+?)(\n```\n+```text\n)(.*?)(```)", re.DOTALL)
PORT = 9443


def pages() -> list[Path]:
    """Return every page that may show output."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("example/**/*.md")])


def refreshed(text: str) -> str:
    """Return a page with every output block as the command prints it now."""

    def again(match: re.Match[str]) -> str:
        printed = output(match[2])
        return match[0] if printed is None else f"{match[1]}{match[2]}{match[3]}{printed}{match[5]}"

    return PAIR.sub(again, text)


def output(command: str) -> str | None:
    """Return what a command prints, None if it cannot be run here."""
    joined = command.replace("\\\n", " ")
    words = joined.split()
    if words[0] == "fleet-scheduler" and "|" not in words:
        printed: str | None = command_line(*words[1:])[1]
    elif words[0] == "crossplane":
        printed = _crossplane(joined)
    else:
        return None
    return None if printed is None else "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def _crossplane(command: str) -> str | None:
    binary = shutil.which(os.environ.get("CROSSPLANE") or "crossplane")
    if not binary:
        return None
    core = os.environ.get("CROSSPLANE_CORE")
    render, pipe, rest = command.partition("|")
    render = f"{render.rstrip()} --crossplane-binary={core} " if core else render
    with serving(PORT):
        ended = subprocess.run(  # noqa: S602 - a command of our own pages, with its pipe
            f"{render.replace('crossplane', binary, 1)}{pipe}{rest}",
            shell=True,
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
    return ended.stdout


def main() -> int:
    """Refresh all pages, or compare. Returns the exit code: 1 if --check found a difference."""
    stale = []
    for page in pages():
        text = page.read_text()
        fresh = refreshed(text)
        if fresh != text:
            stale.append(str(page.relative_to(ROOT)))
            if "--check" not in sys.argv:
                page.write_text(fresh)
    sys.stdout.write("".join(f"{page}: output was stale\n" for page in stale))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
