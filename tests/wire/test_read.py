"""An object on the wire reads as protobuf's own library reads it, whatever way it was written."""

from __future__ import annotations

import contextlib
import math
import struct
from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2
from google.protobuf.message import DecodeError
from hypothesis import given, strategies as st

from function.api import InferenceCluster
from function.api.cluster import PublishedPool
from function.api.model import shape_of
from function.boundary import PlainDocument, Unreadable
from function.deployment.snapshot.charges import read_cluster
from function.wire import WireDocument, write
from function.wire.fast import read
from tests.support import build

NUMBERS = st.integers(-(1 << 53), 1 << 53) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: not number.is_integer()
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=6)


def by_protobuf(content: dict[str, Any]) -> bytes:
    return json_format.ParseDict(content, struct_pb2.Struct()).SerializeToString()


def cut(value: Any, shape: dict[str, Any]) -> Any:
    """What `project` must return, said on plain values."""
    if isinstance(value, dict):
        asked = {key: shape.get(key, shape.get("*")) for key in value if key in shape or "*" in shape}
        return {key: value[key] if below is None else cut(value[key], below) for key, below in asked.items()}
    return [cut(item, shape) for item in value] if isinstance(value, list) else value


SHAPES = st.recursive(
    st.none(), lambda inner: st.dictionaries(TEXT | st.just("*"), inner, max_size=4), max_leaves=8
).map(lambda shape: shape or {})


@given(OBJECTS)
def test_plain_reads_what_protobuf_wrote(content: dict[str, Any]) -> None:
    assert WireDocument(by_protobuf(content)).plain() == content


@given(OBJECTS)
def test_protobuf_reads_what_we_wrote(content: dict[str, Any]) -> None:
    theirs = struct_pb2.Struct.FromString(write.struct(content))
    assert theirs == json_format.ParseDict(content, struct_pb2.Struct())


@given(OBJECTS)
def test_equal_objects_are_equal_bytes(content: dict[str, Any]) -> None:
    assert write.struct(turned(content)) == write.struct(content)
    assert write.canonical(by_protobuf(turned(content))) == write.canonical(by_protobuf(content))


def turned(value: Any) -> Any:
    """Return an equal value whose keys were inserted the other way round."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


@given(OBJECTS, SHAPES)
def test_project_is_plain_cut_down(content: dict[str, Any], shape: dict[str, Any]) -> None:
    assert WireDocument(by_protobuf(content)).project(shape) == cut(content, shape)


@given(OBJECTS, st.data())
def test_project_on_paths_that_exist(content: dict[str, Any], data: st.DataObject) -> None:
    keys = data.draw(st.sets(st.sampled_from(sorted(content)))) if content else set()
    shape = {key: data.draw(SHAPES) if isinstance(content[key], dict | list) else None for key in keys}
    assert WireDocument(by_protobuf(content)).project(shape) == cut(content, shape)


@given(st.binary(max_size=200))
def test_any_bytes_read_as_protobuf_reads_them_or_are_unreadable(content: bytes) -> None:
    try:
        theirs = struct_pb2.Struct.FromString(content)
    except DecodeError:
        with pytest.raises(Unreadable):
            WireDocument(content).plain()
        return
    try:
        ours = WireDocument(content).plain()
    except Unreadable:
        pytest.fail("protobuf reads it")
    assert set(ours) == set(theirs.fields)


MUTATIONS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3)


@given(OBJECTS, MUTATIONS)
def test_damaged_bytes_are_read_or_unreadable_and_nothing_else(
    content: dict[str, Any], mutations: list[tuple[int, int]]
) -> None:
    damaged = bytearray(by_protobuf(content) or b"\x0a")
    for place, byte in mutations:
        damaged[place % len(damaged)] = byte
    document = WireDocument(bytes(damaged))
    hash(document.opened().identity)
    for look in (document.plain, lambda: document.project({"metadata": {"name": None}, "*": {}})):
        with contextlib.suppress(Unreadable):
            assert isinstance(look(), dict)


def field(tag: int, content: bytes) -> bytes:
    return bytes((tag,)) + write.varint(len(content)) + content


@pytest.mark.parametrize(
    ("content", "expected", "reason"),
    [
        (b"", None, "a value with nothing in it is null"),
        (b"\x08\x00", None, "null as it is usually written"),
        (b"\x20\x01", True, "a boolean"),
        (b"\x20\x00", False, "a false that is present"),
        (b"\x11" + struct.pack("<d", 3.0), 3, "a whole number is an int"),
        (b"\x11" + struct.pack("<d", -0.0), 0, "so is minus zero"),
        (b"\x11" + struct.pack("<d", 1.5), 1.5, "a fraction stays"),
        (b"\x11" + struct.pack("<d", 2.0**53), 2**53, "the last double that is one integer only"),
        (b"\x11" + struct.pack("<d", 2.0**53 + 2), 2.0**53 + 2, "beyond it a double is no integer"),
        (b"\x11" + struct.pack("<d", math.inf), math.inf, "infinity stays"),
        (field(0x1A, b"a") + field(0x1A, b"b"), "b", "of repeated fields the last one counts"),
        (field(0x1A, b"a") + b"\x20\x01", True, "of a oneof the last one counts"),
        (b"\x1a\x81\x00a", "a", "a length may be written longer than needed"),
        (field(0x1A, b"a") + field(0x7A, b"?"), "a", "a field nobody knows is skipped"),
        (field(0x1A, b"x" * 127), "x" * 127, "the longest length in one byte"),
        (field(0x1A, b"x" * 128), "x" * 128, "the shortest in two"),
        (field(0x1A, b"x" * 16_384), "x" * 16_384, "the shortest in three"),
        (field(0x1A, b"x" * 2_097_152), "x" * 2_097_152, "the shortest in four"),
        (field(0x32, field(0x0A, b"\x20\x01")), [True], "a list"),
        (field(0x2A, b""), {}, "an object with nothing in it"),
    ],
)
def test_a_value_however_it_is_written(content: bytes, expected: Any, reason: str) -> None:
    value = read.value(content)
    assert (value, type(value)) == (expected, type(expected)), reason


def test_nan_stays_what_it_is() -> None:
    assert math.isnan(read.value(b"\x11" + struct.pack("<d", math.nan)))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x1a\x05ab", "a length beyond the end"),
        (b"\x1a\x02\xff\xfe", "text that is not UTF-8"),
        (b"\x11\x00", "a number cut off"),
        (b"\xff" * 12, "no field at all"),
        (field(0x2A, b"\x0a\x09"), "an object cut off"),
    ],
)
def test_what_cannot_be_read_is_unreadable(content: bytes, reason: str) -> None:
    with pytest.raises(Unreadable):
        read.value(content)
    broken = WireDocument(write.entry("spec", content))
    with pytest.raises(Unreadable):
        broken.plain()


def nested(levels: int, *, lists: bool) -> bytes:
    content = b"\x20\x01"
    for _ in range(levels):
        content = field(0x32, field(0x0A, content)) if lists else write.wrapped(write.entry("a", content))
    return write.entry("spec", content)


@pytest.mark.parametrize("lists", [False, True])
def test_nesting_is_read_up_to_a_limit_and_never_exhausts_the_stack(*, lists: bool) -> None:
    assert WireDocument(nested(read.MAX_DEPTH - 1, lists=lists)).plain()
    for levels in (read.MAX_DEPTH, 5_000):
        deep = WireDocument(nested(levels, lists=lists))
        for look in (deep.plain, lambda deep=deep: deep.project({"spec": None})):
            with pytest.raises(Unreadable, match="nested deeper than 100 levels"):
                look()
        assert deep.project({"kind": None}) == {}, "what was not asked for is not looked at"


def test_a_shape_follows_lists_of_lists_no_deeper_than_the_limit() -> None:
    with pytest.raises(Unreadable):
        WireDocument(nested(5_000, lists=True)).project({"spec": {"a": None}})


def test_lists_in_lists_beside_objects_cost_nothing_but_themselves() -> None:
    """The list and the keys of its objects are read in one parse, which deep lists are too deep for."""
    deep: Any = "x"
    for _ in range(60):
        deep = [deep]
    content = write.struct({"spec": {"engines": [{"name": "main", "copies": 2}, deep]}})
    projected = WireDocument(content).project({"spec": {"engines": {"name": None}}})
    assert projected == {"spec": {"engines": [{"name": "main"}, deep]}}


def test_a_shape_follows_objects_in_lists_no_deeper_than_the_limit() -> None:
    """A list and the object in it are two levels: of a hundred, `spec` takes one."""
    shape: dict[str, Any] = {}
    shape["a"] = shape

    def objects_in_lists(times: int) -> WireDocument:
        content = b"\x20\x01"
        for _ in range(times):
            content = field(0x32, field(0x0A, write.wrapped(write.entry("a", content))))
        return WireDocument(write.entry("spec", content))

    assert objects_in_lists(49).project({"spec": shape})
    for times in (50, 5_000):
        with pytest.raises(Unreadable, match="nested deeper than 100 levels"):
            objects_in_lists(times).project({"spec": shape})


def test_part_of_a_broken_object_can_be_read() -> None:
    content = write.struct({"kind": "ModelReplica"}) + write.entry("spec", b"\x1a\x05ab")
    assert WireDocument(content).project({"kind": None}) == {"kind": "ModelReplica"}


@pytest.mark.parametrize("field", [field for field in shape_of(PublishedPool) if field != "name"])
def test_a_null_in_a_published_pool_is_nothing_however_it_is_read(field: str) -> None:
    """Also where the field is handed over as it stands: a null is no list of devices."""
    cluster = build.cluster("a", [build.pool("p", 2)])
    cluster["status"]["gpuPools"][0][field] = None
    readings = [
        read_cluster(document) for document in (PlainDocument(cluster), WireDocument(write.struct(cluster)))
    ]
    assert all(isinstance(reading, InferenceCluster) for reading in readings), readings
    assert len({reading.canonical for reading in readings if isinstance(reading, InferenceCluster)}) == 1
