"""Record calls into a folder, for `fleet-scheduler replay`: of each, what a decision reads and nothing else.

The folder is a ring: at most so many files, none larger than its share of the bytes, the oldest overwritten.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from function.recording.file import Recording, dumped
from function.recording.request import redacted_request, redacted_response

if TYPE_CHECKING:
    from pathlib import Path

    from function.boundary import Response
    from function.wire import Ttl

MAX_FILES = 200
MAX_BYTES = 256 * 1024 * 1024


class Recorder:
    """Writes recordings into a folder. Safe to call from many threads; it never fails a call."""

    def __init__(
        self, folder: Path, log: Any, version: str, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
    ) -> None:
        """Make the folder if it is not there. Raises OSError when that cannot be done."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._log, self._version = folder, log, version
        self._files, self._share = max_files, max_bytes // max_files
        self._next, self._lock = 0, threading.Lock()

    def record(self, request: bytes, response: Response, ttl: Ttl) -> None:
        """Write one call; what cannot be written is said in the log and left out."""
        try:
            kept = redacted_request(request)
            if kept is None:
                return
            content = dumped(Recording(self._version, ttl, kept, redacted_response(kept, response, ttl)))
            if len(content) > self._share:
                self._log.warning("not recorded", reason="too large", bytes=len(content))
                return
            self._write(content)
        except Exception as error:  # noqa: BLE001 - a recording is never worth a failed call
            self._log.warning("not recorded", reason=type(error).__name__)

    def _write(self, content: bytes) -> None:
        """Write one file whole or not at all: a disk that is full leaves nothing behind."""
        with self._lock:
            slot, self._next = self._next, (self._next + 1) % self._files
            target = self._folder / f"call-{slot:04}.json"
            partial = target.with_suffix(".partial")
            try:
                partial.write_bytes(content)
                partial.replace(target)
            except OSError:
                with suppress(OSError):
                    partial.unlink()
                raise
