"""The living suite: `python -m tests.live [--write] [PYTEST ARGUMENT...]`, or `make live`.

As root it runs in a network namespace of its own, so that nothing else on the machine can hold its ports.
"""

from __future__ import annotations

import ctypes
import fcntl
import re
import socket
import struct
import sys
from pathlib import Path

import pytest

from example.caller import ROOT
from tests.live import day, plane

PAGE = ROOT / "docs" / "operations.md"
BLOCK = re.compile(
    r"(```console\nmake live\nCROSSPLANE_VERSION=\S+ make live\n```\n\n```text\n).*?(```)", re.DOTALL
)
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


def document(table: str) -> None:
    """Write the table into docs/operations.md, below the command that prints it."""
    text = PAGE.read_text()
    again, count = BLOCK.subn(lambda match: f"{match[1]}{table}{match[2]}", text)
    assert count == 1, f"one block of `make live` in {PAGE}"
    PAGE.write_text(again)


def main() -> int:
    """Run the suite and print its table; return pytest's exit code. Nothing to run on is no failure.

    With `--write` the table goes into the documentation, too, with those of other versions that were kept.
    """
    reason = plane.missing()
    if reason:
        sys.stdout.write(f"make live is skipped: {reason}\n")
        return 0
    if not isolate():
        sys.stdout.write("make live is skipped: no control plane: this container may not make namespaces\n")
        return 0
    kept = day.FOLDER / f"{plane.version()}.json"
    kept.unlink(missing_ok=True)
    given = [word for word in sys.argv[1:] if word != "--write"]
    words = ["-m", "live", "-p", "no:cacheprovider", "-x", *given]
    if not any(Path(word.partition("::")[0]).exists() for word in given):
        words.append(str(ROOT / "tests" / "live"))
    code = int(pytest.main(words))
    if kept.exists():
        sys.stdout.write(f"\n{day.table({plane.version(): day.read(kept)})}")
        if code == 0 and "--write" in sys.argv:
            document(day.table({path.stem: day.read(path) for path in sorted(day.FOLDER.glob("*.json"))}))
    return code


if __name__ == "__main__":
    sys.exit(main())
