"""Start the command line: ctrl-c ends it without a word from the first moment, while modules are imported.

The console scripts come here, so this imports nothing but what Python has imported by itself.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def fleet_scheduler() -> None:
    """Run `fleet-scheduler`."""
    with _starting():
        from function.cli import main  # noqa: PLC0415 - what takes its time
    main()


def kubectl_fleet() -> None:
    """Run `kubectl fleet`."""
    with _starting():
        from function.cli.plugin import main  # noqa: PLC0415 - likewise
    main()


def kubectl_complete() -> None:
    """Complete `kubectl fleet`."""
    with _starting():
        from function.cli.plugin import complete  # noqa: PLC0415 - likewise
    complete()


@contextmanager
def _starting() -> Iterator[None]:
    """End at once on ctrl-c, with the code that shells have for it: nothing was printed yet.

    Where it is ignored (`nohup`), it stays ignored.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    yield
    signal.signal(signal.SIGINT, before)
