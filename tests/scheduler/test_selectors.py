"""A selector that does not compile is told of by where it stands in the deployment."""

from __future__ import annotations

from typing import Any

import pytest

from function.api.cluster import InferenceCluster
from function.api.deployment import ModelDeployment
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
            ask(engines=[single({**request(), "claimSelectors": [{"cel": "true"}, {"cel": TYPO}]})]),
            f"{DEVICE}[0].claimSelectors[1]",
            False,
        ),
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
    selectors = decision.inputs.selectors
    invalid = selectors.invalid
    assert (len(invalid), selectors.too_long) == (beyond, beyond > 0), reason
    assert selectors.length == min(1_000, count * (length + 100)), reason
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


def different(number: int, variable: str = "device") -> list[str]:
    """So many selectors that differ, over a device, a node or a cluster."""
    name = "driver" if variable == "device" else "name"
    return [f'{variable}.{name} != "{at}"' for at in range(number)]


def asking(devices: int = 0, pools: int = 0, of_clusters: int = 0, claims: int = 0) -> Plain:
    """A deployment with so many different selectors of each kind, those of claims stated last."""
    asked = request(*different(devices)) if devices else {"name": "gpu"}
    asked["claimSelectors"] = [{"cel": f'device.driver != "claim-{at}"'} for at in range(claims)]
    engine = single(asked, selectors=[{"cel": cel} for cel in different(pools, "node")])
    return ask(engines=[engine], selector={"cel": different(of_clusters, "cluster")})


def served_by(*ways: int) -> list[Plain]:
    """Requests that are served in so many ways each, all by one selector."""
    return [ranked(*["true"] * many) | {"name": f"r{at}"} for at, many in enumerate(ways)]


def served(*ways: int) -> Plain:
    return ask(engines=[single(*served_by(*ways))])


def checked(made: Plain, most: int) -> tuple[compiled.Selectors, list[InferenceCluster]]:
    """The selectors of a deployment on two clusters of two equal pools, which have two different entries."""
    devices = [{**build.gpu(1, name=f"g{at}"), "driver": f"d{at}"} for at in range(2)]
    pools = [build.pool(name, 1, devices) for name in ("p0", "p1")]
    fleet = [InferenceCluster.parse(build.cluster(name, pools)) for name in "ab"]
    deployment = ModelDeployment.parse(made)
    share = compiled.Share(most, compiled.MAX_LENGTH)
    return compiled.check_selectors(deployment, (), "1.36", clusters=fleet, share=share), fleet


TOO_MANY = (
    "1:1: {} on all devices, pools and clusters together, and this fleet has more of them; "
    "up to 16 may be as often as it takes"
)
REQUESTS = f"{DEVICE}[0].selectors"


@pytest.mark.parametrize(
    ("made", "work", "last", "said", "reason"),
    [
        (ask(engines=[build.engine(members=[build.member()])]), 0, "", "", "a member may ask for nothing"),
        (asking(16), 32, "", "", "sixteen may be asked of everything"),
        (asking(16, claims=4), 32, "", "", "those that are matched with no device of the fleet do not count"),
        (served(4, 4, 4, 4), 2, "", "", "so may sixteen ways to serve requests"),
        (asking(17), 34, f"{REQUESTS}[16]", "17 different selectors may be evaluated 33 times", "of devices"),
        (
            asking(17, claims=4),
            34,
            f"{REQUESTS}[16]",
            "17 different selectors may be evaluated 33 times",
            "beside them those of a claim are none, and are not blamed",
        ),
        (
            asking(1, 16),
            66,
            f"{REQUESTS}[0]",
            "17 different selectors may be evaluated 65 times",
            "those of pools count, and are evaluated on all four pools",
        ),
        (
            asking(0, 1, 16),
            36,
            f"{MEMBERS}.selectors[0]",
            "17 different selectors may be evaluated 35 times",
            "those of clusters count, and are evaluated on both clusters",
        ),
        (
            served(4, 4, 4, 5),
            214,
            f"{DEVICE}[3].firstAvailable[4]",
            "17 ways to serve device requests may take 532 looks",
            "17 ways in 250 combinations at most are 267 looks at each of two entries: 534 of 50,000",
        ),
        (
            ask(engines=[single(ranked(*different(17)))]),
            34,
            f"{DEVICE}[0].firstAvailable[16].selectors[0]",
            "17 different selectors may be evaluated 33 times",
            "of many selectors in many ways what takes more counts: here the selectors",
        ),
        (
            ask(engines=[single(ranked(*different(17)), *served_by(4, 4))]),
            220,
            f"{DEVICE}[2].firstAvailable[3]",
            "25 ways to serve device requests may take 547 looks",
            "here the ways: 25, combined in 250, are 275 looks at an entry, 550 of 50,000",
        ),
        (
            ask(engines=[single(ranked(*different(16), different(1)[0]))]),
            28,
            f"{DEVICE}[0].firstAvailable[16]",
            "17 ways to serve device requests may take 67 looks",
            "sixteen selectors are asked as often as it takes, whatever becomes of the ways",
        ),
    ],
)
def test_how_many_selectors_and_ways_are_tried_on_how_much(
    made: Plain, work: int, last: str, said: str, reason: str
) -> None:
    selectors, fleet = checked(made, work if said else 0)
    assert (selectors.invalid, selectors.too_many, selectors.work(fleet)) == ((), False, work), reason
    if said:
        selectors, _ = checked(made, work - 1)
        [invalid] = selectors.invalid
        assert (invalid.path, str(invalid.error)) == (last, TOO_MANY.format(said)), reason
        assert selectors.too_many


def test_who_is_blamed_is_what_takes_too_much() -> None:
    """Of 17 selectors in 24 ways the selectors are evaluated 34 times, and no more than they may be."""
    made = ask(engines=[single(ranked(*different(16)), *served_by(4, 4))])
    for most, blamed in ((34, "24 ways to serve device requests"), (33, "17 different selectors")):
        [invalid] = checked(made, most)[0].invalid
        assert blamed in str(invalid.error)
