"""Values as they may arrive: what is read, what is a fault, and that a fault names field and value."""

from __future__ import annotations

from typing import Any

import pytest

from function.api import InferenceCluster, Malformed, ModelDeployment, SchedulerConfig
from function.api.devices import attribute, quantity
from function.api.model import ConditionStatus, condition, whole
from function.api.taints import Taint, Toleration, untolerated
from tests.support import build


@pytest.mark.parametrize(("value", "read"), [(3, 3), (3.0, 3), (0, 0), (-2.0, -2), (2**53, 2**53)])
def test_whole_numbers_are_read_as_a_struct_carries_them(value: object, read: int) -> None:
    assert whole(value) == read
    assert type(whole(value)) is int


@pytest.mark.parametrize("value", [True, False, 1.5, float("nan"), float("inf"), "3", None, [], {}])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="whole number"):
        whole(value)


@pytest.mark.parametrize(
    ("holder", "form"),
    [
        ({"string": "x"}, {"string": "x"}),
        ({"int": 3.0}, {"int": 3}),
        ({"bool": False}, {"bool": False}),
        ({"version": "1.2.3"}, {"version": "1.2.3"}),
        ({"string": "x", "int": None}, {"string": "x"}),
        ({"list": {"string": ["a", "b"]}}, {"list": {"string": ["a", "b"]}}),
        ({"strings": ["a"]}, {"list": {"string": ["a"]}}),
        ({"ints": [1.0]}, {"list": {"int": [1]}}),
        ({"versions": []}, {"list": {"version": []}}),
    ],
)
def test_an_attribute_is_brought_into_one_form(holder: object, form: object) -> None:
    assert attribute(holder) == form


@pytest.mark.parametrize(
    ("holder", "word"),
    [
        ({}, "exactly one"),
        ({"string": "x", "int": 1}, "exactly one"),
        ({"string": 1}, "expected a string, found 1"),
        ({"bool": 1}, "expected a bool, found 1"),
        ({"int": True}, "whole number"),
        ({"int": "1"}, "whole number"),
        ({"version": 1.2}, "expected a version"),
        ({"float": 1.5}, "no type float"),
        ({"list": ["a"]}, "expected a map"),
        ({"list": {"list": ["a"]}}, "no type list"),
        ({"strings": "a"}, "expected a list"),
        ({"strings": ["a", 1]}, "expected a string, found 1"),
        ("x", "expected a map"),
        (None, "expected a map, found null"),
    ],
)
def test_any_other_attribute_is_a_fault(holder: object, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        attribute(holder)


@pytest.mark.parametrize(("holder", "text"), [({"value": "80Gi"}, "80Gi"), ({"value": 80}, "80")])
def test_a_capacity_is_text(holder: object, text: str) -> None:
    assert quantity(holder) == {"value": text}


@pytest.mark.parametrize(
    "holder", [{}, {"value": None}, {"value": True}, {"value": float("nan")}, "80Gi", [1]]
)
def test_any_other_capacity_is_a_fault(holder: object) -> None:
    with pytest.raises(ValueError, match="quantity"):
        quantity(holder)


@pytest.mark.parametrize(
    ("statuses", "expected", "reason"),
    [
        ((), None, "no such condition"),
        (("True",), True, "plainly"),
        (("False",), False, "plainly"),
        (("Unknown",), None, "Unknown says nothing"),
        (("true",), None, "nor does a value that is none"),
        (("True", "False"), False, "listed twice, the worst counts"),
        (("False", "True"), False, "whatever the order"),
        (("True", "Unknown"), None, "true and unknown is not true"),
    ],
)
def test_a_condition_is_true_false_or_unknown(
    statuses: tuple[str, ...],
    expected: object,
    reason: str,
) -> None:
    listed = tuple(ConditionStatus(type="Ready", status=status) for status in statuses)
    other = ConditionStatus(type="Synced", status="False")
    assert condition((other, *listed), "Ready") is expected, reason


TAINT = Taint(key="k", value="v", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated", "reason"),
    [
        ({"key": "k", "value": "v"}, True, "Equal is the default"),
        ({"key": "k", "value": "other"}, False, "another value"),
        ({"key": "k"}, False, "no value is the empty value"),
        ({"key": "other", "value": "v"}, False, "another key"),
        ({"key": "k", "operator": "Exists"}, True, "whatever the value"),
        ({"operator": "Exists"}, True, "no key: everything"),
        ({"operator": "Exists", "effect": "NoExecute"}, False, "everything of another effect"),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True, "its effect"),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False, "another effect"),
    ],
)
def test_tolerations_follow_the_kubernetes_rule(toleration: Any, tolerated: object, reason: str) -> None:
    assert (untolerated((TAINT,), (Toleration.parse(toleration),)) == ()) is tolerated, reason


@pytest.mark.parametrize(
    ("toleration", "word"),
    [
        ({"operator": "Equal"}, "needs a key"),
        ({}, "needs a key"),
        ({"key": "k", "operator": "Exists", "value": "v"}, "must not have a value"),
        ({"key": "k", "operator": "In"}, "operator"),
        ({"key": "k", "effect": "PreferNoSchedule"}, "effect"),
    ],
)
def test_an_impossible_toleration_is_a_fault(toleration: Any, word: str) -> None:
    with pytest.raises(Malformed, match=word):
        Toleration.parse(toleration)


def _deployment(path: str, value: object) -> dict[str, Any]:
    made = build.deployment()
    at: Any = made
    *above, last = path.split(".")
    for part in above:
        at = at[int(part)] if part.isdigit() else at[part]
    at[int(last) if last.isdigit() else last] = value
    return made


ENGINE = "spec.template.spec.engines.0"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("spec.replicas", 1.5, "spec.replicas: expected a whole number, found 1.5"),
        ("spec.replicas", "two", 'spec.replicas: expected a whole number, found "two"'),
        ("spec.replicas", -1, "spec.replicas"),
        ("spec.replicas", 201, "spec.replicas"),
        (f"{ENGINE}.copies", 0, "spec.template.spec.engines[0].copies"),
        (f"{ENGINE}.copies", True, "engines[0].copies: expected a whole number, found true"),
        (f"{ENGINE}.members.0.role", "Boss", "engines[0].members[0].role"),
        (f"{ENGINE}.members", "all", "engines[0].members: expected a list"),
        (f"{ENGINE}.members", [], "engines[0].members"),
        ("metadata.name", None, "metadata.name: required, but missing"),
        ("spec.template", "x", "spec.template: expected a map"),
    ],
)
def test_a_fault_names_the_field_and_the_value(path: str, value: object, says: str) -> None:
    with pytest.raises(Malformed) as caught:
        ModelDeployment.parse(_deployment(path, value))
    assert says in str(caught.value)


def test_every_fault_is_told_in_a_fixed_order() -> None:
    made = _deployment("spec.replicas", "two")
    made["spec"]["template"]["spec"]["engines"][0]["copies"] = "three"
    with pytest.raises(Malformed) as caught:
        ModelDeployment.parse(made)
    assert [fault.path for fault in caught.value.faults] == [
        "spec.replicas",
        "spec.template.spec.engines[0].copies",
    ]


def test_null_is_not_set() -> None:
    made = build.deployment()
    made["spec"]["template"]["spec"]["tolerations"] = None
    made["spec"]["template"]["spec"]["engines"][0]["copies"] = None
    parsed = ModelDeployment.parse(made)
    assert parsed.template.tolerations == ()
    assert parsed.template.engines[0].copies == 1


@pytest.mark.parametrize(
    ("nodes", "read", "reason"),
    [
        (4, 4, "plainly"),
        (-3, 0, "negative reads as 0"),
        (None, 0, "missing reads as 0"),
        (2.0, 2, "a double"),
    ],
)
def test_published_node_counts(nodes: object, read: int, reason: str) -> None:
    made = build.cluster("a", [{"name": "p", "nodes": nodes, "devices": []}])
    assert InferenceCluster.parse(made).pools[0].nodes == read, reason


def test_unknown_and_empty_device_lists_are_different_things() -> None:
    made = build.cluster("a", [{"name": "p", "nodes": 1}, {"name": "q", "nodes": 1, "devices": []}])
    unknown, empty = InferenceCluster.parse(made).pools
    assert unknown.devices is None
    assert empty.devices is not None
    assert tuple(empty.devices) == ()


def test_device_lists_of_equal_content_are_one_object() -> None:
    made = InferenceCluster.parse(build.cluster("a", [build.pool("p"), build.pool("q", 9)]))
    first, second = made.pools
    assert first.device_key == second.device_key
    assert first.devices is not None
    assert second.devices is not None
    assert first.devices[0] is second.devices[0]


def test_a_pool_published_twice_is_a_fault() -> None:
    made = build.cluster("a", [build.pool("p"), build.pool("p")])
    with pytest.raises(Malformed, match='"p" is published twice'):
        InferenceCluster.parse(made)


@pytest.mark.parametrize(
    ("given", "seconds"), [("15s", 15), ("1m", 60), ("250ms", 0.25), ("1.5h", 5400), (20, 20)]
)
def test_the_inputs_durations(given: object, seconds: float) -> None:
    assert SchedulerConfig.parse({"ttl": {"pending": given}}).ttl.pending == seconds


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"explian": "Status"}, "explian: no such field"),
        ({"search_budget": 9}, "search_budget: no such field"),
        ({"defaults": {"placement": {"tie_break": "Hash"}}}, "defaults.placement.tie_break: no such field"),
        ({"defaults": {"placement": {"rollout": {"max": 1}}}}, "placement.rollout.max: no such field"),
        ({"explain": "Everything"}, "explain"),
        ({"ttl": {"pending": "soon"}}, "ttl.pending: expected a duration"),
        ({"ttl": {"pending": 0}}, "ttl.pending"),
        ({"searchBudget": 0}, "searchBudget"),
        ({"defaults": {"placement": {"strategy": "Pile"}}}, "defaults.placement.strategy"),
        ({"kind": "Other"}, "kind"),
    ],
)
def test_an_invalid_input_names_the_field(given: Any, says: str) -> None:
    with pytest.raises(Malformed) as caught:
        SchedulerConfig.parse(given)
    assert says in str(caught.value)
