"""What the API server does with an object: defaults, unknown fields, schema, list types, CEL rules."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import jsonschema

from tests.schema.rules import holds

if TYPE_CHECKING:
    from collections.abc import Iterator


def refusals(plain: dict[str, Any], schema: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    """Why the API server would refuse (or cut down) the object; empty if it takes it as it is."""
    seen = deepcopy(plain)
    _default(seen, schema)
    refused = [f"{path}: no such field" for path in unknown(seen, schema)]
    validator = jsonschema.Draft7Validator(_as_json_schema(schema))
    refused += sorted(
        f"{error.json_path.removeprefix('$.')}: {error.message[-150:]}"
        for error in validator.iter_errors(seen)
    )
    refused += [f"{path}: duplicate {key}" for path, key in _duplicates(seen, schema, "")]
    return refused or list(_broken_rules(seen, old, schema, ""))


def unknown(plain: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """The paths that are not declared: they would be dropped, and a server-side apply of them fails."""
    if isinstance(plain, dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        declared, values = schema.get("properties"), schema.get("additionalProperties")
        for key, value in plain.items():
            if path == "" and key == "metadata":
                continue
            child = values if isinstance(values, dict) else (declared or {}).get(key)
            here = f"{path}.{key}" if path else key
            if child is None:
                yield here
            else:
                yield from unknown(value, child, here)
    elif isinstance(plain, list) and isinstance(schema.get("items"), dict):
        for index, value in enumerate(plain):
            yield from unknown(value, schema["items"], f"{path}[{index}]")


def children(plain: Any, schema: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Every value below this one that has a schema, with the step that leads to it."""
    if isinstance(plain, dict):
        values = schema.get("additionalProperties")
        for key, value in plain.items():
            child = values if isinstance(values, dict) else schema.get("properties", {}).get(key)
            if child is not None:
                yield f".{key}", value, child
    elif isinstance(plain, list) and isinstance(schema.get("items"), dict):
        yield from ((f"[{index}]", value, schema["items"]) for index, value in enumerate(plain))


def _default(plain: Any, schema: dict[str, Any]) -> None:
    if isinstance(plain, dict):
        for name, child in schema.get("properties", {}).items():
            if "default" in child and name not in plain:
                plain[name] = deepcopy(child["default"])
    for _, value, child in children(plain, schema):
        _default(value, child)


def _duplicates(plain: Any, schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    kind = schema.get("x-kubernetes-list-type")
    if isinstance(plain, list) and kind in ("map", "set"):
        keys = schema.get("x-kubernetes-list-map-keys", ())
        compared = [item for item in plain if kind == "set" or isinstance(item, dict)]
        names = Counter(str([item.get(key) for key in keys] if kind == "map" else item) for item in compared)
        yield from ((path, name) for name, times in names.items() if times > 1)
    for step, value, child in children(plain, schema):
        yield from _duplicates(value, child, path + step)


def _broken_rules(plain: Any, old: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        transition = "oldSelf" in rule["rule"]
        if not (transition and old is None) and not holds(rule["rule"], plain, old):
            yield f"{path.removeprefix('.')}: {rule['message']}"
    for step, value, child in children(plain, schema):
        before = old.get(step[1:]) if isinstance(old, dict) else None
        yield from _broken_rules(value, before, child, path + step)


def _as_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    made = {
        key: value for key, value in schema.items() if not key.startswith("x-kubernetes") and key != "default"
    }
    if schema.get("x-kubernetes-int-or-string"):
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "pattern" in made and made["pattern"].endswith("$"):
        made["pattern"] = made["pattern"][:-1] + r"\Z"  # Go's $ does not match before a last newline.
    if "properties" in made:
        made["properties"] = {name: _as_json_schema(child) for name, child in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _as_json_schema(made[key])
    return made
