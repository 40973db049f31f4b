"""Both packages: built by the real crossplane CLI, pushed to a real registry, and what arrived there.

The runtime image inside is a stand-in with one file: building a real one takes a container engine.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from package import build, push
from tests.e2e.registry import Registry, running
from tests.e2e.standin import runtime
from tests.schema.crds import COMPOSITIONS, DEFINITIONS, INPUTS, objects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.real_cli import Cli

pytestmark = pytest.mark.e2e
ANNOTATION = "io.crossplane.xpkg"


@pytest.fixture(scope="module", autouse=True)
def crossplane(cli: Cli) -> Iterator[None]:
    """What builds and pushes packages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSPLANE", cli.binary)
        yield


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with running(tmp_path_factory.mktemp("registry")) as started:
        yield started


@pytest.fixture(scope="module")
def pushed(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Both packages pushed with `python -m package.push`; the path they are under."""
    out = tmp_path_factory.mktemp("dist")
    for architecture in build.ARCHITECTURES:
        build.function(runtime(out, architecture), architecture, out)
    result = CliRunner().invoke(push.main, ["--registry", f"{registry.address}/fleet", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return "fleet"


def test_the_same_sources_make_the_same_packages(tmp_path: Path) -> None:
    def made(folder: Path) -> list[bytes]:
        folder.mkdir()
        packages = (
            build.configuration("registry.example.com/fleet", folder),
            build.function(runtime(folder, "amd64"), "amd64", folder),
        )
        return [item.read_bytes() for item in packages]

    assert made(tmp_path / "one") == made(tmp_path / "two")


def test_the_function_arrives_for_both_architectures(registry: Registry, pushed: str) -> None:
    name = f"{pushed}/{build.FUNCTION}"
    index = registry.manifest(name, build.version())
    digests = {blob["platform"]["architecture"]: blob["digest"] for blob in index["manifests"]}
    assert digests.keys() == set(build.ARCHITECTURES)
    for architecture, digest in digests.items():
        manifest = registry.manifest(name, digest)
        config = json.loads(registry.blob(name, manifest["config"]["digest"]))
        assert config["architecture"] == architecture
        assert config["config"]["Entrypoint"] == ["/function"], "the runtime's own settings survive"
        layers = [registry.files(name, layer) for layer in manifest["layers"]]
        assert any(architecture.encode() in files.get("function", b"") for files in layers)


def test_the_function_package_holds_its_meta_and_its_input(registry: Registry, pushed: str) -> None:
    name = f"{pushed}/{build.FUNCTION}"
    first = registry.manifest(name, build.version())["manifests"][0]
    held = package(registry, name, registry.manifest(name, first["digest"]))
    assert [(manifest["apiVersion"].split("/")[0], manifest["kind"]) for manifest in held] == [
        ("meta.pkg.crossplane.io", "Function"),
        *(("apiextensions.k8s.io", "CustomResourceDefinition") for _ in INPUTS),
    ]
    assert [manifest["spec"] for manifest in held[1:]] == [manifest["spec"] for manifest in objects(*INPUTS)]


def test_the_configuration_arrives_whole_and_depends_on_the_function_beside_it(
    registry: Registry, pushed: str
) -> None:
    name = f"{pushed}/{build.CONFIGURATION}"
    held = package(registry, name, image(registry, name))
    kinds = [manifest["kind"] for manifest in held]
    assert kinds.count("Configuration") == 1
    assert kinds.count("Composition") == len(COMPOSITIONS)
    assert kinds.count("CompositeResourceDefinition") == len(DEFINITIONS)
    meta = next(manifest for manifest in held if manifest["kind"] == "Configuration")
    (depends,) = meta["spec"]["dependsOn"]
    assert depends["package"] == f"{registry.address}/{pushed}/{build.FUNCTION}"
    assert depends["version"] == f">={build.version()}"
    steps = [
        step
        for manifest in held
        if manifest["kind"] == "Composition"
        for step in manifest["spec"]["pipeline"]
    ]
    for step in steps:
        assert step["functionRef"]["name"] == f"{pushed}-{build.FUNCTION}", "Crossplane's name for it"
    assert not any("requirements" in step for step in steps), "each asks for what it stands on"
    for definition in objects(*DEFINITIONS):
        assert any(manifest["metadata"]["name"] == definition["metadata"]["name"] for manifest in held)


def package(registry: Registry, name: str, manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects in package.yaml, from the layer that is annotated as the package."""
    layers = [blob for blob in manifest["layers"] if blob.get("annotations", {}).get(ANNOTATION) == "base"]
    if not layers:  # Layers of a package are also named by labels of its image.
        labels = json.loads(registry.blob(name, manifest["config"]["digest"]))["config"]["Labels"]
        named = {digest.removeprefix(f"{ANNOTATION}:"): kind for digest, kind in labels.items()}
        layers = [blob for blob in manifest["layers"] if named.get(blob["digest"]) == "base"]
    (layer,) = layers
    content = registry.files(name, layer)["package.yaml"]
    return [document for document in yaml.safe_load_all(content) if document]


def image(registry: Registry, name: str) -> dict[str, Any]:
    """The manifest behind the version's tag, through an index if there is one."""
    manifest = registry.manifest(name, build.version())
    return (
        registry.manifest(name, manifest["manifests"][0]["digest"]) if "manifests" in manifest else manifest
    )
