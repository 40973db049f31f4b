"""A stand-in for the runtime image of a Function package: building the real one takes a container engine."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def runtime(folder: Path, architecture: str) -> Path:
    """A tarball as `docker save` makes it, with one layer of one file."""
    layer = tarball({"function": f"for {architecture}".encode()})
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": ["/function"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(layer)}"]},
    }
    text = json.dumps(config).encode()
    manifest = [{"Config": f"{digest(text)}.json", "RepoTags": ["runtime:latest"], "Layers": ["layer.tar"]}]
    path = folder / f"runtime-{architecture}.tar"
    files = {f"{digest(text)}.json": text, "layer.tar": layer, "manifest.json": json.dumps(manifest).encode()}
    path.write_bytes(tarball(files))
    return path


def tarball(files: dict[str, bytes]) -> bytes:
    """A tar archive without times or owners."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return held.getvalue()


def digest(content: bytes) -> str:
    """The SHA-256 of some bytes, in hex."""
    return hashlib.sha256(content).hexdigest()
