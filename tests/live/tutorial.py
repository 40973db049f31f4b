"""The second half of docs/tutorial.md, as a reader would run it: every block, in order, in one shell.

`python -m tests.live.tutorial` starts a control plane of its own with the Configuration as install.md has it
installed, runs the blocks, and says how long each section took. Below some headings it looks whether the
outcome is what the page says. The exit code is 1 where a block fails, or where the outcome is another one.
CROSSPLANE_VERSION=2.4.0 takes that Crossplane.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from example.caller import ROOT
from tests.live import install, plane
from tests.live.__main__ import isolate

if TYPE_CHECKING:
    from tests.live.plane import ControlPlane

PAGE = ROOT / "docs" / "tutorial.md"
HALF = "## On a control plane"
OUTCOMES = {
    "Deploy": r"tutorial-north[^\0]*tutorial-south",
    "Ask the model": r'"id": "qwen3-8b"',
    "Drain a cluster": r"tutorial-south[^\0]*tutorial-south",
}
"""What one of the blocks of a section prints, where the page says so."""
LONGEST = 600
"""Seconds for a block: its own commands wait for two or three minutes."""


def sections() -> list[tuple[str, list[str]]]:
    """The headings of the second half with their blocks, in order."""
    _, _, half = PAGE.read_text(encoding="utf-8").partition(f"\n{HALF}\n")
    parts = re.split(r"^#{2,3} (.+)\n", half, flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return [(title, re.findall(r"```console\n(.*?)```", text, re.DOTALL)) for title, text in pairs]


def play(living: ControlPlane, folder: Path) -> list[str]:
    """Run all blocks; return what is not as the page says, at most one line: the rest needs what failed."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(living.state / "admin.kubeconfig")}
    printed = folder / "printed"
    for title, blocks in sections():
        began, outputs = time.monotonic(), [""]
        for block in blocks:
            # Into a file: what a block leaves running would hold a pipe open.
            with printed.open("w") as out:
                words = ["bash", "-ec", block]
                ended = subprocess.run(
                    words, cwd=ROOT, env=environment, stdout=out, stderr=out, timeout=LONGEST, check=False
                )
            if ended.returncode:
                return [f"{title}: exit code {ended.returncode} of\n{block}\n{printed.read_text()}"]
            outputs.append(printed.read_text())
        if not any(re.search(OUTCOMES.get(title, ""), output) for output in outputs):
            return [f"{title}: no block prints {OUTCOMES[title]}\n{''.join(outputs)}"]
        if blocks:
            sys.stdout.write(f"{title}: {time.monotonic() - began:.0f} s\n")
            sys.stdout.flush()
    return []


def main() -> int:
    """Play it on a control plane of its own."""
    reason = plane.missing()
    if reason or not isolate():
        sys.stdout.write(f"the tutorial is skipped: {reason or 'this container may not make namespaces'}\n")
        return 0
    os.setpgid(0, 0)
    living = plane.ControlPlane.here()
    try:
        living.up()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            install.push_packages(living, folder)
            install.install(living)
            install.start(living)
            wrong = play(living, folder)
    finally:
        living.down()
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.flush()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)  # The models that a block leaves running.
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
