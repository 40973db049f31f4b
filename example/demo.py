"""Place the example deployments on the example fleet: through a real server, and with the command line.

Run it with `make demo`. It fails if the two do not agree.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import grpc
from crossplane.function.proto.v1 import run_function_pb2 as fnv1, run_function_pb2_grpc as grpcv1
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from example import caller, compare
from function.cli.render.table import UNDER_WAY, message_of
from function.cli.text import counted

if TYPE_CHECKING:
    from pathlib import Path


def main() -> int:
    """Run the demo. Returns the exit code: 0 if server and command line agree on everything."""
    console = Console()
    fleet = caller.objects(caller.FLEET)
    differing = []
    with compare.serving() as address, grpc.insecure_channel(address) as channel:
        stub = grpcv1.FunctionRunnerServiceStub(channel)  # type: ignore[no-untyped-call] # generated
        for folder in caller.deployments():
            deployment = caller.objects(folder / "xr.yaml")[0]
            answer = caller.call(stub, deployment, caller.observed_in(folder), fleet)
            show(console, folder, answer)
            if not agrees(console, folder, answer):
                differing.append(folder.name)
    if differing:
        console.print(f"[red]Server and command line differ: {', '.join(differing)}[/]")
    return 1 if differing else 0


def show(console: Console, folder: Path, answer: caller.Answer) -> None:
    """Print where the replicas went, and what the deployment's conditions would say."""
    wanted = counted(answer.deployment["spec"]["replicas"], "replica")
    title = f"{folder.name}: {wanted} wanted, {counted(answer.calls, 'call')}"
    table = Table(title=title, title_justify="left")
    for column in ("replica", "cluster", "pools", ""):
        table.add_column(column)
    for key, resource in answer.desired.items():
        if resource["kind"] == "ModelReplica":
            table.add_row(*row(resource), "stays" if key in answer.observed else "new")
    for key in sorted(answer.observed.keys() - answer.desired.keys()):
        if answer.observed[key]["kind"] == "ModelReplica":
            table.add_row(*row(answer.observed[key]), "[red]leaves[/]")
    console.print(table)
    for condition in answer.response.conditions:
        true = condition.status == fnv1.STATUS_CONDITION_TRUE
        style = "green" if true else "cyan" if condition.reason in UNDER_WAY else "yellow"
        mark = f"[{style}]{condition.type}={true} {condition.reason}[/]"
        console.print(mark, escape(message_of(condition.reason, condition.message)), highlight=False)
    for result in answer.response.results:
        console.print(f"[dim]event:[/] {escape(result.message)}", highlight=False)


def agrees(console: Console, folder: Path, answer: caller.Answer) -> bool:
    """Ask the command line the same, and say whether it answers the same."""
    planned = compare.plan(folder)
    same = planned == compare.placements(answer.desired.values())
    verdict = "[green]the same[/]" if same else f"[red]something else[/]: {escape(str(planned))}"
    console.print(f"[dim]fleet-scheduler plan example/fleet example/{folder.name}[/] gives {verdict}\n")
    return same


def row(replica: dict[str, Any]) -> tuple[str, str, str]:
    """Name a replica, its cluster, and the pool of every engine: `main: h200-ib`."""
    engines = (
        (engine["name"], dict.fromkeys(member["nodePoolName"] for member in engine["members"]))
        for engine in replica["spec"]["engines"]
    )
    pools = "\n".join(f"{name}: {'+'.join(used)}" for name, used in engines)
    return replica["metadata"]["name"], replica["spec"]["clusterName"], pools


if __name__ == "__main__":
    sys.exit(main())
