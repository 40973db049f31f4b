"""The schema of every step's input has the fields that its parser reads, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pytest
from pydantic import BaseModel

from function.api import SchedulerConfig
from function.api.inputs import ClusterConfig, RoutingConfig, WorkloadConfig
from tests.schema.crds import INPUTS, objects, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MODELS = {model.__name__: model for model in (SchedulerConfig, WorkloadConfig, ClusterConfig, RoutingConfig)}


def read(annotation: object, path: str = "") -> Iterator[str]:
    """Yield the path of every field below an annotation that a model reads."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, info in annotation.model_fields.items():
            below = f"{path}.{info.alias or name}"
            yield below
            yield from read(info.annotation, below)
    for inner in get_args(annotation):
        yield from read(inner, path)


def declared(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of every field below a schema."""
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from declared(inner, f"{path}.{name}")
    if "items" in schema:
        yield from declared(schema["items"], path)


def test_every_input_has_a_parser() -> None:
    assert {crd["spec"]["names"]["kind"] for crd in objects(*INPUTS)} == set(MODELS)


@pytest.mark.parametrize("kind", MODELS)
def test_the_schema_has_what_the_parser_reads(kind: str) -> None:
    assert set(declared(schema_of(kind))) == set(read(MODELS[kind]))
