"""A selector that does not compile is told of by where it stands in the deployment."""

from __future__ import annotations

from typing import Any

import pytest

from tests.explain.scarce import decide
from tests.part2.cases import ask, clusters, single
from tests.support import build
from tests.support.world import World

Plain = dict[str, Any]
TYPO = "typo("


def request(*selectors: str) -> Plain:
    return build.request("gpu", 1, *selectors)


def ranked(*ways: str) -> Plain:
    return {
        "name": "gpu",
        "firstAvailable": [{"name": f"w{at}", "selectors": [{"cel": cel}]} for at, cel in enumerate(ways)],
    }


MEMBERS = "engines[0].members[0].nodeSelector"
GANG = build.engine("second", [build.member("Leader", [request()]), build.member("Worker", [request(TYPO)])])
DEVICE = f"{MEMBERS}.devices"


@pytest.mark.parametrize(
    ("deployment", "path", "cluster_level"),
    [
        (ask(engines=[single(request(TYPO))]), f"{DEVICE}[0].selectors[0]", False),
        (
            ask(engines=[single(request(), {**request("true", TYPO), "name": "other"})]),
            f"{DEVICE}[1].selectors[1]",
            False,
        ),
        (ask(engines=[single(ranked("true", TYPO))]), f"{DEVICE}[0].firstAvailable[1].selectors[0]", False),
        (ask(engines=[single(request(), selectors=[{"cel": TYPO}])]), f"{MEMBERS}.selectors[0]", False),
        (
            ask(engines=[build.engine("first"), GANG]),
            "engines[1].members[1].nodeSelector.devices[0].selectors[0]",
            False,
        ),
        (
            ask(
                alternatives=[
                    {"name": "one", "engines": [single(request())]},
                    {"name": "two", "engines": [single(request(TYPO))]},
                ]
            ),
            "alternatives[1].engines[0].members[0].nodeSelector.devices[0].selectors[0]",
            False,
        ),
        (ask(selector={"cel": ["true", TYPO]}), "clusterSelector.cel[1]", True),
        (
            ask(
                placement={
                    "preferences": [{"weight": 1, "matchLabels": {"x": "y"}}, {"weight": 1, "cel": TYPO}]
                }
            ),
            "placement.preferences[1].cel",
            True,
        ),
    ],
)
def test_where_a_selector_stands(deployment: Plain, path: str, *, cluster_level: bool) -> None:
    [found] = decide(World(deployment, clusters(a=1))).question.selectors.invalid
    assert (found.path, found.cluster_level) == (path, cluster_level)


def lengthy(count: int, length: int) -> World:
    """A world whose deployment has so many selectors of that length, all different and all true."""
    sources = [f"{at} == {at}".ljust(length) for at in range(count)]
    return World(ask(engines=[single(request(*sources))]), clusters(a=1))


@pytest.mark.parametrize(
    ("world", "beyond", "reason"),
    [
        (lengthy(1_000, 16), 0, "many short ones are fine"),
        (lengthy(12, 10_000), 0, "and a few of the longest"),
        (lengthy(14, 10_000), 2, "the 13th would make it 131,300"),
        (lengthy(1_300, 16), 171, "each counts for 100 more: 1,129 of 116 are the most"),
    ],
)
def test_the_selectors_of_a_deployment_have_a_length_together(world: World, beyond: int, reason: str) -> None:
    decision = decide(world)
    found = decision.question.selectors.invalid
    assert len(found) == beyond, reason
    assert all("131072 characters" in str(each.error) for each in found)
    assert len(decision.placed) == (0 if beyond else 1)


def test_a_selector_stated_twice_counts_once() -> None:
    long = request(*["true".ljust(10_000)] * 20)
    decision = decide(World(ask(engines=[single(long)]), clusters(a=1)))
    assert (decision.question.selectors.invalid, len(decision.placed)) == ([], 1)
