"""A release from a clone of this repository to a registry on loopback, with the command of RELEASING.md.

Building images takes a container engine, so `docker` is a stand-in that makes an image with one file. The
real cosign signs where it is on the PATH, with a key made for the test and without the transparency log.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from example.caller import ROOT
from package import build
from tests.e2e.registry import Registry, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.real_cli import Cli

pytestmark = pytest.mark.e2e

VERSION = "9.9.9"
GIT = str(shutil.which("git"))
DIGEST = f"sha256:{'ab' * 32}"
DOCKER = """#!{python}
import re, sys
from pathlib import Path
sys.path.insert(0, {root!r})
words = sys.argv[1:]
if "imagetools" in words:
    print({digest!r})
elif "build" in words:
    with open({log!r}, "a") as log:
        print(*words, file=log)
    from tests.e2e.standin import runtime
    target = Path(re.search("dest=([^,]+)", " ".join(words))[1])
    architecture = re.search("linux/(\\\\w+)", " ".join(words))[1]
    runtime(target.parent, architecture).rename(target)
"""
COSIGN = '#!/bin/sh\necho "$@" >> {log}\n'


@dataclass(frozen=True)
class Released:
    """What a release left behind."""

    clone: Path
    output: str
    registry: Registry
    log: Path
    key: Path
    cosign: str | None

    def git(self, *words: str) -> str:
        return subprocess.run(
            [GIT, *words], cwd=self.clone, capture_output=True, text=True, check=True
        ).stdout


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def clone_of_this_tree(folder: Path) -> Path:
    """A clone that uses this environment as its own, and thinks it up to date."""
    clone = folder / "clone"
    subprocess.run([GIT, "clone", "--quiet", ROOT, clone], check=True)
    for name, value in (("user.name", "A"), ("user.email", "a@example.com"), ("tag.gpgSign", "false")):
        subprocess.run([GIT, "config", name, value], cwd=clone, check=True)
    (clone / ".venv").mkdir()
    for entry in Path(sys.prefix).iterdir():
        if entry.name != ".installed":
            (clone / ".venv" / entry.name).symlink_to(entry)
    (clone / ".venv" / ".installed").touch()
    os.utime(clone / ".venv" / ".installed", (2**32, 2**32))
    return clone


@pytest.fixture(scope="module")
def released(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Released]:
    folder = tmp_path_factory.mktemp("release")
    clone = clone_of_this_tree(folder)
    programs, log, key = folder / "bin", folder / "log", folder / "cosign.key"
    programs.mkdir()
    program(
        programs / "docker",
        DOCKER.format(python=sys.executable, root=str(ROOT), digest=DIGEST, log=str(log)),
    )
    cosign = shutil.which("cosign")
    environment = os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "CROSSPLANE": cli.binary,
        "COSIGN_PASSWORD": "",
        "SOURCE": "https://git.example.com/fleet/function-fleet-scheduler",
    }
    if cosign:
        subprocess.run([cosign, "generate-key-pair"], cwd=folder, env=environment, check=True)
    else:
        program(programs / "cosign", COSIGN.format(log=log))
    with running(folder) as registry:
        command = [sys.executable, "-m", "package.release", VERSION, "--no-checks", "--private"]
        ended = subprocess.run(
            [*command, "--key", str(key), "--registry", f"{registry.address}/fleet"],
            cwd=clone,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        yield Released(clone, ended.stdout, registry, log, key, cosign)


def test_the_version_stands_in_one_commit_with_its_tag(released: Released) -> None:
    assert released.git("describe", "--exact-match").strip() == f"v{VERSION}"
    assert released.git("log", "-1", "--format=%s").strip() == f"release: {VERSION}"
    changed = released.git("show", "--name-only", "--format=").split()
    assert {"CHANGELOG.md", "pyproject.toml", "crossplane.yaml", "docs/install.md"} <= set(changed)
    assert any(path.startswith("tests/upgrade/") for path in changed), "what it composes is recorded"
    assert f"## {VERSION} - " in (released.clone / "CHANGELOG.md").read_text()
    assert released.git("status", "--porcelain") == ""


def test_both_packages_arrive_under_the_version(released: Released) -> None:
    index = released.registry.manifest(f"fleet/{build.FUNCTION}", f"v{VERSION}")
    platforms = {image["platform"]["architecture"] for image in index["manifests"]}
    assert platforms == set(build.ARCHITECTURES)
    assert released.registry.manifest(f"fleet/{build.CONFIGURATION}", f"v{VERSION}")


def test_images_are_built_on_bases_by_digest(released: Released) -> None:
    built = [line for line in released.log.read_text().splitlines() if line.startswith("buildx build")]
    assert len(built) == len(build.ARCHITECTURES)
    for line in built:
        for argument in ("BUILD_IMAGE", "RUN_IMAGE"):
            assert f"{argument}=" in line
        assert line.count(f"@{DIGEST}") == 2


def test_the_source_is_named_in_the_package(released: Released) -> None:
    meta = (released.clone / "dist" / "function" / "crossplane.yaml").read_text()
    assert f"{build.SOURCE}: https://git.example.com/fleet/function-fleet-scheduler\n" in meta


def test_what_was_built_has_checksums_and_a_bill(released: Released) -> None:
    dist = released.clone / "dist"
    listed = {line.split()[1] for line in (dist / "SHA256SUMS").read_text().splitlines()}
    assert {path.name for suffix in ("xpkg", "whl") for path in dist.glob(f"*.{suffix}")} | {
        "sbom.json"
    } == listed
    bill = json.loads((dist / "sbom.json").read_text())
    assert bill["metadata"]["component"]["version"] == VERSION


@pytest.mark.parametrize("name", [build.FUNCTION, build.CONFIGURATION])
def test_a_signature_is_of_what_arrived(released: Released, name: str) -> None:
    assert f"signed             {released.registry.address}/fleet/{name}@sha256:" in released.output
    reference = f"{released.registry.address}/fleet/{name}:v{VERSION}"
    if released.cosign is None:
        assert f"{released.registry.address}/fleet/{name}@sha256:" in released.log.read_text()
        return
    public = ["--key", str(released.key.with_suffix(".pub")), "--insecure-ignore-tlog"]
    verified = subprocess.run(
        [released.cosign, "verify", *public, reference], capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stderr
    if name == build.FUNCTION:
        bill = [released.cosign, "verify-attestation", "--type", "cyclonedx", *public, reference]
        attested = subprocess.run(bill, capture_output=True, text=True, check=False)
        assert attested.returncode == 0, attested.stderr


def test_the_same_version_is_not_released_twice(released: Released) -> None:
    subprocess.run([GIT, "commit", "--quiet", "--allow-empty", "-m", "x: y"], cwd=released.clone, check=True)
    again = subprocess.run(
        [sys.executable, "-m", "package.release", VERSION, "--no-checks"],
        cwd=released.clone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1
    assert "is not newer than" in again.stderr
