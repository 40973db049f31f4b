"""The real crossplane CLI, as old as 2.0 and as new as it gets."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from example import caller

if TYPE_CHECKING:
    from pathlib import Path

MISSING = "no crossplane CLI: put it on the PATH, or set CROSSPLANE=/path/to/crossplane"
SECONDS = 300


@dataclass(frozen=True)
class Cli:
    """A crossplane binary, and how it wants to be asked to render."""

    binary: str
    render_words: tuple[str, ...]

    @classmethod
    def find(cls) -> Cli:
        """Find the CLI; skip the test when there is none."""
        wanted = os.environ.get("CROSSPLANE") or "crossplane"
        binary = shutil.which(wanted)
        if not binary:
            if "CROSSPLANE" in os.environ:
                pytest.fail(f"CROSSPLANE={wanted} is not there, or not executable")
            pytest.skip(MISSING)
        for words in (("composition", "render"), ("render",)):
            if subprocess.run([binary, *words, "--help"], capture_output=True, check=False).returncode == 0:
                return cls(binary, words)
        raise AssertionError(f"{binary} has no render command")

    def run(self, *words: str | Path) -> str:
        """Run the CLI and return what it prints; what it says when it fails is the failure."""
        command = [self.binary, *map(str, words)]
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=caller.ROOT, timeout=SECONDS
        )
        assert ended.returncode == 0, f"{' '.join(command)}\n{ended.stderr}\n{ended.stdout}"
        return ended.stdout

    def render(self, folder: Path, functions: Path, *more: str | Path) -> list[dict[str, Any]]:
        """Render an example on the example fleet: the composite first, then what it composes."""
        # A version that starts a Crossplane core may be told which: it would use a container otherwise.
        core = os.environ.get("CROSSPLANE_CORE")
        own = [f"--crossplane-binary={core}"] if core and self.render_words[0] == "composition" else []
        required = f"--required-resources={caller.FLEET}"
        words = [folder / "xr.yaml", caller.COMPOSITION, functions, required, *own, *more]
        return [each for each in yaml.safe_load_all(self.run(*self.render_words, *words)) if each]
