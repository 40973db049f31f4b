"""The two ways to ask for the same placement: a server, as Crossplane has it, and the command line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import yaml

from example import caller

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SERVE = "from function.main import main; main()"
PLAN = "from function.cli import main; main()"
START_SECONDS = 30
SHORTFALL = 2
"""Exit code of `fleet-scheduler plan` when replicas are missing."""

Placements = dict[str, Any]
"""The desired replicas and endpoints: what each is called, and its spec."""


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """Start the function as `crossplane render` expects to find it; yield its address; stop it at the end.

    Port 0 is any that is free.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [sys.executable, "-c", SERVE, "--insecure", "--address", address]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=START_SECONDS)
        yield address
    finally:
        running.terminate()
        running.wait(timeout=START_SECONDS)


def command_line(*words: str, width: int = 110) -> tuple[int, str]:
    """Run `fleet-scheduler` in the repository. Returns its exit code and what it printed."""
    command = [sys.executable, "-c", PLAN, *words]
    environment = os.environ | {"COLUMNS": str(width), "NO_COLOR": "1"}
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=caller.ROOT, env=environment
    )
    if ended.returncode not in (0, SHORTFALL):
        raise RuntimeError(f"fleet-scheduler {' '.join(words)}: {ended.stderr or ended.stdout}")
    return ended.returncode, ended.stdout


def plan(folder: Path) -> Placements:
    """Ask the command line for the desired resources of one example deployment."""
    _, printed = command_line("plan", str(caller.FLEET), str(folder), "-o", "yaml")
    return placements(each for each in yaml.safe_load_all(printed) if each)


def placements(resources: Iterable[dict[str, Any]]) -> Placements:
    """Bring desired resources in a form that compares."""
    flat = (item for each in resources for item in each.get("items", [each]))
    return {
        f"{each['kind']} {each['metadata']['namespace']}/{each['metadata']['name']}": each["spec"]
        for each in flat
        if each["kind"] in ("ModelReplica", "ModelEndpoint")
    }
