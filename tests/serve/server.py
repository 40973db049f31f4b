"""A server in a process of its own, and a client for it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import grpc
from crossplane.function.proto.v1 import run_function_pb2 as pb
from grpc_health.v1 import health_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("program.py")
PATIENCE = 60
GPU = {"name": "gpu", "count": 1, "selectors": [{"cel": "device.driver == 'gpu.nvidia.com'"}]}
CONTAINER = {"name": "engine", "image": "vllm/vllm-openai"}
MEMBER = {"nodeSelector": {"devices": [GPU]}, "template": {"spec": {"containers": [CONTAINER]}}}
ENGINE = {"name": "main", "members": [MEMBER]}
V1 = "apiextensions.fn.proto.v1.FunctionRunnerService"
V1BETA1 = "apiextensions.fn.proto.v1beta1.FunctionRunnerService"


def command(*flags: str, mode: str = "") -> list[str]:
    """Return the command line of the server, or of the one that misbehaves as `mode` says."""
    return (
        [sys.executable, str(PROGRAM), mode, *flags]
        if mode
        else [sys.executable, "-m", "function.main", *flags]
    )


def environment(more: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/nonexistent", **more}


class Server:
    """Runs from `with` to the end of the block. Port 0: the one it got is in its log."""

    def __init__(self, *flags: str, mode: str = "", env: Mapping[str, str] | None = None) -> None:
        self._command = command("--address", "127.0.0.1:0", *flags, mode=mode)
        self._environment = environment(env or {})
        self.output: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.started = self.wait_for("serving")
        self.address = f"127.0.0.1:{self.started['port']}"
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.output.append(line)
            self._lines.put(line)
        self._lines.put(None)

    @classmethod
    def gated(cls, folder: Path, *flags: str, mode: str = "gate") -> Self:
        """Return a server whose decisions, and whose end, wait for files in a folder (see program.py)."""
        return cls("--insecure", *flags, mode=mode, env={"PROGRAM_GATE": str(folder)})

    def wait_for(self, event: str) -> dict[str, Any]:
        """Return the next log line about `event`."""
        while True:
            line = self._lines.get(timeout=PATIENCE)
            assert line is not None, f"the server ended without {event!r}: {''.join(self.output)}"
            entry = json.loads(line) if line.startswith("{") else {}
            if entry.get("event") == event:
                return dict(entry)

    @property
    def resident(self) -> float:
        """The memory it holds, in MiB."""
        return self._status("VmRSS")

    def _status(self, name: str) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(name))
        return int(line.split()[1]) / 1024

    @property
    def peak(self) -> float:
        """The most memory it has held, in MiB."""
        return self._status("VmHWM")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def channel(self) -> grpc.Channel:
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        return grpc.insecure_channel(self.address, options)


def until(seen: Callable[[], bool], what: str) -> None:
    """Look until something has come about. It is no matter of how soon: a test fails when it never does."""
    deadline = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.01)


def request(**deployment: Any) -> bytes:
    """Return a request for a small deployment, with nothing delivered yet."""
    message = pb.RunFunctionRequest()
    message.meta.tag = "tested"
    message.observed.composite.resource.update(
        {
            "apiVersion": "modelplane.ai/v1alpha1",
            "kind": "ModelDeployment",
            "metadata": {"name": "tiny", "namespace": "ml", "uid": "u-1", **deployment},
            "spec": {"replicas": 1, "template": {"spec": {"engines": [ENGINE]}}},
        }
    )
    return message.SerializeToString()


def runner(channel: grpc.Channel, service: str = V1) -> Any:
    """Return the call, in bytes."""
    return channel.unary_unary(f"/{service}/RunFunction", bytes, bytes)


def run(channel: grpc.Channel, content: bytes | None = None, service: str = V1) -> pb.RunFunctionResponse:
    """Call RunFunction once."""
    asked = request() if content is None else content
    return pb.RunFunctionResponse.FromString(runner(channel, service)(asked, timeout=PATIENCE))


def health(channel: grpc.Channel, timeout: float = PATIENCE) -> str:
    """Return the server's health by its name, or that it does not answer."""
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        health_pb2.HealthCheckRequest.SerializeToString,
        health_pb2.HealthCheckResponse.FromString,
    )
    try:
        answer = check(health_pb2.HealthCheckRequest(), timeout=timeout)
    except grpc.RpcError as error:
        return str(error.code().name)
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
