"""An earlier release of the function, unpacked from git, that answers beside this one.

The modules of one process are of one version, so it answers in a process of its own, through a pipe.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from example.caller import ROOT
from tests.support.crossplane import MEMORY, fresh_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Copy = Callable[[bytes], bytes]

ANSWERING = f"""
import sys, function, structlog
assert function.__path__[0].startswith(sys.argv[1])
from function.runner import Function
try:
    from function.boundary.memory import Memory
except ImportError:
    from function.boundary.parse_cache import Memory
quiet = structlog.wrap_logger(None, wrapper_class=structlog.make_filtering_bound_logger("critical"))
copies = {{}}
while head := sys.stdin.buffer.readline():
    number, length = map(int, head.split())
    if number not in copies:
        copies[number] = Function(quiet, memory=Memory({MEMORY}))
        copies.pop(number - 8, None)
    answer = copies[number].answer(sys.stdin.buffer.read(length))
    sys.stdout.buffer.write(b"%d\\n" % len(answer) + answer)
    sys.stdout.buffer.flush()
"""
"""Answers requests as the release in a folder does: each comes with the number of a copy and its length."""
PARTS = ("function", "apis", "example/routing")
"""What is unpacked of a release."""


class Release(NamedTuple):
    """A release that answers."""

    tree: Path
    """Where its Compositions are."""
    started: Callable[[], Copy]
    """Starts a copy of it."""


THIS = Release(ROOT, lambda: fresh_copy().answer)


@contextmanager
def earlier(commit: str) -> Iterator[Release]:
    """Unpack a commit, or the tag of a version, and let it answer until the end.

    Raises:
        LookupError: where git has neither, as in a shallow clone, or is not there.
    """
    git = shutil.which("git")
    if git is None:
        raise LookupError("there is no git")
    for name in (commit, f"v{commit}"):
        archive = subprocess.run([git, "archive", name, *PARTS], cwd=ROOT, capture_output=True, check=False)
        if not archive.returncode:
            break
    else:
        raise LookupError(f"{commit}: {archive.stderr.decode().strip()}")
    with TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(folder, filter="data")
        process = subprocess.Popen(
            [sys.executable, "-c", ANSWERING, folder],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder, "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with process:
            numbers = count()
            yield Release(Path(folder), lambda: partial(_answer, process, next(numbers)))


@contextmanager
def unpacked() -> Iterator[Callable[[str], Release]]:
    """Return what unpacks an earlier release once, and lets it answer until the end."""
    with ExitStack() as stack:
        yield cache(lambda commit: stack.enter_context(earlier(commit)))


def _answer(process: subprocess.Popen[bytes], number: int, content: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"%d %d\n" % (number, len(content)) + content)
    process.stdin.flush()
    return process.stdout.read(int(process.stdout.readline()))
