"""What may be recorded is a list, and the list is what the parsers read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

import pytest
from pydantic import BaseModel

from function import recording as redact
from function.api import (
    InferenceClass,
    InferenceCluster,
    ModelCache,
    ModelDeployment,
    SchedulerConfig,
    cluster as cluster_api,
    replica as replica_api,
)
from function.api.text import STRIPPED
from function.boundary import PACKED
from function.deployment.requirements import ROWS
from function.recording import KINDS, redacted, redacted_object

if TYPE_CHECKING:
    from collections.abc import Iterator

MODELS = {
    "InferenceClass": InferenceClass,
    "InferenceCluster": InferenceCluster,
    "ModelCache": ModelCache,
    "ModelDeployment": ModelDeployment,
    "SchedulerConfig": SchedulerConfig,
}
PASSED_ON = {"description"}
"""Fields of models that nothing depends on."""


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def missing(model: type[BaseModel], allowed: Any, path: str) -> Iterator[str]:
    """Yield the fields a model reads that are not allowed. A rule allows everything below it."""
    if not isinstance(allowed, Mapping):
        return
    for name, info in model.model_fields.items():
        key = info.alias or name
        if key not in allowed and key not in PASSED_ON:
            yield f"{path}.{key}"
        for inner in models_in(info.annotation):
            yield from missing(inner, allowed.get(key, {}), f"{path}.{key}")


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_every_field_that_a_model_reads_is_on_the_list(kind: str) -> None:
    assert list(missing(MODELS[kind], KINDS[kind], kind)) == []


def unlisted(shape: Mapping[str, Any], allowed: Any, path: str) -> Iterator[str]:
    if isinstance(allowed, Mapping):
        for key, below in shape.items():
            if key not in allowed:
                yield f"{path}.{key}"
            elif below is not None and below is not PACKED:
                yield from unlisted(below, allowed[key], f"{path}.{key}")


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        (cluster_api.SHAPE, "InferenceCluster"),
        (replica_api.SHAPE, "ModelReplica"),
        (replica_api.CHARGE_SHAPE, "ModelReplica"),
    ],
)
def test_every_path_that_is_projected_is_on_the_list(shape: Mapping[str, Any], kind: str) -> None:
    assert list(unlisted(shape, KINDS[kind], kind)) == []


def test_every_requirement_is_on_the_list() -> None:
    assert {row.kind for row in ROWS.values()} <= KINDS.keys()


@pytest.mark.parametrize(
    ("value", "rule", "expected", "reason"),
    [
        ({"a": 1}, {}, {}, "what is not listed is left out"),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": redact.plain_value}}, {"a": {"b": 1}}, "level by level"),
        ([{"a": 1, "b": 2}], {"a": redact.plain_value}, [{"a": 1}], "a list item by item"),
        ("text", {"a": redact.plain_value}, STRIPPED, "a text where a map is expected keeps its type"),
        ("", {"a": redact.plain_value}, "", "and that it is empty"),
        (7, {}, 1, "so does a number"),
        (0, {}, 0, "and zero"),
        (True, {}, True, "true and false tell nothing"),
        (None, {}, None, "nor does null"),
        ([["a"], "b"], {}, [[STRIPPED], STRIPPED], "lists in lists"),
        (["--a", {"b": 1}, ["c"]], redact.plain_value, ["--a", {STRIPPED: True}, [STRIPPED]], "scalars"),
        ({"b": "c"}, redact.plain_value, {STRIPPED: True}, "a map where a scalar is expected"),
        ({"modelplane.ai/cluster": "a", "team": "b", "n": 3}, redact.labels,
         {"modelplane.ai/cluster": "a", "team": STRIPPED, "n": 3}, "labels that are not ours"),
        ([{"type": "Odd", "status": "True", "message": "m"}], redact.own_conditions,
         [{"type": "Odd", "status": "True"}], "a condition of somebody else"),
        ([{"type": "ReplicasScheduled", "message": "m"}], redact.own_conditions,
         [{"type": "ReplicasScheduled", "message": "m"}], "a condition of ours"),
        ({}, redact.template, {}, "an empty template"),
        ("text", redact.template, STRIPPED, "a template that is none"),
    ],
)  # fmt: skip
def test_what_is_left(value: Any, rule: Any, expected: Any, reason: str) -> None:
    once = redacted(value, rule)
    assert once == expected, reason
    assert redacted(once, rule) == once, "redacting twice changes nothing"


@pytest.mark.parametrize("size", [1, 2, 5, 100, 50_000])
def test_the_stand_in_of_a_template_is_as_long(size: int) -> None:
    import json

    template = {"spec": {"é": "s" * size}}
    once = redact.template(template)
    assert len(json.dumps(once)) == max(18, len(json.dumps(template)))
    assert redact.template(once) == once


def test_an_object_that_is_there_never_becomes_none() -> None:
    assert redacted_object({"data": {"a": "b"}}, KINDS["ModelReplica"]) == {STRIPPED: True}
    assert redacted_object({}, KINDS["ModelReplica"]) == {}


def test_the_names_of_fields_that_an_input_may_not_have_stay() -> None:
    made = {"explain": "Status", "token": "t", "ttl": {"odd": "t"}, "defaults": {"placement": {"x": ["t"]}}}
    assert redacted(made, KINDS["SchedulerConfig"]) == {
        "explain": "Status",
        "token": STRIPPED,
        "ttl": {"odd": STRIPPED},
        "defaults": {"placement": {"x": [STRIPPED]}},
    }
