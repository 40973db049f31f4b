"""Everything composed for requests is valid against the real schemas, unknown fields refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from function.gateway_api import API_VERSION, ROUTE
from function.routing.endpoint import SERVICE, SLICE, Composed
from tests.chain.recorded import RECORDED
from tests.replica import schemas
from tests.routing import generate
from tests.routing.build import applied, endpoint, request_about, service, settled
from tests.support.any_request import AnyRequest
from tests.support.scale import BATCHES, batch

PAIRS = [*RECORDED["ModelEndpoint"].pairs, *RECORDED["ModelService"].pairs]


def nameless(resource: dict[str, Any]) -> dict[str, Any]:
    """Return a resource with a name, which Crossplane gives."""
    made = copy.deepcopy(resource)
    made["metadata"].setdefault("name", "given")
    return made


@pytest.mark.parametrize("number", range(BATCHES))
def test_every_resource_of_a_random_composite_is_valid(number: int) -> None:
    for seed in batch(number, quick=240, gate=5_000):
        request = generate.random_request(seed)
        for _ in range(3):
            answer = request.answer()
            for key, resource in answer.desired.items():
                assert not list(schemas.composed(nameless(resource))), (seed, key)
            request = applied(request, answer)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_answer_to_a_recorded_request_is_valid(pair: Any) -> None:
    for key, resource in pair.ours.desired.items():
        assert not list(schemas.composed(nameless(resource))), key


MUTANTS: list[tuple[str, str, tuple[Any, ...], Any]] = [
    ("a weight that is none", "httproute", ("spec", "rules", 0, "backendRefs", 0, "weight"), 1_000_001),
    ("an unknown filter", "httproute", ("spec", "rules", 0, "backendRefs", 0, "filters", 0, "type"), "Strip"),
    ("no port", "httproute", ("spec", "rules", 0, "backendRefs", 0, "port"), "http"),
    ("a field nobody knows", "httproute", ("spec", "rule"), []),
    ("a port that is text", "service", ("spec", "ports", 0, "port"), "80"),
    ("a field of another kind", "endpointslice", ("spec",), {}),
    ("addresses of nothing", "endpointslice", ("endpoints", 0), {"conditions": {}}),
]


@pytest.mark.parametrize(("reason", "key", "path", "value"), MUTANTS, ids=[mutant[0] for mutant in MUTANTS])
def test_what_is_not_valid_is_found(reason: str, key: str, path: tuple[Any, ...], value: Any) -> None:
    of_service = key == "httproute"
    request = (
        request_about(service(), [endpoint()]) if of_service else settled(AnyRequest(endpoint(backend="")))
    )
    resource = nameless(request.answer().desired[key])
    holder: Any = resource
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    assert list(schemas.composed(resource)), reason


def test_the_kinds_are_those_of_the_vendored_schemas() -> None:
    for composed in (Composed(API_VERSION, ROUTE), SERVICE, SLICE):
        assert f"{composed.api_version} {composed.kind}" in schemas.VENDORED["kinds"]
