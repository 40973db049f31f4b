"""Weights: every group's share, whole numbers, within what a route takes."""

from __future__ import annotations

import random
from fractions import Fraction
from math import gcd
from typing import Any

import pytest

from function.api.routing import MAX_WEIGHT
from function.gateway_api import MAX_BACKENDS
from tests.routing.build import endpoint, group, references, request_about, service
from tests.support.scale import BATCHES, batch

Plain = dict[str, Any]

CASES: list[tuple[str, list[tuple[int, list[str]]], dict[str, int]]] = [
    ("one group shares evenly", [(1, ["a", "b"])], {"a": 1, "b": 1}),
    ("one group's weight says nothing", [(100, ["a", "b", "c"])], {"a": 1, "b": 1, "c": 1}),
    ("groups keep their proportion", [(3, ["a"]), (1, ["b"])], {"a": 3, "b": 1}),
    ("whatever their sizes", [(90, ["a", "b", "c"]), (10, ["d"])], {"a": 3, "b": 3, "c": 3, "d": 1}),
    ("scaled where halves came out", [(1, ["a", "b"]), (1, ["c"])], {"a": 1, "b": 1, "c": 2}),
    ("a group without weight is listed", [(1, ["a"]), (0, ["b"])], {"a": 1, "b": 0}),
    ("of two groups it gets the sum", [(1, ["a", "b"]), (1, ["b"])], {"a": 1, "b": 3}),
    ("an empty group gives its share away", [(1, ["a"]), (9, [])], {"a": 1}),
    ("the largest weight stays", [(1_000_000, ["a"]), (1, ["b"])], {"a": 1_000_000, "b": 1}),
    ("beyond it, all are rounded", [(1_000_000, ["a"]), (1, ["b", "c"])], {"a": 1_000_000, "b": 1, "c": 1}),
    ("but nothing stays nothing", [(1_000_000, ["a"]), (1, ["b", "c"]), (0, ["d"])],
     {"a": 1_000_000, "b": 1, "c": 1, "d": 0}),
    ("the last room goes to a group of weight", [(0, [*"abcdef"]), (1, [*"ghijkl"]), (1, [*"mnopqr"])],
     dict.fromkeys("abcde", 0) | dict.fromkeys("ghijkl", 5) | dict.fromkeys("mnopq", 6)),
]  # fmt: skip


def weighed(groups: list[tuple[int, list[str]]]) -> dict[str, int]:
    """Return the weights of a service of groups, each of a weight and the names of its endpoints."""
    made = service(*(group(weight, None, g=str(number)) for number, (weight, _) in enumerate(groups)))
    ends = ([endpoint(name) for name in names] for _, names in groups)
    weights = references(request_about(made, *ends).answer())
    return {name.removeprefix("svc-"): weights[name] for name in weights}


@pytest.mark.parametrize(("reason", "groups", "expected"), CASES, ids=[case[0] for case in CASES])
def test_weights(reason: str, groups: list[tuple[int, list[str]]], expected: dict[str, int]) -> None:
    assert weighed(groups) == expected, reason


@pytest.mark.parametrize("number", range(BATCHES))
def test_every_group_gets_its_share(number: int) -> None:
    """Exactly, unless the largest weight forbids it; then within rounding, and never nothing."""
    for seed in batch(number, quick=160, gate=8_000):
        draw = random.Random(seed)
        names = (f"e{count}" for count in range(MAX_BACKENDS))
        sizes = [draw.randint(1, 4) for _ in range(draw.randint(1, 4))]
        groups = [
            (draw.choice((1, 7, 10, 100, 999_983)), [next(names) for _ in range(size)]) for size in sizes
        ]
        weights = weighed(groups)
        total, wanted = sum(weights.values()), sum(weight for weight, _ in groups)
        assert all(1 <= weight <= MAX_WEIGHT for weight in weights.values()), seed
        rounded = max(weights.values()) == MAX_WEIGHT
        assert rounded or gcd(*weights.values()) == 1, seed
        for weight, members in groups:
            got = Fraction(sum(weights[name] for name in members), total)
            assert abs(got - Fraction(weight, wanted)) <= (
                Fraction(len(weights), 100_000) if rounded else 0
            ), seed


def test_a_route_has_room_for_sixteen_and_groups_take_turns() -> None:
    groups = [(9, [f"a{number:02}" for number in range(20)]), (1, ["b0", "b1"])]
    weights = weighed(groups)
    assert len(weights) == MAX_BACKENDS
    assert {"b0", "b1"} < weights.keys()
    assert Fraction(weights["b0"] + weights["b1"], sum(weights.values())) == Fraction(1, 10)
    made = service(group(9, None, g="a"), group(1, None, g="b"))
    answer = request_about(
        made, [endpoint(name) for name in groups[0][1]], [endpoint("b0"), endpoint("b1")]
    ).answer()
    assert "no requests go to ml-team/a14, ml-team/a15, ml-team/a16 and 3 more" in str(answer.conditions)


def test_the_order_of_delivery_decides_nothing() -> None:
    ends = [endpoint(name) for name in "abc"]
    assert request_about(service(), ends).answer().same(request_about(service(), ends[::-1]).answer())
