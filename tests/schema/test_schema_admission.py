"""The XRDs, held against what the API server would do with them."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.schema.admission import refusals
from tests.schema.bad import BAD, GOOD, Case
from tests.schema.crds import DEFINITIONS, ROOT, definition, objects, schema_of
from tests.schema.structural import findings, undescribed

if TYPE_CHECKING:
    from pathlib import Path

KINDS = [
    "ModelDeployment",
    "ModelReplica",
    "ModelEndpoint",
    "ModelService",
    "ModelAdapter",
    "ModelAdapterPlacement",
    "ModelCache",
    "InferenceCluster",
    "InferenceClass",
]
INPUT_KINDS = ["SchedulerConfig", "WorkloadConfig", "ClusterConfig", "RoutingConfig"]
EXAMPLES = sorted(
    path
    for name in ("fleet/*", "*/xr", "*/observed", "routing/service")
    for path in ROOT.glob(f"example/{name}.yaml")
)
SHORT_NAMES = {
    "ModelDeployment": "md",
    "ModelReplica": "mr",
    "ModelEndpoint": "me",
    "ModelService": "ms",
    "ModelAdapter": "ma",
    "ModelAdapterPlacement": "map",
    "ModelCache": "mc",
    "InferenceCluster": "ic",
    "InferenceClass": "icl",
}


@pytest.mark.parametrize("kind", [*KINDS, *INPUT_KINDS])
def test_schema_is_structural_and_described(kind: str) -> None:
    assert list(findings(schema_of(kind))) == []
    source = schema_of(kind)
    for part in ("spec", "status"):
        assert list(undescribed(source["properties"].get(part, {}), part)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_names_and_scope(kind: str) -> None:
    spec = definition(kind)["spec"]
    assert spec["names"]["shortNames"] == [SHORT_NAMES[kind]]
    assert spec["scope"] == ("Cluster" if kind.startswith("Inference") else "Namespaced")
    assert definition(kind)["metadata"]["name"] == f"{spec['names']['plural']}.modelplane.ai"


def test_there_is_one_definition_for_each_kind() -> None:
    assert sorted(manifest["spec"]["names"]["kind"] for manifest in objects(*DEFINITIONS)) == sorted(KINDS)


def test_a_deployment_can_be_scaled() -> None:
    scale = definition("ModelDeployment")["spec"]["versions"][0]["subresources"]["scale"]
    assert scale == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas.total",
        "labelSelectorPath": ".status.replicas.selector",
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_are_accepted(path: Path) -> None:
    for manifest in objects(path):
        assert refusals(manifest, schema_of(manifest["kind"])) == [], manifest["metadata"]["name"]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.reason)
def test_good_ones_are_accepted(case: Case) -> None:
    assert refusals(case.plain, schema_of(case.kind)) == []


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.reason)
def test_bad_ones_are_refused(case: Case) -> None:
    refused = refusals(case.plain, schema_of(case.kind), case.old)
    assert any(case.expected in item for item in refused), refused


def test_every_rule_refuses_something() -> None:
    """A rule that no bad case breaks may be one that cannot be broken."""
    broken = {
        line.split(": ", 1)[1]
        for case in BAD
        for line in refusals(case.plain, schema_of(case.kind), case.old)
    }
    messages = {
        message
        for kind in [*KINDS, *INPUT_KINDS]
        for message in re.findall(r"'message': [\"'](.*?)[\"']", str(_rules(schema_of(kind))))
    }
    assert messages - broken == set()


def _rules(schema: Any) -> list[Any]:
    if isinstance(schema, list):
        return [rule for item in schema for rule in _rules(item)]
    if not isinstance(schema, dict):
        return []
    rules = deepcopy(schema.get("x-kubernetes-validations", []))
    return rules + [rule for value in schema.values() for rule in _rules(value)]
