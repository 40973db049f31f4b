"""The set of replicas: minReplicas, disruption budgets, overcommitted pools, one common order."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from function.scheduler import schedule
from function.scheduler.placer import Placer
from tests.support import build
from tests.support.apply import applied
from tests.support.cases import Case, ask, clusters, one, where
from tests.support.coordinated import EARLY, LATE, ORDER, called, coordinated
from tests.support.drive import run
from tests.support.world import World

if TYPE_CHECKING:
    from tests.support.drive import Answer

Plain = dict[str, Any]
GONE = {"taints": [build.taint("broken", "NoExecute")]}
YIELD = {"overcommit": "Yield"}
WAS_READY = "modelplane.ai/was-ready"


def own_replicas(deployment: Plain, *on: str, ready: bool | None = True) -> list[Plain]:
    """Running replicas on these clusters, indexed from 0 on each."""
    return [
        build.replica(deployment, name, on[:at].count(name), pools="p0", ready=ready)
        for at, name in enumerate(on)
    ]


FOUR = ask(4, least=2)
LEAST = [
    Case(
        "reached: everything that has a place is placed",
        clusters(a=3),
        FOUR,
        ["a"] * 3,
        {},
        "PartiallyScheduled",
    ),
    Case(
        "not reached: nothing new", clusters(a=1), FOUR, [], {"a": "InsufficientNodes"}, "MinReplicasNotMet"
    ),
    Case("exactly reached", clusters(a=2), FOUR, ["a"] * 2, {}, "PartiallyScheduled"),
    Case(
        "what runs is kept below it",
        clusters(a=1),
        FOUR,
        ["a"],
        {},
        "MinReplicasNotMet",
        own_replicas(FOUR, "a"),
    ),
    Case(
        "what runs counts towards it, and every pass tops up",
        clusters(a=2),
        FOUR,
        ["a"] * 2,
        {},
        "PartiallyScheduled",
        own_replicas(FOUR, "a"),
    ),
    Case(
        "drained replicas do not count towards it",
        clusters(a=GONE, b=1),
        FOUR,
        [],
        {},
        "MinReplicasNotMet",
        own_replicas(FOUR, "a"),
    ),
    Case(
        "those that stay do",
        clusters(a=GONE, b=2),
        FOUR,
        ["b"] * 2,
        {},
        "PartiallyScheduled",
        own_replicas(FOUR, "a", "b"),
    ),
    Case(
        "more than are wanted asks for all that are wanted",
        clusters(a=2),
        ask(2, least=3),
        ["a"] * 2,
        {},
        "Scheduling",
    ),
    Case("nothing wanted is nothing missing", clusters(a=2), ask(0, least=2), [], {}, "ReplicasCreated"),
    Case(
        "gangs: a gang that has no place leaves the rest unplaced too",
        clusters(a=5),
        ask(3, engines=[build.gang(nodes=1)], least=3),
        [],
        {"a": "InsufficientNodes"},
        "MinReplicasNotMet",
    ),
    Case(
        "alternatives count",
        clusters(a=3),
        ask(
            2,
            engines=[build.gang(nodes=1)],
            alternatives=[{"name": "one", "engines": [build.engine()]}],
            least=2,
        ),
        ["a", "a/one"],
        {},
        "Scheduling",
    ),
]


def budget(replicas: int, number: int | None = 1) -> Plain:
    return ask(replicas, placement=None if number is None else {"disruption": {"maxUnavailable": number}})


THREE = budget(3)
FREE = budget(3, None)
OLD = build.deployment(
    "my-model", 3, [build.engine(members=[build.member(devices=[build.request("gpu", 4)])])]
)
DISRUPTION = [
    Case(
        "no budget: all drain at once",
        clusters(a=GONE, b=9),
        FREE,
        ["b"] * 3,
        running=own_replicas(FREE, "a", "a", "a"),
    ),
    Case(
        "1: one drains, its replacement is placed",
        clusters(a=GONE, b=9),
        THREE,
        ["a", "a", "b"],
        running=own_replicas(THREE, "a", "a", "a"),
    ),
    Case(
        "2", clusters(a=GONE, b=9), budget(3, 2), ["a", "b", "b"], running=own_replicas(THREE, "a", "a", "a")
    ),
    Case(
        "while the replacement is not Ready nobody else goes",
        clusters(a=GONE, b=9),
        THREE,
        ["a", "a", "b"],
        running=[*own_replicas(THREE, "a", "a"), *own_replicas(THREE, "b", ready=False)],
    ),
    Case(
        "once it is Ready the next one goes",
        clusters(a=GONE, b=9),
        THREE,
        ["a", "b", "b"],
        running=own_replicas(THREE, "a", "a", "b"),
    ),
    Case(
        "one that is not Ready goes first: it costs nothing",
        clusters(a=GONE, b=9),
        THREE,
        ["a", "a", "b"],
        running=[*own_replicas(THREE, "a", "a"), build.replica(THREE, "a", 2, pools="p0", ready=False)],
    ),
    Case(
        "a cluster that is gone does not ask",
        clusters(b=9),
        THREE,
        ["b"] * 3,
        running=own_replicas(THREE, "a", "a", "a"),
    ),
    Case(
        "scale down does not ask", clusters(a=9), budget(1), ["a"], running=own_replicas(THREE, "a", "a", "a")
    ),
    Case(
        "more than are wanted: the surplus drains beside the budget",
        clusters(a=GONE, b=9),
        budget(2),
        ["b", "b"],
        running=own_replicas(THREE, "a", "a", "b"),
    ),
    Case(
        "1: one mismatched replica is replaced",
        clusters(a=9),
        THREE,
        ["a"] * 3,
        running=own_replicas(OLD, "a", "a", "a"),
    ),
    Case(
        "the budget comes from the function's input too",
        clusters(a=GONE, b=9),
        FREE,
        ["a", "a", "b"],
        running=own_replicas(FREE, "a", "a", "a"),
        input={"defaults": {"placement": {"disruption": {"maxUnavailable": 1}}}},
    ),
    Case(
        "a drain that waits is said, and is no failure",
        clusters(a=GONE, b=9),
        THREE,
        ["a", "a", "b"],
        status="ReplicasCreated",
        running=own_replicas(THREE, "a", "a", "a"),
    ),
]


@pytest.mark.parametrize("case", [*LEAST, *DISRUPTION], ids=str)
def test_case(case: Case) -> None:
    case.check()


def test_with_minreplicas_met_partial_placement_is_a_success() -> None:
    answer = Case("", clusters(a=3), FOUR, ["a"] * 3).check()
    assert answer.conditions["ReplicasScheduled"][0]
    assert not answer.unready


@pytest.mark.parametrize(
    ("nodes", "replaced", "reason"),
    [
        (1, 0, "below minReplicas with no place at all: a replacement would be new too"),
        (0, 0, "the same where the pool has shrunk"),
        (2, 1, "reached: one is placed, and the mismatched one replaced"),
    ],
)
def test_below_minreplicas_nothing_is_replaced_either(nodes: int, replaced: int, reason: str) -> None:
    running = own_replicas(build.deployment("my-model", 4, OLD["spec"]["template"]["spec"]["engines"]), "a")
    decision = Case(reason, clusters(a=nodes), FOUR, [], running=running).answer().decision
    assert sum(placement.replaces is not None for placement in decision.placed) == replaced, reason
    assert bool(decision.held) == (not replaced), reason


@pytest.mark.parametrize(("number", "left"), [(1, 2), (2, 1), (3, 0), (None, 0)])
def test_so_many_mismatched_replicas_are_replaced_at_a_time(number: int | None, left: int) -> None:
    deployment = budget(3, number)
    running = own_replicas(OLD, "a", "a", "a")
    answer = Case("", clusters(a=9), deployment, ["a"] * 3, running=running).check()
    assert len(set(answer.replicas) & {f"replica-a-{n}" for n in range(3)}) == left
    said = answer.conditions["ReplicasScheduled"][2]
    assert ("for replacement, within placement.disruption" in said) == (left > 0)


def test_a_rollout_under_a_budget_ends_with_everything_replaced_and_never_too_few_ready() -> None:
    """The whole rollout, pass by pass: what is placed becomes Ready before the next pass."""
    running = own_replicas(OLD, "a", "a", "a")
    for _ in range(6):
        answer = Case("", clusters(a=9), THREE, ["a"] * 3, running=running).check()
        kept = [manifest for manifest in running if manifest["metadata"]["name"] in _names(answer)]
        assert len(kept) >= 2
        running = [_ready(THREE, replica) for replica in answer.replicas.values()]
    counts = [e["spec"]["engines"][0]["members"][0]["deviceRequests"][0]["count"] for e in running]
    assert counts == [8, 8, 8]


def _names(answer: Answer) -> set[str]:
    return {replica["metadata"]["name"] for replica in answer.replicas.values()}


def _ready(deployment: Plain, replica: Plain) -> Plain:
    labels = replica["metadata"]["labels"]
    index = int(labels["modelplane.ai/replica-index"])
    name = replica["metadata"]["name"]
    return build.replica_object(
        deployment, labels["modelplane.ai/cluster"], index, replica["spec"], name=name, ready=True
    )


def rival(
    name: str = "rival", *, ready: bool | None = None, created: str = build.CREATED, **more: Any
) -> Plain:
    """A replica of another deployment on the one node of a/p0."""
    made = build.replica(
        build.deployment(name, namespace=more.pop("namespace", "ads")),
        "a",
        0,
        pools="p0",
        ready=ready,
        **more,
    )
    made["metadata"]["creationTimestamp"] = created
    return made


def ours(
    deployment: Plain, *, ready: bool | None = None, created: str = build.CREATED, was: str = "", **more: Any
) -> Plain:
    made = build.replica(deployment, "a", 0, pools="p0", ready=ready)
    made["metadata"] |= {"creationTimestamp": created} | more
    if was:
        made["metadata"]["annotations"] = {WAS_READY: was}
    return made


MINE = ask(1)
ITSELF: str = ours(MINE)["metadata"]["uid"]
ANOTHER = build.uid("another")
YIELDS = [
    ("the later one gives way, and is placed anew", ours(MINE, created=LATE), rival(), ["b"]),
    ("the earlier one stays", ours(MINE, created=EARLY), rival(), ["a"]),
    ("one that is Ready stays", ours(MINE, created=LATE, ready=True), rival(), ["a"]),
    ("one that was Ready stays", ours(MINE, created=LATE, ready=False, was=ITSELF), rival(), ["a"]),
    ("also where it has no status any more", ours(MINE, created=LATE, was=ITSELF), rival(), ["a"]),
    ("a note of old is of the object that carries it", ours(MINE, created=LATE, was="true"), rival(), ["a"]),
    (
        "a note of another object says nothing of this one",
        ours(MINE, created=LATE, was=ANOTHER),
        rival(),
        ["b"],
    ),
    (
        "nobody controls it, as after a restore: its pods may be running",
        ours(MINE, created=LATE, was=ANOTHER, ownerReferences=[]),
        rival(),
        ["a"],
    ),
    ("which object it is nobody can tell", ours(MINE, created=LATE, was=ANOTHER, uid=""), rival(), ["a"]),
    (
        "not Ready counts as never Ready without the note",
        ours(MINE, created=LATE, ready=False),
        rival(),
        ["b"],
    ),
    ("the later one is Ready, so the earlier gives way", ours(MINE, created=EARLY), rival(ready=True), ["b"]),
    ("created at once: the namespace decides", ours(MINE), rival(namespace="ads"), ["b"]),
    ("created at once: ours is the earlier namespace", ours(MINE), rival(namespace="z"), ["a"]),
    (
        "created at once in one namespace: the name decides",
        ours(MINE),
        rival("zzz", namespace=build.NAMESPACE),
        ["a"],
    ),
    (
        "a rival that is being deleted does not count",
        ours(MINE, created=LATE),
        rival(terminating=True),
        ["a"],
    ),
]


@pytest.mark.parametrize(("reason", "mine", "theirs", "on"), YIELDS, ids=[pair[0] for pair in YIELDS])
def test_yield(reason: str, mine: Plain, theirs: Plain, on: list[str]) -> None:
    fleet = clusters(a=1, b=1)
    Case(reason, fleet, MINE, on, running=[mine], others=[theirs], input=YIELD).check()
    Case(f"by default nobody yields: {reason}", fleet, MINE, ["a"], running=[mine], others=[theirs]).check()


SENIOR = rival(created=EARLY)
"""Of another deployment: it gives way, too, and is placed before ours."""


def elsewhere(index: int, on: str, **more: Any) -> Plain:
    """Another replica of that deployment."""
    return build.replica(build.deployment("rival", namespace="ads"), on, index, pools="p0", **more)


TWO_POOLS = one("a", pools=[build.pool("p0", 1), build.pool("p1", 1)])
TURNS: list[tuple[str, list[Plain], list[Plain], str, Plain]] = [
    ("who is more senior has the first choice", clusters(a=1, b=1, c=1), [SENIOR], "c", YIELD),
    ("ours before one that is less", clusters(a=1, b=1, c=1), [rival(created=LATE)], "b", YIELD),
    (
        "each spreads by the replicas of its own deployment",
        clusters(a=1, b=2, c=1),
        [SENIOR, elsewhere(1, "b", ready=True)],
        "b",
        YIELD,
    ),
    (
        "but for those that are being deleted",
        clusters(a=1, b=2, c=1),
        [SENIOR, elsewhere(1, "b", ready=True, terminating=True)],
        "c",
        YIELD,
    ),
    ("and for what it leaves", [TWO_POOLS, one("b", 1)], [SENIOR], "b", YIELD),
    (
        "several of one deployment see one another",
        clusters(a=1, b=2, c=1),
        [SENIOR, elsewhere(1, "a")],
        "b",
        YIELD,
    ),
    ("in the common order each has its place once", clusters(a=1, b=1, c=1), [SENIOR], "c", YIELD | ORDER),
]


@pytest.mark.parametrize(("reason", "fleet", "others", "on", "config"), TURNS, ids=[row[0] for row in TURNS])
def test_who_gives_way_at_once_is_placed_in_turn(
    reason: str, fleet: list[Plain], others: list[Plain], on: str, config: Plain
) -> None:
    """Else all would meet on the best cluster, and give way again."""
    holder = rival("holder", ready=True)
    mine = ours(MINE)
    others = [*others, holder]
    peers = [
        build.deployment(name, replicas, namespace="ads")
        for name, replicas in (("rival", len(others) - 1), ("holder", 1))
    ]
    more = {"all-deployments": [*peers, MINE], "all-caches": []}
    made = World(MINE, fleet, [mine, *others], build.observed(mine), input=config, more=more)
    assert where(run(made)) == [on], reason


def test_one_that_yields_with_nowhere_to_go_leaves_all_the_same() -> None:
    answer = Case(
        "", clusters(a=1), MINE, [], running=[ours(MINE, created=LATE)], others=[rival()], input=YIELD
    ).check()
    assert any(reason == "ReplicaYielded" for _, reason, _ in answer.events)


def test_one_that_yields_gets_a_new_identity() -> None:
    running, fleet = [ours(MINE, created=LATE)], [one("a", pools=[build.pool("p0", 1), build.pool("p1", 1)])]
    answer = Case("", fleet, MINE, ["a"], running=running, others=[rival()], input=YIELD).check()
    (key,) = answer.replicas
    assert key == "replica-a-1"
    assert answer.replicas[key]["spec"]["engines"][0]["members"][0]["nodePoolName"] == "p1"


def test_was_ready_is_noted_under_yield_and_carried_on_ever_after() -> None:
    fleet = clusters(a=1)

    def noted(settings: Plain | None, **mine: Any) -> str | None:
        answer = Case("", fleet, MINE, ["a"], running=[ours(MINE, **mine)], input=settings).check()
        (replica,) = answer.replicas.values()
        note: str | None = replica["metadata"].get("annotations", {}).get(WAS_READY)
        return note

    assert noted(YIELD, ready=True) == ITSELF
    assert noted(None, ready=True) is None
    assert noted(YIELD, ready=False) is None
    for settings in (YIELD, None):
        assert noted(settings, ready=False, was=ITSELF) == ITSELF
        assert noted(settings, ready=False, was="true") == "true", "an upgrade writes to no replica"
        assert noted(settings, ready=False, was=ANOTHER) is None
        restored = noted(settings, ready=False, was=ANOTHER, ownerReferences=[])
        assert restored == ITSELF, (
            "the same write gives it a controller, and it is known by its uid from then on"
        )
    assert noted(YIELD, ready=True, was="true") == "true", "nor does it when it is Ready"
    assert noted(YIELD, ready=True, was=ANOTHER) == ITSELF


def test_a_replica_deleted_after_the_snapshot_comes_back_as_one_that_never_was_ready() -> None:
    """Crossplane applies to the name: what the snapshot still had is created anew, with every note on it."""
    fleet, others = clusters(a=2, b=1), [rival(created=EARLY)]
    answer = Case(
        "", fleet, MINE, ["a"], running=[ours(MINE, ready=True)], others=others, input=YIELD
    ).check()
    ((key, desired),) = answer.replicas.items()
    again = applied(World(MINE), key, desired)
    assert again["metadata"]["uid"] != ITSELF
    again["metadata"]["creationTimestamp"] = LATE
    assert WAS_READY in again["metadata"]["annotations"]
    assert "status" not in again
    shrunk = clusters(a=1, b=1)
    Case("its pods wait for good", shrunk, MINE, ["b"], running=[again], others=others, input=YIELD).check()


def test_was_ready_is_carried_on_while_everything_is_in_doubt() -> None:
    doubted = ask(1, selector={"cel": ["1 +"]})
    answer = Case("", clusters(a=1), doubted, ["a"], running=[ours(doubted, was=ITSELF)], input=YIELD).check()
    assert answer.replicas["replica-a-0"]["metadata"]["annotations"] == {WAS_READY: ITSELF}


@pytest.mark.parametrize(
    ("was", "carried", "reason"),
    [
        (ITSELF, {"annotations": {WAS_READY: ITSELF}}, "it counts for no other that takes its place"),
        ("true", {}, "it may be gone, and would come back as one that never was Ready but can never yield"),
    ],
)
def test_was_ready_on_a_replica_that_is_only_listed(was: str, carried: Plain, reason: str) -> None:
    listed = [ours(MINE, ready=True, was=was)]
    answer = Case(reason, clusters(a=1), MINE, ["a"], others=listed, input=YIELD).check()
    metadata = answer.replicas["replica-a-0"]["metadata"]
    assert {key: metadata[key] for key in metadata.keys() & {"annotations"}} == carried, reason


def test_an_overcommitted_pool_is_said_in_every_deployment_that_reads_it_and_takes_nothing_new() -> None:
    two = ask(2)
    answer = Case(
        "", clusters(a=1), two, ["a"], {"a": "PoolOvercommitted"}, running=[ours(two)], others=[rival()]
    ).check()
    assert "PoolOvercommitted: a/p0 holds 2 of 1 node" in answer.conditions["ReplicasScheduled"][2]
    reported = Case(
        "", clusters(a=1), MINE, ["a"], status="ReplicasCreated", running=[ours(MINE)], others=[rival()]
    )
    assert "PoolOvercommitted" not in reported.check().conditions["ReplicasScheduled"][2], "it is at rest"
    answer = dataclasses.replace(reported, on=[], status="", input=YIELD).check()
    assert "PoolOvercommitted: a/p0 holds 2 of 1 node" in answer.conditions["ReplicasScheduled"][2], (
        "until it was Ready it may have to give way, so all replicas there are read"
    )


def test_a_pool_that_charges_devices_is_overcommitted_when_a_packing_could_strand_a_pod() -> None:
    five = ask(2, gpus=5)
    fleet = clusters(a={"nodes": 1, "accounting": "Device"})
    running = [build.replica(five, "a", n, pools="p0") for n in (0, 1)]
    answer = Case("", fleet, five, ["a", "a"], running=running).check()
    assert (
        "a/p0 holds 2 pods, and some packing on its 1 node strands one"
        in answer.conditions["ReplicasScheduled"][2]
    )
    last = Case("", fleet, five, ["a"], running=running, input=YIELD).check()
    assert set(last.replicas) == {
        min((manifest["metadata"]["name"], key) for key, manifest in build.observed(*running).items())[1]
    }


def test_the_common_order_needs_all_deployments_and_caches_and_declares_them_always() -> None:
    mine = called("mine")
    for all_, caches in ((None, None), ([mine], None), (None, []), ([mine], [])):
        answer = coordinated(mine, all_, clusters(a=1), caches=caches)
        names = [requirement["name"] for requirement in answer.requirements]
        missing = {"fleet-deployments": all_, "fleet-caches": caches}
        assert names == [name for name, items in missing.items() if items is None]
        delivered = all_ is not None and caches is not None
        assert answer.reason() == ("Scheduling" if delivered else "InputsUnresolved")
        assert bool(answer.replicas) == delivered


def test_equal_snapshots_give_disjoint_claims() -> None:
    """Three deployments, two nodes: the first two of the order get one each, whoever asks."""
    three = [called("x", created=LATE), called("y", created=EARLY), called("z")]
    taken = {
        manifest["metadata"]["name"]: coordinated(manifest, three, clusters(a=1, b=1)).replicas
        for manifest in three
    }
    assert [set(taken[name]) for name in ("y", "z", "x")] == [{"replica-a-0"}, {"replica-b-0"}, set()]


def paused(deployment: Plain) -> Plain:
    """A deployment that Crossplane does not reconcile."""
    return deployment | {
        "metadata": deployment["metadata"] | {"annotations": {"crossplane.io/paused": "true"}}
    }


def uncomposed(deployment: Plain, message: str) -> Plain:
    """A deployment about which Crossplane says this."""
    condition = {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": message}
    return deployment | {"status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("replicas", "surveys", "reason"),
    [(1, 1, "they have what they want: only ours is surveyed"), (2, 4, "each looks for a place")],
)
def test_deployments_before_ours_that_want_nothing_cost_no_survey(
    replicas: int, surveys: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(inputs: Any, *more: Any) -> Placer:
        made.append(inputs.deployment.name)
        return Placer(inputs, *more)

    monkeypatch.setattr(schedule, "Placer", counted)
    before = [called(name, replicas, EARLY) for name in ("a", "b", "c")]
    listed = [build.replica(item, "a", 0, pools="p0", ready=True) for item in before]
    coordinated(called("mine", created=LATE), before, clusters(a=9), listed=listed)
    assert len(made) == surveys, reason


@pytest.mark.parametrize(
    ("reason", "first", "on"),
    [
        ("one that comes first takes the node", called("first", created=EARLY), []),
        ("unless it is paused: then nobody would take it", paused(called("first", created=EARLY)), ["a"]),
        *(
            (f"or Crossplane says: {said}", uncomposed(called("first", created=EARLY), said), on)
            for said, on in (
                ('cannot fetch Composition: cannot get Composition: "nowhere" not found', ["a"]),
                ("cannot fetch Composition: no compatible CompositionRevisions found", ["a"]),
                ("cannot select Composition: no compatible Compositions found", ["a"]),
                ("cannot compose resources: cannot apply composed resource", []),
                ("", []),
            )
        ),
        ("one that comes later does not", called("last", created=LATE), ["a"]),
        ("created at once: the name decides", called("aaa"), []),
        ("one that is placed already takes nothing more", called("first", 0, EARLY), ["a"]),
        (
            "selectors that do not compile are skipped",
            called("first", created=EARLY, selector={"cel": ["1 +"]}),
            ["a"],
        ),
        (
            "one that selects other clusters",
            called("first", created=EARLY, selector={"matchLabels": {"x": "y"}}),
            ["a"],
        ),
        ("one below its minReplicas takes nothing", called("first", 2, EARLY, least=2), ["a"]),
        ("one whose cache does not exist takes nothing", called("first", created=EARLY, cache="none"), ["a"]),
        ("one that cannot be read is nobody", {"metadata": {"name": "first"}, "spec": 3}, ["a"]),
    ],
)
def test_who_comes_first(reason: str, first: Plain, on: list[str]) -> None:
    mine = called("mine")
    answer = coordinated(mine, [mine, first], clusters(a=1))
    assert [replica["spec"]["clusterName"] for replica in answer.replicas.values()] == on, reason


@pytest.mark.parametrize(
    ("standing", "taken", "reason"),
    [
        (0, 15, "as many as fit into its answer"),
        (15, 0, "no answer of it will carry another"),
    ],
)
def test_one_takes_no_more_than_its_answer_can_carry(standing: int, taken: int, reason: str) -> None:
    """A template of 200,000 bytes in 200 replicas held 200 places, of which it takes 15."""
    mine, first = called("mine", 3), called("first", 200, EARLY)
    [member] = first["spec"]["template"]["spec"]["engines"][0]["members"]
    member["template"]["spec"]["containers"][0]["args"] = ["x" * 200_000]
    there = [build.replica(first, "a", index, pools="p0") for index in range(standing)]
    fleet = clusters(a=standing + taken + 2)
    assert len(coordinated(first, [mine, first], fleet).replicas) == 15
    assert len(coordinated(mine, [mine, first], fleet, listed=there).replicas) == 2, reason


def test_one_that_is_being_deleted_takes_nothing() -> None:
    mine, first = called("mine"), called("first", created=EARLY)
    first["metadata"]["deletionTimestamp"] = LATE
    assert coordinated(mine, [mine, first], clusters(a=1)).replicas


def test_listed_replicas_of_others_count_as_theirs() -> None:
    mine, first = called("mine"), called("first", created=EARLY)
    there = build.replica(first, "a", 0, pools="p0")
    answer = coordinated(mine, [mine, first], clusters(a=1, b=1), listed=[there])
    assert set(answer.replicas) == {"replica-b-0"}


def test_without_coordination_nothing_more_is_required() -> None:
    answer = Case("", clusters(a=1), MINE, ["a"]).check()
    assert answer.requirements == ()
