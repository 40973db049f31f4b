"""XRDs as the API server sees them: Crossplane makes a CRD of each, taking only parts of the schema over."""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import yaml
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
COMPOSITIONS = sorted(ROOT.glob("apis/*/composition.yaml"))
DEFINITIONS = sorted(ROOT.glob("apis/*/definition.yaml"))
INPUTS = sorted(ROOT.glob("package/input/*.yaml"))

SPEC_KEYS = ("properties", "required", "oneOf", "description", "x-kubernetes-validations",
             "x-kubernetes-preserve-unknown-fields")  # fmt: skip
"""What Crossplane takes over of `spec`; of `status` it takes the same but for the last."""

CONDITIONS: dict[str, Any] = {
    "type": "array",
    "description": "Conditions of the resource.",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["lastTransitionTime", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {"type": "string", "format": "date-time", "description": "-"},
            "message": {"type": "string", "description": "-"},
            "reason": {"type": "string", "description": "-"},
            "status": {"type": "string", "description": "-"},
            "type": {"type": "string", "description": "-"},
            "observedGeneration": {"type": "integer", "format": "int64", "description": "-"},
        },
    },
}
MACHINERY: dict[str, Any] = {
    "type": "object",
    "description": "-",
    "x-kubernetes-preserve-unknown-fields": True,
}


def objects(*paths: Path) -> list[dict[str, Any]]:
    """Every object in the files, in order."""
    return [document for path in paths for document in yaml.safe_load_all(path.read_text()) if document]


def definition(kind: str) -> dict[str, Any]:
    """The XRD of a kind."""
    return next(manifest for manifest in objects(*DEFINITIONS) if manifest["spec"]["names"]["kind"] == kind)


@lru_cache
def schema_of(kind: str) -> dict[str, Any]:
    """The schema the API server holds objects of the kind against. Only to be read."""
    for crd in objects(*INPUTS):
        if crd["spec"]["names"]["kind"] == kind:
            return deepcopy(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    source = deepcopy(definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    spec = {"type": "object"} | _taken(source["properties"]["spec"], SPEC_KEYS)
    status = {"type": "object"} | _taken(source["properties"].get("status", {}), SPEC_KEYS[:-1])
    spec["properties"]["crossplane"] = MACHINERY
    status.setdefault("properties", {})["conditions"] = CONDITIONS
    name = {"type": "string", "maxLength": 63}
    return {
        "type": "object",
        "description": source["description"],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "-"},
            "kind": {"type": "string", "description": "-"},
            "metadata": {"type": "object", "description": "-", "properties": {"name": name}},
            "spec": spec,
            "status": status,
        },
    }


def _taken(schema: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: schema[key] for key in keys if key in schema}


def read(annotation: object, path: str = "") -> Iterator[str]:
    """Yield the path of every field below an annotation that a model reads."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, info in annotation.model_fields.items():
            below = f"{path}.{info.alias or name}"
            yield below
            yield from read(info.annotation, below)
    for inner in get_args(annotation):
        yield from read(inner, path)
