"""Message types that read and write the wire format of Crossplane's `run_function.proto`, lazily.

Why not the generated types: they decode every Kubernetes object into a `google.protobuf.Struct`, field by
field, and a decision reads few of these fields.

Same field numbers and wire types; only the declared types differ. A Struct is declared as bytes, because on
the wire both are one length-delimited field. v1 and v1beta1 are the same on the wire. A field that is not
declared here is an unknown field: the parser skips it, and what copies a message keeps it.

The types live in a pool of their own, so that they cannot clash with the generated ones, which the services
(`server/services.py`) import for their names.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2

PACKAGE = "fleet.wire"

_Proto = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Proto.TYPE_BOOL,
    "bytes": _Proto.TYPE_BYTES,
    "double": _Proto.TYPE_DOUBLE,
    "enum": _Proto.TYPE_INT32,  # An open enum and an int32 are the same varint.
    "int32": _Proto.TYPE_INT32,
    "int64": _Proto.TYPE_INT64,
    "string": _Proto.TYPE_STRING,
}

# google.protobuf.Value, but for its objects and lists: how far these are opened differs.
_VALUE = {
    "null": (1, "one", "enum"),
    "number": (2, "one", "double"),
    "string": (3, "one", "bytes"),
    "boolean": (4, "one", "bool"),
}

# Message: field: (number, type). "map" and "list" say how often, "one" and "maybe" whether absence shows.
_SCHEMA: dict[str, dict[str, tuple[int, str, str]]] = {
    # google.protobuf.Struct, one level deep: the values stay bytes.
    "Struct": {"fields": (1, "map", "bytes")},
    "List": {"values": (1, "list", "bytes")},
    # A google.protobuf.Value opened as far as the keys of its object, or of the objects of its list.
    "Holder": {**_VALUE, "struct": (5, "one", "Struct"), "list": (6, "one", "Holders")},
    "Holders": {"values": (1, "list", "Holder")},
    # A google.protobuf.Value opened as far as the items of its list.
    "Lister": {**_VALUE, "struct": (5, "one", "bytes"), "list": (6, "one", "List")},
    "Resource": {
        "resource": (1, "", "bytes"),
        "connection_details": (2, "map", "bytes"),
        "ready": (3, "", "enum"),
    },
    "Resources": {"items": (1, "list", "Resource")},
    "State": {"composite": (1, "", "Resource"), "resources": (2, "map", "Resource")},
    "Asked": {"tag": (1, "", "string")},  # Its field 2 is Crossplane's capabilities, no duration.
    "Meta": {"tag": (1, "", "string"), "ttl": (2, "", "Duration")},
    "Duration": {"seconds": (1, "", "int64"), "nanos": (2, "", "int32")},
    "Request": {
        "meta": (1, "", "Asked"),
        "observed": (2, "", "State"),
        "desired": (3, "", "State"),
        "input": (4, "maybe", "bytes"),
        "context": (5, "maybe", "bytes"),
        "required_resources": (8, "map", "Resources"),
    },
    "Labels": {"labels": (1, "map", "string")},
    "Selector": {
        "api_version": (1, "", "string"),
        "kind": (2, "", "string"),
        "match_name": (3, "one", "string"),
        "match_labels": (4, "one", "Labels"),
        "namespace": (5, "maybe", "string"),
    },
    "Requirements": {"resources": (2, "map", "Selector")},
    "Result": {
        "severity": (1, "", "enum"),
        "message": (2, "", "string"),
        "reason": (3, "maybe", "string"),
        "target": (4, "maybe", "enum"),
    },
    "Condition": {
        "type": (1, "", "string"),
        "status": (2, "", "enum"),
        "reason": (3, "", "string"),
        "message": (4, "maybe", "string"),
        "target": (5, "maybe", "enum"),
    },
    "Response": {
        "meta": (1, "", "Meta"),
        "desired": (2, "", "State"),
        "results": (3, "list", "Result"),
        "context": (4, "maybe", "bytes"),
        "requirements": (5, "", "Requirements"),
        "conditions": (6, "list", "Condition"),
    },
}


def _typed(field: Any, kind: str) -> None:
    """Give `field` the scalar type or the message named `kind`."""
    field.type = _SCALARS.get(kind, _Proto.TYPE_MESSAGE)
    if kind not in _SCALARS:
        field.type_name = f".{PACKAGE}.{kind}"


def _map_entry(message: Any, name: str, kind: str) -> str:
    """Declare the entry type that a protobuf map from string to `kind` stands for; return its name."""
    entry = message.nested_type.add(name=name.title().replace("_", "") + "Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_Proto.TYPE_STRING, label=_Proto.LABEL_OPTIONAL)
    _typed(entry.field.add(name="value", number=2, label=_Proto.LABEL_OPTIONAL), kind)
    return f".{PACKAGE}.{message.name}.{entry.name}"


def _declare(message: Any, fields: dict[str, tuple[int, str, str]]) -> None:
    """Add `fields` to `message`; a "one" field joins the oneof, a "maybe" field gets one of its own."""
    if any(how == "one" for _, how, _ in fields.values()):
        message.oneof_decl.add(name="choice")
    for name, (number, how, kind) in fields.items():
        label = _Proto.LABEL_REPEATED if how in ("map", "list") else _Proto.LABEL_OPTIONAL
        field = message.field.add(name=name, number=number, label=label)
        if how == "map":
            field.type, field.type_name = _Proto.TYPE_MESSAGE, _map_entry(message, name, kind)
            continue
        _typed(field, kind)
        if how == "one":
            field.oneof_index = 0
    for name, (_, how, _) in fields.items():
        if how == "maybe":  # Oneofs of the compiler's own making must come last.
            field = next(field for field in message.field if field.name == name)
            field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")


def _build() -> dict[str, Any]:
    """Return the message classes by name."""
    file = descriptor_pb2.FileDescriptorProto(name="fleet/wire.proto", package=PACKAGE, syntax="proto3")
    for name, fields in _SCHEMA.items():
        _declare(file.message_type.add(name=name), fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in _SCHEMA
    }


_CLASSES = _build()
Struct: Any = _CLASSES["Struct"]
List: Any = _CLASSES["List"]
Holder: Any = _CLASSES["Holder"]
Holders: Any = _CLASSES["Holders"]
Lister: Any = _CLASSES["Lister"]
Deep: Any = struct_pb2.Value
"""A value with everything below it."""
Request: Any = _CLASSES["Request"]
Response: Any = _CLASSES["Response"]

READY_TRUE, READY_FALSE = 1, 2
STATUS_TRUE, STATUS_FALSE = 2, 3
SEVERITIES = {"FATAL": 1, "WARNING": 2, "NORMAL": 3}
