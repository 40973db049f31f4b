"""Our server as a process of its own, on loopback, and what can be seen of it from outside."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

METHOD = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"
LIMIT = 512
"""MB a request may have here."""
REUSE = 256
"""MB of parsed objects to remember: over plaintext that must be asked for."""


@dataclass(frozen=True)
class Server:
    """A running server."""

    process: subprocess.Popen[bytes]
    address: str
    call: Callable[[bytes], bytes]

    def timed(self, request: bytes) -> tuple[float, bytes]:
        """Return the milliseconds of a call, and its response."""
        started = time.perf_counter()
        response = self.call(request)
        return (time.perf_counter() - started) * 1000, response

    @property
    def processor(self) -> float:
        """Milliseconds of processor time so far, of all threads."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6

    @property
    def peak(self) -> float:
        """The largest resident size so far, in MB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        peak_line = next(line for line in lines if line.startswith("VmHWM"))
        return int(peak_line.split()[1]) / 1024


@contextmanager
def server(*flags: str) -> Iterator[Server]:
    """Start a server, and stop it afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    program = "from function.main import main; main()"
    command = [sys.executable, "-c", program, "--insecure", "--address", address]
    command += ["--max-recv-message-size", str(LIMIT), "--max-held-size", str(3 * LIMIT)]
    command += ["--reuse-size", str(REUSE), *flags]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    try:
        with grpc.insecure_channel(address, options=unlimited) as channel:
            grpc.channel_ready_future(channel).result(timeout=30)
            yield Server(process, address, channel.unary_unary(METHOD))  # type: ignore[call-arg]
    finally:
        process.terminate()
        process.wait(timeout=60)
