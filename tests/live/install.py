"""What docs/install.md says: build and push both packages, install the Configuration, run the function.

On a Crossplane older than the Configuration asks for, what the page says of that version is done.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from click.testing import CliRunner

from example.caller import ROOT
from package import build, push
from tests.e2e.standin import runtime
from tests.live.plane import Plain, is_true, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.plane import ControlPlane

REGISTRY = "127.0.0.1:25000/fleet"
FUNCTION = build.installed_name(REGISTRY)
DEFINITIONS = (
    "inferenceclasses",
    "inferenceclusters",
    "modelcaches",
    "modeldeployments",
    "modelendpoints",
    "modelreplicas",
    "modelservices",
)


def push_packages(plane: ControlPlane, folder: Path) -> None:
    """Build both packages and push them to the registry of the control plane.

    The Function's runtime image is a stand-in: nothing here pulls it.
    """
    with _cli(plane):
        build.function(runtime(folder, "amd64"), "amd64", folder)
        result = CliRunner().invoke(push.main, ["--registry", REGISTRY, "--out", str(folder)])
    assert result.exit_code == 0, result.output


def install(plane: ControlPlane) -> None:
    """Install what is shipped, and wait until every kind is established and the Function is there."""
    plane.apply(manifest(build.CONFIGURATION))
    if not knows_scale(plane):
        plane.shell("\n".join(commands("install.md", "ignoreCrossplaneConstraints")))
    for name in DEFINITIONS:
        what = f"XRD {name} Established"
        until(
            lambda name=name: is_true(
                plane.get("CompositeResourceDefinition", f"{name}.modelplane.ai"), "Established"
            ),
            what,
        )
    until(lambda: plane.get("Function", FUNCTION), "the Function that the Configuration depends on")


def knows_scale(plane: ControlPlane) -> bool:
    """Whether an XRD may have a scale subresource: from 2.3 on."""
    name = "compositeresourcedefinitions.apiextensions.crossplane.io"
    return "labelSelectorPath" in json.dumps(plane.get("CustomResourceDefinition", name))


def manifest(name: str) -> Plain:
    """The object of a name that docs/install.md has applied, with the registry of the control plane."""
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "install.md").read_text(), re.DOTALL)
    manifests = [yaml.safe_load(block.replace(build.PLACEHOLDER, REGISTRY)) for block in blocks]
    (plain,) = [one for one in manifests if one.get("metadata", {}).get("name") == name]
    return dict(plain)


def commands(page: str, word: str) -> list[str]:
    """The lines of the console blocks of a page that have a word in them: what a reader is told to run."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines() if word in line]


def start(plane: ControlPlane, *flags: str) -> None:
    """Run the function behind its Service name with the certificates of Crossplane, until it is Healthy.

    Nobody runs pods here, so the script also says in its stead that the Function's Deployment is available.
    """
    plane.script("function.sh", sys.prefix, *flags)
    for kind, name in (("Function", FUNCTION), ("Configuration", build.CONFIGURATION)):
        until(lambda kind=kind, name=name: is_true(plane.get(kind, name), "Healthy"), f"{kind} Healthy")


def take_the_platforms_part(plane: ControlPlane) -> None:
    """Take away the Compositions that need real clusters, as install.md says: tests play the platform."""
    words = ("crossplane.io/paused=true", "delete composition")
    plane.shell("\n".join(line for word in words for line in commands("install.md", word)))


def stop(plane: ControlPlane) -> None:
    """Tell the function to stop, as the kubelet would, and wait until it has."""
    process = Path("/proc", (plane.state / "pids" / "function").read_text().strip())
    plane.script("down.sh", "function")
    until(lambda: not process.exists(), "the function stopped")


@contextmanager
def _cli(plane: ControlPlane) -> Iterator[None]:
    """Let the scripts that build packages use the CLI of the control plane."""
    before = os.environ.get("CROSSPLANE")
    os.environ["CROSSPLANE"] = str(plane.cli)
    try:
        yield
    finally:
        if before is None:
            del os.environ["CROSSPLANE"]
        else:
            os.environ["CROSSPLANE"] = before
