"""Run a command where nothing mounted can be written: `unshare --mount python confined.py PYTHON COMMAND...`.

PYTHON is an empty folder that gets this interpreter's installation, for users who may not look into its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

KERNEL = ("/proc", "/sys", "/dev")
"""Where no files are."""


def mount(*words: str) -> None:
    subprocess.run([str(shutil.which("mount")), *words], check=True)


def mounted() -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = dict.fromkeys(line.split()[1] for line in lines)
    return [item for item in points if not item.startswith(KERNEL)]


if __name__ == "__main__":
    mount("--bind", sys.base_prefix, sys.argv[1])
    for point in mounted():
        mount("-o", "remount,bind,ro", point)
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - our own program
