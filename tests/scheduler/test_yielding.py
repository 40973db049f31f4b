"""Who gives way in overcommitted pools: all that are too many, at once, and for every instance the same.

Then where the places are that they get instead, each in its turn.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from function.api import InferenceCluster, ModelReplica
from function.api.replica import parse
from function.boundary import PlainDocument
from function.scheduler.ledger import Ledger, yielding
from function.scheduler.outcomes import Cause
from tests.support import build, scale
from tests.support.cases import clusters, pools_of
from tests.support.coordinated import EARLY, LATE, called
from tests.support.drive import run
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Plain = dict[str, Any]
ONE: Mapping[str, int] = {"p": 1}


def replica(name: str, second: int = 0, nodes: Mapping[str, int] = ONE, **more: Any) -> ModelReplica:
    """A replica on cluster a that holds nodes of its pools."""
    created = f"2026-03-01T08:00:{second:02}Z"
    return ModelReplica(name=name, namespace="ml", cluster="a", created=created, nodes=nodes, **more)


def ledger(sizes: Mapping[str, int], replicas: Iterable[ModelReplica], **cluster: Any) -> Ledger:
    """A ledger of one cluster on which replicas stand."""
    pools = [build.pool(name, nodes) | cluster for name, nodes in sizes.items()]
    opened = Ledger([InferenceCluster.parse(build.cluster("a", pools))])
    for running_replica in replicas:
        opened.open(running_replica, "a")
    return opened


@dataclass(frozen=True)
class Case:
    """A pool p of two nodes unless said otherwise, and the names of those that give way."""

    reason: str
    standing: tuple[ModelReplica, ...]
    expected: tuple[str, ...]
    sizes: Mapping[str, int] = field(default_factory=lambda: {"p": 2})


CASES = (
    Case("nobody where the pool has room for all", (replica("a"), replica("b")), ()),
    Case("the last to be created", (replica("a", 9), replica("b", 1), replica("c", 2)), ("a",)),
    Case("created at once: the last by name", (replica("c"), replica("a"), replica("b")), ("c",)),
    Case("all that are too many at once", tuple(replica(name) for name in "abcde"), ("c", "d", "e")),
    Case(
        "one that is Ready keeps its node, whenever it was created",
        (replica("a", 1), replica("b", 2), replica("c", 3, ready=True)),
        ("b",),
    ),
    Case(
        "so does one that was Ready once",
        (replica("a", 1), replica("b", 2), replica("c", 3, was_ready=True)),
        ("b",),
    ),
    Case(
        "nobody where all were Ready: nodes were removed from under them",
        tuple(replica(name, ready=True) for name in "abc"),
        (),
    ),
    Case(
        "more were Ready than there are nodes: the others leave all the same",
        (*(replica(name, ready=True) for name in "abc"), replica("d")),
        ("d",),
    ),
    Case(
        "one that cannot be read keeps what it holds",
        (replica("a", 1), replica("b", 2), replica("c", 3, whole=False)),
        ("b",),
    ),
    Case(
        "one that is being deleted has left already",
        (replica("a"), replica("b"), replica("c", deleting=True)),
        (),
    ),
    Case(
        "a later one that still fits where an earlier one does not stays",
        (replica("a", 1), replica("b", 2, {"p": 2}), replica("c", 3)),
        ("b",),
    ),
    Case(
        "one on two pools gives way once, and what it held on the other pool is free for the next",
        (replica("a", 1, {"p": 2}), replica("b", 2, {"p": 1, "q": 1}), replica("c", 3, {"q": 1})),
        ("b",),
        {"p": 2, "q": 1},
    ),
    Case(
        "a pool that is not published charges nothing",
        tuple(replica(name, 0, {"gone": 1}) for name in "abc"),
        (),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_who_gives_way(case: Case) -> None:
    yielded = yielding(ledger(case.sizes, case.standing))
    assert tuple(item.replica.name for item in yielded) == case.expected, case.reason


def test_in_a_pool_that_charges_devices_it_is_who_makes_a_packing_possible_that_strands_one() -> None:
    five = build.deployment(
        "m", engines=[build.engine(members=[build.member(devices=[build.request("gpu", 5)])])]
    )
    standing = [parse(PlainDocument(build.replica(five, "a", index, pools="p"))) for index in range(4)]
    yielded = yielding(ledger({"p": 2}, standing, accounting="Device"))
    assert [item.replica for item in yielded] == sorted(standing, key=lambda entry: entry.name)[2:]


def test_nobody_gives_way_where_the_steps_do_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = build.deployment(
        "m", engines=[build.engine(members=[build.member(devices=[build.request("gpu", 5)])])]
    )
    standing = [parse(PlainDocument(build.replica(wanted, "a", index, pools="p"))) for index in range(4)]
    made = ledger({"p": 2}, standing, accounting="Device")
    assert (len(yielding(made)), made.overcommitted_pools()) == (2, [("a", "p")])
    monkeypatch.setattr("function.scheduler.ledger.PACKING", 1)
    assert (yielding(made), made.overcommitted_pools()) == ((), [("a", "p")]), "it is known to hold too much"
    made = ledger({"p": 2}, standing, accounting="Device")
    assert (yielding(made), made.overcommitted_pools()) == ((), [])


def drawn(seed: int) -> tuple[Mapping[str, int], list[ModelReplica]]:
    """A cluster of up to three pools, most of them held twice over."""
    draw = random.Random(seed)
    sizes = {name: draw.choice((0, 1, 2, 3, 5)) for name in ("p", "q", "r")[: draw.choice((1, 2, 3))]}
    standing = [
        replica(
            f"m-{number:02}",
            draw.randrange(3),
            {
                name: draw.choice((1, 1, 2))
                for name in draw.sample(sorted(sizes), draw.randint(1, len(sizes)))
            },
            ready=draw.choice((None, None, False, True)),
            was_ready=draw.random() < 0.1,
            whole=draw.random() < 0.95,
            deleting=draw.random() < 0.1,
        )
        for number in range(draw.randrange(14))
    ]
    return sizes, standing


def used(standing: Iterable[ModelReplica], pool: str) -> int:
    """Nodes of a pool that living replicas hold."""
    return sum(candidate.nodes.get(pool, 0) for candidate in standing if not candidate.deleting)


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_no_more_than_needed_give_way_and_no_fewer(number: int) -> None:
    for seed in scale.batch(number, quick=400):
        check(seed)


def check(seed: int) -> None:
    """Look at who gives way in one random cluster."""
    sizes, standing = drawn(seed)
    leaving = [item.replica for item in yielding(ledger(sizes, standing))]
    assert not any(
        item.ready is True or item.was_ready or item.deleting or not item.whole for item in leaving
    )
    staying = [item for item in standing if item not in leaving]
    free_to_go = [
        item for item in staying if item.whole and not (item.ready or item.was_ready or item.deleting)
    ]
    for pool, size in sizes.items():
        over = used(staying, pool) > size
        assert not over or not any(pool in candidate.nodes for candidate in free_to_go), (
            "somebody there could have left"
        )
    for candidate in leaving:
        back = [pool for pool, nodes in candidate.nodes.items() if used(staying, pool) + nodes > sizes[pool]]
        assert back, "it could have stayed"
    shuffled = random.Random(seed).sample(standing, len(standing))
    assert [item.replica for item in yielding(ledger(sizes, shuffled))] == leaving, "the order of the list"
    assert not yielding(ledger(sizes, staying)), "one pass is enough"


# Where those go that give way before ours


FIRST, OTHER, MINE = called("first", created=EARLY), called("other"), called("mine", created=LATE)


def standing_on(parent: Plain, cluster: str, index: int = 0, minute: int = 0, **more: Any) -> Plain:
    """A replica on the first pool of a cluster, created in a minute."""
    made = build.replica(parent, cluster, index, pools="p0", **more)
    made["metadata"]["creationTimestamp"] = f"2026-03-01T08:{minute:02}:00Z"
    return made


ON_B = standing_on(OTHER, "b", 1)
LEAVES_B = standing_on(OTHER, "b", 1, terminating=True)
TWIN = standing_on(OTHER, "z", 1, minute=1)
STRANGER = standing_on(called("third"), "b", 1)


@pytest.mark.parametrize(
    ("standing", "fleet", "coordination", "on", "reason"),
    [
        ([], {"b": 1, "c": 1}, "None", "c", "the other takes b, the first by name"),
        ([ON_B], {"b": 2, "c": 1}, "None", "b", "it has one on b, so it takes c"),
        ([LEAVES_B], {"b": 2, "c": 1}, "None", "c", "one that is being deleted does not count"),
        ([STRANGER], {"b": 2, "c": 1}, "None", "c", "nor does one of another deployment"),
        ([ON_B], {"b": 2}, "None", "b", "where it leaves it has none, so it takes the other pool there"),
        ([], {"b": 1}, "None", "z", "nor has it less than none there, so it takes b"),
        ([TWIN], {"b": 2, "c": 2}, "None", "b", "both of the other go, one to b and one to c"),
        ([], {"b": 1, "c": 1}, "GlobalOrder", "c", "its own pass takes b for it, and nothing else does"),
    ],
)
def test_one_that_gives_way_before_ours_gets_its_place_by_the_rules_of_its_deployment(
    standing: list[Plain], fleet: dict[str, int], coordination: str, on: str, reason: str
) -> None:
    """Three stand on a node of cluster z. One was Ready; the other's goes, and then ours."""
    ours = standing_on(MINE, "z", minute=2)
    listed = [standing_on(FIRST, "z", ready=True), standing_on(OTHER, "z", minute=1), ours, *standing]
    crowded = 1 if "c" in fleet else {"pools": pools_of(1, 1)}
    given = {"overcommit": "Yield", "coordination": coordination}
    more = {"all-deployments": [FIRST, OTHER, MINE], "all-caches": []}
    fleet_now = clusters(z=crowded, **fleet)
    answer = run(World(MINE, fleet_now, listed, build.observed(ours), input=given, more=more))
    assert [replica["spec"]["clusterName"] for replica in answer.replicas.values()] == [on], reason


def test_one_whose_key_cannot_be_read_stays_and_holds_back_nobody() -> None:
    """It comes before the others of its cluster, and would give way like them."""
    ours, odd = standing_on(MINE, "z", minute=2), standing_on(MINE, "z", 1, minute=3)
    listed = [standing_on(FIRST, "z", ready=True), ours, odd]
    observed = build.observed(ours) | {"replica-!": odd}
    given = {"overcommit": "Yield"}
    answer = run(World(called("mine", 2), clusters(z=1), listed, observed, input=given))
    assert answer.decision is not None
    assert [(dropped.own_replica.key, dropped.cause) for dropped in answer.decision.dropped] == [
        ("replica-z-0", Cause.Yielded)
    ]
