"""Write plain values as the bytes of a `google.protobuf.Struct`.

Keys are sorted at every level, so equal values are equal bytes.
"""

from __future__ import annotations

from struct import Struct as Packed
from typing import TYPE_CHECKING

from google.protobuf import struct_pb2
from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.exchange import Plain

_double = Packed("<cd").pack
_NULL, _TRUE, _FALSE = b"\x08\x00", b"\x20\x01", b"\x20\x00"


Written = dict[int, bytes]
"""Bytes of maps written before, by identity: the replicas of a deployment share their templates.

Only for as long as the maps live and do not change: for one answer."""


def struct(content: Mapping[str, Plain], written: Written | None = None) -> bytes:
    """Return the bytes of a Struct. Raises TypeError for what JSON does not have."""
    return b"".join(entry(key, value(content[key], written)) for key in sorted(content))


def entry(key: str, written: bytes) -> bytes:
    """Return one map entry of a Struct, from its key and the bytes of its value."""
    return _delimited(b"\x0a", _delimited(b"\x0a", key.encode()) + _delimited(b"\x12", written))


def value(content: Plain, written: Written | None = None) -> bytes:
    """Return the bytes of one value. Integers become doubles, as every number in a Struct is one."""
    match content:
        case str():
            return _delimited(b"\x1a", content.encode())
        case bool():
            return _TRUE if content else _FALSE
        case int() | float():
            return _double(b"\x11", content)
        case None:
            return _NULL
        case dict():
            return _map(content, written)
        case list() | tuple():
            items = (_delimited(b"\x0a", value(item, written)) for item in content)
            return _delimited(b"\x32", b"".join(items))
    raise TypeError(f"{type(content).__name__} is not a JSON value")


def _map(content: dict[str, Plain], written: Written | None) -> bytes:
    """Return the bytes of a map as a value, those written before if it was."""
    found = None if written is None else written.get(id(content))
    if found is None:
        found = wrapped(struct(content, written))
        if written is not None:
            written[id(content)] = found
    return found


def wrapped(content: bytes) -> bytes:
    """Return the bytes of a Struct as the bytes of a value."""
    return _delimited(b"\x2a", content)


def canonical(content: bytes) -> bytes:
    """Return the same Struct with its keys sorted at every level, or `content` itself if it cannot be parsed.

    What earlier steps wrote is passed on, but Crossplane orders its map entries anew on every call and
    our answer must not depend on that.
    """
    try:
        return bytes(struct_pb2.Struct.FromString(content).SerializeToString(deterministic=True))
    except DecodeError:
        return content


def _delimited(tag: bytes, content: bytes) -> bytes:
    """Return a length-delimited field."""
    length = len(content)
    if length < 0x80:  # noqa: PLR2004 - fits in seven bits
        return tag + bytes((length,)) + content
    return tag + _varint(length) + content


def _varint(number: int) -> bytes:
    """Return a non-negative integer, seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - does not fit in seven bits
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
