"""What is said about an object, held against an independent reader of the same schemas."""

from __future__ import annotations

import copy
import os
import random
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from function.cli.admission import kinds, structural
from function.cli.worlds.manifests import load
from tests.cli.command import write
from tests.schema.admission import refusals, unknown
from tests.schema.bad import BAD, GOOD, Case
from tests.schema.crds import DEFINITIONS, INPUTS, ROOT, objects, schema_of
from tests.support import build
from tests.support.odd_values import ODD, paths_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Plain = dict[str, Any]

TRIES = {"quick": 60, "gate": 2_000, "soak": 50_000}[os.environ.get("FLEET_SCALE", "quick")]
"""How many mutated objects a property is tried on."""
DECLARED = objects(*DEFINITIONS, *INPUTS)


def _findings(plain: Plain) -> list[str]:
    kind, slip = kinds.head(plain)
    assert slip is None
    assert kind is not None
    return [str(finding) for finding in kinds.check(plain, kind)]


def _whole(case: Case) -> Plain:
    kind = kinds.shipped()[case.kind]
    return {"apiVersion": f"{kind.group}/{kind.versions[-1]}", "kind": case.kind, **case.plain}


def test_every_shipped_kind_is_known_by_its_head() -> None:
    expected = {
        manifest["spec"]["names"]["kind"]: (
            manifest["spec"]["group"],
            tuple(version["name"] for version in manifest["spec"]["versions"]),
            manifest["spec"]["scope"] == "Namespaced",
        )
        for manifest in DECLARED
    }
    shipped = kinds.shipped()
    assert {name: (kind.group, kind.versions, kind.namespaced) for name, kind in shipped.items()} == expected


def _keywords(schema: Plain) -> Iterator[str]:
    yield from schema
    for child in schema.get("properties", {}).values():
        yield from _keywords(child)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _keywords(schema[key])


def test_every_keyword_of_a_shipped_schema_is_understood() -> None:
    versions = (version for manifest in DECLARED for version in manifest["spec"]["versions"])
    used = {word for version in versions for word in _keywords(version["schema"]["openAPIV3Schema"])}
    assert used <= structural.KEYWORDS


@pytest.mark.parametrize("case", [case for case in BAD if case.old is None], ids=lambda case: case.reason)
def test_what_the_api_server_refuses_is_found(case: Case) -> None:
    assert _findings(_whole(case))


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.reason)
def test_what_the_api_server_takes_is_not_complained_about(case: Case) -> None:
    assert _findings(_whole(case)) == []


EXAMPLES = [
    document
    for path in sorted(ROOT.glob("example/**/*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document and str(document.get("apiVersion", "")).startswith("modelplane.ai/")
]


def test_the_examples_are_right() -> None:
    assert [_findings(example) for example in EXAMPLES] == [[]] * len(EXAMPLES)


def _mutated(draw: random.Random, plain: Plain) -> Plain:
    changed = copy.deepcopy(plain)
    *parents, last = draw.choice([place for place in paths_of(changed) if place[0] == "spec"])
    target: Any = changed
    for part in parents:
        target = target[part]
    if isinstance(target, dict) and draw.random() < 0.3:
        del target[last]
    elif isinstance(target, dict) and draw.random() < 0.3:
        target[f"{last}s"] = target[last]
    else:
        target[last] = copy.deepcopy(draw.choice(ODD))
    return changed


def _pruned(plain: Any) -> Any:
    """Without nulls in maps, which the API server prunes before it looks."""
    if isinstance(plain, dict):
        return {key: _pruned(value) for key, value in plain.items() if value is not None}
    return [_pruned(value) for value in plain] if isinstance(plain, list) else plain


@pytest.mark.parametrize("seed", range(TRIES))
def test_a_mutated_object_is_refused_by_both_readers_or_by_none(seed: int) -> None:
    draw = random.Random(seed)
    plain = _mutated(draw, draw.choice(EXAMPLES))
    schema = schema_of(plain["kind"])
    other = [*refusals(_pruned(plain), schema), *unknown(plain, schema)]
    assert bool(_findings(plain)) == bool(other), (plain, other)


@pytest.mark.parametrize(
    ("key", "value", "expected", "reason"),
    [
        ("replica", 3, "did you mean replicas", "a letter too few"),
        ("Replicas", 3, "did you mean replicas?", "case"),
        ("min_replicas", 3, "did you mean minReplicas?", "another convention"),
        ("topologySpread", [], "it belongs to spec.placement", "one level too high"),
        ("clusterSelector", {}, "it belongs to spec.template.spec", "two levels too high"),
        ("plicas", 3, "did you mean replicas?", "its end"),
        ("colour", "red", "there is crossplane, minReplicas, placement, replicas", "nothing near"),
    ],
)
def test_an_unknown_field_says_what_was_meant(key: str, value: Any, expected: str, reason: str) -> None:
    plain = copy.deepcopy(next(example for example in EXAMPLES if example["kind"] == "ModelDeployment"))
    plain["spec"][key] = value
    (said,) = _findings(plain)
    assert said.startswith(f"spec.{key}: unknown field; "), reason
    assert expected in said, reason


@pytest.mark.parametrize(
    ("value", "refused", "reason"),
    [
        (2.0, "", "Go writes 2.0 as 2, so kubectl sends a whole number"),
        (1e17, "", "the same of a large one"),
        (2**63 - 1, "", "the largest of 64 bits"),
        (2.5, "expected a whole number", "a fraction"),
        (2**63, "must be at most 9223372036854775807", "more than 64 bits: no integer for the API server"),
        (1e19, "must be at most 9223372036854775807", "the same, written otherwise"),
        (-(2**63) - 1, "must be at least -9223372036854775808", "the same below"),
    ],
)
def test_a_whole_number_is_one_of_64_bits(value: float, refused: str, reason: str) -> None:
    cluster = copy.deepcopy(next(plain for plain in EXAMPLES if plain["kind"] == "InferenceCluster"))
    cluster["spec"]["attributes"] = {"cost": {"int": value}}
    said = "".join(_findings(cluster))
    assert refused in said, reason
    assert bool(said) == bool(refused), reason


def _rules(schema: structural.Schema) -> Iterator[structural.Rule]:
    yield from schema.rules
    for below in (*schema.properties.values(), schema.items, schema.values):
        yield from _rules(below) if below is not None else ()


def test_a_rule_that_holds_at_a_glance_is_true_where_it_is_evaluated() -> None:
    """A field that is not set decides most rules; a rule in which it does not is evaluated."""
    schemas = [kinds.schema_of(kind.kind, kind.versions[-1]) for kind in kinds.shipped().values()]
    rules = {rule.source for schema in schemas for rule in _rules(schema)}
    at_a_glance = 0
    for rule in rules:
        for value in ({}, dict.fromkeys(re.findall(r"self\.(\w+)", rule))):
            if structural.holds_unset(rule, value) and "oldSelf" not in rule:
                assert structural.outcome(rule, value).matched, rule
                at_a_glance += 1
    assert at_a_glance > len(rules) / 2


@pytest.mark.parametrize(
    ("rule", "value", "reason"),
    [
        ("!has(self.a) || self.b > 1", {"a": 1}, "the field is set"),
        ("!has(self.a) || self.b ? self.c : true", {}, "the field is only a part of the condition"),
        ("!has(self.a.b) || self.c", {}, "the field stands further down"),
        ("!has(self.a) && self.b", {}, "both have to hold"),
        ("!has(self.a) || self.b", [], "a list has no fields"),
    ],
)
def test_a_rule_that_may_not_hold_is_evaluated(rule: str, value: object, reason: str) -> None:
    assert not structural.holds_unset(rule, value), reason


def test_a_schema_and_its_rules_are_compiled_once_however_many_objects(tmp_path: Path) -> None:
    deployments = [build.deployment(f"model-{number}", 2) for number in range(50)]
    for cache in (kinds.schema_of, structural._program):
        cache.cache_clear()
    load([str(write(tmp_path / "f.yaml", deployments))])
    first = structural._program.cache_info().misses
    assert kinds.schema_of.cache_info().misses == 1
    load([str(write(tmp_path / "f.yaml", [*deployments, build.deployment("one-more", 1)]))])
    assert kinds.schema_of.cache_info().misses == 1
    assert structural._program.cache_info().misses == first


def test_the_levels_of_a_schema_that_no_object_has_are_not_compiled() -> None:
    kinds.schema_of.cache_clear()
    (kind,) = (kind for kind in kinds.shipped().values() if kind.kind == "ModelDeployment")
    schema = kinds.schema_of(kind.kind, kind.versions[-1])
    assert "properties" not in vars(schema)
    assert kinds.check(build.deployment("chat", 2), kind) == []
    assert "properties" in vars(schema.properties["spec"])
    assert "properties" not in vars(schema.properties["status"])
