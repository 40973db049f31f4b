"""Record what this tree composes, for later releases to be held to: `python -m hack.record_release 1.2.0`."""

from __future__ import annotations

import sys

from tests.upgrade import recorded, systems


def record(release: str) -> int:
    """Write the corpus of a release."""
    path = recorded.save(release, systems.running())
    sys.stdout.write(f"{path}: {path.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(record(sys.argv[1]))
