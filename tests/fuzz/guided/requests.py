"""Requests: whatever arrives is answered or refused as no request; nothing that runs is dropped for doubt; a
memory of parsed objects changes no byte of the answer.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.encode import struct_of
from function import dispatch, wire
from function.boundary import Unreadable
from function.boundary.memory import Memory
from function.runner import Function
from function.wire import write
from function.wire.fast import read
from tests.fuzz.guided.drawn import Drawn, struck
from tests.fuzz.guided.templates import TEXTS, WORDS
from tests.fuzz.mutate import mutated_bytes
from tests.support import law
from tests.support.drive import of_core
from tests.support.encode import envelope
from tests.support.world import World

if TYPE_CHECKING:
    from function.boundary import Document, Request, Response, Reuse

Plain = dict[str, Any]

LONGEST = 1_000
TOKENS = WORDS
SEEDS = tuple(bytes((2, number)) for number in range(len(TEXTS)))


class Watched:
    """Runs the pipeline, keeps what it was asked and what it said; and a log that keeps what failed."""

    def __init__(self) -> None:
        self.request: Request | None = None
        self.response: Response | None = None

    def __call__(self, request: Request, *, reuse: Reuse) -> Response:
        self.request = request
        self.response = dispatch.run(request, reuse=reuse)
        return self.response

    def info(self, _: str, **__: Any) -> None:
        """Nothing went wrong."""

    def warning(self, _: str, **__: Any) -> None:
        """It was refused."""

    def error(self, _: str, **said: Any) -> None:
        """Fail: an error of our own."""
        raise AssertionError(f"the function failed: {said['error']} at {said['frames']}")


def one(content: bytes) -> None:
    """Answer one request: mutated, with mutated bytes, or raw."""
    draw = Drawn(content)
    kind = draw.randrange(8)
    asked = draw.left if kind == 0 else encoded(draw, tree(draw))
    if kind == 1:
        asked = mutated_bytes(draw, asked)
    watched = Watched()
    try:
        answer = Function(log=watched, run=watched).answer(asked)
    except wire.MalformedRequest:
        return
    assert watched.request is not None
    assert watched.response is not None
    world = world_of(watched.request)
    complaints = law.unexplained(world, of_core(watched.response))
    assert not complaints, complaints
    # A memory of its own: a mutated object keeps its uid and resourceVersion, which no API server allows.
    remembering = Function(log=watched, memory=Memory(1 << 22))
    for times in ("first", "again"):
        assert remembering.answer(asked) == answer, f"reuse changes the answer, asked {times}"


def tree(draw: Drawn) -> Plain:
    """Return a mutated tree."""
    made: Plain = json.loads(draw.choice(TEXTS))
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        struck(draw, made, WORDS)
        made = {name: manifest for name, manifest in made.items() if isinstance(manifest, dict)}
        if not made:
            break
    return made


def encoded(draw: Drawn, made: Plain) -> bytes:
    """Return a tree as a request. What no request can hold is left out."""
    shuffle = draw.randrange(4) == 0  # Crossplane writes map entries in any order.
    return envelope(
        partial(struct_of, draw) if shuffle else write.struct,
        made.get("composite", {}),
        _maps(made.get("observed", {})),
        {name: law.items(items) for name, items in made.get("required", {}).items()},
        made.get("input"),
        _maps(made.get("desired", {})),
    )


def _maps(node: Plain) -> dict[str, Plain]:
    """Return the values that are maps, and an empty one for any other."""
    return {key: value if isinstance(value, dict) else {} for key, value in node.items()}


def world_of(request: Request) -> World:
    """Return what a request says, as far as it can be read: what cannot is an object without content.

    A key that an earlier step desires is that step's.
    """
    required = {name: [_plain(item) for item in items] for name, items in request.required.items()}
    return World(
        _plain(request.composite),
        required.get("clusters"),
        required.get("all-replicas"),
        {key: _plain(manifest) for key, manifest in request.observed.items() if key not in request.desired},
        required.get("cache"),
        dict(request.input or {}),
    )


def _plain(document: Document) -> Any:
    try:
        return read.plain(document.content)  # type: ignore[attr-defined]
    except Unreadable:
        return {}
