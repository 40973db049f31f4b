"""The schema of every step's input has the fields that its parser reads, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from function.api import SchedulerConfig
from function.api.inputs import ClusterConfig, RoutingConfig, WorkloadConfig
from tests.schema.crds import INPUTS, objects, read, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MODELS = {model.__name__: model for model in (SchedulerConfig, WorkloadConfig, ClusterConfig, RoutingConfig)}


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
