"""What the API server demands of a schema before it accepts a CRD: the rules for structural schemas.

Written from the Kubernetes documentation of structural schemas. Gives a list of findings, each `path: what`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

FORBIDDEN = frozenset(
    {"$ref", "definitions", "dependencies", "deprecated", "discriminator", "id", "patternProperties"}
    | {"readOnly", "uniqueItems", "writeOnly", "xml"}
)
JUNCTORS = ("allOf", "anyOf", "oneOf")
OUTSIDE_ONLY = {"description", "type", "default", "additionalProperties", "nullable"}
TYPES = {"object", "array", "string", "integer", "number", "boolean"}
SCALARS = TYPES - {"object", "array"}


def findings(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Every breach of the rules, here and below."""
    yield from (f"{path}: {key} is not allowed" for key in sorted(FORBIDDEN & schema.keys()))
    yield from _type(schema, path)
    yield from _junctors(schema, path)
    yield from _rules(schema, path)
    if schema.get("type") == "array":
        yield from _array(schema, path)
    for name, child in schema.get("properties", {}).items():
        yield from findings(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from findings(schema[key], f"{path}[{key}]")


def _type(schema: dict[str, Any], path: str) -> Iterator[str]:
    kind = schema.get("type")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if kind is None and not free:
        yield f"{path}: a type is required"
    if kind is not None and kind not in TYPES:
        yield f"{path}: {kind} is no type"
    if schema.get("x-kubernetes-int-or-string") and kind is not None:
        yield f"{path}: int-or-string must not have a type"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{path}: properties and additionalProperties exclude each other"
    if schema.get("additionalProperties") is False:
        yield f"{path}: additionalProperties must not be false"
    if missing := set(schema.get("required", ())) - schema.get("properties", {}).keys():
        yield f"{path}: required but not a property: {sorted(missing)}"


def _junctors(schema: dict[str, Any], path: str) -> Iterator[str]:
    for junctor in JUNCTORS:
        for inner in schema.get(junctor, ()):
            yield from (f"{path}: {key} inside {junctor}" for key in sorted(OUTSIDE_ONLY & inner.keys()))


def _rules(schema: dict[str, Any], path: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        if not rule.get("rule") or not rule.get("message"):
            yield f"{path}: a validation needs a rule and a message"
        if "\n" in rule.get("message", ""):
            yield f"{path}: a message is one line"


def _array(schema: dict[str, Any], path: str) -> Iterator[str]:
    items = schema.get("items")
    if not isinstance(items, dict):
        yield f"{path}: an array needs items"
        return
    kind = schema.get("x-kubernetes-list-type", "atomic")
    if kind == "map":
        yield from _list_map(schema, items, path)
    if kind == "set" and items.get("type") not in SCALARS:
        yield f"{path}: a set holds scalars"


def _list_map(schema: dict[str, Any], items: dict[str, Any], path: str) -> Iterator[str]:
    for key in schema.get("x-kubernetes-list-map-keys") or [""]:
        declared = items.get("properties", {}).get(key)
        if declared is None or declared.get("type") not in SCALARS:
            yield f"{path}: the list's key {key} must be a scalar property of its items"
        elif key not in items.get("required", ()) and "default" not in declared:
            yield f"{path}: the list's key {key} must be required or have a default"


def undescribed(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Every property without a description: the reader of `kubectl explain` has nothing else."""
    for name, child in schema.get("properties", {}).items():
        if not child.get("description") and name not in {"metadata", "name"}:
            yield f"{path}.{name}"
        yield from undescribed(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from undescribed(schema[key], path)
