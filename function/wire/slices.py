"""Slice the required resources out of a request without copying them.

They are nearly all of a large request. Parsing the request whole would copy them twice, once into the
message and once into the bytes of each object; here each object is a view of the bytes that arrived. Only
the plain way of writing a request is understood; anything else goes the way of the parser (`Unusual`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_REQUIRED = 8
"""Field of RunFunctionRequest: the required resources, a map from name to items."""
_VARINT, _DELIMITED = 0, 2
_READY = 3
"""Field of Resource that may stand beside the object."""
_MOST_BYTES = 5  # Of a length: 35 bits are more than any request has.

Field = tuple[int, int, int, int]
"""Number, wire type, and where its payload starts and ends."""


class Unusual(Exception):
    """The bytes are not written the plain way, or are no request at all."""


def _varint(content: memoryview, at: int, end: int) -> tuple[int, int]:
    """Read a length or a tag. Returns it and where the next byte is."""
    number = 0
    for shift in range(0, 7 * _MOST_BYTES, 7):
        if at >= end:
            break
        byte = content[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last byte has no continuation bit
            return number, at
    raise Unusual


def _fields(content: memoryview, at: int, end: int) -> Iterator[Field]:
    """The fields of a message that are varints or length-delimited."""
    while at < end:
        tag, at = _varint(content, at, end)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            _, after = _varint(content, at, end)
        elif kind == _DELIMITED:
            length, at = _varint(content, at, end)
            after = at + length
        else:
            raise Unusual
        if after > end or not number:
            raise Unusual
        yield number, kind, at, after
        at = after


def _item(content: memoryview, at: int, end: int) -> memoryview | None:
    """The object of one item; None for an item that holds none."""
    found: memoryview | None = None
    for number, kind, start, after in _fields(content, at, end):
        if number == 1 and kind == _DELIMITED and found is None:
            found = content[start:after]
        elif (number, kind) != (_READY, _VARINT):
            raise Unusual
    return found or None


def _entry(content: memoryview, at: int, end: int) -> tuple[str, tuple[memoryview, ...]]:
    """One entry of the map: the requirement's name and its objects."""
    fields = list(_fields(content, at, end))
    if [field[:2] for field in fields] != [(1, _DELIMITED), (2, _DELIMITED)]:
        raise Unusual
    (_, _, start, after), (_, _, first, last) = fields
    items = []
    for number, kind, begin, close in _fields(content, first, last):
        if (number, kind) != (1, _DELIMITED):
            raise Unusual
        items.append(_item(content, begin, close))
    try:
        name = str(content[start:after], "utf-8")
    except UnicodeDecodeError:
        raise Unusual from None
    return name, tuple(item for item in items if item)


def sliced(content: bytes) -> tuple[bytes, dict[str, tuple[memoryview, ...]]]:
    """Split a request: the bytes of everything else, and the required objects by requirement name.

    Raises:
        Unusual: when the parser has to look at it.
    """
    view = memoryview(content)
    rest: list[memoryview] = []
    required: dict[str, tuple[memoryview, ...]] = {}
    start = 0
    for number, kind, at, after in _fields(view, 0, len(view)):
        if number == _REQUIRED:
            if kind != _DELIMITED:
                raise Unusual
            name, items = _entry(view, at, after)
            required[name] = items
        else:
            rest.append(view[start:after])
        start = after
    return b"".join(rest), required
