"""Processes of a control plane that hang, or are killed and started again as they had been started."""

from __future__ import annotations

import http.client
import os
import signal
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.live.plane import SHIPPED, Refused, run, until, version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.plane import ControlPlane

START = 'log=$1 pid=$2; shift 2; nohup setsid "$@" >> "$log" 2>&1 < /dev/null & echo $! > "$pid"'
"""As the scripts start it: no child of the tests, so nothing waits for its end."""
LONG = pytest.mark.skipif(
    version() == SHIPPED and "FAULTS" not in os.environ,
    reason="faults take seven minutes: on the newest Crossplane, and with FAULTS=1 on any",
)


def process_of(living: ControlPlane, name: str) -> int:
    """The process of a name, as the scripts know it."""
    return int((living.state / "pids" / name).read_text())


@contextmanager
def hung(living: ControlPlane, name: str) -> Iterator[None]:
    """Keep a process from answering: what is sent to it arrives and waits."""
    process = process_of(living, name)
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@contextmanager
def killed(living: ControlPlane, name: str) -> Iterator[None]:
    """Kill a process, and start it again with its words, environment, folder and mounts."""
    process = process_of(living, name)
    folder = Path("/proc", str(process))
    words = words_of(folder)
    variables = (folder / "environ").read_bytes().decode().split("\0")[:-1]
    where = (folder / "cwd").readlink()
    mounts = os.open(folder / "ns" / "mnt", os.O_RDONLY)
    try:
        os.kill(process, signal.SIGKILL)
        until(lambda: is_over(folder), f"{name} ended")
        yield
    finally:
        enter = ["nsenter", f"--mount=/proc/{os.getpid()}/fd/{mounts}", f"--wd={where}"]
        files = (str(living.state / "logs" / f"{name}.log"), str(living.state / "pids" / name))
        environment = dict(variable.split("=", 1) for variable in variables)
        run(["bash", "-c", START, "bash", *files, *enter, *words], environment=environment)
        until(lambda: words_of(Path("/proc", str(process_of(living, name)))) == words, f"{name} runs again")
        os.close(mounts)  # Only now: it was needed until the process had its mounts.


def words_of(folder: Path) -> list[str]:
    """The program and arguments of a process; none where it is not there yet, or no more."""
    with suppress(OSError):
        return (folder / "cmdline").read_bytes().decode().split("\0")[:-1]
    return []


def is_over(folder: Path) -> bool:
    """Whether a process has ended; one that we started ourselves is there until it is waited for."""
    with suppress(OSError):
        return "State:\tZ" in (folder / "status").read_text()
    return True


def until_it_answers(living: ControlPlane) -> None:
    """Wait until the API server reads and writes again."""

    def answers() -> bool:
        with suppress(Refused, OSError, http.client.HTTPException):
            return living.kubectl("get", "--raw", "/readyz") == "ok"
        return False

    until(answers, "the API server is ready")
