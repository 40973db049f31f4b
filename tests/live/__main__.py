"""The living suite: `python -m tests.live [PYTEST ARGUMENT...]`, or `make live`.

As root it runs in a network namespace of its own, so that nothing else on the machine can hold its ports.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
import sys

import pytest

from example.caller import ROOT
from tests.live import day, plane

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
IFF_UP = 1


def isolate() -> bool:
    """Move this process into a network namespace with only loopback; False where that is not allowed."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
    return True


def main() -> int:
    """Run the suite and print its table; return pytest's exit code. Nothing to run on is no failure."""
    reason = plane.missing()
    if reason:
        sys.stdout.write(f"make live is skipped: {reason}\n")
        return 0
    isolate()
    day.RESULTS.unlink(missing_ok=True)
    words = ["-m", "live", "-p", "no:cacheprovider", "-x", *sys.argv[1:]]
    code = int(pytest.main([*words, str(ROOT / "tests" / "live")]))
    if day.RESULTS.exists():
        sys.stdout.write(f"\n{day.table(day.read())}")
    return code


if __name__ == "__main__":
    sys.exit(main())
