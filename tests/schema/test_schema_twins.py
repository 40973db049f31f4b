"""Parts that stand in two schemas are the same in both."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.schema.crds import schema_of

ENGINE = "properties.spec.properties.template.properties.spec.properties.engines.items.properties"
MEMBER = f"{ENGINE}.members.items.properties"
REPLICA_MEMBER = "properties.spec.properties.engines.items.properties.members.items.properties"
CLASS_DEVICE = "properties.spec.properties.devices.items"
POOL = "properties.status.properties.gpuPools.items.properties"
DECLARED = "properties.spec.properties.nodePools.items.properties"
ALTERNATIVES = "properties.spec.properties.template.properties.spec.properties.alternatives.items.properties"

TWINS = [
    (
        "ModelDeployment",
        f"{MEMBER}.worker.properties.nodes",
        "ModelReplica",
        f"{REPLICA_MEMBER}.worker.properties.nodes",
    ),
    (
        "ModelDeployment",
        f"{ENGINE}.members.items",
        "ModelDeployment",
        f"{ALTERNATIVES}.engines.items.properties.members.items",
    ),
    (
        "ModelDeployment",
        "properties.spec.properties.placement",
        "SchedulerConfig",
        "properties.defaults.properties.placement",
    ),
    ("InferenceCluster", f"{DECLARED}.attributes", "InferenceCluster", f"{POOL}.attributes"),
    ("InferenceCluster", f"{DECLARED}.fabric", "InferenceCluster", f"{POOL}.fabric"),
    ("InferenceCluster", f"{DECLARED}.accounting", "InferenceCluster", f"{POOL}.accounting"),
]


@pytest.mark.parametrize(
    ("kind", "path", "other", "there"), TWINS, ids=[twin[1].split(".")[-1] for twin in TWINS]
)
def test_twins_are_alike(kind: str, path: str, other: str, there: str) -> None:
    assert bare(part(kind, path)) == bare(part(other, there))


def test_a_replica_has_the_pods_of_its_deployment() -> None:
    """But for the rule on reserved keys: a deployment from before it may have some, and its replicas too."""
    ours, theirs = (
        part("ModelDeployment", f"{MEMBER}.template"),
        part("ModelReplica", f"{REPLICA_MEMBER}.template"),
    )
    pods = copy.deepcopy(bare(ours))
    for field in ("labels", "annotations"):
        del pods["properties"]["metadata"]["properties"][field]["x-kubernetes-validations"]
    assert pods == bare(theirs)


def test_a_published_device_is_one_of_the_class_or_none() -> None:
    """What the platform publishes may have a count of 0, which no class has.

    A class may override a device of a machine type in part, so what a device needs and what it is by default
    is said of all devices together and not of each.
    """
    declared = bare(part("InferenceClass", CLASS_DEVICE))
    published = bare(part("InferenceCluster", f"{POOL}.devices.items"))
    assert declared.pop("required") == ["name"]
    assert published.pop("required") == ["name", "driver"]
    assert "x-kubernetes-validations" not in declared
    published.pop("x-kubernetes-validations", None)
    assert published["properties"]["claim"].pop("default") == "DRA"
    counts = [schema["properties"].pop("count") for schema in (declared, published)]
    assert declared == published
    assert counts[0] | {"default": 1} == {**counts[1], "minimum": 1}


def part(kind: str, path: str) -> Any:
    node: Any = schema_of(kind)
    for step in path.split("."):
        node = node[step]
    return node


def bare(schema: Any) -> Any:
    """The schema without its words for people."""
    if isinstance(schema, list):
        return [bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    words = isinstance(schema.get("description"), str)
    return {key: bare(value) for key, value in schema.items() if not (words and key == "description")}
