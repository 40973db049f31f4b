"""The server as it is shipped, with a decision that misbehaves on purpose: `program.py MODE [FLAG...]`.

gate: a decision waits until the file `open` exists in the folder PROGRAM_GATE. spin: it keeps the interpreter
busy until then. crash: every decision fails with an error whose text quotes the request and the environment.

A decision that has begun says so in a line of the log, `deciding`. With PROGRAM_GATE the server gives notice
of its end until the file `noticed` exists. So a test sees what has happened and says what happens next, and
nothing depends on how long anything takes.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from function import main, runner
from function.deployment import handler

if TYPE_CHECKING:
    from function.boundary import Request, Response, Reuse

FOLDER = os.environ.get("PROGRAM_GATE")
PAUSE = 0.01
"""Seconds between two looks for a file."""


def there(name: str) -> bool:
    """Whether the test has made this file."""
    assert FOLDER
    return (Path(FOLDER) / name).exists()


def deciding() -> None:
    """Say that a decision has begun: one write, so that lines of several threads do not mix."""
    os.write(sys.stderr.fileno(), json.dumps({"event": "deciding"}).encode() + b"\n")


def gate(request: Request, *, reuse: Reuse) -> Response:
    deciding()
    while not there("open"):
        time.sleep(PAUSE)
    return handler.run(request, reuse=reuse)


def spin(request: Request, *, reuse: Reuse) -> Response:
    deciding()
    while not there("open"):
        sum(number * number for number in range(10_000))
    return handler.run(request, reuse=reuse)


def crash(request: Request, *, reuse: Reuse) -> Response:
    content = request.composite.plain()
    raise RuntimeError(f"{content} {os.environ}") from ValueError(content, dict(os.environ))


async def noticed(_: object) -> None:
    while not there("noticed"):  # noqa: ASYNC110 - a file is no event
        await asyncio.sleep(PAUSE)


if __name__ == "__main__":
    run = {"gate": gate, "spin": spin, "crash": crash}[sys.argv.pop(1)]
    if FOLDER:
        import_module("function.server.serve").notice_given = noticed  # type: ignore[attr-defined]
    runner.Function = functools.partial(runner.Function, run=run)
    main.main()
