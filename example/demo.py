"""Place the example deployments on the example fleet: through a real server, and with the command line.

Run it with `make demo`. It fails if the two do not agree.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import yaml
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from example import caller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVE = "from function.main import main; main()"
PLAN = "from function.cli import main; main()"
START_SECONDS = 30
SHORTFALL = 2
"""Exit code of `fleet-scheduler plan` when replicas are missing."""

Placements = dict[str, Any]


def main() -> int:
    """Run the demo. Returns the exit code: 0 if server and command line agree on everything."""
    console = Console()
    fleet = caller.objects(caller.FLEET)
    differing = []
    with server() as stub:
        for folder in caller.deployments():
            answer = caller.call(stub, caller.objects(folder / "xr.yaml")[0], fleet)
            show(console, folder, answer)
            planned = plan(folder)
            same = planned == placements(answer.desired.values())
            verdict = "[green]the same[/]" if same else f"[red]something else[/]: {escape(str(planned))}"
            console.print(
                f"[dim]fleet-scheduler plan example/fleet example/{folder.name}[/] gives {verdict}\n"
            )
            differing += [] if same else [folder.name]
    if differing:
        console.print(f"[red]Server and command line differ: {', '.join(differing)}[/]")
    return 1 if differing else 0


@contextmanager
def server() -> Iterator[grpcv1.FunctionRunnerServiceStub]:
    """Start the function as `crossplane render` expects to find it, and stop it at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    running = subprocess.Popen([sys.executable, "-c", SERVE, "--insecure", "--address", address])
    try:
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=START_SECONDS)
            yield grpcv1.FunctionRunnerServiceStub(channel)  # type: ignore[no-untyped-call] # generated
    finally:
        running.terminate()
        running.wait(timeout=START_SECONDS)


def show(console: Console, folder: Path, answer: caller.Answer) -> None:
    """Print where the replicas went, and what the deployment's conditions would say."""
    wanted = answer.deployment["spec"]["replicas"]
    table = Table(
        title=f"{folder.name}: {wanted} replicas wanted, {answer.calls} calls", title_justify="left"
    )
    for column in ("replica", "cluster", "pools", ""):
        table.add_column(column)
    for key, each in answer.desired.items():
        if each["kind"] == "ModelReplica":
            was = "kept" if key in answer.observed else "new"
            table.add_row(each["metadata"]["name"], each["spec"]["clusterName"], pools(each), was)
    for key in answer.observed.keys() - answer.desired.keys():
        each = answer.observed[key]
        if each["kind"] == "ModelReplica":
            table.add_row(
                each["metadata"]["name"], each["spec"]["clusterName"], pools(each), "[red]leaves[/]"
            )
    console.print(table)
    for condition in answer.response.conditions:
        true = condition.status == fnv1.STATUS_CONDITION_TRUE
        mark = f"[{'green' if true else 'yellow'}]{condition.type}={true} {condition.reason}[/]"
        console.print(mark, escape(condition.message), highlight=False)
    for result in answer.response.results:
        console.print(f"event: {escape(result.message)}", highlight=False)


def row(replica: dict[str, Any]) -> tuple[str, str, str]:
    """Name a replica, its cluster and its pools."""
    return replica["metadata"]["name"], replica["spec"]["clusterName"], pools(replica)


def pools(replica: dict[str, Any]) -> str:
    """Name the pool of every member, once if they are the same: `main: h200-ib`."""
    by_engine = (
        (engine["name"], dict.fromkeys(member["nodePoolName"] for member in engine["members"]))
        for engine in replica["spec"]["engines"]
    )
    return ", ".join(f"{name}: {'+'.join(used)}" for name, used in by_engine)


def plan(folder: Path) -> Placements:
    """Ask the command line for the desired resources of the same files."""
    command = [sys.executable, "-c", PLAN, "plan", str(caller.FLEET), str(folder), "-o", "yaml"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode not in (0, SHORTFALL):
        raise RuntimeError(f"fleet-scheduler plan failed for {folder.name}: {asked.stderr or asked.stdout}")
    return placements(each for each in yaml.safe_load_all(asked.stdout) if each)


def placements(resources: Any) -> Placements:
    """Bring the desired replicas and endpoints in a form that compares: what each is called, and its spec."""
    kinds = ("ModelReplica", "ModelEndpoint")
    flat = (item for each in resources for item in each.get("items", [each]))
    return {
        f"{each['kind']} {each['metadata']['namespace']}/{each['metadata']['name']}": each["spec"]
        for each in flat
        if each["kind"] in kinds
    }


if __name__ == "__main__":
    sys.exit(main())
