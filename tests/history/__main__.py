"""`python -m tests.history FILE` judges a recording; with `--record` it makes one, until it is interrupted.

`--kubeconfig` names the control plane that is followed; by default that of `make live`. The exit code is 1
when a promise was broken. What is judged, and how: `tests/history/judge.py`.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import click

from tests.history.judge import judge
from tests.history.lives import read
from tests.history.record import Recorder
from tests.live.plane import ControlPlane


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--record", is_flag=True, help="Record until SIGTERM or SIGINT.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="With a token.")
def main(file: Path, kubeconfig: Path | None, *, record: bool) -> None:
    """Judge a recording, or make one."""
    if record:
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        recorder = Recorder.of(kubeconfig or ControlPlane.here().state / "admin.kubeconfig", file.open("w"))
        recorder.start()
        ended.wait()
        recorder.close()
        return
    history = read(file)
    verdict = judge(history)
    sys.stdout.write(f"{history.events:6} events in {history.until:.0f} s\n{verdict.report()}")
    sys.exit(bool(verdict.violations))


if __name__ == "__main__":
    main()
