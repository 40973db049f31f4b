"""Slicing a request by hand finds exactly what the parser finds, and leaves anything unusual to it."""

from __future__ import annotations

import random

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as pb

from function.wire import decode
from function.wire.fast import Unusual
from function.wire.fast.slices import sliced
from tests.support import generate
from tests.support.build import cluster


def _request() -> pb.RunFunctionRequest:
    message = pb.RunFunctionRequest()
    message.meta.tag = "tagged"
    for name in ("clusters", "all-replicas"):
        for index in range(3):
            message.required_resources[name].items.add().resource.update(cluster(f"{name}-{index}"))
    message.required_resources["none"].SetInParent()
    message.required_resources["empty"].items.add()
    return message


@pytest.mark.parametrize("seed", range(40))
def test_slices_are_what_the_parser_finds(seed: int) -> None:
    message = generate.world(seed).message()
    content = message.SerializeToString()
    rest, required = sliced(content)
    slices = {
        name: [item.resource.SerializeToString(deterministic=True) for item in resource.items]
        for name, resource in message.required_resources.items()
    }
    again = {name: [_canonical(item) for item in items] for name, items in required.items()}
    assert again == slices
    message.ClearField("required_resources")
    assert pb.RunFunctionRequest.FromString(rest) == message


def _canonical(item: memoryview) -> bytes:
    struct = pb.Resource.FromString(b"").resource
    struct.ParseFromString(bytes(item))
    return struct.SerializeToString(deterministic=True)


def test_absent_and_empty_requirements_are_kept_apart() -> None:
    _, required = sliced(_request().SerializeToString())
    assert {name: len(items) for name, items in required.items()} == {
        "clusters": 3,
        "all-replicas": 3,
        "none": 0,
        "empty": 0,
    }


def test_objects_are_views_of_the_bytes_that_arrived() -> None:
    content = _request().SerializeToString()
    _, required = sliced(content)
    assert all(item.obj is content for items in required.values() for item in items)


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (b"\x42\x00", "an entry without key and value"),
        (b"\x42\x06\x0a\x01x\x12\x80\x01", "a length that reaches past the end"),
        (b"\x40\x01", "another wire type"),
        (b"\x0b\x0c", "a group"),
        (b"\x42\x05\x0a\x01\xff\x12\x00", "a name that is no UTF-8"),
        (b"\x80", "a tag that does not end"),
        (b"\x0d\x00\x00\x00\x00", "a fixed-width field"),
    ],
)
def test_anything_unusual_is_left_to_the_parser(extra: bytes, reason: str) -> None:
    content = _request().SerializeToString() + extra
    with pytest.raises(Unusual):
        sliced(content)
    assert reason


def test_mutated_bytes_are_read_alike_or_left_to_the_parser() -> None:
    """Where slicing answers, the parser gives the same objects; where the parser refuses, so does decode."""
    content = _request().SerializeToString()
    for seed in range(3_000):
        draw = random.Random(seed)
        mutated = bytearray(content)
        for _ in range(draw.randint(1, 3)):
            mutated[draw.randrange(len(mutated))] = draw.randrange(256)
        try:
            rest, required = sliced(bytes(mutated))
        except Unusual:
            continue
        whole = _by_parser(bytes(mutated))
        if whole is not None:
            assert {name: [bytes(item) for item in items] for name, items in required.items()} == whole, seed
            assert _by_parser(rest) == {}, seed


def _by_parser(content: bytes) -> dict[str, list[bytes]] | None:
    from google.protobuf.message import DecodeError

    from function.wire import messages

    try:
        resources = messages.Request.FromString(content).required_resources
    except DecodeError:
        return None
    return {name: [item.resource for item in resources[name].items if item.resource] for name in resources}


def test_a_request_the_long_way_gives_the_same_documents() -> None:
    content = _request().SerializeToString()
    odd = content + b"\x0d\x00\x00\x00\x00"  # An unknown field of fixed width.
    plain = {
        name: [item.plain() for item in items] for name, items in decode(content).request.required.items()
    }
    again = {name: [item.plain() for item in items] for name, items in decode(odd).request.required.items()}
    assert plain == again
