"""The bill of materials names what the image installs: the runtime lock, all of it and nothing else."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from package import release

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements" / "runtime.txt"


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    hashes: frozenset[str]


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Make it as `make sbom` does, with the environment these tests run in."""
    target = tmp_path_factory.mktemp("sbom") / "sbom.json"
    command = ["make", f"--old-file={sys.prefix}/.installed", "sbom", f"VENV={sys.prefix}", f"SBOM={target}"]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    ended = subprocess.run(
        command, cwd=ROOT, env=inherited, capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    made: dict[str, Any] = json.loads(target.read_text())
    return made


def locked() -> set[Package]:
    """Read the lock without the library that makes the bill: each `name==version` is at the margin."""
    entries = re.split(r"^(?=[A-Za-z0-9])", LOCK.read_text(), flags=re.MULTILINE)[1:]
    return {package(entry) for entry in entries}


def package(entry: str) -> Package:
    name, version = re.split(r"==|\s", entry, maxsplit=2)[:2]
    return Package(name, version, frozenset(re.findall(r"sha256:(\w+)", entry)))


def listed(bill: dict[str, Any]) -> set[Package]:
    return {
        Package(
            component["name"],
            component["version"],
            frozenset(
                digest["content"]
                for place in component["externalReferences"]
                for digest in place["hashes"]
                if digest["alg"] == "SHA-256"
            ),
        )
        for component in bill["components"]
    }


def test_the_bill_lists_the_runtime_lock_with_versions_and_hashes_and_nothing_else(
    bill: dict[str, Any],
) -> None:
    assert all(item.hashes for item in locked())
    assert listed(bill) == locked()
    assert len(bill["components"]) == len(locked()), "a package twice"


def test_every_package_has_the_address_that_scanners_look_up(bill: dict[str, Any]) -> None:
    addresses = {component["purl"] for component in bill["components"]}
    assert addresses == {f"pkg:pypi/{entry.name}@{entry.version}" for entry in locked()}


def test_the_bill_is_of_this_project(bill: dict[str, Any]) -> None:
    whole = bill["metadata"]["component"]
    assert whole["name"] == "function-fleet-scheduler"
    assert f'\nversion = "{whole["version"]}"' in (ROOT / "pyproject.toml").read_text()


def test_the_release_attests_this_bill_and_the_page_on_security_verifies_it() -> None:
    steps = inspect.getsource(release.publish)
    made, attested = steps.index('"make", "wheel", "sbom"'), steps.index('"cosign", "attest"')
    assert made < attested
    assert '"--type", "cyclonedx", "--predicate", f"{out / \'sbom.json\'}"' in steps
    assert "cosign verify-attestation --type cyclonedx" in (ROOT / "SECURITY.md").read_text()
