"""What is said, in whole: the status, reason and message of conditions that are put together from details."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from function.api.text import LIMIT
from function.deployment.compose.conditions import noted
from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.drive import run
from tests.support.scarce import decide
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Plain = dict[str, Any]
Said = tuple[bool, str, str]
GPUS_8 = {"name": "gpu", "count": 8}
EIGHT = build.member(devices=[build.request("gpu", 8)])
TYPO = "engines[0].members[0].nodeSelector.devices[0].selectors[0]: 1:10: Syntax error: the expression ends"
NOTHING_PLACED: Said = (False, "NoReplicasScheduled", "No replica is placed")
DRAIN = build.taint("maintenance", "NoExecute")
NEVER = "; more than any of them has"
FULL = "0/1 clusters can host another: 1 insufficient nodes (nearest: a/p0"


def running(deployment: Plain, wanted: Plain, *, count: int = 1, nodes: int = 4) -> World:
    """A world in which replicas of a deployment run that is now another."""
    own_replicas = [build.replica(deployment, "a", index, pools="p0", ready=True) for index in range(count)]
    return World(wanted, clusters(a=nodes), own_replicas, build.observed(*own_replicas))


def leaving(wanted: Plain, fleet: list[Plain], *, count: int = 2, **more: Any) -> World:
    """A world in which replicas run on a that are no longer wanted there."""
    own_replicas = [build.replica(wanted, "a", index, pools="p0", ready=True) for index in range(count)]
    return World(wanted, fleet, own_replicas, build.observed(*own_replicas), **more)


def cel(*selectors: str) -> Plain:
    return {"selectors": [{"cel": selector} for selector in selectors]}


def broken(*selectors: str) -> Plain:
    return ask(engines=[build.engine(members=[build.member(devices=[build.request("gpu", 1, *selectors)])])])


@dataclass(frozen=True)
class Case:
    reason: str
    world: Callable[[], World]
    says: dict[str, Said]


CASES = [
    Case(
        "a cache that is there",
        lambda: World(ask(cache="weights"), clusters(a=4), cache=[build.cache("weights")]),
        {"ModelCacheResolved": (True, "ModelCacheResolved", "")},
    ),
    Case(
        "a cache that is not there: nothing is looked for until it is",
        lambda: World(ask(cache="weights"), clusters(a=4), cache=[]),
        {
            "ModelCacheResolved": (
                False,
                "ModelCacheNotFound",
                "ModelCache ml-team/weights does not exist; nothing new is placed",
            ),
            "ReplicasScheduled": (
                False,
                "InsufficientCapacity",
                "Scheduled 0 of 1 replica; nothing new is placed until ModelCache ml-team/weights exists",
            ),
            "ReplicasReady": NOTHING_PLACED,
        },
    ),
    Case(
        "a cache that is not delivered yet",
        lambda: World(ask(cache="weights"), clusters(a=4), cache=None),
        {
            "ModelCacheResolved": (False, "ModelCacheUnresolved", "Waiting for ModelCache ml-team/weights"),
            "ReplicasScheduled": (
                False,
                "InputsUnresolved",
                "Waiting for required resources: cache/weights; everything running is kept",
            ),
        },
    ),
    Case(
        "what no doubt is about leaves, and is not said to be kept: a drain while the cache is not known",
        lambda: leaving(ask(2, cache="weights"), clusters(a={"nodes": 4, "taints": [DRAIN]}), cache=None),
        {
            "ReplicasScheduled": (
                False,
                "InputsUnresolved",
                (
                    "Waiting for required resources: cache/weights; 2 replicas leave (its cluster has an"
                    " untolerated NoExecute taint), every other one is kept"
                ),
            ),
        },
    ),
    Case(
        "a drain beside a selector that does not compile",
        lambda: leaving(broken("nonsense("), clusters(a={"nodes": 4, "taints": [DRAIN]}), count=1),
        {
            "ReplicasScheduled": (
                False,
                "InvalidNodeSelector",
                (
                    f"{TYPO} too early; 1 replica leaves (its cluster has an untolerated NoExecute taint),"
                    " every other one is kept, nothing new is placed"
                ),
            ),
        },
    ),
    Case(
        "a scale down on a fleet without clusters",
        lambda: leaving(ask(1), []),
        {
            "ReplicasScheduled": (
                False,
                "NoClusters",
                "There is no InferenceCluster; 1 replica leaves (scaled down), every other one is kept",
            ),
        },
    ),
    Case(
        "one selector that does not compile is named, and no others are counted",
        lambda: World(broken("nonsense("), clusters(a=4)),
        {
            "ReplicasScheduled": (
                False,
                "InvalidNodeSelector",
                f"{TYPO} too early; every running replica is kept, nothing new is placed",
            )
        },
    ),
    Case(
        "of several the first is named, and the others are counted",
        lambda: World(broken("nonsense(", "true", "worse("), clusters(a=4)),
        {
            "ReplicasScheduled": (
                False,
                "InvalidNodeSelector",
                f"{TYPO} too early (and 1 more); every running replica is kept, nothing new is placed",
            )
        },
    ),
    Case(
        "a flat key: what is meant, where it is known",
        lambda: World(broken('device.attributes["gpu.nvidia.com/architecture"] == "Hopper"'), clusters(a=4)),
        {
            "ReplicasScheduled": (
                False,
                "InvalidNodeSelector",
                (
                    "engines[0].members[0].nodeSelector.devices[0].selectors[0]: 1:50: found no matching"
                    " overload for '_==_' applied to '(map(string, dyn), string)';"
                    ' did you mean device.attributes["gpu.nvidia.com"].architecture?;'
                    " every running replica is kept, nothing new is placed"
                ),
            )
        },
    ),
    Case(
        "a name without its domain: that of the fleet is meant",
        lambda: World(broken('device.attributes.architecture == "Hopper"'), clusters(a=4)),
        {
            "ReplicasScheduled": (
                False,
                "InvalidNodeSelector",
                (
                    "engines[0].members[0].nodeSelector.devices[0].selectors[0]: 1:32: found no matching"
                    " overload for '_==_' applied to '(map(string, dyn), string)';"
                    ' did you mean device.attributes["gpu.nvidia.com"].architecture?;'
                    " every running replica is kept, nothing new is placed"
                ),
            )
        },
    ),
    Case(
        "too few for minReplicas, and none had a place",
        lambda: World(ask(4, least=3), clusters(a=0)),
        {
            "ReplicasScheduled": (
                False,
                "MinReplicasNotMet",
                (
                    f"Scheduled 0 of 4 replicas; {FULL} needs 1, 0 free of 0{NEVER}); minReplicas is 3,"
                    " no place was found for more, so nothing new is placed"
                ),
            ),
            "ReplicasReady": NOTHING_PLACED,
        },
    ),
    Case(
        "too few for minReplicas, and it says how many had a place",
        lambda: World(ask(4, least=3), clusters(a=2)),
        {
            "ReplicasScheduled": (
                False,
                "MinReplicasNotMet",
                (
                    f"Scheduled 0 of 4 replicas; {FULL} needs 1, 0 free of 2); minReplicas is 3,"
                    " 2 more had a place, so nothing new is placed"
                ),
            )
        },
    ),
    Case(
        "too few for minReplicas, and nothing is looked for",
        lambda: World(ask(4, least=3, cache="weights"), clusters(a=4), cache=[]),
        {
            "ReplicasScheduled": (
                False,
                "MinReplicasNotMet",
                (
                    "Scheduled 0 of 4 replicas; nothing new is placed until ModelCache ml-team/weights"
                    " exists; minReplicas is 3, no place was found for more, so nothing new is placed"
                ),
            )
        },
    ),
    Case(
        "all have a place, and none exists yet",
        lambda: World(ask(2), clusters(a=4)),
        {"ReplicasScheduled": (False, "Scheduling", "Scheduled 2 of 2 replicas")},
    ),
    Case(
        "a replacement that has no place: why, without a particular where there is none",
        lambda: running(ask(), ask(engines=[build.engine("other", copies=9)])),
        {
            "ReplicasScheduled": (
                False,
                "ReplacementBlocked",
                (
                    "1 replica needs replacement and none has a place, so they keep running as they are:"
                    f" a/my-model-4718f: the engines changed shape; {FULL} needs 9, 3 free of 4{NEVER})"
                ),
            ),
            "ReplicasReady": (True, "AllReplicasReady", "1 of 1 ready"),
        },
    ),
    Case(
        "several replacements that have no place: the first is told of, with its particular",
        lambda: running(ask(2), ask(2, engines=[build.engine("main", [EIGHT], copies=9)]), count=2),
        {
            "ReplicasScheduled": (
                False,
                "ReplacementBlocked",
                (
                    "2 replicas need replacement and none has a place, so they keep running as they are:"
                    " a/my-model-4718f: it needs more nodes than its pool has free (pool p0 needs 8 more);"
                    f" {FULL} needs 9, 2 free of 4{NEVER})"
                ),
            ),
        },
    ),
]


def edited(**more: Any) -> Plain:
    """The deployment of `running`, with an edit: two copies of its engine."""
    return ask(engines=[build.engine("main", [EIGHT], copies=2)], **more)


def on_a(wanted: Plain | None = None, *, status: Plain | None = None, **more: Any) -> World:
    """A replica that runs on cluster a, of which something is no longer as it was."""
    made = running(ask(), wanted or ask())
    cluster = made.clusters[0]
    if status is not None:
        cluster["status"] |= status
    return made.but(**more)


def without_status() -> World:
    made = on_a()
    del made.clusters[0]["status"]
    return made


def two_on_a() -> World:
    """A Ready replica, and behind it one that is not, on a cluster that is not Ready."""
    wanted = ask(2)
    own_replicas = [build.replica(wanted, "a", at, pools="p0", ready=at == 0) for at in range(2)]
    return World(wanted, clusters(a={"ready": False}), own_replicas, build.observed(*own_replicas))


def nowhere() -> World:
    """A replica that was edited by hand: neither its spec nor its key names a cluster any more."""
    made = on_a()
    own_replica = made.observed["replica-a-0"]
    del own_replica["spec"]["clusterName"]
    return made.but(replicas=[own_replica], observed={"replica": own_replica})


def selecting(expression: str) -> Plain:
    """The deployment of `running`, with an expression over clusters."""
    return ask(selector={"cel": [expression]})


def with_endpoint(made: World) -> World:
    """The world, with the endpoint that the replica got while all was well."""
    own_replica = made.observed["replica-a-0"]
    return made.but(observed=build.observed(own_replica, endpoints=[build.endpoint(own_replica)]))


def starting(made: World) -> World:
    """The world, with a replica that is not Ready yet."""
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=False)
    return made.but(replicas=[own_replica], observed=build.observed(own_replica))


NOT_READY = {"conditions": [build.condition("Ready", status=False)]}
MISSPELT = 'device.attributes["gpu.nvidia.com"].architecure == "Hopper"'
NO_SUCH_KEY = (
    "pool p0: device selector error: no such key: architecure"
    " (the device has no attribute gpu.nvidia.com/architecure)"
)
DIGITS = [*range(30, 40)]
ALL_PLACED = "Scheduled 1 of 1 replica"

KEPT = [
    Case(
        "nothing is in doubt, and nothing is added",
        on_a,
        {
            "ReplicasScheduled": (True, "ReplicasCreated", ALL_PLACED),
            "ReplicasReady": (True, "AllReplicasReady", "1 of 1 ready"),
        },
    ),
    Case(
        "a selector that reads what nobody publishes says nothing about the pool",
        lambda: on_a(ask(engines=[build.engine(members=[build.member(devices=[GPUS_8 | cel(MISSPELT)])])])),
        {
            "ReplicasScheduled": (
                True,
                "ReplicasCreated",
                f"{ALL_PLACED}; kept in doubt: 1 on a ({NO_SUCH_KEY})",
            ),
        },
    ),
    Case(
        "the status of the cluster is gone, and with it the pool and the gateway",
        without_status,
        {
            "ReplicasScheduled": (
                True,
                "ReplicasCreated",
                f"{ALL_PLACED}; kept in doubt: 1 on a (pool p0 is not published)",
            ),
            "ReplicasReady": (False, "ClusterDegraded", "0 of 1 ready; cluster a has no status"),
        },
    ),
    Case(
        "a Ready replica that is reached, on a cluster that is not Ready",
        lambda: on_a(status=NOT_READY),
        {
            "ReplicasScheduled": (True, "ReplicasCreated", ALL_PLACED),
            "ReplicasReady": (False, "ClusterDegraded", "1 of 1 ready; cluster a is not Ready"),
        },
    ),
    Case(
        "a Ready replica on a cluster that is not in the fleet: nobody knows a way to it",
        lambda: on_a().but(clusters=()),
        {"ReplicasReady": (False, "ClusterDegraded", "0 of 1 ready; cluster a is not in the fleet")},
    ),
    Case(
        "nor to one on a cluster that cannot be read",
        lambda: on_a(status={"gpuPools": 3}),
        {"ReplicasReady": (False, "ClusterDegraded", "0 of 1 ready; cluster a cannot be read")},
    ),
    Case(
        "nobody told whether the cluster is Ready",
        lambda: on_a(status={"conditions": []}),
        {
            "ReplicasReady": (
                False,
                "ClusterDegraded",
                "1 of 1 ready; cluster a does not say whether it is Ready",
            ),
        },
    ),
    Case(
        "a replica that is starting on such a cluster: it has still to start, and the cluster is named",
        lambda: starting(on_a(status=NOT_READY)),
        {"ReplicasReady": (False, "ModelStarting", "0 of 1 ready; cluster a is not Ready")},
    ),
    Case(
        "a Ready replica without a way to it",
        lambda: on_a(status={"gateway": {}}),
        {"ReplicasReady": (False, "ClusterDegraded", "0 of 1 ready; cluster a has no gateway address")},
    ),
    Case(
        "the address is gone, the endpoint is still there: it is reached as ever",
        lambda: with_endpoint(on_a(status={"gateway": {}})),
        {"ReplicasReady": (True, "AllReplicasReady", "1 of 1 ready")},
    ),
    Case(
        "a cluster that cannot be read, and the endpoint is still there",
        lambda: with_endpoint(on_a(status={"gpuPools": "three"})),
        {
            "ReplicasScheduled": (
                True,
                "ReplicasCreated",
                (
                    f"{ALL_PLACED}; kept in doubt: 1 on a (cluster a cannot be read:"
                    " status.gpuPools: expected a list, found a string)"
                ),
            ),
            "ReplicasReady": (True, "AllReplicasReady", "1 of 1 ready"),
        },
    ),
    Case(
        "the label that is asked for is misspelt: labels gate new placements only",
        lambda: on_a(ask(match={"tier": "prodution"})),
        {
            "ReplicasScheduled": (
                True,
                "ReplicasCreated",
                (
                    f"{ALL_PLACED}; kept where no new one would go: 1 on a"
                    " (cluster selector mismatch: wants tier=prodution, has no tier)"
                ),
            ),
        },
    ),
    Case(
        "another cache is referenced that is not there: the edit waits",
        lambda: on_a(ask(cache="weights"), cache=[]),
        {
            "ModelCacheResolved": (
                False,
                "ModelCacheNotFound",
                "ModelCache ml-team/weights does not exist; nothing new is placed",
            ),
            "ReplicasScheduled": (
                True,
                "ReplicasCreated",
                (
                    f"{ALL_PLACED}; kept in doubt: 1 on a (ModelCache weights does not exist);"
                    " edits are withheld until ModelCache weights exists"
                ),
            ),
        },
    ),
    Case(
        "another cache is referenced that is not delivered",
        lambda: on_a(ask(cache="weights"), cache=None),
        {
            "ReplicasScheduled": (
                False,
                "InputsUnresolved",
                (
                    "Waiting for required resources: cache/weights; everything running is kept;"
                    " kept in doubt: 1 on a (ModelCache weights is not known yet);"
                    " edits are withheld until ModelCache weights is known"
                ),
            ),
        },
    ),
    Case(
        "a cache that cannot be read is not one to wait for",
        lambda: on_a(
            ask(cache="weights"), cache=[{**build.cache("weights"), "spec": {"clusterSelector": 1}}]
        ),
        {
            "ModelCacheResolved": (
                False,
                "ModelCacheUnresolved",
                (
                    "ModelCache ml-team/weights cannot be read:"
                    " spec.clusterSelector: expected a map, found a number"
                ),
            ),
        },
    ),
    Case(
        "an edit that costs more nodes, of a pool that is not published",
        lambda: on_a(edited(), status={"gpuPools": []}),
        {
            "ReplicasScheduled": (
                True,
                "ReplicasCreated",
                (
                    f"{ALL_PLACED}; kept in doubt: 1 on a (pool p0 is not published);"
                    " edits are withheld until pool p0 is published"
                ),
            ),
        },
    ),
    Case(
        "a replica that names no cluster",
        nowhere,
        {
            "ReplicasScheduled": (
                True,
                "ReplicasCreated",
                f"{ALL_PLACED}; kept in doubt: 1 on an unknown cluster (the key replica cannot be read)",
            ),
        },
    ),
    Case(
        "an expression that takes too long to say why it does not hold",
        lambda: on_a(selecting(f"{DIGITS}.exists(a, {DIGITS}.exists(b, a * b == 7))")),
        {
            "ReplicasScheduled": (
                True,
                "ReplicasCreated",
                f"{ALL_PLACED}; kept where no new one would go: 1 on a (cluster selector mismatch)",
            ),
        },
    ),
    Case(
        "where no new one has a place the message has said so of every cluster",
        lambda: on_a(ask(2, match={"tier": "prodution"})),
        {
            "ReplicasScheduled": (
                False,
                "PartiallyScheduled",
                (
                    "Scheduled 1 of 2 replicas; 0/1 clusters can host another:"
                    " 1 cluster selector mismatch (wants tier=prodution, has no tier)"
                ),
            ),
        },
    ),
    Case(
        "a selector that does not compile keeps everything, and no doubt is named beside it",
        lambda: on_a(broken("nonsense("), status={"gpuPools": []}),
        {
            "ReplicasScheduled": (
                False,
                "InvalidNodeSelector",
                f"{TYPO} too early; every running replica is kept, nothing new is placed",
            ),
        },
    ),
    Case(
        "so does an invalid input",
        lambda: on_a(status={"gpuPools": []}, input={"searchBudget": "x"}),
        {
            "ReplicasScheduled": (
                False,
                "InvalidInput",
                (
                    "The function's input is invalid: input: searchBudget: expected a whole number,"
                    ' found "x"; every running replica is kept, nothing new is placed'
                ),
            ),
        },
    ),
    Case(
        "so do inputs that are missing",
        lambda: on_a(ask(match={"tier": "x"})).but(replicas=None),
        {
            "ReplicasScheduled": (
                False,
                "InputsUnresolved",
                "Waiting for required resources: own-replicas/my-model; everything running is kept",
            ),
        },
    ),
    Case(
        "a cluster that is gone is not asked whether it would take a new one",
        lambda: on_a(ask(match={"tier": "x"})).but(clusters=()),
        {"ReplicasReady": (False, "ClusterDegraded", "0 of 1 ready; cluster a is not in the fleet")},
    ),
    Case(
        "as many as are wanted are none beyond, however many a replacement may add",
        lambda: on_a(ask(placement={"disruption": {"maxUnavailable": 0, "maxSurge": 1}})),
        {"ReplicasScheduled": (True, "ReplicasCreated", ALL_PLACED)},
    ),
    Case(
        "of two on a cluster that is not Ready one is Ready: the cluster is what is wrong with it",
        two_on_a,
        {"ReplicasReady": (False, "ClusterDegraded", "1 of 2 ready; cluster a is not Ready")},
    ),
    Case(
        "so does a fleet without clusters",
        lambda: on_a().but(clusters=[]),
        {
            "ReplicasScheduled": (
                False,
                "NoClusters",
                "There is no InferenceCluster; everything running is kept",
            ),
        },
    ),
]


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.reason)
def test_what_is_kept_in_doubt_is_named(case: Case) -> None:
    test_what_a_condition_says(case)


def test_doubts_are_counted_by_cluster_and_at_most_three_are_named() -> None:
    wanted = ask(9)
    fleet = clusters(**{name: {"pools": []} for name in "abcde"})
    own_replicas = [
        build.replica(wanted, name, at, pools="p0", ready=True)
        for name, number in zip("abcde", (3, 2, 1, 1, 2), strict=True)
        for at in range(number)
    ]
    message = run(World(wanted, fleet, own_replicas, build.observed(*own_replicas))).conditions[
        "ReplicasScheduled"
    ][2]
    assert message == (
        "Scheduled 9 of 9 replicas; kept in doubt: 3 on a (pool p0 is not published),"
        " 2 on b (pool p0 is not published), 1 on c (pool p0 is not published) and 2 more"
    )


def test_degraded_clusters_are_named_once_and_at_most_three() -> None:
    wanted = ask(6)
    fleet = clusters(
        a={"ready": False}, b={"gateway": None}, c={"ready": None}, d={"ready": False}, e={"nodes": 9}
    )
    own_replicas = [build.replica(wanted, name, 0, pools="p0", ready=True) for name in "abcde"]
    own_replicas.append(build.replica(wanted, "a", 1, pools="p0", ready=True))
    assert run(World(wanted, fleet, own_replicas, build.observed(*own_replicas))).conditions[
        "ReplicasReady"
    ] == (
        False,
        "ClusterDegraded",
        (
            "5 of 6 ready; cluster a is not Ready, b has no gateway address,"
            " c does not say whether it is Ready and 1 more"
        ),
    )


@pytest.mark.parametrize(
    ("reason", "small", "large", "said"),
    [
        ("whoever waits gets it when others leave", 4, 8, False),
        ("no cluster has as many, however idle", 4, 7, True),
    ],
)
def test_a_wish_that_no_cluster_could_meet_is_told_from_one_that_waits(
    reason: str, small: int, large: int, *, said: bool
) -> None:
    """The nearest is the small and idle one, where it fits never."""
    other = build.deployment("other", engines=[build.engine(copies=large)])
    taken = build.replica(other, "large", 0, pools="p0")
    fleet = [*clusters(small=small), *clusters(large=large)]
    message = run(World(ask(1, engines=[build.engine(copies=8)]), fleet, [taken])).conditions[
        "ReplicasScheduled"
    ][2]
    assert f"2 insufficient nodes (nearest: small/p0 needs 8, {small} free of {small}" in message, reason
    assert (NEVER in message) is said, reason


def test_a_wish_that_another_shape_or_an_overcommitted_pool_could_meet_only_waits() -> None:
    other = build.deployment("other", engines=[build.engine(copies=8)])
    taken = build.replica(other, "a", 0, pools="p0")
    smaller = {"name": "small", "engines": [build.engine(copies=4)]}
    shapes = ask(1, engines=[build.engine(copies=9)], alternatives=[smaller])
    message = run(World(shapes, clusters(a=8), [taken])).conditions["ReplicasScheduled"][2]
    assert message.endswith("(nearest: a/p0 needs 9, 0 free of 8)"), "4 are there once the other leaves"
    over = build.replica(build.deployment("other", engines=[build.engine(copies=9)]), "a", 0, pools="p1")
    fleet = [build.cluster("a", [build.pool("p0", 4), build.pool("p1", 8)])]
    message = run(World(ask(1, engines=[build.engine(copies=8)]), fleet, [over])).conditions[
        "ReplicasScheduled"
    ][2]
    assert "(nearest: a/p0 needs 8, 4 free of 4)" in message, "p1 has as many once the other leaves"


def saying(replica: Plain, **conditions: tuple[str, str, str]) -> Plain:
    """Return a replica with conditions of its own: status, reason, message."""
    stated = replica.setdefault("status", {}).setdefault("conditions", [])
    for kind, (status, reason, message) in conditions.items():
        stated.append({"type": kind, "status": status, "reason": reason, "message": message})
    return replica


STARTING = ("False", "ModelStarting", "Not serving yet: main")
QUOTA = ("False", "FailedCreate", "main: exceeded quota: small")
AWAY = ("False", "Deploying", "Not on a yet: main (connect failed: no route)")
WAITING = ("False", "WaitingForModel", "Waiting for the workloads to be created")
VERBOSE = ("False", "FailedCreate", "main: " + "x" * 400)
CUT = f"FailedCreate: main: {'x' * 126}…"
NOT_APPLIED = ("True", "Accepted", "Not applied: Secret b (denied)")


@pytest.mark.parametrize(
    ("reason", "replicas", "expected"),
    [
        ("nothing is said", [{}, {}], "0 of 2 ready"),
        (
            "it starts",
            [{"ModelReady": STARTING}],
            "0 of 1 ready; replicas say: a/0 (ModelStarting: Not serving yet: main)",
        ),
        (
            "what keeps it from being created says more than that it is awaited",
            [{"ModelReady": WAITING, "ModelAccepted": AWAY}],
            "0 of 1 ready; replicas say: a/0 (Deploying: Not on a yet: main (connect failed: no route))",
        ),
        (
            "a problem says more than that something is on its way",
            [{"ModelAccepted": AWAY, "ModelReady": QUOTA}],
            "0 of 1 ready; replicas say: a/0 (FailedCreate: main: exceeded quota: small)",
        ),
        (
            "the worst first: a problem, then who starts, then what is wrong beside a model that serves",
            [
                {"ModelAccepted": NOT_APPLIED, "Ready": ("True", "Available", "")},
                {"ModelReady": STARTING},
                {"ModelReady": QUOTA},
            ],
            (
                "1 of 3 ready; replicas say: a/2 (FailedCreate: main: exceeded quota: small),"
                " a/1 (ModelStarting: Not serving yet: main), a/0 (Accepted: Not applied: Secret b (denied))"
            ),
        ),
        (
            "all serve, and something is wrong beside",
            [{"ModelAccepted": NOT_APPLIED, "Ready": ("True", "Available", "")}],
            "1 of 1 ready; replicas say: a/0 (Accepted: Not applied: Secret b (denied))",
        ),
        (
            "one that has the message for itself is quoted as far as it goes",
            [{"ModelReady": ("False", "FailedCreate", "x" * 380)}],
            f"0 of 1 ready; replicas say: a/0 (FailedCreate: {'x' * 380})",
        ),
        (
            "a message that is long is cut, the names and how many more are not",
            [{"ModelReady": VERBOSE}] * 5,
            f"0 of 5 ready; replicas say: a/0 ({CUT}), a/1 ({CUT}), a/2 ({CUT}) and 2 more",
        ),
    ],
)
def test_replicas_that_are_not_in_service_say_why(
    reason: str, replicas: list[dict[str, tuple[str, str, str]]], expected: str
) -> None:
    wanted = ask(len(replicas))
    made = [
        saying(build.replica(wanted, "a", at, pools="p0", name=str(at)), **conditions)
        for at, conditions in enumerate(replicas)
    ]
    message = run(World(wanted, clusters(a=9), made, build.observed(*made))).conditions["ReplicasReady"][2]
    assert len(message) <= LIMIT
    assert message == expected, reason


def test_what_replicas_of_long_names_say_ends_in_an_ellipsis_where_it_does_not_fit() -> None:
    wanted, name = ask(5), "n" * 63
    on = [f"{letter * 60}{at}" for at, letter in enumerate("abcde")]
    made = [
        saying(build.replica(wanted, cluster, at, pools="p0", name=f"{name}{at}"), ModelReady=VERBOSE)
        for at, cluster in enumerate(on)
    ]
    message = run(
        World(wanted, clusters(**{cluster: {"ready": False} for cluster in on}), made, build.observed(*made))
    ).conditions["ReplicasReady"][2]
    assert len(message) == LIMIT
    assert message.endswith("…")
    assert f"{on[0]}/{name}0 (FailedCreate: main: xxx" in message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_what_a_condition_says(case: Case) -> None:
    answer = run(case.world())
    assert {kind: answer.conditions[kind] for kind in case.says} == case.says
    for status, _, _ in answer.conditions.values():
        assert isinstance(status, bool), "a status is true or false, never unset"


def test_a_pool_of_several_nodes_is_told_of_in_the_plural() -> None:
    wanted = ask(3)
    own_replicas = [build.replica(wanted, "a", at, pools="p0", ready=True) for at in range(3)]
    message = run(World(wanted, clusters(a=2), own_replicas, build.observed(*own_replicas))).conditions[
        "ReplicasScheduled"
    ][2]
    assert message == "Scheduled 3 of 3 replicas; PoolOvercommitted: a/p0 holds 3 of 2 nodes"


def crowded(pools: Sequence[str], held: int) -> World:
    """Pools of one node, each with a replica of ours and another deployment's on it; one more is wanted."""
    engines = [build.engine(f"e{at}") for at in range(len(pools))]
    wanted = ask(2, engines=engines)
    own_replica = build.replica(wanted, "a", 0, pools=pools, ready=True)
    other = ask(engines=engines[:held])
    other["metadata"] = {**other["metadata"], "name": "other", "uid": build.uid("other")}
    foreign = build.replica(other, "a", 0, pools=pools[:held], ready=True)
    fleet = clusters(a={"pools": [build.pool(name, 1) for name in pools]})
    return World(wanted, fleet, [own_replica, foreign], build.observed(own_replica))


@pytest.mark.parametrize(
    ("held", "named", "reason"),
    [
        (1, "a/p0 holds 2 of 1 node", "one pool is named"),
        (3, "a/p0 holds 2 of 1 node, a/p1 holds 2 of 1 node, a/p2 holds 2 of 1 node", "three are"),
        (
            5,
            "a/p0 holds 2 of 1 node, a/p1 holds 2 of 1 node, a/p2 holds 2 of 1 node and 2 more",
            "of more, the rest is counted",
        ),
    ],
)
def test_overcommitted_pools_are_told_of(held: int, named: str, reason: str) -> None:
    answer = run(crowded([f"p{at}" for at in range(5)], held))
    assert answer.conditions["ReplicasScheduled"][2].endswith(f"; PoolOvercommitted: {named}"), reason


def test_at_rest_the_clusters_say_which_pools_are_overcommitted() -> None:
    """Not every replica there is read, so how much they hold is not known."""
    made = crowded(["p0", "p1"], 1)
    made.deployment["spec"]["replicas"] = 1
    said = run(made).conditions["ReplicasScheduled"][2]
    assert said == "Scheduled 1 of 1 replica", "nobody says so"
    pool = (made.clusters or ())[0]["status"]["gpuPools"][0]
    pool["overcommitted"] = True
    said = run(made).conditions["ReplicasScheduled"][2]
    assert said == "Scheduled 1 of 1 replica; PoolOvercommitted: a/p0 holds more than its 1 node"
    pool["overcommitted"] = "perhaps"
    assert run(made).conditions["ReplicasScheduled"][2] == "Scheduled 1 of 1 replica"


def test_where_every_replica_is_read_they_are_counted_whatever_the_clusters_say() -> None:
    running, fleet = build.replica(ask(2), "a", 0, pools="p0", ready=True), clusters(a=2)
    fleet[0]["status"]["gpuPools"][0]["overcommitted"] = True
    answer = run(World(ask(2), fleet, [running], build.observed(running)))
    assert len(answer.replicas) == 2
    assert "PoolOvercommitted" not in answer.conditions["ReplicasScheduled"][2]


@pytest.mark.parametrize(
    ("waiting", "said", "reason"),
    [
        (1, "1 waits for drain (x:NoExecute)", "one waits"),
        (2, "2 wait for drain (x:NoExecute)", "two wait"),
    ],
)
def test_replicas_that_wait_for_the_disruption_budget_are_counted(
    waiting: int, said: str, reason: str
) -> None:
    wanted = ask(3, placement={"disruption": {"maxUnavailable": 1}})
    own_replicas = [
        build.replica(wanted, "a" if at < waiting else "b", at, pools="p0", ready=at < 2) for at in range(3)
    ]
    fleet = clusters(a={"taints": [build.taint("x", "NoExecute")]}, b=4)
    message = run(World(wanted, fleet, own_replicas, build.observed(*own_replicas))).conditions[
        "ReplicasScheduled"
    ][2]
    assert message == f"Scheduled 3 of 3 replicas; {said}, within placement.disruption.maxUnavailable", reason


LONG = ("p" * 62, "q" * 62, "r" * 62)
SHORT_NOTE = "PoolOvercommitted: a/p0 holds 2 of 1 node"


@pytest.mark.parametrize(
    ("pools", "text", "said", "reason"),
    [
        (["p0"], 20, f"{'x' * 20}; {SHORT_NOTE}", "what fits is said in whole"),
        (["p0"], 600, f"{'x' * 468}…; {SHORT_NOTE}", "a long message is cut, and the note is not"),
        (LONG, 300, f"{'x' * 300}; {'@' * 209}…", "a long note takes what the message leaves"),
        (LONG, 600, f"{'x' * 349}…; {'@' * 159}…", "and of a long message as much as notes have at least"),
    ],
)
def test_message_and_notes_share_the_characters_of_a_condition(
    pools: Sequence[str], text: int, said: str, reason: str
) -> None:
    message = noted(decide(crowded(pools, len(pools))), "x" * text)
    note = ", ".join(f"a/{pool} holds 2 of 1 node" for pool in pools)
    whole = f"PoolOvercommitted: {note}"
    cut = said.count("@")
    assert message == (said.replace("@" * cut, whole[:cut]) if cut else said), reason
    assert len(message) <= 512, reason
