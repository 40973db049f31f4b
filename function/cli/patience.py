"""Show on a terminal that something goes on, once the program has taken a second.

A clock decides, beside what is done: imports from a slow disk and the first answer of a control plane take
long before anything could be counted. `text.track` counts items; `waiting` names what has none.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STARTED = time.monotonic()
PATIENCE = 1.0
"""Seconds that the program may take before a terminal shows what takes them."""
BLINK = 0.2
"""Seconds below which a line would only flicker."""


@contextmanager
def after_patience(show: Callable[[], object], least: float = 0) -> Iterator[None]:
    """Call `show` beside what is done here, once the patience is over; at the end it is called no more.

    `least`: seconds that this alone may take.
    """
    clock = Timer(max(STARTED + PATIENCE - time.monotonic(), least), show)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()
        clock.join()


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Name on a terminal what takes long, and take the line back when it is done."""
    stream, line = sys.stderr, f"{what} ..."
    if not stream.isatty():
        yield
        return
    shown: list[str] = []

    def show() -> None:
        shown.append(line)
        stream.write(line)
        stream.flush()

    try:
        with after_patience(show, BLINK):
            yield
    finally:
        if shown:
            stream.write(f"\r{' ' * len(line)}\r")
            stream.flush()
