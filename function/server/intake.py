"""Receive messages within a bound of bytes, counted from the first byte to the end of the work on them.

gRPC hands a message over when all of it is there, and does not say how large it will be. So a call reserves
room for the largest message before it asks for its own, and asks for nothing until there is room: a stream
that nobody reads stops after its first window (`WINDOW`), whatever its client wants to send. What a message
does not need is given back when it has arrived, the rest when the work on it has ended.

A message that does not arrive in time gives its room up, so that a client that died in the middle of one
does not keep it. That is also why messages to health and reflection come this way: gRPC has one size limit
for all methods.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable
from typing import Any

import grpc

# Collect cyclic garbage between calls, not within them.
#
# Python's own collector runs whenever so many more objects have been made than freed. A first call about a
# large fleet makes hundreds of thousands that stay, so it would be stopped several times to look through
# what it has just made, and our values have no cycles to be found. What has (gRPC's state of a call that
# was refused, say) can wait until an answer is on its way.

YOUNG = 100_000
"""Objects made and not freed since the last collection, from which on there is one."""
LIMIT = 1_000_000
"""As many within one call, and Python collects in the middle of it, so that garbage is bounded."""
GENERATIONS = (20, 50)
"""Collections of a generation until the next older one is collected too: thousands of parsed objects live on
from call to call, and the collector would walk all of them over and over."""
PAUSE = 0.02
"""Time for an answer to leave before a collection holds everything up."""
LOOKS = 50
"""How often a collection is put off, by these seconds, because another call is being worked on."""


def collect_seldom() -> None:
    """Take everything made so far as there to stay, and collect only beyond the limit from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(LIMIT, *GENERATIONS)


def collect() -> None:
    """Collect what is young, and the older generations when it is their turn."""
    _, young, old = gc.get_count()
    after_young, after_old = GENERATIONS
    gc.collect(2 if old > after_old else 1 if young > after_young else 0)


class Collector:
    """Collects after calls, on the loop that serves them."""

    def __init__(self, busy: Callable[[], bool]) -> None:
        """Take what says whether a call is being worked on. Nothing is due yet."""
        self._busy = busy
        self._due = False

    def call_ended(self) -> None:
        """Collect soon, if there is enough to look through."""
        if not self._due and gc.get_count()[0] >= YOUNG:
            self._due = True
            asyncio.get_running_loop().call_later(PAUSE, self._look, LOOKS)

    def _look(self, looks: int) -> None:
        """Collect where no call would wait for it, and at the last look in any case."""
        if looks and self._busy():
            asyncio.get_running_loop().call_later(PAUSE, self._look, looks - 1)
        else:
            self._due = False
            collect()


WINDOW = 512 * 1024
"""Bytes that a stream may send before it is read.

The whole request of a fleet of a dozen clusters: it arrives without waiting for a word from us.
"""
SECONDS = 60.0
"""Time for a message to arrive, once it is read.

It is there for clients that send half of one: who is gone is known by its connection. A client that makes a
hundred calls at once on a busy machine takes more than ten seconds to send one of them; refused, it makes the
call again, which is more work for it, and none of them arrives.
"""
END: Any = grpc.aio.EOF  # type: ignore[attr-defined] # grpc-stubs lacks it
"""The value that is read where the client sends no more."""


class Message:
    """A message that was received, and the room it takes. It is released once, from any thread."""

    __slots__ = ("_intake", "content", "size")

    def __init__(self, content: bytes, intake: Intake | None = None) -> None:
        """Take a message, and whom to give its room back to."""
        self.content: bytes | None = content
        self.size = len(content)
        self._intake = intake

    def take(self) -> bytes:
        """Return the content, to be forgotten here: whoever takes it holds it from now on."""
        content, self.content = self.content, None
        assert content is not None  # noqa: S101 - it is taken by the one worker that runs its job
        return content

    def release(self) -> None:
        """Forget the content and give its room back, if that has not been done yet."""
        intake, self._intake, self.content = self._intake, None, None
        if intake is not None:
            intake.released(self.size)


class Intake:
    """The room for messages: `limit` bytes for all of them together; one alone may have more."""

    def __init__(self, limit: int, largest: int, *, seconds: float = SECONDS) -> None:
        """Reserve `largest` bytes for a message that is being received, for at most `seconds`."""
        self._limit, self._largest, self._seconds = limit, largest, seconds
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.held = 0
        """Bytes reserved and held: at most the limit, or one message."""

    async def receive(self, context: Any) -> Message | None:
        """Return the next message of a call; None when the client sends no more.

        A call whose message does not arrive in time is aborted.
        """
        self._loop = asyncio.get_running_loop()
        await self._reserve()
        try:
            # Not `wait_for`: in Python 3.11 it returns what has just arrived instead of being cancelled, and
            # the message of a call that is over would be worked on, and held until then.
            async with asyncio.timeout(self._seconds):
                content = await context.read()
        except TimeoutError:
            self._give_back(self._largest)
            text = f"the message did not arrive within {self._seconds:g} seconds"
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, text)
            raise  # Not reached: abort raises.
        except BaseException:
            self._give_back(self._largest)
            raise
        if content is END:
            self._give_back(self._largest)
            return None
        self._give_back(self._largest - len(content))
        return Message(content, self)

    def released(self, size: int) -> None:
        """Give room back, from any thread."""
        assert self._loop is not None  # noqa: S101 - something was received
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:  # A worker's thread has no loop.
            here = None
        if here is self._loop:
            self._give_back(size)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._give_back, size)

    async def _reserve(self) -> None:
        """Wait for room; who came first goes first."""
        if self._waiting or not self._has_room():
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # It was given room, and does not need it any more.
                    self._give_back(self._largest)
                raise
        else:
            self.held += self._largest

    def _has_room(self) -> bool:
        """Tell whether the largest call fits beside what is held; into an empty process any fits."""
        return not self.held or self.held + self._largest <= self._limit

    def _give_back(self, size: int) -> None:
        """Give room back, and let in who waits."""
        self.held -= size
        while self._waiting and (self._waiting[0].done() or self._has_room()):
            turn = self._waiting.popleft()
            if not turn.done():
                self.held += self._largest
                turn.set_result(None)
