"""A bounded memory of parsed objects: what has not changed since an earlier call is not parsed again.

Why: Crossplane sends the whole fleet with every call, and nearly all of it is as it was. Parsing is most of
the work of a call; a call about an unchanged fleet parses nothing.

It may forget anything at any time and never changes an answer. Objects are recognised by their identity
(see `wire.request.OpenDocument.identity`); an object without one is parsed every time.

The parts: `Memory` is shared by all calls and threads. `Session` is one call's view of it, which also counts.
A stamp says which version of an object a value is of, as far as decisions go: two versions that parse to
`equivalent` values have one stamp. All stamps of a call, digested, say whether a call reads what an earlier
one read, so that its answer can be given again.

Beside it stands `Memo`, the one memo of the core: values that are computed once, bounded by a number of
entries. It drops the oldest without looking at what is used: at the bound something else is wrong. A memo
stays only where it was measured to pay, and says so where it is made.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable
from contextlib import suppress
from hashlib import sha256
from itertools import count
from operator import eq
from threading import Lock
from typing import Any, Generic, TypeVar

from function.boundary import Cost, Costs, Document, Part, Reuse

T = TypeVar("T")
V = TypeVar("V")

NO_COSTS: Costs = {}
USUAL = Cost()
OVERHEAD = 700
"""Bytes charged for an entry whatever its object: its key, its place in the table."""
NO_PARTS: frozenset[Part] = frozenset()
"""One for all: Python makes another empty set each time it is asked for one."""

_MISSING: Any = object()


class Memo(Generic[T, V]):
    """Values computed from a subject alone, each once for a key: the name of the subject, or its version.

    At most so many are kept, the latest: with 1 it is the value of a subject that changes, until it has
    changed. Where one is made it says why a key has one subject, and what it buys.
    """

    __slots__ = ("_compute", "_most", "_values")

    def __init__(self, compute: Callable[[T], V], most: int = 100_000) -> None:
        """Start with nothing. `compute`: the value of one subject."""
        self._compute, self._most = compute, most
        self._values: dict[Hashable, V] = {}

    def of(self, key: Hashable, subject: T) -> V:
        """Return the value of the subject that has the key.

        Safe for many threads: at worst a value is computed twice, or one more is kept for a while.
        """
        values = self._values
        value: V = values.get(key, _MISSING)
        if value is _MISSING:
            value = self._compute(subject)
            if len(values) >= self._most:
                with suppress(RuntimeError, StopIteration):  # Another thread was quicker.
                    values.pop(next(iter(values)), None)
            values[key] = value
        return value


class Entry(Generic[T]):
    """A value, what it is charged, the parts it shares, and whether it was used lately."""

    __slots__ = ("charge", "parts", "stamp", "used", "value", "version")

    def __init__(self, charge: int, value: T, stamp: int, version: Hashable = None) -> None:
        self.charge, self.value, self.used = charge, value, False
        self.parts = NO_PARTS
        self.stamp = stamp
        """Equal stamps have values that decide the same. One that has left is never given again."""
        self.version = version
        """The version of the object that the value was read from."""


class Memory:
    """Parsed objects by last use: the oldest leave at the bound in bytes. Safe for many threads.

    Entries wait in line; the first one leaves, unless it was used since it last stood there: then it goes to
    the end (the clock algorithm). So a hit, of which a large request has thousands, costs next to nothing.
    An entry is of one object and one reader, and has the version that was read last.

    Everything that outlives a call is charged here, as what it takes in memory (`Cost`, whose figures are
    measured by `tests/serve/test_charges.py`): values, and the parts that several of them share, once.
    """

    def __init__(self, limit: int) -> None:
        """Remember up to `limit` bytes."""
        self._limit = limit
        self._lock = Lock()
        self._entries: OrderedDict[Hashable, Entry[Any]] = OrderedDict()
        self._shared: dict[Part, int] = {}
        """How many entries have a part."""
        self.bytes = 0
        """The charged bytes: never more than the limit."""
        self._stamps = count()
        self.find = self._entries.get
        """Return the entry of a key, or None. A caller that uses it must mark the entry as used."""

    @property
    def entries(self) -> int:
        """How many objects are remembered."""
        return len(self._entries)

    def put(
        self,
        key: Hashable,
        size: int,
        value: Any,
        parts: Collection[Part] = (),
        *,
        version: Hashable = None,
        equivalent: Callable[[Any, Any], bool] = eq,
    ) -> int | None:
        """Remember a value; forget what was not used lately beyond the limit. Return its stamp.

        It is that of the version that was remembered under this key where both are `equivalent`. None where
        the value is too large to be remembered.
        """
        charge = size + OVERHEAD
        if charge > self._limit:
            return None
        earlier = self.find(key)
        same = earlier is not None and equivalent(earlier.value, value)
        stamp = earlier.stamp if earlier is not None and same else next(self._stamps)
        entry = Entry(charge, value, stamp, version)
        with self._lock:
            replaced = self._entries.pop(key, None)
            self._entries[key] = entry
            self.bytes += charge
            if parts:
                self._share(entry, frozenset(parts))
            if replaced is not None:
                self._forget(replaced)
            if self.bytes > self._limit:
                self._shrink()
        return entry.stamp

    def share(self, key: Hashable, value: Any, parts: Iterable[Part]) -> None:
        """Say which parts a value has by now; nothing where another one is remembered under its key."""
        now = frozenset(parts)
        with self._lock:
            entry = self.find(key)
            if entry is not None and entry.value is value and entry.parts != now:
                self._share(entry, now)
                self._shrink()

    def _share(self, entry: Entry[Any], parts: frozenset[Part]) -> None:
        """Charge the parts that no other entry has, and no longer those that none has any more."""
        for part in parts - entry.parts:
            number = self._shared.get(part, 0)
            self._shared[part] = number + 1
            self.bytes += 0 if number else part.size
        for part in entry.parts - parts:
            self._shared[part] -= 1
            if not self._shared[part]:
                del self._shared[part]
                self.bytes -= part.size
        entry.parts = parts

    def _forget(self, entry: Entry[Any]) -> None:
        """Charge an entry no longer, nor the parts that it was the last to have."""
        self.bytes -= entry.charge
        if entry.parts:
            self._share(entry, NO_PARTS)

    def _shrink(self) -> None:
        """Let the first in line go, or to the end, until the rest is within the limit."""
        while self.bytes > self._limit:
            key, first = self._entries.popitem(last=False)
            if first.used:
                first.used = False
                self._entries[key] = first
            else:
                self._forget(first)


class Session(Reuse):
    """One call's view of the memory, which counts what it parsed and what it reused. For one thread.

    `memory` None remembers nothing, and still counts.
    """

    def __init__(self, memory: Memory | None, costs: Costs = NO_COSTS) -> None:
        """Look into `memory`. `costs`: what values take, by the function that parses them."""
        self._memory = memory
        self._costs = costs
        self._growing: list[tuple[Hashable, Any, Cost]] = []
        self._stamps: list[int] = []
        """Of what was parsed or reused and is remembered."""
        self.parses = 0
        self.reuses = 0

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Return `parse(document)`, perhaps from an earlier call.

        `parse` is part of the key, so it must be one function and not a new one on every call; what it
        returns must never change its value. An exception is passed on and not remembered.
        """
        opened = document.opened()
        memory = self._memory
        identity = None if memory is None else opened.identity
        if memory is None or identity is None:
            self.parses += 1
            return parse(opened)
        which, version = identity
        key = (parse, which)
        entry: Entry[T] | None = memory.find(key)
        if entry is not None and entry.version == version:
            entry.used = True
            self.reuses += 1
            self._stamps.append(entry.stamp)
            if (cost := self._costs.get(parse, USUAL)).grows:
                self._growing.append((key, entry.value, cost))
            return entry.value
        self.parses += 1
        value = parse(opened)
        cost = self._costs.get(parse, USUAL)
        parts = tuple(cost.parts(value)) if cost.parts else ()
        charge = round(document.size * cost.factor) + cost.fixed + (cost.size(value) if cost.size else 0)
        stamp = memory.put(key, charge, value, parts, version=version, equivalent=cost.equivalent)
        if stamp is not None:
            self._stamps.append(stamp)
        if cost.grows:
            self._growing.append((key, value, cost))
        return value

    def digest(self) -> bytes | None:
        """Digest the stamps of everything parsed so far; None where something has none."""
        if len(self._stamps) < self.parses + self.reuses:
            return None
        return sha256(array("Q", sorted(self._stamps))).digest()

    def settle(self) -> None:
        """Charge what the values of this call have grown by. To be called once, at its end."""
        for key, value, cost in self._growing:
            if self._memory is not None and cost.parts is not None:
                self._memory.share(key, value, cost.parts(value))
