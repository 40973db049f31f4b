"""The real crossplane CLI: up to 2.2, which render by themselves, and later ones, which start a core.

CROSSPLANE names the CLI, else it is the one on the PATH, else the packed one of the control plane that
`make live` uses. CROSSPLANE_CORE names the core of a CLI that starts one, else it is the packed one of that
control plane, else the CLI is left to start a container.
"""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from example import caller

MISSING = (
    "no crossplane CLI: put it on the PATH, set CROSSPLANE=/path/to/crossplane, "
    "or CONTROLPLANE=/path/to/the/control/plane that make live uses"
)
NO_CORE = (
    "this crossplane CLI renders with a Crossplane core, and there is none: "
    "set CROSSPLANE_CORE=/path/to/crossplane-core, or start docker"
)
SECONDS = 300


@dataclass(frozen=True)
class Cli:
    """A crossplane binary, how it wants to be asked to render, and the core it is told to render with."""

    binary: str
    render_words: tuple[str, ...]
    core_flags: tuple[str, ...] = ()

    @classmethod
    def find(cls, unpacked: Path) -> Cli:
        """Find the CLI and its core; skip the test when there is none. Packed ones go to `unpacked`."""
        binary = _named("CROSSPLANE", "crossplane") or _unpacked("crossplane", unpacked)
        if not binary:
            pytest.skip(MISSING)
        for words in (("composition", "render"), ("render",)):
            manual = subprocess.run([binary, *words, "--help"], capture_output=True, text=True, check=False)
            if manual.returncode == 0:
                starts_core = "--crossplane-binary" in manual.stdout
                return cls(binary, words, _core_flags(unpacked) if starts_core else ())
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
        required = f"--required-resources={caller.FLEET}"
        words = [folder / "xr.yaml", caller.COMPOSITION, functions, required, *self.core_flags, *more]
        rendered = yaml.safe_load_all(self.run(*self.render_words, *words))
        return [plain for plain in rendered if plain]


def _core_flags(unpacked: Path) -> tuple[str, ...]:
    """Return the flags that name the core; none where docker can start one."""
    core = _named("CROSSPLANE_CORE", "") or _unpacked("crossplane-core", unpacked)
    if core:
        return (f"--crossplane-binary={core}",)
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        pytest.skip(NO_CORE)
    return ()


def _named(variable: str, default: str) -> str | None:
    """Return the program that a variable names, else the default on the PATH."""
    wanted = os.environ.get(variable)
    program = shutil.which(wanted or default)
    if wanted and not program:
        pytest.fail(f"{variable}={wanted} is not there, or not executable")
    return program


def _unpacked(name: str, folder: Path) -> str | None:
    """Unpack a program of the control plane; None where that is not at hand."""
    packed = Path(os.environ.get("CONTROLPLANE") or caller.ROOT.parent / "shared" / "controlplane")
    source, target = packed / "bin" / f"{name}.xz", folder / name
    if not source.exists():
        return None
    with lzma.open(source) as content, target.open("wb") as program:
        shutil.copyfileobj(content, program)
    target.chmod(0o755)
    return str(target)
