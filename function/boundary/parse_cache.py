"""A bounded memory of parsed objects: what has not changed since an earlier call is not parsed again.

It may forget anything at any time and never changes an answer. Objects are recognised by their identity
(see `wire.WireDocument.identity`); an object without one is parsed every time.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from function.boundary import Document

T = TypeVar("T")

NO_ROOM: Mapping[object, int] = {}
OVERHEAD = 600
"""Bytes charged for an entry whatever its object: its key, its place in the table."""


class Entry(Generic[T]):
    """A value, what it is charged, and whether somebody has asked for it lately."""

    __slots__ = ("charge", "used", "value")

    def __init__(self, charge: int, value: T) -> None:
        self.charge, self.value, self.used = charge, value, False


class Memory:
    """What was not asked for lately leaves when the bound in bytes is reached. Safe for many threads.

    Entries wait in line; the first one leaves, unless it was used since it last stood there: then it goes to
    the end (the clock algorithm). So a hit, of which a large request has thousands, costs next to nothing.

    An entry is charged as many bytes as its object has on the wire, and `OVERHEAD`: what is kept of an
    object is a few of its fields, in a form that takes more room.
    """

    def __init__(self, limit: int) -> None:
        """Remember up to `limit` bytes."""
        self._limit = limit
        self._lock = Lock()
        self._entries: OrderedDict[Hashable, Entry[Any]] = OrderedDict()
        self._bytes = 0
        self.find = self._entries.get
        """Return the entry of a key, or None. Whoever uses it says so on the entry."""

    @property
    def entries(self) -> int:
        """How many objects are remembered."""
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """What they are charged, in bytes: never more than the limit."""
        return self._bytes

    def put(self, key: Hashable, size: int, value: Any) -> None:
        """Remember a value; forget what was not used lately beyond the limit."""
        charge = size + OVERHEAD
        if charge > self._limit:
            return
        with self._lock:
            replaced = self._entries.pop(key, None)
            self._bytes += charge - (replaced.charge if replaced else 0)
            self._entries[key] = Entry(charge, value)
            while self._bytes > self._limit:
                self._turn()

    def _turn(self) -> None:
        """Let the first in line go, or to the end."""
        key, first = self._entries.popitem(last=False)
        if first.used:
            first.used = False
            self._entries[key] = first
        else:
            self._bytes -= first.charge


class Session:
    """One call's view of the memory, which counts what it parsed and what it reused. For one thread.

    `memory` None remembers nothing, and still counts.
    """

    def __init__(self, memory: Memory | None, room: Mapping[object, int] = NO_ROOM) -> None:
        """Look into `memory`. `room`: bytes that what a parse function returns may grow by later on."""
        self._memory = memory
        self._room = room
        self.parses = 0
        self.reuses = 0

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Return `parse(document)`, perhaps from an earlier call.

        `parse` is part of the key, so it must be one function and not a new one on every call; what it
        returns must never change its value. An exception is passed on and not remembered.
        """
        document = document.opened()
        memory = self._memory
        identity = None if memory is None else document.identity
        if memory is None or identity is None:
            self.parses += 1
            return parse(document)
        key = (parse, identity)
        entry: Entry[T] | None = memory.find(key)
        if entry is not None:
            entry.used = True
            self.reuses += 1
            return entry.value
        self.parses += 1
        value = parse(document)
        memory.put(key, len(getattr(document, "content", b"")) + self._room.get(parse, 0), value)
        return value
