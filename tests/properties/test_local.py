"""P12: local: a change to a cluster nobody uses and no filter passes changes no desired resource; an
unreadable cluster equals an unavailable one.

P13: another namespace's deployment is never ours.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from function.scheduler.matcher import Matcher
from function.scheduler.placer import Placer
from tests.properties.worlds import each_batch, hold
from tests.support import build, generate
from tests.support.drive import Answer, run
from tests.support.scarce import TASTE, decide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.world import World

Plain = dict[str, Any]

STEADY = generate.Taste(doubt=0.0, oddity=0.0, own_replicas=1.0, edits=0.0)
"""Nothing is mismatched: on an unreadable cluster that cannot be told, on one that is unavailable it can."""

UNREADABLE: tuple[Any, ...] = (
    {"gpuPools": "none"},
    {"gpuPools": [{"name": "p0", "nodes": 1.5, "devices": []}]},
    {"gpuPools": [{"name": "p0", "nodes": 4, "devices": [{"name": 7}]}]},
    {"gpuPools": [None]},
    {"conditions": "Ready"},
    {"gateway": ["203.0.113.1"]},
    "fine",
)


def disturbed(world: World, answer: Answer) -> Iterator[str]:
    """Add a cluster that no filter passes, in several states."""
    if not world.clusters:
        return
    spare = [
        build.cluster("z", [build.pool("p0", 9)], ready=False),
        build.cluster("z", [build.pool("p0", 9)], gateway=None),
        build.cluster("z", [build.pool("p0", 9)], deleting=True),
        build.cluster(
            "z", [build.pool("p0", 9), build.pool("p1", -2)], taints=[build.taint("odd")], ready=False
        ),
    ]
    spare += [build.cluster("z") | {"status": item} for item in UNREADABLE]
    for number, item in enumerate(spare):
        if run(world.but(clusters=[*world.clusters, item])).desired != answer.desired:
            yield f"a cluster that takes nothing changes what is desired (state {number})"


def not_equal(world: World, _: Answer) -> Iterator[str]:
    """Make one cluster unreadable, and compare with the same cluster not available."""
    for number, cluster in enumerate(world.clusters or ()):
        plain = copy.deepcopy(cluster)
        plain["spec"].pop("taints", None)
        others = [one for place, one in enumerate(world.clusters or ()) if place != number]
        without = {name: value for name, value in plain.items() if name != "status"}
        unavailable = run(world.but(clusters=[*others, without]))
        on = f"-{cluster['metadata']['name']}-"
        for status in UNREADABLE:
            unreadable = run(world.but(clusters=[*others, plain | {"status": status}]))
            if unreadable.desired.keys() != unavailable.desired.keys():
                yield f"{on} with status {status}: {unreadable.desired.keys() ^ unavailable.desired.keys()}"


def ours(world: World, answer: Answer) -> Iterator[str]:
    """Give a deployment of our name in another namespace replicas everywhere."""
    if world.replicas is None:
        return
    twin = copy.deepcopy(world.deployment)
    twin["metadata"] |= {"namespace": "zz-other", "uid": build.uid("twin")}
    theirs = [
        build.replica(
            twin, cluster["metadata"]["name"], index, pools="nowhere", name=f"theirs-{number}-{index}"
        )
        for number, cluster in enumerate(world.clusters or ())
        for index in range(3)
    ]
    if run(world.but(replicas=[*world.replicas, *theirs])).desired != answer.desired:
        yield "replicas of a deployment of the same name in another namespace change what is desired"


@each_batch
def test_a_cluster_that_no_filter_passes_changes_nothing(number: int) -> None:
    hold(number, disturbed, quick=80)


@each_batch
def test_an_unreadable_cluster_equals_an_unavailable_one(number: int) -> None:
    hold(number, not_equal, quick=80, taste=STEADY)


@each_batch
def test_another_namespaces_deployment_is_never_ours(number: int) -> None:
    hold(number, ours)


def misjudged(world: World, _: Answer) -> Iterator[str]:
    """Judge every cluster as if there were no other: nothing to share a fit with, or to be like."""
    decision = decide(world)
    inputs, placer = decision.inputs, decision.placer
    for cluster in inputs.fleet.clusters.values() if placer else ():
        among_others = list(placer.on_pools(cluster))
        inputs.deployment.memos.clear()
        by_itself = Placer(inputs, Matcher(inputs), decision.ledger, placer.indices).on_pools(cluster)
        if among_others != list(by_itself):
            yield f"on {cluster.name} other engines fit, or lack something else, than if it stood alone"


@each_batch
def test_what_is_said_of_a_cluster_depends_on_no_other(number: int) -> None:
    hold(number, misjudged, taste=TASTE)
