"""A server that is asked for days holds no more memory than one that was asked for minutes."""

from __future__ import annotations

import copy
import gc
import random
import sys
import tracemalloc
from typing import TYPE_CHECKING

import grpc
import pytest
import structlog

from bench.encode import Requests
from bench.fleets import Size, churn, cluster, fleet, stranger
from function import wire
from function.boundary.memory import Memo, Memory
from function.cel import compile_device
from function.cel.checker.state import DEVICE
from function.cel.selector import compiled
from function.runner import Function
from function.server.serve import Silence, rehearse
from function.wire import messages, write
from tests.fuzz.mutate import mutated_bytes
from tests.serve.server import PATIENCE, Server, runner
from tests.support import generate, scale

if TYPE_CHECKING:
    from collections.abc import Iterator

MEBI = 1024 * 1024
SIZE = Size(clusters=6, pools=2, replicas=16)
DEPLOYMENTS = 40
EXPLAINED = {
    "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
    "kind": "SchedulerConfig",
    "explain": "Status",
}
AT_ONCE = 4
"""Requests in flight: as many as there are workers, so that each of them has worked."""
WARM = 1_000
"""Requests after which a server holds all that it will ever hold, the memory of parsed objects full."""
PARTS = 10
BOUND = 5.0
"""MiB it may grow after that."""


class Changing:
    """A fleet of which something else is new in every request, as written by Crossplane."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._fleet = fleet(SIZE, seed)
        self._requests = Requests(self._fleet, seed)
        self._number = SIZE.clusters
        self._used = {manifest["spec"]["clusterName"] for manifest in self._fleet.observed.values()}

    def next(self) -> bytes:
        """Return the next request: objects changed, a cluster and a replica gone, others come."""
        fleet, draw = self._fleet, self._draw
        self._number += 1
        come = cluster(draw, self._number, SIZE.pools)
        pools = [
            place
            for place, manifest in enumerate(fleet.clusters)
            if manifest["metadata"]["name"] not in self._used
        ]
        fleet.clusters[draw.choice(pools)] = come
        placed = stranger(draw, self._number, come, SIZE)
        fleet.replicas[draw.randrange(SIZE.replicas - len(fleet.observed))] = placed
        self._requests.written = {
            key: value for key, value in self._requests.written.items() if key in self._alive()
        }
        self._requests.refresh([come, placed, *churn(draw, fleet, objects=3)])
        return self._asked(self._requests.next())

    def _asked(self, content: bytes) -> bytes:
        """Ask about one of several deployments, whose selectors are edited now and then, explained."""
        message = messages.Request.FromString(content)
        made, number = copy.deepcopy(self._fleet.deployment), self._draw.randrange(DEPLOYMENTS)
        edition = self._number // 3
        version = {"name": f"d{number}", "uid": f"u-{number}", "resourceVersion": str(edition)}
        made["metadata"] |= version
        for engine in made["spec"]["template"]["spec"]["engines"]:
            for member in engine["members"]:
                for wanted in member["nodeSelector"]["devices"]:
                    for selector in wanted["selectors"]:
                        selector["cel"] += f" && device.driver != 'edition-{edition}'"
        message.observed.composite.resource = write.struct(made)
        message.input = write.struct(EXPLAINED)
        return bytes(message.SerializeToString())

    def _alive(self) -> set[int]:
        fleet = self._fleet
        return {id(one_cluster) for one_cluster in (*fleet.clusters, *fleet.replicas, fleet.deployment)}


def test_a_value_is_computed_once_for_a_key_and_so_many_are_kept() -> None:
    """`None` is a value like any other. The one that came first goes."""
    computed: list[str] = []

    def compute(subject: str) -> str | None:
        computed.append(subject)
        return subject or None

    memo = Memo(compute, most=2)
    for subject in ("a", "", "a", "", "b", "b", "", "a"):
        assert memo.of(f"key of {subject}", subject) == (subject or None)
    assert computed == ["a", "", "b", "a"]


def taken(changing: Changing, number: int) -> Iterator[list[bytes]]:
    """Yield the requests, as many at a time as are sent together."""
    for first in range(0, number, AT_ONCE):
        yield [changing.next() for _ in range(min(AT_ONCE, number - first))]


def ask(server: Server, changing: Changing, number: int) -> float:
    """Send so many requests, each of which is answered; return the memory held afterwards, in MiB."""
    with server.channel() as channel:
        call = runner(channel)
        for together in taken(changing, number):
            calls = [call.future(content, timeout=PATIENCE) for content in together]
            assert all(item.result() for item in calls)
    return server.resident


def test_memory_does_not_grow_with_the_number_of_requests() -> None:
    number = scale.count(quick=300, gate=5_000, soak=50_000)
    warm = min(WARM, number // 2)
    changing = Changing(seed=1)
    with Server("--insecure", "--reuse-size", "1") as server:
        before = ask(server, changing, warm)
        parts = [ask(server, changing, (number - warm) // PARTS) for _ in range(PARTS)]
    shown = " ".join(f"{part:.1f}" for part in parts)
    print(f"{before:.1f} MiB after {warm} requests, then {shown} up to {number}")  # noqa: T201 - see -s
    assert parts[-1] - before <= BOUND


def test_a_compiled_selector_leaves_nothing_for_the_collector() -> None:
    """It runs seldom here: what is in a cycle would stay for thousands of calls."""
    compile_device("device.driver == 'first'")
    gc.collect()
    gc.disable()
    try:
        for number in range(20):
            selector = compiled(f"device.driver == 'a{number}' && has(device.attributes['a.b'].c)", DEVICE)
            assert selector.conjuncts
            assert selector.comparisons()
        del selector
        assert gc.collect() == 0
    finally:
        gc.enable()


TIMES_ITS_REQUEST = 4
"""What a call may take at most, its request included."""


@pytest.mark.parametrize(
    ("size", "reason"),
    [(Size(10, 2, 50), "an answer is a tenth of the request"), (Size(60, 4, 300), "objects are most of it")],
)
def test_a_call_allocates_at_most_four_times_its_request(size: Size, reason: str) -> None:
    """Counted by the interpreter: cold, everything is remembered; warm, next to nothing is new.

    What the parser in C holds is not in it: one object at a time, and what is no required object.
    """
    requests, function = Requests(fleet(size)), Function(Silence(), memory=Memory(256 * MEBI))
    rehearse(Function(Silence()).answer)
    cold, warm = (peak_of(function, requests.next()) for _ in range(2))
    assert cold <= TIMES_ITS_REQUEST, reason
    assert warm <= TIMES_ITS_REQUEST / 2, reason


def peak_of(function: Function, content: bytes) -> float:
    """Return how many times the size of a request its call takes, the request included."""
    gc.collect()
    tracemalloc.start()
    try:
        function.answer(content)
        return 1 + tracemalloc.get_traced_memory()[1] / len(content)
    finally:
        tracemalloc.stop()


def test_a_cold_call_takes_at_most_four_times_its_request_of_a_server() -> None:
    """All of it, as the system counts: what gRPC needs to receive 6 MB, and what is remembered of them."""
    content = Requests(fleet(Size(200, 4, 1_000))).next()
    with Server("--insecure", "--reuse-size", "256") as server, server.channel() as channel:
        call = runner(channel)
        call(Requests(fleet(Size(2, 2, 4))).next(), timeout=PATIENCE)
        idle = server.peak
        call(content, timeout=PATIENCE)
        assert server.peak - idle <= TIMES_ITS_REQUEST * len(content) / MEBI


LARGE, TIMES = 20 * MEBI, 20


def test_memory_does_not_grow_with_the_number_of_large_requests_refused() -> None:
    """What is no request is let go of too."""
    with Server("--insecure") as server, server.channel() as channel:
        call = runner(channel)
        for _ in range(TIMES):
            with pytest.raises(grpc.RpcError) as refused:
                call(b"\xff" * LARGE, timeout=PATIENCE)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        held = server.resident
    assert held < 80 + TIMES * LARGE / MEBI / 2, "an idle server and half of them"


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("number", range(scale.BATCHES))
@pytest.mark.usefixtures("no_collector")
def test_a_request_is_gone_as_soon_as_it_is_answered(number: int) -> None:
    """Neither the memory of parsed objects nor an error that is told of holds on to 30 MB."""
    function = Function(structlog.get_logger(), memory=Memory(MEBI))
    for seed in scale.batch(number, quick=160, gate=2_000, soak=20_000):
        made = generate.world(seed).message().SerializeToString()
        for content in (made, mutated_bytes(random.Random(seed), made)):
            held = sys.getrefcount(content)
            with structlog.testing.capture_logs():
                answered(function, content)
            assert sys.getrefcount(content) == held, f"seed {seed}"


def answered(function: Function, content: bytes) -> None:
    try:
        function.answer(content)
    except wire.MalformedRequest:
        return
