"""As Kubernetes runs it when it is careful: uid 2000, no network but the loopback, a read-only root."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as pb

from tests.serve.server import PATIENCE, ROOT, request

if TYPE_CHECKING:
    from collections.abc import Iterator

INSIDE = ROOT / "tests" / "package" / "inside.py"
CONFINED = Path(__file__).with_name("confined.py")
USER = 2000


def may_unshare() -> bool:
    program = shutil.which("unshare")
    command = [str(program), "--net", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return bool(program) and subprocess.run(command, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not may_unshare(), reason="needs root that may make namespaces")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that any user may look into; those of pytest are the owner's alone."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "python").mkdir()
        yield Path(name)


def confined(folder: Path, *command: str) -> subprocess.CompletedProcess[bytes]:
    alone = ["unshare", "--net", "--mount", sys.executable, str(CONFINED), str(folder / "python")]
    return subprocess.run([*alone, *command], capture_output=True, check=False, timeout=2 * PATIENCE)


def program(folder: Path) -> Path:
    """Write what starts the server with the interpreter that the user can reach."""
    python = folder / "python"
    paths = f"LD_LIBRARY_PATH={python}/lib PYTHONPATH={ROOT}:{sysconfig.get_path('purelib')}"
    made = folder / "function"
    made.write_text(f'#!/bin/sh\n{paths} exec {python}/bin/python3 -m function.main "$@"\n')
    made.chmod(0o755)
    return made


def test_nothing_can_be_written_where_it_runs(folder: Path) -> None:
    """Or the next test would show nothing."""
    for place in (folder, Path("/tmp"), Path("/")):  # noqa: S108 - must not be writable
        ended = confined(folder, shutil.which("touch") or "", str(place / "written"))
        assert b"Read-only file system" in ended.stderr


def test_it_starts_serves_and_drains(folder: Path) -> None:
    asked = folder / "request"
    asked.write_bytes(request())
    server = ["env", "OWN_NETWORK=1", sys.executable, str(INSIDE), str(program(folder)), str(USER)]
    ended = confined(folder, shutil.which(server[0]) or "", *server[1:], str(asked), "/dev/stdout")
    assert ended.returncode == 0, ended.stderr.decode()
    answer = pb.RunFunctionResponse.FromString(ended.stdout)
    assert answer.meta.tag == "tested"
    assert "own-replicas/tiny" in answer.requirements.resources
    assert b'"stopped"' in ended.stderr
