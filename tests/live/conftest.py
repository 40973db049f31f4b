"""One control plane for all of the suite, started once, and the record of the day."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from example.caller import ROOT
from tests.live import install, plane, workload
from tests.live.day import FOLDER, Day
from tests.live.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


BROUGHT = (" configuration/", " xrd/")
"""What install.md waits for that the Configuration brings. A Function installed by hand has another name."""
RECORDING = FOLDER / f"{plane.version()}.jsonl"
"""What happened in the control plane, from its start on."""
LINES, WIDTH = 12, 400
"""How much of the end of each log is shown when something failed."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show the end of every log of the control plane when something failed: a CI machine keeps none."""
    if not any(terminalreporter.stats.get(outcome) for outcome in ("failed", "error")):
        return
    for log in sorted((plane.ControlPlane.here().state / "logs").glob("*.log")):
        terminalreporter.section(f"the end of {log}")
        for line in log.read_text(errors="replace").splitlines()[-LINES:]:
            terminalreporter.write_line(line[:WIDTH])


@pytest.fixture(scope="session")
def day() -> Iterator[Day]:
    """The steps and their times; kept at the end."""
    recorded = Day()
    yield recorded
    recorded.write(FOLDER / f"{plane.version()}.json")


@contextmanager
def recorded(started: plane.ControlPlane) -> Iterator[None]:
    """With HISTORY=1, record all that happens to our kinds, in a process of its own.

    `test_the_history` judges it.
    """
    if not os.environ.get("HISTORY"):
        yield
        return
    words = (sys.executable, "-m", "tests.history", "--record", str(RECORDING))
    RECORDING.parent.mkdir(parents=True, exist_ok=True)
    kubeconfig = str(started.state / "admin.kubeconfig")
    with subprocess.Popen([*words, "--kubeconfig", kubeconfig], cwd=ROOT) as process:
        try:
            yield
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def bare_plane() -> Iterator[plane.ControlPlane]:
    """A control plane with nothing installed; skipped where there cannot be one."""
    reason = plane.missing()
    if reason:
        pytest.skip(reason)
    started = plane.ControlPlane.here(os.environ.get("CORE_FLAGS", "--enable-operations"))
    try:
        started.up(rbac=True)
        with recorded(started):
            yield started
    finally:
        if not os.environ.get("KEEP"):
            started.down()


@pytest.fixture(scope="session")
def recording() -> Path:
    """The file with all that has happened in the control plane so far; skipped where nobody asked for it."""
    if not os.environ.get("HISTORY"):
        pytest.skip("nothing is recorded: HISTORY=1 asks for it")
    return RECORDING


@pytest.fixture(scope="session")
def living(
    bare_plane: plane.ControlPlane, tmp_path_factory: pytest.TempPathFactory, day: Day
) -> plane.ControlPlane:
    """The control plane with our packages installed and the function running."""
    install.push_packages(bare_plane, tmp_path_factory.mktemp("packages"))
    with day.step(
        "install the Configuration", f"{len(install.DEFINITIONS)} XRDs Established, Function installed"
    ):
        install.install(bare_plane)
    with day.step("start the function", "Function and Configuration Healthy"):
        install.start(bare_plane)
    for line in install.commands("install.md", "kubectl wait"):
        if any(kind in line for kind in BROUGHT):
            bare_plane.shell(line)
    install.take_the_platforms_part(bare_plane)
    bare_plane.script("down.sh", "rbac")  # It has granted what the packages need, and listens everywhere.
    return bare_plane


@pytest.fixture(scope="session")
def unasked(living: plane.ControlPlane) -> Iterator[Future[dict[str, float]]]:
    """How soon each change of a fleet is acted on when nobody asks: up to 2.3 a minute, beside other steps.

    From 2.4 on an answer at rest holds for ten minutes, so only a watch can be that soon.
    """
    scene, connection = Scene("ttl"), plane.ControlPlane(living.scripts, living.state)
    scene.set_up(connection)
    with ThreadPoolExecutor(max_workers=1) as beside:
        yield beside.submit(scene.change, connection)


@pytest.fixture(scope="module")
def cluster_controllers(living: plane.ControlPlane) -> Iterator[None]:
    """A workload cluster, and the Compositions that `living` took away."""
    if reason := workload.missing():
        pytest.skip(reason)
    # The clusters of the other files have no API server to connect to, and would keep the provider busy.
    living.kubectl("delete", "inferenceclusters", "--all")
    with workload.running(living):
        workload.give_the_platforms_part_back(living)
        yield
        install.take_the_platforms_part(living)
