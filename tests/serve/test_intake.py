"""Bytes of requests are counted from the first one to the end of the work, and never pass the bound."""

from __future__ import annotations

import asyncio
import random
import threading
import urllib.request
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from crossplane.function.proto.v1 import run_function_pb2 as pb

from function.server.intake import END, WINDOW, Intake, Message
from tests.serve.http2 import Client
from tests.serve.server import PATIENCE, V1, Server, health, request, run, runner, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

MEBI = 1024 * 1024
HELD = "fleet_scheduler_held_bytes "
METRICS = ("--metrics-address", "127.0.0.1:0")


class Aborted(Exception):
    """A call was aborted."""


class Context:
    """A call whose message arrives when it is sent."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()
        self.aborted: tuple[Any, str] | None = None

    async def read(self) -> bytes:
        self.asked.set()
        return await self.sent.get()

    async def abort(self, code: Any, text: str) -> None:
        self.aborted = (code, text)
        raise Aborted


def ran(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    def run_it() -> None:
        asyncio.run(asyncio.wait_for(test(), PATIENCE))

    run_it.__name__ = test.__name__
    return run_it


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@ran
async def test_a_call_is_read_when_there_is_room_and_who_came_first_goes_first() -> None:
    intake = Intake(25, 10)
    calls = [Context() for _ in range(5)]
    tasks = [asyncio.create_task(intake.receive(call)) for call in calls]
    await settled()
    assert [call.asked.is_set() for call in calls] == [True, True, False, False, False]
    assert intake.held == 20
    calls[1].sent.put_nowait(b"1234")
    await settled()
    assert intake.held == 24, "4 held, 10 reserved, 10 reserved"
    assert [call.asked.is_set() for call in calls] == [True, True, True, False, False]
    first = await tasks[1]
    assert first
    assert first.take() == b"1234"
    first.release()
    first.release()
    await settled()
    assert intake.held == 20, "given back once, and not enough for one more"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert intake.held == 0


@ran
async def test_one_alone_may_have_more_than_the_bound() -> None:
    intake = Intake(5, 10)
    calls = [Context(), Context()]
    tasks = [asyncio.create_task(intake.receive(call)) for call in calls]
    await settled()
    assert [call.asked.is_set() for call in calls] == [True, False]
    calls[0].sent.put_nowait(b"123456789")
    message = await tasks[0]
    assert message
    await settled()
    assert (intake.held, calls[1].asked.is_set()) == (9, False)
    message.release()
    await settled()
    assert (intake.held, calls[1].asked.is_set()) == (10, True)
    tasks[1].cancel()


@ran
async def test_a_message_that_does_not_arrive_gives_its_room_up() -> None:
    intake, slow, patient = Intake(10, 10, seconds=0.01), Context(), Context()
    waiting = asyncio.create_task(intake.receive(slow))
    behind = asyncio.create_task(intake.receive(patient))
    with pytest.raises(Aborted):
        await waiting
    assert slow.aborted == (
        grpc.StatusCode.DEADLINE_EXCEEDED,
        "the message did not arrive within 0.01 seconds",
    )
    patient.sent.put_nowait(b"x")
    assert await behind


@ran
async def test_a_call_that_ends_as_its_message_arrives_is_over_and_holds_nothing() -> None:
    """The one turn of the loop in which the message is there and nobody has taken it yet."""
    for turns in range(6):
        intake, call = Intake(20, 10), Context()
        receiving = asyncio.create_task(intake.receive(call))
        await settled()
        call.sent.put_nowait(b"12345")
        for _ in range(turns):
            await asyncio.sleep(0)
        received = receiving.done()
        receiving.cancel()
        (result,) = await asyncio.gather(receiving, return_exceptions=True)
        if received:
            result.release()
            await settled()
        else:
            assert isinstance(result, asyncio.CancelledError), f"cancelled after {turns} turns: {result}"
        assert intake.held == 0


@ran
async def test_the_end_of_a_stream_holds_nothing() -> None:
    intake, call = Intake(10, 10), Context()
    call.sent.put_nowait(END)
    assert await intake.receive(call) is None
    assert intake.held == 0


@ran
async def test_messages_may_be_released_by_any_thread() -> None:
    intake = Intake(0, 10)
    for _ in range(50):
        call = Context()
        call.sent.put_nowait(b"12345")
        message = await intake.receive(call)
        assert message
        threading.Thread(target=message.release).start()
    call = Context()
    call.sent.put_nowait(END)
    assert await intake.receive(call) is None, "there is room again"
    assert intake.held == 0


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_the_bound_is_kept_and_nothing_is_lost(seed: int) -> None:
    asyncio.run(asyncio.wait_for(_episode(random.Random(seed)), PATIENCE))


async def _episode(draw: random.Random) -> None:  # noqa: C901 - four things may happen
    """Calls that come, are given up, arrive and end in any order."""
    limit, largest = draw.choice((0, 30, 64)), 16
    intake = Intake(limit, largest)
    tasks: list[tuple[Context, asyncio.Task[Message | None]]] = []
    for _ in range(300):
        what = draw.randrange(4)
        if what == 0:
            call = Context()
            tasks.append((call, asyncio.create_task(intake.receive(call))))
        elif tasks:
            at = draw.randrange(len(tasks))
            call, task = tasks[at]
            if what == 1:
                task.cancel()
            elif what == 2:
                call.sent.put_nowait(bytes(draw.randrange(largest + 1)))
            elif task.done():
                del tasks[at]
                if not task.cancelled() and (message := task.result()) is not None:
                    message.release()
        for _ in range(draw.randrange(4)):
            await asyncio.sleep(0)
        assert 0 <= intake.held <= max(limit, largest)
    for _, task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*(task for _, task in tasks), return_exceptions=True):
        if isinstance(ended, Message):
            ended.release()
    await settled()
    assert intake.held == 0


def large(mebibytes: int) -> bytes:
    message = pb.RunFunctionRequest.FromString(request())
    message.credentials["pad"].credential_data.data["pad"] = bytes(mebibytes * MEBI)
    return message.SerializeToString()


def held(server: Server) -> float:
    """Return the bytes that the server says it holds, in MiB."""
    address = f"http://127.0.0.1:{server.started['metrics_port']}/metrics"
    with urllib.request.urlopen(address, timeout=PATIENCE) as page:
        lines = page.read().decode().splitlines()
    return float(next(line for line in lines if line.startswith(HELD)).removeprefix(HELD)) / MEBI


def test_the_bytes_of_calls_past_their_deadline_go_at_once(tmp_path: Path) -> None:
    """One is worked on and cannot be given up; the others leave the queue, and their bytes with them."""
    limits = ("--max-concurrency", "1", "--max-recv-message-size", "16", "--max-held-size", "64")
    with Server.gated(tmp_path, *limits, *METRICS) as server, server.channel() as channel:
        content = large(12)
        for _ in range(3):
            calls = [runner(channel).future(content, timeout=2) for _ in range(8)]
            assert {call.code() for call in calls} == {grpc.StatusCode.DEADLINE_EXCEEDED}
        until(lambda: held(server) < 13, "24 calls of 12 MiB came, at most one is held")
        assert server.peak < 64 + 3 * 16 + 100, "what is held, what is handed over, an idle server"
        (tmp_path / "open").touch()
        assert run(channel).meta.tag == "tested"
        until(lambda: held(server) == 0, "nothing is held")


@pytest.mark.parametrize(
    ("path", "bound"), [(f"/{V1}/RunFunction", 64), ("/grpc.health.v1.Health/Check", 16)]
)
def test_messages_sent_in_half_are_taken_within_the_bound(path: str, bound: int) -> None:
    """20 streams want to send 15 MiB each: the bytes that a server takes are bounded, all together."""
    flags = ("--insecure", "--max-recv-message-size", "16", "--max-held-size", "64")
    with Server(*flags, *METRICS) as server, server.channel() as channel:
        streams = 20
        with Client(server.address) as client:
            for _ in range(streams):
                client.call(path, 15 * MEBI, 16 * MEBI)
            client.pump(PATIENCE, quiet=0.5)
            assert 15 * MEBI < client.taken < bound * MEBI + streams * 2 * WINDOW
            assert held(server) <= bound
        assert server.peak < bound + 100
        assert health(channel) == "SERVING"


def test_a_client_that_died_within_a_message_keeps_no_room() -> None:
    with Server("--insecure", "--max-held-size", "1", *METRICS) as server, server.channel() as channel:
        with Client(server.address) as client:
            client.call(f"/{V1}/RunFunction", MEBI, 2 * MEBI)
            client.pump(PATIENCE, quiet=0.5)
            assert held(server) == 64, "what its message may have"
        assert run(channel).meta.tag == "tested"
        assert held(server) == 0
