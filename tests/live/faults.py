"""Faults: processes that hang, or are killed and started again; a cluster that is away; tokens that end."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.live.plane import PORT, SHIPPED, Refused, run, until, version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.plane import ControlPlane

START = 'log=$1 pid=$2; shift 2; nohup setsid "$@" >> "$log" 2>&1 < /dev/null & echo $! > "$pid"'
"""As the scripts start it: no child of the tests, so nothing waits for its end."""
LONG = pytest.mark.skipif(
    version() == SHIPPED and "FAULTS" not in os.environ,
    reason="faults take ten minutes: on the newest Crossplane, and with FAULTS=1 on any",
)
ASKED = pytest.mark.skipif("FAULTS" not in os.environ, reason="two minutes more: with FAULTS=1")


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


class Relay(threading.Thread):
    """Carries connections to the API server, which is away from those who come this way while it does not."""

    def __init__(self) -> None:
        """Listen, and carry nothing yet."""
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.server = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: set[socket.socket] = set()
        self._is_away, self._answers = threading.Event(), threading.Event()
        self._answers.set()

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Take connections and whatever is sent, and carry it only afterwards."""
        self._answers.clear()
        try:
            yield
        finally:
            self._answers.set()

    @contextmanager
    def away(self) -> Iterator[None]:
        """End all connections, and let none through for a while."""
        self._is_away.set()
        self.cut()
        try:
            yield
        finally:
            self._is_away.clear()

    def cut(self) -> None:
        """End the connections that there are, those of watches with them."""
        for end in tuple(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        """Carry until the process ends."""
        while True:
            client, _ = self._listener.accept()
            if self._is_away.is_set():
                client.close()
                continue
            with suppress(OSError):  # A server that is away itself.
                server = socket.create_connection(("127.0.0.1", PORT))
                self._open |= {client, server}
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()
            if self._is_away.is_set():
                self.cut()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._answers.wait()
                target.sendall(data)
        for end in (source, target):
            self._open.discard(end)
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def token(living: ControlPlane, namespace: str, name: str) -> str:
    """Return a token of an administrator, which is good as long as the Secret of that name is there."""
    account = {"kind": "ServiceAccount", "name": "remote", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    living.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "remote", "namespace": namespace},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"remote-{namespace}"},
            "roleRef": role,
            "subjects": [account],
        },
    )
    secret = living.request("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
    assert secret is not None, "it was applied"
    bound = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": secret["metadata"]["uid"]}
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": bound},
    }
    where = f"/api/v1/namespaces/{namespace}/serviceaccounts/remote/token"
    return str((living.request("POST", where, asked) or {})["status"]["token"])
