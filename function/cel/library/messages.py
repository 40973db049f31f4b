"""Protobuf's well-known types, the only message literals of the dialect.

`google.protobuf.Int32Value{value: 1}` is 1, `google.protobuf.Value{string_value: "a"}` is "a". Any other
message is an unknown name, as it is to the API server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.cel.syntax import types
from function.cel.syntax.types import Type, list_of, map_of, wrapper_of
from function.cel.values import Map, UInt, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

_OBJECT = map_of(types.STRING, types.DYN)
_ARRAY = list_of(types.DYN)


@dataclass(frozen=True, slots=True)
class MessageType:
    """What a message literal makes, the fields it may have, its value when none is given."""

    type: Type
    fields: Mapping[str, Type]
    zero: Value


def _wrapper(wrapped: Type, zero: Value) -> MessageType:
    return MessageType(wrapper_of(wrapped), {"value": wrapper_of(wrapped)}, zero)


MESSAGES: Mapping[str, MessageType] = {
    "google.protobuf.BoolValue": _wrapper(types.BOOL, zero=False),
    "google.protobuf.BytesValue": _wrapper(types.BYTES, b""),
    "google.protobuf.DoubleValue": _wrapper(types.DOUBLE, 0.0),
    "google.protobuf.FloatValue": _wrapper(types.DOUBLE, 0.0),
    "google.protobuf.Int32Value": _wrapper(types.INT, 0),
    "google.protobuf.Int64Value": _wrapper(types.INT, 0),
    "google.protobuf.StringValue": _wrapper(types.STRING, ""),
    "google.protobuf.UInt32Value": _wrapper(types.UINT, UInt(0)),
    "google.protobuf.UInt64Value": _wrapper(types.UINT, UInt(0)),
    "google.protobuf.ListValue": MessageType(_ARRAY, {"values": _ARRAY}, []),
    "google.protobuf.Struct": MessageType(_OBJECT, {"fields": _OBJECT}, Map({})),
    "google.protobuf.Value": MessageType(
        types.DYN,
        {
            "null_value": types.NULL,
            "number_value": types.DOUBLE,
            "string_value": types.STRING,
            "bool_value": types.BOOL,
            "struct_value": _OBJECT,
            "list_value": _ARRAY,
        },
        None,
    ),
}
