"""Time what a newcomer does first, in a new clone with a new environment: `python -m bench.first_hour`.

The steps are those of the README and of the first half of `docs/tutorial.md`. Packages are installed from the
index that pip is configured for, so the first step is as fast as that is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS = (
    ("clone", "git clone --quiet {root} clone"),
    ("install, and place the example (`make demo`)", "make -C clone demo"),
    (
        "ask why a model is where it is",
        "{cli} why ml-small/qwen3-8b {clone}/example/fleet {clone}/example/small-model",
    ),
    ("check files of one's own", "{cli} lint {clone}/docs/tutorial"),
    ("place a model of one's own", "{cli} plan {clone}/docs/tutorial"),
    ("draw the first map", "{cli} map {clone}/docs/tutorial -o fleet.html"),
    ("ask what a drain would do", "{cli} whatif {clone}/docs/tutorial --drain tutorial-north"),
)
FAILED = 1
"""What a command ends with on bad input; 2 says that something has no place, which is an answer."""


def main() -> int:
    """Run the steps one after the other, and print the seconds of each and since the first began."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        environment = {
            name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "MAKEFLAGS")
        }
        start = time.monotonic()
        print("| step | seconds | since the start |\n|---|---|---|")
        for name, command in STEPS:
            began = time.monotonic()
            ended = subprocess.run(
                command.format(root=ROOT, clone=clone, cli=clone / ".venv/bin/fleet-scheduler").split(),
                cwd=folder, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if ended.returncode == FAILED:
                print(ended.stdout, ended.stderr, file=sys.stderr)
                return FAILED
            now = time.monotonic()
            print(f"| {name} | {now - began:.1f} | {now - start:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
