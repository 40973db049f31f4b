"""Write plain values as the bytes of a `google.protobuf.Struct`.

Keys are sorted at every level, so equal values are equal bytes. That is half of Law 1; the other half is
that a decision is a function of its request.

Written by hand, because an answer for a large fleet has hundreds of thousands of entries, and each would be
a message to build before it is written. The format is small: a Struct is a map (field 1) whose entry holds a
key (1) and a Value (2), and a Value is one of six fields (`messages`). A protobuf message is nothing but
tags, lengths and contents, so the bytes of a part can be remembered and joined again:

- entries of short texts and numbers, and keys, which stand in object after object (`lru_cache`, bounded);
- maps that the replicas of one answer share, by identity, for that answer (`Written`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from struct import Struct as Packed

from google.protobuf import struct_pb2
from google.protobuf.message import DecodeError

from function.boundary import Plain

_double = Packed("<cd").pack
_LITERALS = {None: b"\x08\x00", True: b"\x20\x01", False: b"\x20\x00"}

_FIRST, _SECOND, _TEXT, _OBJECT, _LIST = 0x0A, 0x12, 0x1A, 0x2A, 0x32
"""Tags: the first field of a message and the second, then what a value holds."""
_ONE, _TWO = 1 << 7, 1 << 14
"""From here on a length takes more than one byte, more than two."""
_FEW = 64
"""A text is short below so many characters."""
_HEADS = {tag: tuple(bytes((tag, size)) for size in range(_ONE)) for tag in (_FIRST, _TEXT, _OBJECT, _LIST)}
"""Tag and length of what is short."""
_LENGTHS = tuple(bytes((size,)) for size in range(_ONE))


Written = dict[int, bytes]
"""Bytes of maps written before, by identity: the replicas of a deployment share their templates.

Only for as long as the maps live and do not change: for one answer."""


def struct(content: Mapping[str, Plain], written: Written | None = None) -> bytes:
    """Return the bytes of a Struct. Raises TypeError for what JSON does not have."""
    entries = []
    for key in sorted(content):
        held = content[key]
        kind = type(held)
        if (kind is int or (kind is str and len(held) < _FEW)) and len(key) < _FEW:
            entries.append(_leaf_entry(key, held))
        else:
            entries.append(entry(key, value(held, written)))
    return b"".join(entries)


@lru_cache(maxsize=4_096)
def _leaf_entry(key: str, held: str | int) -> bytes:
    """Return the entry of a short text or a number: most stand in object after object."""
    return entry(key, value(held))


@lru_cache(maxsize=1_024)
def _leaf_item(held: str) -> bytes:
    """Return a short text as an item of a list."""
    return _delimited(_FIRST, value(held))


def entry(key: str, written: bytes) -> bytes:
    """Return one map entry of a Struct, from its key and the bytes of its value."""
    name = _key(key) if len(key) < _FEW else _written_key(key)
    return _delimited(_FIRST, name + varint(len(written)) + written)


def _written_key(key: str) -> bytes:
    """Return the key of an entry, up to where the length of its value is written."""
    return _delimited(_FIRST, key.encode()) + bytes((_SECOND,))


_key = lru_cache(maxsize=4_096)(_written_key)
"""The same for short keys, most of which stand in object after object."""


def value(content: Plain, written: Written | None = None) -> bytes:
    """Return the bytes of one value. Integers become doubles, as every number in a Struct is one."""
    match content:
        case dict():
            map_bytes = None if written is None else written.get(id(content))
            if map_bytes is None:
                map_bytes = wrapped(struct(content, written))
                if written is not None:
                    written[id(content)] = map_bytes
            return map_bytes
        case str():
            return _delimited(_TEXT, content.encode())
        case list() | tuple():
            items = [
                _leaf_item(item)
                if type(item) is str and len(item) < _FEW
                else _delimited(_FIRST, value(item, written))
                for item in content
            ]
            return _delimited(_LIST, b"".join(items))
        case bool() | None:
            return _LITERALS[content]
        case int() | float():
            return _double(b"\x11", content)
    raise TypeError(f"{type(content).__name__} is not a JSON value")


def wrapped(content: bytes) -> bytes:
    """Return the bytes of a Struct as the bytes of a value."""
    return _delimited(_OBJECT, content)


def canonical(content: bytes) -> bytes:
    """Return the same Struct with its keys sorted at every level, or `content` itself if it cannot be parsed.

    What earlier steps wrote is passed on, but Crossplane orders its map entries anew on every call and
    our answer must not depend on that.
    """
    try:
        return bytes(struct_pb2.Struct.FromString(content).SerializeToString(deterministic=True))
    except DecodeError:
        return content


def _delimited(tag: int, content: bytes) -> bytes:
    """Return a length-delimited field."""
    size = len(content)
    if size < _ONE:
        return _HEADS[tag][size] + content
    if size < _TWO:
        return bytes((tag, size & 0x7F | 0x80, size >> 7)) + content
    return bytes((tag,)) + varint(size) + content


def varint(number: int) -> bytes:
    """Return a non-negative integer, seven bits a byte, the lowest first."""
    if number < _ONE:
        return _LENGTHS[number]
    if number < _TWO:
        return bytes((number & 0x7F | 0x80, number >> 7))
    written = bytearray()
    while number >= _ONE:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
