"""Priority classes: whose turn comes first, and what is said of a class that counts as none."""

from __future__ import annotations

from typing import Any

import pytest

from function.boundary import PlainDocument, Request
from function.deployment.handler import run
from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.coordinated import EARLY, LATE, called
from tests.support.drive import Answer, of_core

Plain = dict[str, Any]
NAMESPACE = build.NAMESPACE
CLASSES = [
    {"name": "production", "value": 1000},
    {"name": "batch", "value": 10},
    {"name": "theirs", "value": 5000, "namespaces": ["other"]},
]


def settings(**more: Any) -> Plain:
    return {"coordination": "GlobalOrder", "priorityClasses": CLASSES, **more}


def of(name: str, class_name: str | None, created: str = build.CREATED, replicas: int = 1) -> Plain:
    made = called(name, replicas, created)
    if class_name is not None:
        made["spec"]["placement"] = {"priorityClassName": class_name}
    return made


def asked(
    ours: Plain, everybody: list[Plain], fleet: list[Plain], config: Plain | None = None, **more: Any
) -> Answer:
    lists: dict[str, list[Plain]] = {
        "clusters": fleet,
        "all-replicas": more.get("listed", []),
        "all-deployments": everybody,
        "all-caches": [],
    }
    required = {name: tuple(map(PlainDocument, items)) for name, items in lists.items()}
    return of_core(run(Request(PlainDocument(ours), {}, required, settings() if config is None else config)))


TURNS: list[tuple[str, str | None, str | None, bool]] = [
    ("the higher value is first, however young", "production", "batch", True),
    ("the lower value is last, however old", "batch", "production", False),
    ("of one value the older is first, as without classes", "batch", "batch", False),
    ("without a class is the lowest", "batch", None, True),
    ("a class that does not exist counts as none", "gone", None, False),
    ("one of another namespace counts as none", "theirs", None, False),
    ("against a class it is behind", "theirs", "batch", False),
    ("nobody names a class: the older is first", None, None, False),
]


@pytest.mark.parametrize(("reason", "ours", "theirs", "first"), TURNS, ids=[turn[0] for turn in TURNS])
def test_whose_turn_comes_first(reason: str, ours: str | None, theirs: str | None, *, first: bool) -> None:
    mine, other = of("mine", ours, LATE), of("other", theirs, EARLY)
    assert bool(asked(mine, [mine, other], clusters(a=1)).replicas) is first, reason
    assert bool(asked(other, [mine, other], clusters(a=1)).replicas) is not first, reason


def test_the_input_has_a_class_for_those_that_name_none() -> None:
    config = settings(defaults={"placement": {"priorityClassName": "batch"}})
    mine, other = of("mine", None, EARLY), of("other", "production", LATE)
    assert not asked(mine, [mine, other], clusters(a=1), config).replicas
    lower = of("lower", "gone", EARLY)
    assert asked(mine, [mine, lower], clusters(a=1), config).replicas


SAID: list[tuple[str, str | None, Plain, str, str]] = [
    ("production", "production", settings(), "PriorityResolved", "production, value 1000"),
    ("none", None, settings(), "PriorityResolved", "No class, which is the lowest"),
    (
        "unknown",
        "gold",
        settings(),
        "PriorityClassUnknown",
        (
            'There is no priority class "gold" (the classes are batch, production, theirs): '
            "it counts as the lowest"
        ),
    ),
    (
        "forbidden",
        "theirs",
        settings(),
        "PriorityClassForbidden",
        f'Priority class "theirs" is not for namespace {NAMESPACE}: it counts as the lowest',
    ),
    (
        "no classes at all",
        "gold",
        {"coordination": "GlobalOrder"},
        "PriorityClassUnknown",
        'There is no priority class "gold" (the function\'s input has none): it counts as the lowest',
    ),
    (
        "an input that cannot be read",
        "gold",
        settings(priorityClasses=[{"name": "a", "value": 0}]),
        "InputsUnresolved",
        "Unknown: the function's input is invalid",
    ),
]


@pytest.mark.parametrize(("reason", "named", "config", "code", "text"), SAID, ids=[said[0] for said in SAID])
def test_what_the_condition_says(reason: str, named: str | None, config: Plain, code: str, text: str) -> None:
    mine = of("mine", named)
    condition = asked(mine, [mine], clusters(a=1), config).conditions["PriorityResolved"]
    assert condition == (code == "PriorityResolved", code, text), reason


@pytest.mark.parametrize("named", ["gold", "theirs"])
def test_a_class_that_counts_as_none_removes_nothing_and_places_as_ever(named: str) -> None:
    """It is no doubt: what runs stays, what is missing is placed."""
    mine = of("mine", named, replicas=2)
    running = build.replica(mine, "a", 0, pools="p0", ready=True)
    answer = asked(mine, [mine], clusters(a=2), listed=[running])
    assert set(answer.replicas) == {"replica-a-0", "replica-a-1"}
    assert answer.reason() == "Scheduling"


def test_without_classes_nothing_is_said_of_them() -> None:
    mine = ask(1)
    assert (
        "PriorityResolved"
        not in asked(mine, [mine], clusters(a=1), {"coordination": "GlobalOrder"}).conditions
    )


def test_a_composite_that_has_the_condition_keeps_it() -> None:
    """What is not returned would keep its last value and lie."""
    mine = ask(1)
    mine["status"] = {"conditions": [build.condition("PriorityResolved", status=False)]}
    answer = asked(mine, [mine], clusters(a=1), {"coordination": "GlobalOrder"})
    assert answer.reason("PriorityResolved") == "PriorityResolved"
