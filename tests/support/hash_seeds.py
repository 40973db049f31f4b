"""What a script prints in processes of their own, each with another order of sets."""

from __future__ import annotations

import os
import subprocess
import sys

from example.caller import ROOT


def printed_under(seeds: tuple[str, ...], script: str) -> set[str]:
    """Run a script once for each hash seed; return what was printed, one entry where all say the same."""
    return {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in seeds
    }
