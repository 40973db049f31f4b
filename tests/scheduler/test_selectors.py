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
