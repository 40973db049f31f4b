"""Progress on standard error, for people, and only when something takes longer than a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from function.cli.text import Screen, escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")
PATIENCE = 1.0
"""Seconds before anything is shown."""


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Go through items; where that takes long and somebody watches, show how far it is."""
    console = Screen(stderr=True)
    if not console.is_terminal:
        yield from items
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console, transient=True)
    task, started = progress.add_task(escape(what), total=total), time.monotonic()
    try:
        for item in items:
            yield item
            progress.advance(task)
            if not progress.live.is_started and time.monotonic() - started > PATIENCE:
                progress.start()
    finally:
        progress.stop()
