"""Why a cluster was taken: the scores that applied, the weightiest first, and who would have been next."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from function.scheduler.scores import SCORES
from tests.support import build
from tests.support.cases import ask, clusters, single
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
HOW = Path(__file__).parents[2] / "docs" / "how-it-schedules.md"
SOFT = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
RANKED = {
    "name": "gpu",
    "firstAvailable": [
        {"name": "hopper", "count": 8, "selectors": [{"cel": build.HOPPER}]},
        {"name": "any", "count": 8, "selectors": [{"cel": build.GPUS}]},
    ],
}
ADA = [build.pool("p0", 9, [build.gpu(architecture="Ada")])]
COMING = build.pool("p0", 9) | {"usable": {"nodes": 9, "toCome": 9}}
ONE = ("fewest replicas of this deployment", 0)
UID = build.uid(build.NAMESPACE, "my-model")


def digest(cluster: str) -> bytes:
    return sha256(f"{UID},{cluster}".encode()).digest()


FIRST_HASHED = min("ab", key=digest)


@pytest.mark.parametrize(
    ("deployment", "fleet", "because", "next_one", "reason"),
    [
        (ask(), {"a": 3, "b": 3}, [ONE, ("first by name", "a")], "b", "spread is the default"),
        (ask(), {"a": 3}, [ONE, ("first by name", "a")], "", "an only one has no runner-up"),
        (
            ask(placement={"strategy": "BinPack"}),
            {"a": 3, "b": 2},
            [
                ("least free nodes left in its pools", 1),
                ("most replicas of this deployment", 0),
                ("first by name", "b"),
            ],
            "a",
            "packing asks for what is left, and then for company",
        ),
        (
            ask(),
            {"a": {"pools": [COMING]}, "b": 3},
            [("waits for nodes to be added", "no"), ONE, ("first by name", "b")],
            "a",
            "nodes that are there come before nodes that have to be added",
        ),
        (
            ask(placement={"tieBreak": "MostFree"}),
            {"a": 2, "b": 3},
            [ONE, ("most free nodes left in its pools", -2), ("first by name", "b")],
            "a",
            "between equals the emptier",
        ),
        (
            ask(placement={"tieBreak": "Hash"}),
            {"a": 3, "b": 3},
            [ONE, ("hash of deployment and cluster", digest(FIRST_HASHED)), ("first by name", FIRST_HASHED)],
            "b" if FIRST_HASHED == "a" else "a",
            "or by a hash that differs between deployments",
        ),
        (
            ask(
                placement={
                    "preferences": [{"weight": 3, "matchLabels": {"x": "y"}}, {"weight": 4, "cel": "true"}]
                }
            ),
            {"a": 3, "b": {"nodes": 3, "labels": {"x": "y"}}},
            [("matched preference weight", -7), ONE, ("first by name", "b")],
            "a",
            "wishes outweigh spreading, and add up",
        ),
        (
            ask(placement={"topologySpread": [SOFT]}),
            {"a": 3, "b": {"nodes": 3, "labels": {"zone": "z"}}},
            [("least topology skew beyond maxSkew", (0,)), ONE, ("first by name", "b")],
            "a",
            "a cluster in no domain comes after every one in a domain",
        ),
        (
            ask(engines=[single(RANKED)]),
            {"a": {"pools": ADA}, "b": 9},
            [("preferred devices of firstAvailable", ()), ONE, ("first by name", "b")],
            "a",
            "better devices outweigh all",
        ),
    ],
)
def test_why_a_cluster_was_taken(
    deployment: Plain, fleet: dict[str, Any], because: list[tuple[str, Any]], next_one: str, reason: str
) -> None:
    [placed] = decide(World(deployment, clusters(**fleet))).placed
    assert (list(placed.because), placed.runner_up) == (because, next_one), reason


@pytest.mark.parametrize(
    ("cached", "policy", "first", "reason"),
    [
        (True, "Prefer", [("readiness of the cache", (0, "Ready"))], "it is preferred where it is Ready"),
        (True, "Require", [], "every place has it"),
        (False, "Prefer", [], "there is none"),
    ],
)
def test_the_readiness_of_a_cache_counts_where_it_is_preferred(
    *, cached: bool, policy: str, first: list[tuple[str, Any]], reason: str
) -> None:
    made = build.cache("weights", phases={"a": "Ready", "b": "Pending"})
    deployment = ask(cache="weights" if cached else None, placement={"cache": policy})
    [placed] = decide(World(deployment, clusters(a=3, b=3), cache=[made] if cached else None)).placed
    assert list(placed.because) == [*first, ONE, ("first by name", "a")], reason


def test_the_docs_have_every_score_in_its_order() -> None:
    documented = re.findall(r"^\|.*\| `([^`|]+)` \|$", HOW.read_text(), re.MULTILINE)
    assert documented == [score.description for score in SCORES]
