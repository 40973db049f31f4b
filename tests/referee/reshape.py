"""Gangs that become smaller on a full pool, on the real controllers: `make referee WORLDS='--only gangs'`.

The handler's answer is applied, what is there is reported as provider-kubernetes reports it, and the handler
is asked again, until every pod is bound and the replica is known to run what is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.referee import cluster
from tests.referee.kserve import Unexpected, is_true, kubectl, wanted_pods
from tests.referee.kueue import Queued
from tests.referee.worlds import entry
from tests.replica import build

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]
POOL, NODES = "frontier", 8
ANY = 'device.driver == "gpu.nvidia.com"'


def member(role: str = "Standalone", **options: Any) -> Plain:
    """Return a member that takes a node of the pool."""
    return build.member(role, [build.claim("gpu", 1, ANY)], pool=POOL, **options)


def gang(copies: int, workers: int) -> Plain:
    """Return an engine of groups."""
    return build.engine("main", member("Leader"), member("Worker", nodes=workers), copies=copies)


def single(copies: int) -> Plain:
    """Return an engine of single pods."""
    return build.engine("other", member(), copies=copies)


EDITS = {
    "fewer workers, more copies": ([gang(2, 3)], [gang(4, 1)]),
    "more workers, fewer copies": ([gang(4, 1)], [gang(2, 3)]),
    "fewer workers, more of another engine": ([gang(2, 2), single(2)], [gang(2, 1), single(4)]),
}
"""The engines before and after; each needs all nodes of the pool, before and after."""


def report(say: Callable[[str], None]) -> list[str]:
    """Try every edit, and return what differs."""
    made = [
        one
        for at in range(NODES)
        for one in cluster.add_node(f"{POOL}-{at}", {"modelplane.ai/pool": POOL}, [entry("gpu", 1)])
    ]
    made += cluster.add_node("elsewhere", {}, [])  # For the pickers, which claim nothing.
    differ = []
    for at, (what, (before, after)) in enumerate(EDITS.items()):
        said = "all bound, up to date"
        try:
            _edited(f"reshape-{at}", before, after)
        except Unexpected as unexpected:
            said = f"DIFFERS: {unexpected}"
            differ.append(f"{what}: {unexpected}")
        say(f"{what:42}  {said}")
    for kind, name in made:
        cluster.delete(kind, name)
    return differ


def _edited(name: str, before: list[Plain], after: list[Plain]) -> None:
    declared = build.cluster({"name": POOL, "className": "any", "nodeCount": NODES})
    scene = build.Scene(build.replica(*before, name=name), declared, input=build.config(diagnose="Pods"))
    replica = Queued(scene)
    try:
        replica.until(lambda answer: is_true(answer, "ModelUpdated"), "all run at first")
        replica.scene = replica.scene.edited(engines=after)
        replica.until(lambda answer: not is_true(answer, "ModelUpdated"), "the edit is under way")
        wanted = wanted_pods(replica.scene.replica)
        replica.until(
            lambda answer: (
                is_true(answer, "ModelUpdated") and replica.bound() == wanted == len(replica.pods())
            ),
            "all run as edited",
        )
    finally:
        for one in replica.applied.values():
            words = ("--namespace=default", "--wait=false", "--ignore-not-found")
            kubectl("delete", one["kind"], one["metadata"]["name"], *words)
        cluster.wait(lambda: not replica.all_pods(), 60)
