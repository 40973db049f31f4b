"""A real registry on loopback, and what it holds, read over its HTTP API."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
import threading
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

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
                member.name: file.read()
                for member in archive
                if (file := archive.extractfile(member)) is not None
            }


@contextmanager
def running(folder: Path) -> Iterator[Registry]:
    """Start a registry that keeps its blobs in `folder`; skip the test when there is none."""
    binary = shutil.which("docker-registry")
    if not binary:
        pytest.skip(MISSING)
    log = {"level": "info", "formatter": "json"}
    storage = {"filesystem": {"rootdirectory": str(folder / "blobs")}}
    settings = {"version": "0.1", "log": log, "storage": storage, "http": {"addr": "127.0.0.1:0"}}
    (folder / "config.yml").write_text(json.dumps(settings))
    command = [binary, "serve", str(folder / "config.yml")]
    with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        address = _address(process.stdout)
        # It logs each request: somebody has to read on.
        reader = threading.Thread(target=process.stdout.read)
        reader.start()
        try:
            yield Registry(address)
        finally:
            process.terminate()
            reader.join()


def _address(log: IO[str]) -> str:
    """Where a registry listens, from its log: the port is any that was free."""
    said = []
    for line in log:
        said.append(line)
        match = re.search(r"listening on ([\d.]+:\d+)", line)
        if match:
            return match[1]
    raise AssertionError(f"the registry does not start: {''.join(said)}")
