"""The timelines of docs/rollouts.md: what is printed there is what the function answers."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tests.support import build
from tests.support.apply import apply
from tests.support.cases import clusters
from tests.support.drive import Answer, run
from tests.support.rollouts import deployment, images
from tests.support.world import World

Plain = dict[str, Any]
PAGE = Path(__file__).parents[2] / "docs" / "rollouts.md"
BY_SURGE = {"disruption": {"maxUnavailable": 0, "maxSurge": 1}, "rollout": {"maxUnavailable": 0}}
GOOD, BAD = "vllm:2", "vllm:2-typo"


def chat(replicas: int, image: str, placement: Plain) -> Plain:
    made = deployment(replicas, image, placement)
    made["metadata"]["name"] = "chat"
    return made


def observed(world: World, *ready: str) -> World:
    """Return the world with these replicas Ready, about the template they have, and all others not."""
    made = world.copy()
    for key, one in made.observed.items():
        if one["kind"] == "ModelReplica":
            status = build.condition("Ready", status=key.removeprefix("replica-") in ready)
            one["status"] = {"conditions": [status | {"reason": "ModelStarting"}]}
    listed = [copy.deepcopy(one) for one in made.observed.values() if one["kind"] == "ModelReplica"]
    return made.but(replicas=listed)


class Timeline:
    """Reconciles, one after the other."""

    def __init__(self, made: Plain, fleet: list[Plain], running: list[tuple[str, int]]) -> None:
        own_replicas = [build.replica(made, on, index, pools="p0", ready=True) for on, index in running]
        self.world = World(made, fleet, own_replicas, build.observed(*own_replicas))
        self.lines: list[str] = []

    def edit(self, image: str) -> None:
        made = chat(
            self.world.deployment["spec"]["replicas"], image, self.world.deployment["spec"]["placement"]
        )
        self.world = self.world.but(deployment=made)

    def reconciles(self, *ready: tuple[str, ...]) -> list[dict[str, str]]:
        """Reconcile with these replicas Ready each time; return the images that are desired."""
        return [images(self.reconcile(*keys)) for keys in ready]

    def reconcile(self, *ready: str) -> Answer:
        """Ask with these replicas Ready, and apply the answer."""
        self.world = observed(self.world, *ready)
        answer = run(self.world)
        for kind in ("ReplicasScheduled", "ReplicasUpdated"):
            status, reason, message = answer.conditions[kind]
            self.lines.append(f"{kind:17}  {status!s:5}  {reason:18}  {message}")
        self.world = apply(self.world, answer)
        return answer


Reported = tuple[list[str], list[dict[str, str]]]
"""The conditions of every reconcile, and the image of every desired replica."""


def in_place() -> Reported:
    """Three replicas, one at a time; a bad image; the edit taken back."""
    made = chat(3, "vllm:1", {"rollout": {"maxUnavailable": 1}})
    time = Timeline(made, clusters(use1=4, use2=4), [("use1", 0), ("use1", 1), ("use2", 0)])
    every = ("use1-0", "use1-1", "use2-0")
    without = {gone: tuple(key for key in every if key != gone) for gone in every}
    time.edit(GOOD)
    first, second, third = (without[key] for key in ("use1-1", "use2-0", "use1-0"))
    seen = time.reconciles(every, first, every, second, every, third, every)
    time.edit(BAD)
    seen += time.reconciles(every, first, first)
    time.edit(GOOD)
    seen += time.reconciles(first, every)
    return time.lines, seen


def by_surge() -> Reported:
    """One replica on a cluster that is drained, then an edit."""
    drained = {"taints": [build.taint("maintenance", "NoExecute")]}
    time = Timeline(chat(1, "vllm:1", BY_SURGE), clusters(use1=drained, use2=4), [("use1", 0)])
    seen = time.reconciles(("use1-0",), ("use1-0",), ("use1-0", "use2-0"), ("use2-0",))
    time.edit(GOOD)
    seen += time.reconciles(("use2-0",), ("use2-0",), ("use2-0", "use2-1"), ("use2-1",))
    return time.lines, seen


def test_in_place_one_at_a_time() -> None:
    _, seen = in_place()
    assert [sum(image == GOOD for image in one.values()) for one in seen[:7]] == [1, 1, 2, 2, 3, 3, 3]
    assert [sum(image == BAD for image in one.values()) for one in seen[7:]] == [1, 1, 1, 0, 0]


def test_by_surge_one_is_always_in_service() -> None:
    _, seen = by_surge()
    assert [sorted(one) for one in seen] == [
        ["use1-0", "use2-0"],
        ["use1-0", "use2-0"],
        ["use2-0"],
        ["use2-0"],
        ["use2-0", "use2-1"],
        ["use2-0", "use2-1"],
        ["use2-1"],
        ["use2-1"],
    ]


def test_every_condition_on_the_page_is_an_answer() -> None:
    """What is printed there of a condition, in the order of the page."""
    answers = [*in_place()[0], *by_surge()[0]]
    page = PAGE.read_text(encoding="utf-8").splitlines()
    printed = [line.strip() for line in page if line.startswith("    Replicas")]
    assert len(printed) > 15
    assert [line for line in printed if line not in answers] == []
