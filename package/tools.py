"""The tools a user of Crossplane has: where they are, and what to say when one is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> str:
    """Run a command in the repository and return what it prints. Raises ClickException with its complaint."""
    words = [str(word) for word in command]
    ended = subprocess.run(  # noqa: S603 - the commands are written in this package
        words,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise click.ClickException(f"{' '.join(words)}\n{ended.stderr.strip() or ended.stdout.strip()}")
    return ended.stdout


def crossplane() -> str:
    """Find the crossplane CLI: $CROSSPLANE, else the PATH. Raises ClickException when there is none."""
    path = shutil.which(os.environ.get("CROSSPLANE") or "crossplane")
    if not path:
        raise click.ClickException(
            "the crossplane CLI is missing. Install it as the Crossplane documentation says, "
            "or name it: CROSSPLANE=/path/to/crossplane"
        )
    return path


def pinned_bases() -> dict[str, str]:
    """Look up which images the tags of the Dockerfile's bases mean now, for `base_images`.

    A tag can come to mean another image while a release is built for one architecture after the other.
    """
    named = re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    return {argument: _pinned(os.environ.get(argument, image)) for argument, image in named}


def _pinned(image: str) -> str:
    if "@" in image:
        return image
    digest = run(["docker", "buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}"])
    return f"{image}@{digest.strip()}"


def base_images() -> list[str]:
    """Build arguments for the base images that the environment names, by digest if all is well."""
    named = {name: os.environ.get(name) for name in ("BUILD_IMAGE", "RUN_IMAGE")}
    return [word for name, image in named.items() if image for word in ("--build-arg", f"{name}={image}")]


def engine() -> Callable[[str, Path, int], None]:
    """Find something that builds container images. Raises ClickException when there is nothing.

    The result takes an architecture, the tarball to write, and the time to give to every file (seconds since
    1970).
    """
    builders = {"docker": _docker, "podman": _podman, "buildah": _buildah}
    complaints = []
    for name, build in builders.items():
        complaint = _unusable(name)
        if complaint is None:
            return build
        complaints.append(complaint)
    raise click.ClickException(
        f"nothing here builds container images: {'; '.join(complaints)}. "
        "Install one of docker (with buildx), podman or buildah"
    )


def _unusable(name: str) -> str | None:
    if not shutil.which(name):
        return f"{name} is not on the PATH"
    try:
        run([name, "info"])
        if name == "docker":
            run(["docker", "buildx", "version"])
    except click.ClickException as error:
        return f"{name} does not work ({error.message.splitlines()[-1].strip()})"
    return None


def _docker(architecture: str, tarball: Path, epoch: int) -> None:
    output = f"type=docker,dest={tarball},rewrite-timestamp=true"
    command = [
        "docker",
        "buildx",
        "build",
        *_what(architecture),
        "--provenance=false",
        "--output",
        output,
        ".",
    ]
    run(command, {"SOURCE_DATE_EPOCH": str(epoch)})


def _podman(architecture: str, tarball: Path, epoch: int) -> None:
    tag = _tag(architecture)
    run(["podman", "build", *_what(architecture), "--timestamp", str(epoch), "--tag", tag, "."])
    tarball.unlink(missing_ok=True)
    run(["podman", "save", "--format", "docker-archive", "--output", tarball, tag])


def _buildah(architecture: str, tarball: Path, epoch: int) -> None:
    tag = _tag(architecture)
    run(["buildah", "build", *_what(architecture), "--timestamp", str(epoch), "--tag", tag, "."])
    tarball.unlink(missing_ok=True)
    run(["buildah", "push", tag, f"docker-archive:{tarball}"])


def _what(architecture: str) -> list[str]:
    return ["--platform", f"linux/{architecture}", *base_images()]


def _tag(architecture: str) -> str:
    return f"function-fleet-scheduler-runtime:{architecture}"
