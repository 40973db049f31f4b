"""The server as it is shipped, with a decision that misbehaves on purpose: `program.py MODE [FLAG...]`.

slow: every decision waits. busy: every decision keeps the interpreter busy. crash: every decision fails with
an error whose text quotes the request and the environment. gate: a decision waits until a file exists.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from function import main, runner
from function.deployment import handler

if TYPE_CHECKING:
    from function.boundary import Request, Response, Reuse

SECONDS = float(os.environ.get("PROGRAM_SECONDS", "1"))


def slow(request: Request, *, reuse: Reuse) -> Response:
    time.sleep(SECONDS)
    return handler.run(request, reuse=reuse)


def busy(request: Request, *, reuse: Reuse) -> Response:
    until = time.thread_time() + SECONDS
    while time.thread_time() < until:
        sum(number * number for number in range(1000))
    return handler.run(request, reuse=reuse)


def gate(request: Request, *, reuse: Reuse) -> Response:
    while not Path(os.environ["PROGRAM_GATE"]).exists():
        time.sleep(0.01)
    return handler.run(request, reuse=reuse)


def crash(request: Request, *, reuse: Reuse) -> Response:
    content = request.composite.plain()
    raise RuntimeError(f"{content} {os.environ}") from ValueError(content, dict(os.environ))


if __name__ == "__main__":
    run = {"slow": slow, "busy": busy, "gate": gate, "crash": crash}[sys.argv.pop(1)]
    runner.Function = functools.partial(runner.Function, run=run)  # type: ignore[misc,assignment]
    main.main()
