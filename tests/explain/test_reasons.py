"""Every reason code is produced, said, and explained in the docs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from function.api.reasons import Reason
from tests.support import build, drive
from tests.support.rejected import CASES
from tests.support.world import World

Plain = dict[str, Any]

DOCS = Path(__file__).parents[2] / "docs"


def sections_of(page: str) -> dict[str, str]:
    """Return the sections of a page of the documentation that are about one reason, by its code."""
    sections = re.split(r"^### ", (DOCS / page).read_text(), flags=re.MULTILINE)[1:]
    return {section.split("\n", 1)[0].strip(): section for section in sections}


@pytest.mark.parametrize("code", CASES)
def test_each_reason_is_produced_and_said(code: str) -> None:
    case = CASES[code]()
    answer = drive.run(case.world, level="plain")
    rejections = answer.decision.rejections
    others = {cluster["metadata"]["name"] for cluster in case.world.clusters or ()} - {"here"}
    assert {name: rejection.reason.name for name, rejection in rejections.items() if name not in others} == {
        "here": code
    }
    assert case.says in answer.conditions["ReplicasScheduled"][2]


def test_no_code_is_without_a_case() -> None:
    assert set(CASES) == {reason.name for reason in Reason}


def test_no_code_is_without_a_section_in_the_docs() -> None:
    """A section says what it means, what it looks like in kubectl, and what to do."""
    sections = sections_of("troubleshooting.md")
    for reason in Reason:
        assert reason.name in sections, f"docs/troubleshooting.md has no section {reason.name}"
        for part in ("**Means**", "**Looks like**", "**Do**"):
            assert part in sections[reason.name], f"{reason.name}: no {part}"
        assert reason.value in sections[reason.name], f"{reason.name}: its words are not shown"


def test_the_codes_say_whether_they_may_pass() -> None:
    """The page's "Resolvable" is what `status.placement` says, the size of the pool aside."""
    sections = sections_of("reasons.md")
    assert list(sections) == [reason.name for reason in Reason]
    said = {name: "Resolvable" in section for name, section in sections.items()}
    assert said == {reason.name: reason.passes for reason in Reason}


Broken = Callable[[Plain, World], World]
"""Breaks one more thing about a cluster, which is changed, or about its world."""


def _replaced(key: str, value: Any, *path: str) -> Broken:
    def change(cluster: Plain, world: World) -> World:
        part = cluster
        for name in path:
            part = part[name]
        part[key] = value
        return world

    return change


BREAKS: dict[str, Broken] = {
    "ClusterDeleting": _replaced("deletionTimestamp", build.CREATED, "metadata"),
    "ClusterSelectorMismatch": _replaced("tier", "dev", "metadata", "labels"),
    "OutsideCacheFootprint": _replaced("region", "us", "metadata", "labels"),
    "CacheNotReady": lambda _, world: world.but(
        cache=[build.cache("weights", {"region": "eu"}, phases={"here": "Hydrating"})]
    ),
    "UntoleratedTaint": _replaced("taints", [build.taint("maintenance")], "spec"),
    "StackCannotExpress": _replaced("stack", "KServe", "spec"),
    "ClusterNotReady": _replaced("conditions", [build.condition("Ready", status=False)], "status"),
    "ClusterLost": _replaced("heartbeat", "2026-03-01T09:00:00Z", "status"),
    "NoGatewayAddress": _replaced("gateway", {}, "status"),
    "NoPoolsPublished": _replaced("gpuPools", [], "status"),
    "ChargeNotPublished": lambda _, world: world,
}
"""In the order of the reasons; the last one is broken from the start."""


@pytest.mark.parametrize("first", range(len(BREAKS)), ids=list(BREAKS))
def test_of_several_gates_the_first_in_the_order_of_reasons_speaks(first: int) -> None:
    """Everything from one gate on is closed: an order of the filters other than the reasons' is found out."""
    engine = build.engine(members=[build.member(devices=[build.request()])])
    engine["members"][0]["template"]["metadata"] = {"labels": {"pods-have-it": "KServe passes on none"}}
    made = build.deployment(engines=[engine], match={"tier": "prod"}, cache="weights")
    made["spec"]["placement"] = {"cache": "Require", "evacuate": {"afterSeconds": 3600}}
    names, pools = ("here", "there", "elsewhere"), [build.pool("p", 2)]
    fleet = [build.cluster(name, pools, labels={"tier": "prod", "region": "eu"}) for name in names]
    for cluster in fleet:
        cluster["status"]["heartbeat"] = "2026-03-01T12:00:00Z"
    staged = build.cache("weights", {"region": "eu"}, phases=dict.fromkeys(names, "Ready"))
    world = World(made, fleet, [], {}, cache=[staged], input={"capacity": "Published"})
    world = world.but(more={"own-replicas": []})
    for broken in list(BREAKS.values())[first:]:
        world = broken(fleet[0], world)
    rejected = drive.run(world).decision.rejections["here"]
    assert rejected.reason.name == list(BREAKS)[first], rejected


def test_every_standing_reason_has_its_turn() -> None:
    same_gate = {"MalformedCluster", "ClusterSelectorError"}
    standing = [reason.name for reason in Reason if reason.is_standing and reason.name not in same_gate]
    assert list(BREAKS) == standing, (
        "BREAKS of this file says how each standing gate is closed, in their order"
    )
