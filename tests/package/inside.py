"""Run in a network namespace of its own: start the installed function as some user, use it, stop it.

Usage: python inside.py EXECUTABLE UID REQUEST RESPONSE. REQUEST is a serialised RunFunctionRequest; what
comes back is written to RESPONSE. Exits with 0 if the server answered one call, finished the other that was
under way when it was told to stop, and then ended with 0.
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

import grpc
from grpc_health.v1 import health_pb2

METHOD = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"
SIOCGIFFLAGS, SIOCSIFFLAGS, UP = 0x8913, 0x8914, 0x1
SECONDS = 60
"""How long anything may take before this gives up."""


def loopback_up() -> None:
    """A new network namespace has a loopback that is down, and nothing else."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | UP))


class Log(threading.Thread):
    """Passes the server's log on to our own standard error, and notes the port it says it got."""

    def __init__(self, lines: IO[str]) -> None:
        super().__init__(daemon=True)
        self._lines = lines
        self._ports: queue.Queue[int | None] = queue.Queue()
        self.start()

    def run(self) -> None:
        for line in self._lines:
            sys.stderr.write(line)
            if '"serving"' in line:
                self._ports.put(json.loads(line)["port"])
        self._ports.put(None)

    @property
    def port(self) -> int:
        port = self._ports.get(timeout=SECONDS)
        assert port is not None, "the server ended"
        return port


def ask(address: str, server: subprocess.Popen[str], request: bytes) -> bytes:
    """Have a call answered, and another one that is under way when the server is told to stop."""
    with grpc.insecure_channel(address) as channel:
        run = channel.unary_unary(METHOD, bytes, bytes)
        check = channel.unary_unary("/grpc.health.v1.Health/Check")  # type: ignore[call-arg]
        response: bytes = run(request, timeout=SECONDS)
        late = run.future(request, timeout=SECONDS)
        # One connection keeps the order: once this is answered, the call before it has arrived.
        check(health_pb2.HealthCheckRequest().SerializeToString(), timeout=SECONDS)
        server.send_signal(signal.SIGTERM)
        late.result(timeout=SECONDS)
    return response


def main(executable: str, uid: int, request: bytes, response: Path) -> int:
    if os.environ.get("OWN_NETWORK"):
        loopback_up()
    identity: dict[str, Any] = {"user": uid, "group": uid, "extra_groups": []} if os.getuid() == 0 else {}
    command = [executable, "--insecure", "--address", "127.0.0.1:0"]
    environment = {"PATH": "/usr/bin:/bin"}
    server = subprocess.Popen(
        command, cwd="/", env=environment, stderr=subprocess.PIPE, text=True, **identity
    )
    try:
        assert server.stderr
        log = Log(server.stderr)
        response.write_bytes(ask(f"127.0.0.1:{log.port}", server, request))
        code = server.wait(timeout=SECONDS)
        log.join(SECONDS)
        return code
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]).read_bytes(), Path(sys.argv[4])))
