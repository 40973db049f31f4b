"""Protobuf wrappers, the only message literals of the dialect: `google.protobuf.Int32Value{value: 1}` is 1."""

from __future__ import annotations

from dataclasses import dataclass

from function.cel import types
from function.cel.types import Type
from function.cel.values import UInt, Value


@dataclass(frozen=True, slots=True)
class Wrapper:
    """What a wrapper wraps, and its value when none is given."""

    type: Type
    zero: Value


WRAPPERS = {
    "google.protobuf.BoolValue": Wrapper(types.BOOL, zero=False),
    "google.protobuf.BytesValue": Wrapper(types.BYTES, b""),
    "google.protobuf.DoubleValue": Wrapper(types.DOUBLE, 0.0),
    "google.protobuf.FloatValue": Wrapper(types.DOUBLE, 0.0),
    "google.protobuf.Int32Value": Wrapper(types.INT, 0),
    "google.protobuf.Int64Value": Wrapper(types.INT, 0),
    "google.protobuf.StringValue": Wrapper(types.STRING, ""),
    "google.protobuf.UInt32Value": Wrapper(types.UINT, UInt(0)),
    "google.protobuf.UInt64Value": Wrapper(types.UINT, UInt(0)),
}
