"""Run in a network namespace of its own: start the installed function as some user, use it, stop it.

Usage: python inside.py EXECUTABLE UID REQUEST RESPONSE. REQUEST is a serialised RunFunctionRequest; what
comes back is written to RESPONSE. Exits with 0 if the server answered one call, finished the other that was
under way when it was told to stop, and then ended with 0.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import grpc

ADDRESS = "127.0.0.1:9443"
METHOD = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"
SIOCGIFFLAGS, SIOCSIFFLAGS, UP = 0x8913, 0x8914, 0x1
SECONDS = 60


def loopback_up() -> None:
    """A new network namespace has a loopback that is down, and nothing else."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | UP))


def main(executable: str, uid: int, request: bytes, response: Path) -> int:
    if os.environ.get("OWN_NETWORK"):
        loopback_up()
    identity = {"user": uid, "group": uid, "extra_groups": []} if os.getuid() == 0 else {}
    command = [executable, "--insecure", "--address", ADDRESS]
    server = subprocess.Popen(command, cwd="/", env={"PATH": "/usr/bin:/bin"}, **identity)
    try:
        with grpc.insecure_channel(ADDRESS) as channel:
            grpc.channel_ready_future(channel).result(timeout=SECONDS)
            run = channel.unary_unary(METHOD, bytes, bytes)
            response.write_bytes(run(request, timeout=SECONDS))
            late = run.future(request, timeout=SECONDS)
            time.sleep(0.05)
            server.send_signal(signal.SIGTERM)
            late.result(timeout=SECONDS)
        return server.wait(timeout=SECONDS)
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]).read_bytes(), Path(sys.argv[4])))
