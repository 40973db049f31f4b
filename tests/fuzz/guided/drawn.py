"""A random source whose every draw is read from bytes, so that a fuzzer that changes bytes changes draws.

The same bytes mean the same draws on every machine, with or without the fuzzer; when they are used up, every
draw is 0.
"""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.mutate import ODD

Plain = dict[str, Any]


class Drawn(random.Random):
    """Draws from `content`, in order."""

    def __init__(self, content: bytes) -> None:
        super().__init__(0)
        self._left = content

    def random(self) -> float:
        return self._number(2) / 0x10000

    def getrandbits(self, k: int) -> int:
        return self._number((k + 7) // 8) & ((1 << k) - 1)

    def _randbelow(self, n: int) -> int:
        """What choice, randrange, sample and shuffle are made of."""
        return self._number(max(1, (n - 1).bit_length() + 7 >> 3)) % n

    def _number(self, size: int) -> int:
        return int.from_bytes(self.taken(size), "little")

    def taken(self, size: int) -> bytes:
        """Return the next bytes, fewer at the end."""
        head, self._left = self._left[:size], self._left[size:]
        return head

    @property
    def left(self) -> bytes:
        """What has not been drawn yet."""
        return self._left

    def text(self) -> str:
        """Return a short text of the next bytes."""
        return self.taken(self.randrange(24)).decode("utf-8", "replace")


def struck(draw: Drawn, tree: Plain, words: tuple[str, ...]) -> None:
    """Do one thing somewhere in a tree, in place. `words` are names and values that mean something."""
    holder, last = _place(draw, tree)
    what = draw.randrange(10)
    if what == 0:
        del holder[last]
    elif what == 1:
        holder[last] = _plain(draw.choice(ODD))  # A copy: it may be struck in turn.
    elif what == 2:
        holder[last] = draw.choice(words)
    elif what == 3:
        holder[last] = draw.text()
    elif what == 4:
        holder[last] = draw.randrange(256) - 8
    elif what == 5:
        holder[last] = _copied(draw, tree)
    elif what == 6:
        holder[last] = [holder[last]]
    elif isinstance(holder, list):
        holder.insert(last, _copied(draw, tree) if what == 7 else _plain(holder[last]))
    else:
        holder[draw.choice(words)] = holder.pop(last) if what == 7 else _copied(draw, tree)


def _place(draw: Drawn, tree: Plain) -> tuple[Any, Any]:
    """Return a map or a list of a tree and one of its keys: a step down for every byte."""
    holder: Any = tree
    while True:
        last = draw.choice(list(holder)) if isinstance(holder, dict) else draw.randrange(len(holder))
        below = holder[last]
        if (
            not below
            or not isinstance(below, (dict, list))
            or (holder is not tree and draw.randrange(6) == 0)
        ):
            return holder, last
        holder = below


def _copied(draw: Drawn, tree: Plain) -> Any:
    holder, last = _place(draw, tree)
    return _plain(holder[last])


def _plain(value: Any) -> Any:
    """Return a copy of plain values."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
