"""Translate between protobuf and the boundary's `Request` and `Response`.

A request can weigh a hundred megabytes and a decision needs a few fields of each object in it. So the
request is sliced, not decoded: our own message types (`messages`) read the same wire format but declare
every Kubernetes object as bytes. An object is read path by path when somebody asks (`fast/read`).

Three rules hold in this folder:

- **Order is ours.** Crossplane writes map entries in another order on every call. Whatever leaves here has
  its keys sorted at every level, so that equal answers are equal bytes (Law 1: a pure function).
- **Trust ends at the envelope.** Bytes that are no RunFunctionRequest raise `MalformedRequest`. Below that,
  an object that cannot be read raises `Unreadable` when it is read, and costs that object only.
- **What is not ours passes through.** Tag, context and the desired state of earlier steps are copied, and
  never decoded but where ours is merged into them.

`request` reads, `response` writes, `write` makes bytes of plain values.
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
