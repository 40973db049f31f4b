"""The two ways to ask for the same placement: a server, as Crossplane has it, and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import yaml

from example import caller

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SERVE = "from function.main import main; main()"
PLAN = "from function.cli import main; main()"
STOP_SECONDS = 60
SHORTFALL = 2
"""Exit code of `fleet-scheduler plan` when replicas are missing."""

Placements = dict[str, Any]
"""The desired replicas and endpoints: what each is called, and its spec."""


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """Start the function as `crossplane render` expects to find it; yield its address; stop it at the end.

    Port 0 is any that is free: which one, the server says in its log.
    """
    command = [sys.executable, "-c", SERVE, "--insecure", "--address", f"127.0.0.1:{port}"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        yield f"127.0.0.1:{_port_of(running)}"
    finally:
        running.terminate()
        running.wait(timeout=STOP_SECONDS)


def _port_of(running: subprocess.Popen[str]) -> int:
    """Read the log of a server until it says that it serves. Raises RuntimeError when it ends before."""
    lines = []
    for line in running.stderr or ():
        lines.append(line)
        entry = json.loads(line) if line.startswith("{") else {}
        if entry.get("event") == "serving":
            threading.Thread(target=running.stderr.read, daemon=True).start()  # type: ignore[union-attr]
            return int(entry["port"])
    raise RuntimeError(f"the function does not start: {''.join(lines)}")


def command_line(*words: str, width: int = 120) -> tuple[int, str]:
    """Run `fleet-scheduler` in the repository. Returns its exit code and what it printed.

    Bad input raises RuntimeError, but of `lint`, whose answer it is.
    """
    command = [sys.executable, "-c", PLAN, *words]
    environment = os.environ | {"COLUMNS": str(width), "NO_COLOR": "1"}
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=caller.ROOT, env=environment
    )
    if ended.returncode not in (0, SHORTFALL) and words[0] != "lint":
        raise RuntimeError(f"fleet-scheduler {' '.join(words)}: {ended.stderr or ended.stdout}")
    return ended.returncode, ended.stdout


def plan(folder: Path) -> Placements:
    """Ask the command line for the desired resources of one example deployment."""
    _, printed = command_line("plan", str(caller.FLEET), str(folder), "-o", "yaml")
    return placements(document for document in yaml.safe_load_all(printed) if document)


def placements(resources: Iterable[dict[str, Any]]) -> Placements:
    """Bring desired resources in a form that compares."""
    flat = (item for resource in resources for item in resource.get("items", [resource]))
    return {
        f"{manifest['kind']} {manifest['metadata']['namespace']}/{manifest['metadata']['name']}": manifest[
            "spec"
        ]
        for manifest in flat
        if manifest["kind"] in ("ModelReplica", "ModelEndpoint")
    }
