"""Where nothing changed that a decision reads, nothing is decided anew; where anything did, it is."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from function import wire
from function.api import replica as replica_api
from function.boundary import PlainDocument
from function.boundary.memory import Memory, Session
from function.cluster.publish import charge
from function.deployment import answers, handler
from tests.support import build
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.boundary import Response

Plain = dict[str, Any]

INPUT: Plain = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}
EVACUATE: Plain = {"defaults": {"placement": {"evacuate": {"afterSeconds": 1_800}}}}


def world(**settings: Any) -> World:
    """One Ready replica on a, one to be placed, one of an older deployment on b."""
    engines = [build.engine("main", [build.member(devices=[build.request()])])]
    deployment = build.deployment("chat", 2, engines, cache="weights")
    other = build.deployment("other", 1, engines, namespace="elsewhere")
    other["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    replica = build.replica(deployment, "a", 0, ready=True)
    clusters = [build.cluster(on, [build.pool("h100", 2)], labels={"tier": "prod"}) for on in "abc"]
    for cluster in clusters:
        cluster["status"]["conditions"][0]["lastTransitionTime"] = "2026-03-02T08:00:00Z"
        cluster["status"]["heartbeat"] = "2026-03-02T09:00:00Z"
    made = World(
        deployment,
        clusters,
        [replica, build.replica(other, "b", 0, ready=True)],
        build.observed(replica, endpoints=[build.endpoint(replica)]),
        input={**INPUT, **settings},
        more={"all-deployments": [other, deployment], "all-caches": [_versioned(build.cache())]},
    )
    return made.copy()


def _versioned(manifest: Plain) -> Plain:
    manifest["metadata"]["resourceVersion"] = "1"
    return manifest


def answer(asked: World, memory: Memory | None) -> tuple[Response, bytes]:
    """Ask through the wire; return the answer and its bytes."""
    call = wire.decode(asked.message().SerializeToString())
    session = Session(memory, handler.COSTS)
    response = handler.run(call.request, reuse=session)
    session.settle()
    return response, wire.encode(call, response, wire.Ttl())


def reused(before: World, after: World) -> bool:
    """Whether the answer of one world is given again for another; it is the same as without a memory."""
    memory = Memory(1 << 24)
    answer(before, memory)
    held, _ = answer(before, memory)
    response, written = answer(after, memory)
    assert written == answer(after, None)[1]
    return response is held


def version(manifest: Plain) -> Plain:
    """Give an object another version."""
    manifest["metadata"]["resourceVersion"] += "0"
    return manifest


def _times(made: World) -> None:
    for cluster in made.clusters or ():
        version(cluster)["status"]["heartbeat"] = "2026-03-02T09:01:00Z"
        cluster["status"]["conditions"][0]["lastTransitionTime"] = "2026-03-02T08:00:30Z"


def _other_replica_restarts(made: World) -> None:
    assert made.replicas is not None
    version(made.replicas[1])["status"]["conditions"][0]["lastTransitionTime"] = "2026-03-02T08:00:30Z"


def _deployments_status(made: World) -> None:
    version(made.more["all-deployments"][0])["status"] = {"replicas": {"total": 1, "ready": 1}}


SAME: tuple[tuple[str, Callable[[World], World | None]], ...] = (
    ("nothing changed", lambda _: None),
    ("times are read by evacuation alone", _times),
    ("a condition of somebody else's replica charges nothing", _other_replica_restarts),
    ("a status is no part of what another deployment wants", _deployments_status),
    ("the order of lists means nothing", lambda made: made.but(clusters=list(made.clusters or ())[::-1])),
)


@pytest.mark.parametrize(("reason", "change"), SAME, ids=[case[0] for case in SAME])
@pytest.mark.parametrize("coordination", ["None", "GlobalOrder"])
def test_the_latest_answer_is_given_again(
    reason: str, change: Callable[[World], World | None], coordination: str
) -> None:
    after = world(coordination=coordination)
    assert reused(world(coordination=coordination), change(after) or after), reason


def test_a_cluster_that_says_its_release_may_state_what_is_the_default() -> None:
    """As another one does, so that its devices are known, and read by that release, before they are compared
    with those of the version before.
    """
    before = world()
    for cluster in before.clusters or ():
        cluster["spec"]["celVersion"] = "1.37"
    after = before.copy()
    for made, stated in ((before, 1), (after, 2)):
        for cluster in (made.clusters or ())[:stated]:
            version(cluster)["status"]["gpuPools"][0]["devices"][0]["allowMultipleAllocations"] = False
    assert reused(before, after)


def _fewer_nodes(made: World) -> None:
    assert made.clusters is not None
    version(made.clusters[1])["status"]["gpuPools"][0]["nodes"] = 1


def _unready(made: World) -> None:
    assert made.clusters is not None
    version(made.clusters[1])["status"]["conditions"][0]["status"] = "False"


def _relabelled(made: World) -> None:
    assert made.clusters is not None
    version(made.clusters[2])["metadata"]["labels"] = {"tier": "staging"}


def _other_replica_leaves(made: World) -> None:
    assert made.replicas is not None
    version(made.replicas[1])["metadata"]["deletionTimestamp"] = "2026-03-02T08:00:30Z"


def _another_replica(made: World) -> World:
    another = copy.deepcopy(list(made.replicas or ())[1])
    another["metadata"] |= {"name": "another", "uid": "another"}
    return made.but(replicas=[*(made.replicas or ()), another])


def _own_observed(made: World) -> None:
    version(made.observed["replica-a-0"])["spec"]["engines"][0]["members"][0]["template"] = {"odd": True}


def _endpoint(made: World) -> None:
    version(made.observed["endpoint-a-0"])["status"] = {}


def _peer_wants_more(made: World) -> None:
    version(made.more["all-deployments"][0])["spec"]["replicas"] = 2


def _composite(made: World) -> None:
    version(made.deployment)["spec"]["replicas"] = 1


def _unversioned(made: World) -> None:
    assert made.clusters is not None
    del made.clusters[0]["metadata"]["resourceVersion"]


ANOTHER: tuple[tuple[str, Callable[[World], World | None]], ...] = (
    ("a pool has fewer nodes", _fewer_nodes),
    ("a cluster is not Ready", _unready),
    ("a cluster has other labels", _relabelled),
    ("a replica of somebody else is being deleted", _other_replica_leaves),
    ("a replica came", _another_replica),
    ("a replica went", lambda made: made.but(replicas=list(made.replicas or ())[:1])),
    ("a cluster went", lambda made: made.but(clusters=list(made.clusters or ())[:2])),
    ("the clusters are not delivered", lambda made: made.but(clusters=None)),
    ("an own replica is observed otherwise", _own_observed),
    ("an endpoint is observed otherwise", _endpoint),
    ("an endpoint is not observed", lambda made: made.but(observed={"replica-a-0": _own_replica(made)})),
    ("the input says something else", lambda made: made.but(input={**INPUT, "overcommit": "Yield"})),
    ("true is not 1", lambda made: made.but(input={**(made.input or {}), "searchBudget": True})),
    ("the caches are other ones", lambda made: made.but(more={**made.more, "all-caches": []})),
    ("the deployment is another version", _composite),
    ("what has no version is another one every time", _unversioned),
)


def _own_replica(made: World) -> Plain:
    manifest: Plain = made.observed["replica-a-0"]
    return manifest


@pytest.mark.parametrize(("reason", "change"), ANOTHER, ids=[case[0] for case in ANOTHER])
def test_another_one_is_found(reason: str, change: Callable[[World], World | None]) -> None:
    settings = {"coordination": "GlobalOrder", "searchBudget": 1}
    after = world(**settings)
    assert not reused(world(**settings), change(after) or after), reason


def test_a_peer_that_wants_more_is_heard_where_placing_is_coordinated() -> None:
    after = world(coordination="GlobalOrder")
    _peer_wants_more(after)
    assert not reused(world(coordination="GlobalOrder"), after)


def test_where_something_evacuates_times_are_read() -> None:
    assert not reused(world(**EVACUATE), world(**EVACUATE))


def test_a_peers_rollout_reads_its_replicas() -> None:
    made = world(coordination="GlobalOrder")
    made.more["all-deployments"][0]["spec"]["placement"] = {"disruption": {"maxUnavailable": 1}}
    assert not reused(made, made.copy())


def published(nodes: int, time: str) -> World:
    """A deployment with nothing placed; the clusters publish their charges, one of `nodes` nodes."""
    other = build.replica(build.deployment("other", 1, [build.engine(copies=nodes)]), "a", 0)
    made = build.cluster("a", [build.pool("h100", 4)])
    charged = charge("a", made["status"]["gpuPools"], [replica_api.parse(PlainDocument(other))])
    made["status"]["gpuPools"] = charged
    made["status"]["conditions"][0]["lastTransitionTime"] = time
    made["metadata"]["resourceVersion"] = f"{nodes}{time}"
    deployment = build.deployment("chat", 1)
    return World(
        deployment, [made], None, input={**INPUT, "capacity": "Published"}, more={"own-replicas": []}
    )


@pytest.mark.parametrize(
    ("after", "again", "reason"),
    [
        (published(1, "2026-03-02T09:00:00Z"), True, "only a time is another one"),
        (published(2, "2026-03-02T08:00:00Z"), False, "another node is charged"),
    ],
)
def test_what_is_published_as_charged_is_read(after: World, reason: str, *, again: bool) -> None:
    assert reused(published(1, "2026-03-02T08:00:00Z"), after) == again, reason


def test_what_is_given_again_took_no_work() -> None:
    memory = Memory(1 << 24)
    first, again = (answer(world(), memory)[0] for _ in range(2))
    assert first.counts["cel_evaluations"] + first.counts["pool_matches"] > 0
    assert [again.counts[name] for name in answers.WORK] == [0, 0, 0]
    assert {**again.counts, **dict.fromkeys(answers.WORK)} == {
        **first.counts,
        **dict.fromkeys(answers.WORK),
    }


def test_it_is_charged_to_the_memory() -> None:
    memory = Memory(1 << 24)
    answer(world(explain="Status"), memory)
    settled = memory.bytes
    answer(world(explain="Conditions"), memory)
    assert memory.bytes < settled, "the report is larger than a few numbers"
