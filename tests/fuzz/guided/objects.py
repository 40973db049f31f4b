"""Objects: whatever their bytes, a reader returns an object or says that it cannot be read; how the map
entries are ordered and whether it is read path by path or as a whole changes nothing. And slicing a request
delivers the objects that parsing the whole of it delivers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from bench.encode import struct_of
from function.api import (
    InferenceClass,
    ModelCache,
    ModelDeployment,
    SchedulerConfig,
    cluster as cluster_api,
    replica as replica_api,
)
from function.boundary import PACKED, Unreadable
from function.deployment.snapshot.charges import read_cluster
from function.scheduler.scheduling_input import UnreadableCluster
from function.wire import WireDocument
from function.wire.fast import Unusual, read
from function.wire.fast.slices import sliced
from function.wire.request import MalformedRequest, _parsed
from tests.fuzz.guided.drawn import Drawn, struck
from tests.fuzz.guided.templates import TEXTS, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.boundary import Document

LONGEST = 1_000
TOKENS = WORDS
SEEDS = tuple(bytes((2, kind, number)) for kind in range(7) for number in range(len(TEXTS)))

READERS: dict[str, Callable[[Document], Any]] = {
    "cluster": read_cluster,
    "replica": replica_api.parse,
    "charge": replica_api.parse_charge,
    "deployment": lambda document: ModelDeployment.parse(document.plain()),
    "cache": lambda document: ModelCache.parse(document.plain()),
    "class": lambda document: InferenceClass.parse(document.plain()),
    "input": lambda document: SchedulerConfig.parse(document.plain()),
}

SHAPES = (cluster_api.SHAPE, replica_api.SHAPE, replica_api.CHARGE_SHAPE)


def one(content: bytes) -> None:
    """Read one object, mutated or raw, with one reader; or slice raw bytes."""
    draw = Drawn(content)
    kind = draw.randrange(8)
    if kind == 0:
        _slice(draw.left)
        return
    reader = READERS[draw.choice(tuple(READERS))]
    if kind == 1:
        _read(reader, WireDocument(draw.left))
        _projected(draw.left)
        return
    orders = _bytes(draw)
    _same_outcome(reader, orders)
    _projected(orders[1])


def _bytes(draw: Drawn) -> tuple[bytes, bytes]:
    """Return a mutated object in two orders of its map entries."""
    tree: Any = json.loads(draw.choice(TEXTS))
    required = tree["required"]
    listed = [item for name in sorted(required) for item in required[name]]
    chosen = draw.choice([tree["composite"], tree["input"], *listed])
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        if chosen:
            struck(draw, chosen, WORDS)
    return struct_of(Drawn(b""), chosen), struct_of(draw, chosen)


def _read(reader: Callable[[Document], Any], document: Document) -> Any:
    """Return what a reader finds; for what it cannot read, the text of the fault."""
    try:
        return reader(document)
    except ValueError as error:
        return f"unreadable: {error}"


def _same_outcome(reader: Callable[[Document], Any], orders: tuple[bytes, bytes]) -> None:
    outcomes = [_read(reader, WireDocument(item)) for item in orders]
    if all(isinstance(item, (str, UnreadableCluster)) for item in outcomes):
        return  # The fault that is named may be another one.
    outcomes.append(_read(reader, WireDocument(orders[0])))
    assert len({_said(item) for item in outcomes}) == 1, "another order of map entries is read differently"


def _said(value: Any) -> str:
    """Return what was read as a text; NaN, which equals nothing, equals itself here."""
    held = value.model_dump() if isinstance(value, BaseModel) else value._asdict()
    return json.dumps(held, sort_keys=True, default=repr)


def _projected(content: bytes) -> None:
    """Hold reading path by path against reading the whole and cutting it down."""
    try:
        whole = read.plain(content)
    except Unreadable:
        return  # Projecting may still succeed: it does not look everywhere.
    for shape in SHAPES:
        projected = _cut(read.project(content, shape), shape)
        assert repr(projected) == repr(_cut(whole, shape)), "read path by path and read as a whole differ"


def _cut(value: Any, shape: Any) -> Any:
    """Return a value cut down to a shape, its packed parts unpacked, its maps sorted."""
    if hasattr(value, "plain"):
        value = value.plain()
    if isinstance(value, list):
        return [_cut(item, shape) for item in value]
    if not isinstance(value, dict):
        return value
    if shape is None or shape == PACKED:
        return {key: _cut(value[key], None) for key in sorted(value)}
    wanted = value.keys() if "*" in shape else shape.keys() & value.keys()
    return {key: _cut(value[key], shape.get(key, shape.get("*"))) for key in sorted(wanted)}


def _slice(content: bytes) -> None:
    try:
        rest, required = sliced(content)
    except Unusual:
        required = None
    try:
        message, expected = _parsed(content)
    except MalformedRequest:
        return
    if required is not None:
        assert {name: [bytes(item) for item in items] for name, items in required.items()} == {
            name: list(items) for name, items in expected.items()
        }, "slicing delivers other objects"
        message.ClearField("required_resources")
        assert type(message).FromString(rest).SerializeToString(deterministic=True) == (
            message.SerializeToString(deterministic=True)
        ), "slicing changes the rest"
