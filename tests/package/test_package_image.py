"""The image without a container engine: do what the Dockerfile says, step by step, and see that it works."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from crossplane.function import resource
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from example import caller
from package import release, tools
from tests.package.dockerfile import Dockerfile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
INSIDE = Path(__file__).with_name("inside.py")
UNCHECKED_HASH = 1


@pytest.fixture(scope="module")
def dockerfile() -> Dockerfile:
    return Dockerfile.read(ROOT / "Dockerfile")


def test_both_stages_are_of_one_debian_release(dockerfile: Dockerfile) -> None:
    releases = [stage.debian for stage in dockerfile.stages]
    assert len(releases) == 2
    assert len(set(releases)) == 1, "a wheel compiled against one libc may not run on another"


def test_base_images_are_pinned_by_digest_here_or_by_the_release(
    dockerfile: Dockerfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a tag means today only a registry can say: a release asks it, and builds with what it was told."""
    digest = f"sha256:{'ab' * 32}"
    monkeypatch.setattr(tools, "run", lambda command: f"{digest}\n")
    pinned = tools.pinned_bases()
    assert pinned.keys() == dockerfile.bases.keys()
    for argument, image in dockerfile.bases.items():
        assert re.fullmatch(rf"{re.escape(image.partition('@')[0])}@sha256:[0-9a-f]{{64}}", pinned[argument])
    assert "os.environ.update(pinned_bases())" in inspect.getsource(release.publish)


def test_base_images_name_their_registry(dockerfile: Dockerfile) -> None:
    """A first part without a dot is a folder of Docker Hub, and distroless is not published there."""
    for image in dockerfile.bases.values():
        registry, _, path = image.partition("/")
        assert "." in registry, f"{image} names no registry"
        assert "/" in path, f"{image}: a registry, a folder and a name"


def test_no_image_is_needed_but_the_bases() -> None:
    """A `# syntax=` line has a third image fetched, from one registry only, whatever the tag means today."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if re.match(r"#\s*syntax\s*=", line)] == []


def test_what_runs_holds_no_pip(dockerfile: Dockerfile) -> None:
    made = f"venv --without-pip {dockerfile.environment} "
    assert any(made in line for line in dockerfile.stages[0].lines("RUN"))


def test_the_last_stage_is_distroless_and_runs_as_a_number_that_is_not_root(dockerfile: Dockerfile) -> None:
    final = dockerfile.stages[-1]
    assert "distroless" in final.image
    user = final.last("USER")
    assert re.fullmatch(r"[1-9][0-9]*(:[1-9][0-9]*)?", user), (
        "Kubernetes can only check a number for not being root"
    )


def test_entry_point_and_port(dockerfile: Dockerfile) -> None:
    final = dockerfile.stages[-1]
    assert final.last("EXPOSE") == "9443"
    entry = final.words("ENTRYPOINT")
    assert Path(entry[0]).name in {"function", "python", "python3"}
    assert not final.lines("RUN"), "there is no shell in the last stage"


def test_dependencies_are_installed_with_hashes(dockerfile: Dockerfile) -> None:
    installs = [
        line
        for stage in dockerfile.stages
        for line in stage.lines("RUN")
        if "pip" in line and "install" in line
    ]
    assert any("--require-hashes" in line for line in installs)
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


@pytest.mark.gate
def test_the_steps_of_the_image(dockerfile: Dockerfile, tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    builder = tmp_path / "builder"
    with open_folder() as spare, environment_at(dockerfile.environment, spare) as environment:
        install(
            builder, environment, "--require-hashes", "--requirement", ROOT / "requirements" / "runtime.txt"
        )
        install(builder, environment, "--no-deps", "--no-index", wheel)
        python = environment / "bin" / "python"
        run([python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", environment / "lib"])
        run([builder / "bin" / "pip", "--python", python, "check"])
        assert timed(environment) == [], "compiled by time: two builds would differ"
        answer = serve(environment / "bin" / "function", dockerfile.uid, tmp_path)
    assert answer.requirements.resources.keys() >= {"fleet-clusters", "fleet-replicas"}
    assert [result.severity for result in answer.results if result.severity == fnv1.SEVERITY_FATAL] == []


def build_wheel(out: Path) -> Path:
    """Build the wheel from what the first stage copies, in an environment of its own, with locked tools."""
    source, builder = out / "source", out / "builder"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "function", source / "function", ignore=shutil.ignore_patterns("__pycache__"))
    run([sys.executable, "-m", "venv", builder])
    install(builder, builder, "--require-hashes", "--requirement", ROOT / "requirements" / "build.txt")
    wheel = [builder / "bin" / "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run([*wheel, "--wheel-dir", out / "dist", source])
    return next((out / "dist").glob("*.whl"))


def install(builder: Path, environment: Path, *words: str | Path) -> None:
    """Install into an environment with the builder's pip: that of the image has none."""
    pip = [builder / "bin" / "pip", "--python", environment / "bin" / "python", "install", "--quiet"]
    run([*pip, "--disable-pip-version-check", "--no-compile", *words])


def timed(environment: Path) -> list[Path]:
    """What is compiled and would be compiled again when its source has another time; see PEP 552."""
    return [
        path
        for path in sorted(environment.rglob("*.pyc"))
        if int.from_bytes(path.read_bytes()[4:8], "little") != UNCHECKED_HASH
    ]


@contextmanager
def open_folder() -> Iterator[Path]:
    """A temporary folder that any user may look into; those of pytest are the owner's alone."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


class environment_at:  # noqa: N801 - reads as a function
    """A new virtual environment at its path in the image, if this machine lets us; else elsewhere."""

    def __init__(self, wanted: Path, spare: Path) -> None:
        self.path = wanted if self._made(wanted) else spare / wanted.relative_to("/")

    def _made(self, wanted: Path) -> bool:
        """Make the folder, unless it is there: another run of these tests may have it."""
        try:
            wanted.mkdir()
        except OSError:
            return False
        return True

    def __enter__(self) -> Path:
        run([sys.executable, "-m", "venv", "--without-pip", "--copies", self.path])
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path)


def serve(executable: Path, uid: int, folder: Path) -> fnv1.RunFunctionResponse:
    """Start the server as the image's user, in a network of its own if that is allowed; ask it once."""
    deployment = caller.objects(caller.HERE / "small-model" / "xr.yaml")[0]
    request = fnv1.RunFunctionRequest()
    resource.update(request.observed.composite, deployment)
    asked, answer = folder / "request", folder / "response"
    asked.write_bytes(request.SerializeToString())
    alone = ["unshare", "--net"] if can_unshare() else []
    environment = os.environ | ({"OWN_NETWORK": "1"} if alone else {})
    run(
        [*alone, sys.executable, str(INSIDE), str(executable), str(uid), str(asked), str(answer)], environment
    )
    return fnv1.RunFunctionResponse.FromString(answer.read_bytes())


def can_unshare() -> bool:
    program = shutil.which("unshare")
    return (
        bool(program)
        and subprocess.run([program, "--net", "true"], capture_output=True, check=False).returncode == 0
    )


def run(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    assert ended.returncode == 0, f"{' '.join(map(str, command))}\n{ended.stdout}\n{ended.stderr}"
