"""A real registry on loopback, and what it holds, read over its HTTP API."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import socket
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MISSING = "no docker-registry: on Debian, apt-get install docker-registry"
ACCEPT = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)
SECONDS = 20


@dataclass(frozen=True)
class Registry:
    """A registry that runs."""

    address: str

    def get(self, path: str) -> bytes:
        request = urllib.request.Request(f"http://{self.address}/v2/{path}", headers={"Accept": ACCEPT})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - loopback
            content: bytes = answer.read()
        return content

    def manifest(self, name: str, reference: str) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(self.get(f"{name}/manifests/{reference}"))
        return plain

    def blob(self, name: str, digest: str) -> bytes:
        """Fetch a blob and check that it is what its digest says."""
        content = self.get(f"{name}/blobs/{digest}")
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == digest
        return content

    def files(self, name: str, layer: dict[str, Any]) -> dict[str, bytes]:
        """The files in a layer."""
        with tarfile.open(fileobj=io.BytesIO(self.blob(name, layer["digest"]))) as archive:
            return {
                member.name: found.read()
                for member in archive
                if (found := archive.extractfile(member)) is not None
            }


@contextmanager
def running(folder: Path) -> Iterator[Registry]:
    """Start a registry that keeps its blobs in `folder`; skip the test when there is none."""
    binary = shutil.which("docker-registry")
    if not binary:
        pytest.skip(MISSING)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    storage = {"filesystem": {"rootdirectory": str(folder / "blobs")}}
    settings = {"version": "0.1", "log": {"level": "error"}, "storage": storage, "http": {"addr": address}}
    (folder / "config.yml").write_text(json.dumps(settings))
    process = subprocess.Popen([binary, "serve", str(folder / "config.yml")])
    try:
        registry = Registry(address)
        _wait(registry)
        yield registry
    finally:
        process.terminate()
        process.wait(timeout=SECONDS)


def _wait(registry: Registry) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            registry.get("")
        except urllib.error.URLError:
            assert time.monotonic() < deadline, "the registry does not answer"
            time.sleep(0.1)
        else:
            return
