"""A selector that does not compile is told of by where it stands in the deployment."""

from __future__ import annotations

from typing import Any

import pytest

from function.scheduler import selectors as compiled
from tests.support import build
from tests.support.cases import ask, clusters, single
from tests.support.scarce import decide
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
    [invalid] = decide(World(deployment, clusters(a=1))).inputs.selectors.invalid
    assert (invalid.path, invalid.cluster_level) == (path, cluster_level)


def test_a_preference_of_the_input_is_blamed_on_the_input() -> None:
    config = {"defaults": {"placement": {"preferences": [{"weight": 1, "cel": TYPO}]}}}
    [invalid] = decide(World(ask(), clusters(a=1), input=config)).inputs.selectors.invalid
    assert invalid.path == "the function's input, defaults.placement.preferences[0].cel"


def lengthy(count: int, length: int) -> World:
    """A world whose deployment has so many selectors of that length, all different and all true."""
    sources = [f"{at} == {at}".ljust(length) for at in range(count)]
    return World(ask(engines=[single(request(*sources))]), clusters(a=1))


@pytest.mark.parametrize(
    ("count", "length", "beyond", "reason"),
    [
        (8, 20, 0, "8 of 120 are 960"),
        (9, 20, 1, "the ninth makes it 1,080"),
        (12, 20, 4, "and so do all after it"),
        (5, 100, 0, "5 of 200 are as many as there may be"),
        (6, 100, 1, "the sixth is one too many"),
    ],
)
def test_the_selectors_of_a_deployment_have_a_length_together(
    count: int, length: int, beyond: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "WHOLE", compiled.Share(compiled.MOST, 1_000))
    monkeypatch.setattr(compiled, "SELECTOR_OVERHEAD", 100)
    decision = decide(lengthy(count, length))
    invalid = decision.inputs.selectors.invalid
    assert len(invalid) == beyond, reason
    assert all(
        "1:1: the selectors of a deployment have over 1000 characters" in str(e.error) for e in invalid
    )
    assert len(decision.placed) == (0 if beyond else 1)


def test_there_is_room_for_many() -> None:
    assert (compiled.WHOLE.longest, compiled.SELECTOR_OVERHEAD) == (32_768, 200)
    assert not decide(lengthy(120, 70)).inputs.selectors.invalid


def test_a_selector_stated_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "WHOLE", compiled.Share(compiled.MOST, 1_000))
    long = request(*["true".ljust(800)] * 20)
    decision = decide(World(ask(engines=[single(long)]), clusters(a=1)))
    assert (decision.inputs.selectors.invalid, len(decision.placed)) == ((), 1)
