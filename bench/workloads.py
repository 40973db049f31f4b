"""What a call about a ModelReplica costs over gRPC's own floor: python -m bench.workloads [--calls 200].

The replica has four engines, two of them gangs; all of it is observed and at rest. First: the first call
about a replica nobody asked about before. Again: the same replica, its map entries in another order, as
Crossplane sends them. Floor: an empty server of the same library that returns as many bytes. The three take
turns in one run, so what is compared was measured on the same machine at the same time; the last column is
what counts.
"""

from __future__ import annotations

import copy
import multiprocessing
import random
import statistics
import time
from concurrent import futures
from typing import TYPE_CHECKING, Any

import click
import grpc
from crossplane.function.proto.v1 import run_function_pb2 as pb
from rich.console import Console
from rich.table import Table

from bench.encode import field, struct_of
from bench.server import METHOD, server
from tests.replica import build
from tests.replica.provider import applied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

MAX_OVER_FLOOR = 2.0
"""Milliseconds over the floor that a call may take."""

Plain = dict[str, Any]


def scene() -> build.Scene:
    """Return a replica of four engines at rest."""
    engines = (
        *(build.engine("a"), build.gang("b", copies=2), build.engine("c", copies=3)),
        build.gang("d", nodes=3),
    )
    made = build.Scene(build.replica(*engines, cache="weights"))
    return made.but(observed=applied(build.run(made)))


def stored(plain: Plain, uid: str) -> Plain:
    """Return an object as an API server has it."""
    made = copy.deepcopy(plain)
    made["metadata"] |= {"uid": uid, "resourceVersion": "1"}
    return made


def requests(number: int, draw: random.Random, *, same: bool) -> Iterator[bytes]:
    """Yield requests about one replica, or each about another; the order of map entries is random."""
    made = scene()
    for turn in range(number):
        owner = "one" if same else f"replica-{turn}-{draw.random()}"
        message = pb.RunFunctionRequest()
        for key, manifest in made.observed.items():
            resource = field(1, struct_of(draw, stored(manifest, f"{owner}/{key}")))
            message.observed.resources[key].MergeFromString(resource)
        composite = struct_of(draw, stored(made.replica, owner))
        message.observed.composite.MergeFromString(field(1, composite))
        content = struct_of(draw, stored(made.cluster or {}, "cluster"))
        message.required_resources["cluster"].items.add().MergeFromString(field(1, content))
        yield message.SerializeToString()


def floor(size: int, connection: Connection) -> None:
    """Serve what takes any bytes and returns `size`, and nothing else, until the connection says so."""
    content = b"x" * size

    class Echo(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
        def service(self, _details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(lambda _request, _context: content)

    made = grpc.server(futures.ThreadPoolExecutor(4), handlers=(Echo(),))
    connection.send(made.add_insecure_port("127.0.0.1:0"))
    made.start()
    connection.recv()
    made.stop(None)


def timed(call: Callable[..., bytes], content: bytes) -> float:
    """Return the milliseconds of a call."""
    begun = time.perf_counter()
    call(content, timeout=60)
    return (time.perf_counter() - begun) * 1000


def measured(calls: int) -> dict[str, list[float]]:
    """Return the milliseconds of every call, by what it was."""
    draw = random.Random(1)
    times: dict[str, list[float]] = {"floor": [], "first": [], "again": []}
    others, again = (list(requests(calls, draw, same=same)) for same in (False, True))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with server() as running:
        size = len(running.call(again[0]))
        empty = context.Process(target=floor, args=(size, theirs), daemon=True)
        empty.start()
        with grpc.insecure_channel(f"127.0.0.1:{ours.recv()}") as channel:
            nothing = channel.unary_unary(METHOD)  # type: ignore[call-arg]
            timed(nothing, again[0])
            for other, one in zip(others, again, strict=True):
                times["floor"].append(timed(nothing, one))
                times["first"].append(timed(running.call, other))
                times["again"].append(timed(running.call, one))
        ours.send("enough")
        empty.join(10)
    return times


@click.command()
@click.option("--calls", default=200, show_default=True, help="Calls of each sort.")
def main(calls: int) -> None:
    """Print the table; exit with 1 if a repeated call takes more than the bound over the floor."""
    times = measured(calls)
    middle = {name: statistics.median(durations) for name, durations in times.items()}
    table = Table(
        title=f"a replica of four engines, {len(scene().observed)} Objects, median of {calls} calls"
    )
    for column in ("call", "milliseconds", "over the floor", "times the floor"):
        table.add_column(column, justify="right")
    for name, spent in middle.items():
        over = spent - middle["floor"]
        table.add_row(name, f"{spent:.2f}", f"{over:.2f}", f"{spent / middle['floor']:.1f}")
    Console().print(table)
    raise SystemExit(1 if middle["again"] - middle["floor"] > MAX_OVER_FLOOR else 0)


if __name__ == "__main__":
    main()
