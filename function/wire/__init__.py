"""Translate between protobuf and the boundary's `Request` and `Response`.

A request can weigh a hundred megabytes and a decision needs a few fields of each object in it. So the
request is sliced, not decoded: our own message types (`messages`) read the same wire format but declare
every Kubernetes object as bytes, and an object is read path by path when somebody asks (`document`).

What Crossplane sends is not trusted to be well formed below the envelope: an object that cannot be read
raises `Unreadable` when it is read, and costs that object only.
"""

from __future__ import annotations

from function.wire.request import MalformedRequest, ReceivedCall, WireDocument, decode
from function.wire.response import Ttl, encode, encode_internal_error

__all__ = [
    "MalformedRequest",
    "ReceivedCall",
    "Ttl",
    "WireDocument",
    "decode",
    "encode",
    "encode_internal_error",
]
