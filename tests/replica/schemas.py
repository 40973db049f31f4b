"""Check what is composed against the schemas of its APIs (`schemas.json`, written by hack/schemas.py)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

if TYPE_CHECKING:
    from collections.abc import Iterator

Plain = dict[str, Any]

VENDORED: Plain = json.loads((Path(__file__).parent / "schemas.json").read_text())


@cache
def validator(kind: str) -> Draft202012Validator:
    """Return the validator of `apiVersion kind`. Raises KeyError for a kind that is not vendored."""
    return Draft202012Validator({**VENDORED["kinds"][kind], "$defs": VENDORED["$defs"]})


@cache
def _findings(text: str) -> tuple[str, ...]:
    """Findings about an object, by its text: most manifests of a test differ in their names only."""
    plain = json.loads(text)
    schema = validator(f"{plain['apiVersion']} {plain['kind']}")
    findings = [
        f"{plain['kind']}{error.json_path[1:]}: {error.message[:200]}" for error in schema.iter_errors(plain)
    ]
    return (*findings, *repeated(plain, schema.schema))


def findings(plain: Plain) -> tuple[str, ...]:
    """Return what an API server would refuse of an object."""
    return _findings(json.dumps(plain, sort_keys=True))


def composed(resource: Plain) -> Iterator[str]:
    """Yield what is wrong with a composed resource, and with the manifest in it."""
    yield from findings(resource)
    if resource["kind"] == "Object":
        yield from findings(resource["spec"]["forProvider"]["manifest"])


def repeated(plain: Any, schema: Any, path: str = "") -> Iterator[str]:
    """Yield items of a list map that have the same key: server-side apply refuses them."""
    if "$ref" in schema:
        schema = VENDORED["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(plain, list):
        keys = schema.get("x-kubernetes-list-map-keys", ())
        named = [tuple(json.dumps(item.get(key)) for key in keys) for item in plain if keys]
        if len(set(named)) < len(named):
            yield f"{path}: an item stands twice"
        for item in plain:
            yield from repeated(item, schema.get("items", {}), f"{path}[]")
    if isinstance(plain, dict):
        for key, value in plain.items():
            below = schema.get("properties", {}).get(key, {})
            yield from repeated(value, below, f"{path}.{key}")
