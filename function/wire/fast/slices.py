"""Slice the required resources out of a request without copying them.

They are nearly all of a large request. Parsing the request whole would copy them twice, once into the
message and once into the bytes of each object; here each object is a view of the bytes that arrived. That
is what keeps the peak of memory below four times the request.

The fields that are followed, with the numbers of Crossplane's `run_function.proto`:

    RunFunctionRequest.required_resources (8)   map<string, Resources>: entry {1: name, 2: Resources}
    Resources.items (1)                         repeated Resource
    Resource.resource (1), Resource.ready (3)   the object, and a number that may stand beside it

Everything else of the request is joined and parsed as usual. Only the plain way of writing these four is
understood; anything else goes the way of the parser (`Unusual`): a name after its items, a field twice,
groups, lengths of more than five bytes. A view that would end beyond its message is never handed out.
"""

from __future__ import annotations

from collections.abc import Iterator

from function.wire.fast import Unusual

_REQUIRED = 8
"""Field of RunFunctionRequest: the required resources, a map from name to items."""
_VARINT, _DELIMITED = 0, 2
_READY = 3
"""Field of Resource that may stand beside the object."""
_MORE = 0x80
"""From here on a byte of a varint has another one after it."""
_MOST_BYTES = 5  # Of a length: 35 bits are more than any request has.
_FIRST = 1 << 3 | _DELIMITED
"""Tag of a length-delimited field 1: an item in its list, the object in its item."""

Field = tuple[int, int, int, int]
"""Number, wire type, and where its payload starts and ends."""


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    """Read a length or a tag. Returns it and where the next byte is, which may be beyond the message.

    Raises IndexError where the bytes end within it.
    """
    first = content[at]
    if first < _MORE:
        return first, at + 1
    second = content[at + 1]
    if second < _MORE:
        return first & 0x7F | second << 7, at + 2
    number = first & 0x7F | (second & 0x7F) << 7
    for more in range(2, _MOST_BYTES):
        byte = content[at + more]
        number |= (byte & 0x7F) << 7 * more
        if byte < _MORE:
            return number, at + more + 1
    raise Unusual


def _fields(content: memoryview, at: int, end: int) -> Iterator[Field]:
    """The fields of a message that are varints or length-delimited.

    Fixed-size fields and groups do not occur in a request: who writes one is left to the parser.
    """
    while at < end:
        tag, at = _varint(content, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            _, after = _varint(content, at)
        elif kind == _DELIMITED:
            length, at = _varint(content, at)
            after = at + length
        else:
            raise Unusual
        if after > end or not number:  # Field 0 does not exist in protobuf; the parser says so.
            raise Unusual
        yield number, kind, at, after
        at = after


def _item(content: memoryview, at: int, end: int) -> memoryview | None:
    """The object of one item; None for an item that holds none, which some versions send for "not found"."""
    item: memoryview | None = None
    for number, kind, start, after in _fields(content, at, end):
        if number == 1 and kind == _DELIMITED and item is None:
            item = content[start:after]
        elif (number, kind) != (_READY, _VARINT):
            raise Unusual
    return item or None


def _objects(content: memoryview, at: int, end: int) -> Iterator[memoryview]:
    """The objects of a list of items, one after the other, without the items that hold none.

    This loop runs once for every object of a request, tens of thousands of times. So it reads the two
    lengths in place where they have two bytes, as nearly all have, without a call for each.
    """
    while at < end:
        if content[at] != _FIRST:
            raise Unusual
        size = content[at + 1]
        if size >= _MORE > content[at + 2]:  # As nearly all are: of 128 bytes to 16 kB.
            size, start = size & 0x7F | content[at + 2] << 7, at + 3
        else:
            size, start = _varint(content, at + 1)
        at = start + size
        if at > end:
            raise Unusual
        if size and content[start] == _FIRST:
            length = content[start + 1]
            if length >= _MORE > content[start + 2]:
                length, first = length & 0x7F | content[start + 2] << 7, start + 3
            else:
                length, first = _varint(content, start + 1)
            if length and first + length == at:  # The object and nothing else.
                yield content[first:at]
                continue
        item = _item(content, start, at)
        if item is not None:
            yield item


def _entry(content: memoryview, at: int, end: int) -> tuple[str, tuple[memoryview, ...]]:
    """One entry of the map: the requirement's name and its objects."""
    fields = list(_fields(content, at, end))
    if [field[:2] for field in fields] != [(1, _DELIMITED), (2, _DELIMITED)]:
        raise Unusual
    (_, _, start, after), (_, _, first, last) = fields
    items = tuple(_objects(content, first, last))
    try:
        return str(content[start:after], "utf-8"), items
    except UnicodeDecodeError:
        raise Unusual from None


def sliced(content: bytes) -> tuple[bytes, dict[str, tuple[memoryview, ...]]]:
    """Split a request: the bytes of everything else, and the required objects by requirement name.

    Raises:
        Unusual: when the parser has to look at it.
    """
    view = memoryview(content)
    rest: list[memoryview] = []
    required: dict[str, tuple[memoryview, ...]] = {}
    start = 0
    try:
        for number, kind, at, after in _fields(view, 0, len(view)):
            if number == _REQUIRED:
                if kind != _DELIMITED:
                    raise Unusual
                name, items = _entry(view, at, after)
                required[name] = items  # As the parser does: of two entries with one key the last counts.
            else:
                rest.append(view[start:after])
            start = after
    except IndexError:  # The bytes end within a length.
        raise Unusual from None
    return b"".join(rest), required
