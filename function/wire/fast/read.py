"""Read a `google.protobuf.Struct` from its bytes, only where somebody looks.

Why: a decision reads two dozen fields of an object that has thousands. Decoding the rest would take most of
the time and of the memory of a call.

How: a level of a Struct is parsed in C into a map from key to the bytes of a value (`level`), and a value is
decoded when it is wanted. Three ways to want it:

- `plain` is the whole object, `value` one value of it;
- `project` is the object cut down to a `Shape`, which is how parsers ask;
- `Parcel` is a subtree compared by its canonical bytes before it is converted. Most device lists of a fleet
  are equal, so most are never converted.

Limits: nothing here recurses deeper than `MAX_DEPTH`, so no input can exhaust the stack. What is no Struct,
holds invalid UTF-8, or nests deeper raises `Unreadable`, and only where somebody looked. A number that holds
an integer exactly arrives as an int, because that is what it was in the API server (Struct has doubles only).
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Any

from google.protobuf.message import DecodeError

from function.boundary import PACKED, Packed, Plain, Shape, Unreadable
from function.wire import messages

MAX_DEPTH = 100
"""Levels of nesting an object may have. Kubernetes objects stay below 30."""
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"

_EXACT = 1 << 53  # From here on a double no longer holds every integer.
_SHORT = 0x80  # A length below this is one byte on the wire.

# First byte of a google.protobuf.Value with one field: field number and wire type.
_NUMBER, _STRING, _BOOLEAN, _STRUCT, _LIST = 0x11, 0x1A, 0x20, 0x2A, 0x32

_STRUCT_BYTE = bytes([_STRUCT])
_double = Layout("<d").unpack_from
_parse_struct = messages.Struct.FromString
_parse_list = messages.List.FromString
_parse_holder = messages.Holder.FromString
_parse_holders = messages.Holders.FromString


def plain(content: bytes | memoryview) -> dict[str, Plain]:
    """Return the whole Struct. Raises `Unreadable` for what is no Struct, or nests too deep."""
    try:
        return _whole_fields(_parse_struct(content).fields, MAX_DEPTH)
    except (DecodeError, UnicodeDecodeError):
        raise Unreadable("not a readable object") from None


def project(content: bytes | memoryview, shape: Shape) -> dict[str, Plain]:
    """Return the Struct cut down to `shape`. Raises `Unreadable` as `plain` does, where it looked."""
    return project_level(level(content), shape)


def project_level(fields: Any, shape: Shape, metadata: Any = None) -> dict[str, Plain]:
    """Do the same from a level that was read already (see `level`), and from that of its metadata.

    Who an object is, is asked several times in a call: its metadata, most of its bytes, are parsed once.
    """
    try:
        below = shape.get("metadata")
        if not metadata or not below or "*" in shape:
            return _cut_fields(fields, shape, MAX_DEPTH)
        rest = {key: shape[key] for key in shape if key != "metadata"}
        return {
            "metadata": _cut_fields(metadata, below, MAX_DEPTH - 1),
            **_cut_fields(fields, rest, MAX_DEPTH),
        }
    except (DecodeError, UnicodeDecodeError):
        raise Unreadable("not a readable object") from None


def value(content: bytes) -> Plain:
    """Return the plain form of one value. Raises `Unreadable` as `plain` does."""
    try:
        return _whole(content, MAX_DEPTH)
    except (DecodeError, UnicodeDecodeError):
        raise Unreadable("not a readable value") from None


def level(content: bytes | memoryview) -> Any:
    """Return one level of a Struct as a map from key to the bytes of its value.

    The map is the parser's own: a test for a key and a subscript are quick, `get` and iterating are not.
    """
    try:
        return _parse_struct(content).fields
    except DecodeError:
        raise Unreadable("not a readable object") from None


def inner_level(content: bytes) -> Any:
    """Return one level of the Struct inside the bytes of a value, or None when it is something else."""
    try:
        held = _parse_holder(content)
    except DecodeError:
        raise Unreadable("not a readable value") from None
    fields = held.struct.fields
    return fields if fields or held.WhichOneof("choice") == "struct" else None


def _open(content: bytes) -> tuple[int, Any]:
    """Return the kind of a value and its payload: the fast way when it is written in the usual way.

    Usual: exactly one field, its length in one to three bytes. Anything else goes through the parser,
    which knows what repeated, unknown and over-long fields mean.
    """
    size = len(content)
    if size > 1 and content[0] in (_STRING, _STRUCT, _LIST):
        if content[1] == size - 2 < _SHORT:
            return content[0], content[2:]
        if content[1] >= _SHORT and size > 3:  # noqa: PLR2004 - two length bytes and something after them
            if content[2] < _SHORT:
                length, start = content[1] & 0x7F | content[2] << 7, 3
            else:
                length, start = content[1] & 0x7F | (content[2] & 0x7F) << 7 | content[3] << 14, 4
            if length == size - start and content[start - 1] < _SHORT:
                return content[0], content[start:]
    return _open_slowly(content)


def _open_slowly(content: bytes) -> tuple[int, Any]:
    """Return the kind of a value and its payload, whatever way it is written. 0 is null."""
    parsed = _parse_holder(content)
    match parsed.WhichOneof("choice"):
        case "string":
            return _STRING, parsed.string
        case "struct":
            return _STRUCT, parsed.struct.SerializeToString()
        case "list":
            return _LIST, parsed.list.SerializeToString()
        case "number":
            return _NUMBER, parsed.number
        case "boolean":
            return _BOOLEAN, parsed.boolean
    return 0, None


def _whole(content: bytes, depth: int) -> Plain:  # noqa: PLR0911 - one for each kind of value
    """Return the plain form of a value; the first three lines are nearly every value of a fleet."""
    size = len(content)
    if size > 1 and content[0] == _STRING and content[1] == size - 2 < _SHORT:
        return content[2:].decode()
    if size == 9 and content[0] == _NUMBER:  # noqa: PLR2004 - a tag and eight bytes
        return _number(_double(content, 1)[0])
    if content[:1] == _STRUCT_BYTE and (fields := _parse_holder(content).struct.fields):
        return _whole_fields(fields, depth)
    kind, payload = _open(content)
    if kind == _STRUCT:
        return _whole_fields(_parse_struct(payload).fields, depth)
    if kind == _LIST:
        if depth <= 0:
            raise Unreadable(TOO_DEEP)
        return [_whole(item, depth - 1) for item in _parse_list(payload).values[:]]
    if kind == _STRING:
        return payload.decode()
    return _number(payload) if kind == _NUMBER else payload


def _whole_fields(fields: Any, depth: int) -> dict[str, Plain]:
    """Return one level with everything below it."""
    if depth <= 0:
        raise Unreadable(TOO_DEEP)
    return {key: _whole(fields[key], depth - 1) for key in fields}


def _cut_fields(fields: Any, shape: Shape, depth: int) -> dict[str, Plain]:
    """Return the keys of one level that `shape` names, cut down in turn."""
    if depth <= 0:
        raise Unreadable(TOO_DEEP)
    if "*" in shape:
        shape = {key: shape[key] if key in shape else shape["*"] for key in fields}
    read = {}
    for key, below in shape.items():
        if key in fields:
            held: bytes = fields[key]
            if len(held) > 1 and held[0] == _STRING and held[1] == len(held) - 2 < _SHORT:
                read[key] = held[2:].decode()
            elif below is None:
                read[key] = _whole(held, depth - 1)
            else:
                read[key] = _cut(held, below, depth - 1)
    return read


def _cut(content: bytes, shape: Shape, depth: int) -> Plain:
    """Return a value cut down to `shape`; a list element by element, a scalar as it is."""
    if shape is PACKED:
        return Parcel.of(content)
    if shape and content[:1] == _STRUCT_BYTE and (fields := _parse_holder(content).struct.fields):
        return _cut_fields(fields, shape, depth)
    kind, payload = _open(content)
    if kind == _STRUCT:
        return _cut_fields(_parse_struct(payload).fields, shape, depth) if shape else {}
    if kind == _LIST:
        if depth <= 0:
            raise Unreadable(TOO_DEEP)
        if shape:
            return _cut_items(payload, shape, depth - 1)
        items = _parse_list(payload).values[:]
        return [{} if item[:1] == _STRUCT_BYTE else _cut(item, shape, depth - 1) for item in items]
    return _whole(content, depth)


def _cut_items(content: bytes, shape: Shape, depth: int) -> list[Plain]:
    """Return a list whose items are cut down: the list and the keys of its objects come from one parse.

    Lists that readers want hold objects: pools, devices, conditions, engines. So the items are opened in C,
    all at once, instead of one by one from here.
    """
    try:
        items = _parse_holders(content).values[:]
    except DecodeError:  # One item is to blame, or lists in lists are nested deeper than one parse goes.
        return [_cut(item, shape, depth) for item in _parse_list(content).values[:]]
    return [
        _cut_fields(fields, shape, depth)
        if depth > 0 and (fields := item.struct.fields)
        else _cut(item.SerializeToString(), shape, depth)
        for item in items
    ]


class Parcel(Packed):
    """A subtree that is parsed to the bottom.

    Its key is its canonical bytes, which have the entries of every map in one order.
    """

    __slots__ = ("_value", "key")

    def __init__(self, value: Any) -> None:
        self._value = value
        self.key: bytes = value.SerializeToString(deterministic=True)

    @classmethod
    def of(cls, content: bytes) -> Parcel:
        """Parse the bytes of a value. Raises `Unreadable`."""
        try:
            return cls(messages.Deep.FromString(content))
        except DecodeError:
            raise Unreadable("not a readable value, or nested too deeply") from None

    def items(self) -> list[Parcel] | None:
        """Return the items of a list; None for what is none."""
        if self._value.WhichOneof("kind") != "list_value":
            return None
        return [Parcel(item) for item in self._value.list_value.values[:]]

    def plain(self) -> Plain:
        """Return it as plain values."""
        return _plain_value(self._value)


def _plain_value(value: Any) -> Plain:
    """Return the plain form of a value that is parsed to the bottom: the parser bounds how deep it nests."""
    if text := value.string_value:
        return text
    if fields := value.struct_value.fields:
        return {key: _plain_value(fields[key]) for key in fields}
    read: Plain = None
    match value.WhichOneof("kind"):
        case "number_value":
            read = _number(value.number_value)
        case "bool_value":
            read = value.bool_value
        case "list_value":
            read = [_plain_value(item) for item in value.list_value.values[:]]
        case "string_value":
            read = ""
        case "struct_value":
            read = {}
    return read


def _number(number: float) -> int | float:
    """Return an int where the double is one exactly; NaN, infinity and fractions stay float."""
    return int(number) if number.is_integer() and -_EXACT <= number <= _EXACT else number
