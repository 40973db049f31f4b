"""One description of each field: what a parser reads is in the schema of its kind, and read alike by all.

The other places are held by tests of their own: the reference (`test_schema_docs.py`), what may be recorded
(`tests/wire/test_redact.py`) and the inputs of the steps (`test_schema_inputs.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from function.api import (
    InferenceClass,
    InferenceCluster,
    ModelCache,
    ModelDeployment,
    adapter as adapter_api,
    cluster as cluster_api,
    declared_cluster as declared_api,
    replica as replica_api,
    routing as routing_api,
)
from function.api.workload import Workload
from function.recording import KINDS
from tests.schema.crds import read, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel

MODELS: dict[str, tuple[type[BaseModel], ...]] = {
    "InferenceClass": (InferenceClass,),
    "InferenceCluster": (InferenceCluster, declared_api.DeclaredCluster, declared_api.WorkloadCluster),
    "ModelAdapter": (adapter_api.ModelAdapter,),
    "ModelCache": (ModelCache,),
    "ModelDeployment": (ModelDeployment,),
    "ModelEndpoint": (routing_api.ModelEndpoint,),
    "ModelReplica": (Workload,),
    "ModelService": (routing_api.ModelService,),
}
SHAPES: dict[str, tuple[Mapping[str, Any], ...]] = {
    "InferenceCluster": (cluster_api.SHAPE, declared_api.SHAPE),
    "ModelEndpoint": (routing_api.ENDPOINT_SHAPE,),
    "ModelAdapter": (adapter_api.ADAPTER_SHAPE,),
    "ModelAdapterPlacement": (adapter_api.PLACEMENT_SHAPE,),
    "ModelReplica": (replica_api.SHAPE, replica_api.CHARGE_SHAPE, adapter_api.BASE_SHAPE),
    "ModelService": (routing_api.SERVICE_SHAPE,),
}


def undeclared(path: str, schema: dict[str, Any]) -> bool:
    """Tell whether a schema has no such field. Below what it leaves open it has every field."""
    for name in path.strip(".").split("."):
        while isinstance(schema.get("items"), dict):
            schema = schema["items"]
        if "properties" not in schema:
            return False
        if name not in schema["properties"]:
            return not schema.get("x-kubernetes-preserve-unknown-fields")
        schema = schema["properties"][name]
    return False


def projected(shape: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, below in shape.items():
        yield f"{path}.{name}"
        if hasattr(below, "items"):
            yield from projected(below, f"{path}.{name}")


def recorded(allowed: Any, path: str = "") -> Iterator[str]:
    for name, below in allowed.items() if hasattr(allowed, "items") else ():
        if name != "*":
            yield f"{path}.{name}"
            yield from recorded(below, f"{path}.{name}")


def of_the_api(paths: Iterator[str]) -> set[str]:
    """Leave out what every object of Kubernetes has."""
    return {path for path in paths if not path.startswith((".metadata", ".apiVersion", ".kind"))}


@pytest.mark.parametrize("kind", sorted({*MODELS, *SHAPES}))
def test_the_schema_has_every_field_that_is_read_or_recorded(kind: str) -> None:
    paths = {path for model in MODELS.get(kind, ()) for path in of_the_api(read(model))}
    paths |= {path for shape in SHAPES.get(kind, ()) for path in of_the_api(projected(shape))}
    paths |= of_the_api(recorded(KINDS.get(kind, {})))
    schema = schema_of(kind)
    assert sorted(path for path in paths if undeclared(path, schema)) == []
