"""The function's log in a control plane: which calls were answered, and how."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.plane import ControlPlane, Plain


class FunctionLog:
    """The answers in the log, from now on: each is read once."""

    def __init__(self, living: ControlPlane) -> None:
        """Begin at the end of the log."""
        self._path = living.state / "logs" / "function.log"
        self.skip()

    def skip(self) -> None:
        """Pass over all that is there."""
        self._position = self._path.stat().st_size

    def answers(self) -> Iterator[Plain]:
        """The lines about calls, answered or failed, that were written since the last look."""
        with self._path.open("rb") as log:
            log.seek(self._position)
            whole = log.read().rpartition(b"\n")[0]
        self._position += len(whole) + 1 if whole else 0
        for line in whole.splitlines():
            if line.startswith(b"{") and (b'"answered"' in line or b'"failed"' in line):
                yield json.loads(line)
