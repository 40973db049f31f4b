"""Building packages with whichever tools there are, and saying which are missing."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from package import build, push, tools

if TYPE_CHECKING:
    from pathlib import Path

RECORD = '#!/bin/sh\necho "$(basename "$0") $* epoch=$SOURCE_DATE_EPOCH" >> "{log}"\n{then}\n'


class Bin:
    """A folder of stand-in tools that write down how they were called. It is all that is on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        for name in ("sh", "basename"):
            (folder / name).symlink_to(shutil.which(name) or "")

    def add(self, name: str, then: str = "exit 0") -> None:
        path = self.folder / name
        path.write_text(RECORD.format(log=self.log, then=then))
        path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bin:
    folder = tmp_path / "bin"
    folder.mkdir()
    made = Bin(folder)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CROSSPLANE", raising=False)
    return made


def test_without_the_crossplane_cli_it_says_how_to_get_it(path: Bin, tmp_path: Path) -> None:
    result = CliRunner().invoke(build.main, ["--out", str(tmp_path / "dist")])
    assert result.exit_code == 1
    assert "the crossplane CLI is missing" in result.output
    assert "CROSSPLANE=/path/to/crossplane" in result.output


def test_the_cli_may_be_named(path: Bin, monkeypatch: pytest.MonkeyPatch) -> None:
    path.add("mine")
    monkeypatch.setenv("CROSSPLANE", str(path.folder / "mine"))
    assert tools.crossplane() == str(path.folder / "mine")


def test_without_an_image_builder_all_three_are_named(path: Bin) -> None:
    with pytest.raises(click.ClickException) as error:
        tools.engine()
    for name in ("docker", "podman", "buildah"):
        assert f"{name} is not on the PATH" in error.value.message


def test_a_builder_that_does_not_work_is_passed_over_with_its_reason(path: Bin) -> None:
    path.add("docker", then='echo "Cannot connect to the daemon" >&2; exit 1')
    with pytest.raises(click.ClickException, match=r"docker does not work \(Cannot connect to the daemon\)"):
        tools.engine()
    path.add("buildah")
    assert tools.engine() is tools._buildah


def test_docker_without_buildx_will_not_do(path: Bin) -> None:
    path.add("docker", then='case "$1" in buildx) echo "no such command" >&2; exit 1;; esac')
    path.add("podman")
    assert tools.engine() is tools._podman


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("docker", ["--platform linux/arm64", "rewrite-timestamp=true", "epoch=1700000000"]),
        ("podman", ["--platform linux/arm64", "--timestamp 1700000000", "--format docker-archive"]),
        ("buildah", ["--platform linux/arm64", "--timestamp 1700000000", "docker-archive:"]),
    ],
)
def test_every_builder_is_told_the_platform_and_the_time(
    path: Bin, tmp_path: Path, name: str, wanted: list[str]
) -> None:
    path.add(name)
    tools.engine()("arm64", tmp_path / "runtime.tar", 1_700_000_000)
    said = "\n".join(path.calls)
    assert [part for part in wanted if part not in said] == []
    assert str(tmp_path / "runtime.tar") in said


@pytest.mark.parametrize("name", ["docker", "podman", "buildah"])
def test_base_images_pinned_by_the_environment_are_built_on(
    path: Bin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("RUN_IMAGE", "base@sha256:abc")
    monkeypatch.delenv("BUILD_IMAGE", raising=False)
    path.add(name)
    tools.engine()("amd64", tmp_path / "runtime.tar", 0)
    (built,) = [call for call in path.calls if " build " in call]
    assert "--build-arg RUN_IMAGE=base@sha256:abc" in built
    assert "BUILD_IMAGE" not in built


def test_the_configuration_is_staged_with_the_registry_and_the_version(path: Bin, tmp_path: Path) -> None:
    path.add("crossplane")
    build.configuration("registry.test:5000/here", tmp_path)
    staged = tmp_path / "configuration"
    meta = (staged / "crossplane.yaml").read_text()
    assert "package: registry.test:5000/here/function-fleet-scheduler" in meta
    assert build.PLACEHOLDER not in meta
    assert f'version: ">={build.version()}"' in meta
    composition = (staged / "apis" / "modeldeployments" / "composition.yaml").read_text()
    assert "name: here-function-fleet-scheduler\n" in composition
    assert sorted(entry.name for entry in staged.iterdir()) == ["apis", "crossplane.yaml"]
    assert "xpkg build" in path.calls[0]


@pytest.mark.parametrize(
    ("registry", "wanted", "reason"),
    [
        ("registry.test/fleet", "fleet-function-fleet-scheduler", "the path, without the host"),
        (
            "registry.test:5000/a/b.c",
            "a-b-c-function-fleet-scheduler",
            "what no label may have becomes a dash",
        ),
        ("localhost/fleet", "fleet-function-fleet-scheduler", "a host without a dot"),
        ("registry.test", "function-fleet-scheduler", "no path at all"),
        ("fleet", "fleet-function-fleet-scheduler", "no host: the default registry"),
        (f"registry.test/{'a' * 62}", "a" * 62, "cut to 63 characters, no dash at the end"),
    ],
)
def test_the_composition_calls_the_function_by_the_name_crossplane_gives_it(
    registry: str, wanted: str, reason: str
) -> None:
    assert build.installed_name(registry) == wanted, reason


def test_pushing_before_building_says_what_to_do_first(path: Bin, tmp_path: Path) -> None:
    result = CliRunner().invoke(push.main, ["--registry", "registry.test/here", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "run `make package` first" in result.output


def test_all_architectures_are_pushed_under_one_tag(path: Bin, tmp_path: Path) -> None:
    path.add("crossplane")
    for architecture in build.ARCHITECTURES:
        (tmp_path / f"{build.FUNCTION}-{build.version()}-{architecture}.xpkg").touch()
    result = CliRunner().invoke(push.main, ["--registry", "registry.test/here", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    function, configuration = [call for call in path.calls if "xpkg push" in call]
    assert f"registry.test/here/{build.FUNCTION}:{build.version()}" in function
    assert function.index("amd64") < function.index("arm64")
    assert f"registry.test/here/{build.CONFIGURATION}:{build.version()}" in configuration


def test_the_function_package_holds_only_what_a_function_package_may() -> None:
    held = [path.relative_to(build.ROOT / "package") for path in (build.ROOT / "package").rglob("*.yaml")]  # type: ignore[attr-defined]
    assert {str(manifest.parts[0]) for manifest in held} == {"crossplane.yaml", "input"}


def test_no_registry_is_written_down_but_the_placeholder() -> None:
    assert build.PLACEHOLDER in (build.ROOT / "crossplane.yaml").read_text()  # type: ignore[attr-defined]
    assert build.PLACEHOLDER.split(".", 1)[1].startswith("example.com"), "a name that can belong to nobody"


def test_a_push_that_a_registry_refuses_is_tried_again(path: Bin, tmp_path: Path) -> None:
    once = (
        f'[ -e {tmp_path}/tried ] && exit 0; : > {tmp_path}/tried; echo "MANIFEST_BLOB_UNKNOWN" >&2; exit 1'
    )
    path.add("crossplane", then=once)
    push._push([tmp_path / "one.xpkg"], "registry.test/here:v1")
    assert len(path.calls) == 2


def test_a_push_that_is_refused_again_and_again_says_why(path: Bin, tmp_path: Path) -> None:
    path.add("crossplane", then='echo "unauthorized" >&2; exit 1')
    with pytest.raises(click.ClickException, match="unauthorized"):
        push._push([tmp_path / "one.xpkg"], "registry.test/here:v1")
    assert len(path.calls) == push.ATTEMPTS
