"""Device accounting, rule by rule: what a pod blocks, what it needs, and what reports call free."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from function.api.replica import StampedConstraint, StampedRequest
from function.scheduler import device_accounting
from function.scheduler.budget import Budget, OutOfSteps, TooManyCases
from function.scheduler.device_accounting import (
    MAX_WAYS,
    Copies,
    Demand,
    DeviceCapacity,
    Gangs,
    PodClaims,
    Pods,
    PoolDevices,
    Shortage,
    gangs_of,
    total,
)
from function.scheduler.ledger import NodeCapacity
from tests.support import build
from tests.support.cases import ask, one
from tests.support.nodes import ample, node, node_of
from tests.support.scarce import decide
from tests.support.world import World

Pod = dict[str, int]
"""Devices a pod claims, by class."""


EIGHT, FOUR, NICS = ("gpu", 8), ("gpu", 4), ("nic", 2)


def gangs(*item: tuple[Pod, ...]) -> Gangs:
    """Gangs of pods that must be on different nodes, one copy of each."""
    return total(gangs_of((Pods(claims(pod), 1) for pod in pods), 1, apart=True) for pods in item)


def claims(pod: Pod) -> PodClaims:
    return PodClaims.of((StampedRequest(name, name, number) for name, number in pod.items()), ())


def alone(*pods: Pod) -> Gangs:
    """Pods that are no gang."""
    return gangs(*((pod,) for pod in pods))


@dataclass(frozen=True)
class Case:
    reason: str
    nodes: int
    kinds: tuple[tuple[str, int], ...]
    stands: Gangs
    more: Gangs
    lacks: tuple[int, int] | None
    """Nodes needed and nodes surely open; None: there is room."""


CASES = [
    Case("an empty node takes a pod of its size", 1, (EIGHT,), (), alone({"gpu": 8}), None),
    Case(
        "no node takes a larger one, yet it is not this rule that says so",
        1,
        (EIGHT,),
        (),
        alone({"gpu": 9}),
        None,
    ),
    Case(
        "every pod is in the way of one that needs a whole node",
        2,
        (EIGHT,),
        alone({"gpu": 8}, {"gpu": 1}),
        alone({"gpu": 8}),
        (1, 0),
    ),
    Case("a third node is open to it", 3, (EIGHT,), alone({"gpu": 8}, {"gpu": 1}), alone({"gpu": 8}), None),
    Case(
        "small pods are in the way only together",
        2,
        (EIGHT,),
        alone({"gpu": 2}, {"gpu": 2}),
        alone({"gpu": 5}),
        None,
    ),
    Case("once they can be on both nodes", 2, (EIGHT,), alone(*[{"gpu": 2}] * 4), alone({"gpu": 5}), (1, 0)),
    Case(
        "devices the pod does not need are not in its way",
        1,
        (EIGHT, NICS),
        alone({"nic": 2}),
        alone({"gpu": 8}),
        None,
    ),
    Case("however many they are", 4, (EIGHT, NICS), alone(*[{"nic": 1}] * 8), alone({"gpu": 8}), None),
    Case(
        "nor in a gang's, on any of its nodes",
        2,
        (EIGHT, NICS),
        alone(*[{"nic": 1}] * 4),
        gangs(({"gpu": 8},) * 2),
        None,
    ),
    Case(
        "a pod that needs both waits for either",
        1,
        (EIGHT, NICS),
        alone({"nic": 2}),
        alone({"gpu": 8, "nic": 1}),
        (1, 0),
    ),
    Case(
        "nodes blocked by either kind add up",
        2,
        (EIGHT, NICS),
        alone({"nic": 2}, {"gpu": 8}),
        alone({"gpu": 8, "nic": 1}),
        (1, 0),
    ),
    Case(
        "an entry too small for the pod is not needed free",
        2,
        (FOUR, EIGHT),
        alone({"gpu": 2}, {"gpu": 2}),
        alone({"gpu": 5}),
        None,
    ),
    Case(
        "a class the pool does not publish fills a node",
        1,
        (EIGHT,),
        alone({"other": 1}),
        alone({"gpu": 1}),
        (1, 0),
    ),
    Case("and leaves the next one", 2, (EIGHT,), alone({"other": 1}), alone({"gpu": 1}), None),
    Case("a gang needs a node for each of its pods", 2, (EIGHT,), (), gangs(({"gpu": 8},) * 3), (3, 2)),
    Case("and has them where there are as many", 3, (EIGHT,), (), gangs(({"gpu": 8},) * 3), None),
    Case("small pods of one gang still take a node each", 2, (EIGHT,), (), gangs(({"gpu": 1},) * 3), (3, 2)),
    Case(
        "two gangs do not stand in their own way, only in each other's",
        4,
        (EIGHT,),
        gangs(({"gpu": 8},) * 2),
        gangs(({"gpu": 8},) * 2),
        None,
    ),
    Case(
        "three have no room on four nodes",
        4,
        (EIGHT,),
        gangs(({"gpu": 8},) * 2, ({"gpu": 8},) * 2),
        gangs(({"gpu": 8},) * 2),
        (2, 0),
    ),
    Case(
        "what stands is asked too: the small one would strand the large",
        1,
        (EIGHT,),
        alone({"gpu": 8}),
        alone({"gpu": 1}),
        (1, 0),
    ),
    Case("the worst off is told of", 3, (EIGHT,), alone({"gpu": 8}), gangs(({"gpu": 8},) * 4), (4, 2)),
    Case("nothing more is always admitted, however full", 0, (EIGHT,), alone({"gpu": 8}), (), None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_what_one_pool_admits(case: Case) -> None:
    pool = DeviceCapacity(case.nodes, node(*case.kinds), case.stands)
    assert pool.shortage(Demand(0, case.more), ample()) == case.lacks
    taken = pool.take(Demand(0, case.more), ample())
    assert taken == (None if case.lacks else replace(pool, gangs=total((case.stands, case.more))))


@pytest.mark.parametrize(
    ("nodes", "kinds", "stands", "free", "reason"),
    [
        (4, (EIGHT,), (), 4, "nothing stands in it"),
        (4, (EIGHT,), alone({"gpu": 8}), 3, "a whole node"),
        (4, (EIGHT,), alone({"gpu": 1}), 3, "a part of a node is a node's worth"),
        (4, (EIGHT,), alone({"gpu": 4}, {"gpu": 4}), 3, "parts are added before they are rounded"),
        (4, (EIGHT,), alone({"gpu": 4}, {"gpu": 4}, {"gpu": 1}), 2, "and what is left over counts as one"),
        (4, (EIGHT, NICS), alone({"gpu": 1, "nic": 2}, {"nic": 2}), 2, "by the scarcest kind"),
        (4, (EIGHT,), alone({"other": 1}, {"other": 1}), 2, "a class that is not published fills nodes"),
        (4, (EIGHT,), alone({"other": 1}, {"gpu": 9}), 1, "next to what is"),
        (2, (), alone({"other": 1}), 1, "a pool that publishes nothing"),
        (1, (EIGHT,), alone({"gpu": 8}, {"gpu": 8}), -1, "overcommitted is below zero"),
    ],
)
def test_what_is_called_free(
    nodes: int, kinds: tuple[tuple[str, int], ...], stands: Gangs, free: int, reason: str
) -> None:
    assert DeviceCapacity(nodes, node(*kinds), stands).free_nodes == free, reason


def entry(name: str, count: int, device_class: str = "gpu", **attributes: str) -> dict[str, object]:
    """A device entry with some texts as attributes."""
    values = {key: {"string": value} for key, value in attributes.items()}
    return {
        "name": name,
        "driver": "d",
        "deviceClassName": device_class,
        "count": count,
        "attributes": values,
    }


def of_zone(zone: str) -> str:
    return f'device.attributes["d"].zone == "{zone}"'


def pod(*requests: tuple[str, int, str], same: str = "") -> PodClaims:
    """A pod with requests of a class, a number and a selector, with one attribute in common."""
    stamped = [
        StampedRequest(f"r{at}", device_class, number, (selector,) if selector else ())
        for at, (device_class, number, selector) in enumerate(requests)
    ]
    return PodClaims.of(stamped, [StampedConstraint(same)] if same else [])


FAST, SLOW = entry("fast", 8, zone="a"), entry("slow", 1, zone="b")
LEFT, RIGHT = entry("left", 4, zone="a"), entry("right", 4, zone="b")
LAID = [
    ("one request", [EIGHT], [pod(("gpu", 2, ""))], [((2,),)], None),
    (
        "requests of one class share its entry",
        [EIGHT],
        [pod(("gpu", 2, ""), ("gpu", 3, ""))],
        [((5,),)],
        None,
    ),
    ("no node hosts it: it fills one, and nothing is kept free", [EIGHT], [pod(("gpu", 9, ""))], [()], [()]),
    ("one request too many is enough", [EIGHT, NICS], [pod(("gpu", 8, ""), ("nic", 3, ""))], [()], [()]),
    ("a class that is not published", [EIGHT], [pod(("other", 1, ""))], [()], [()]),
    ("or one of two that is not", [EIGHT], [pod(("gpu", 1, ""), ("other", 1, ""))], [()], [()]),
    ("kinds that nobody claims are left alone", [EIGHT, NICS], [pod(("nic", 1, ""))], [((1,),)], None),
    ("entries that all pods bind alike are one kind", [LEFT, RIGHT], [pod(("gpu", 5, ""))], [((5,),)], None),
    ("the entry that is selected", [FAST, SLOW], [pod(("gpu", 8, of_zone("a")))], [((8,),)], None),
    (
        "two kinds where pods tell the entries apart, and every way between them",
        [LEFT, RIGHT],
        [pod(("gpu", 2, "")), pod(("gpu", 4, of_zone("a")))],
        [((0, 2), (1, 1), (2, 0)), ((4, 0),)],
        None,
    ),
    (
        "one value in common: on either entry, not on both",
        [LEFT, RIGHT],
        [pod(("gpu", 4, ""), same="zone")],
        [((0, 4), (4, 0))],
        None,
    ),
    (
        "a value in common binds all requests",
        [LEFT, RIGHT, entry("nic", 2, "nic", zone="b")],
        [pod(("gpu", 4, ""), ("nic", 1, ""), same="zone")],
        [((4, 1),)],
        None,
    ),
    (
        "a selector without an answer may select the entry and may not: as much of each must be free",
        [LEFT, entry("right", 3)],
        [pod(("gpu", 4, of_zone("a")))],
        [((1, 3), (2, 2), (3, 1), (4, 0))],
        [((4, 3),)],
    ),
    (
        "an entry too small for it is needed as a whole, then",
        [FAST, entry("slow", 1)],
        [pod(("gpu", 4, of_zone("a")))],
        [((3, 1), (4, 0))],
        [((4, 1),)],
    ),
    (
        "what no entry satisfies any more may hold anything of its class",
        [LEFT, RIGHT],
        [pod(("gpu", 2, of_zone("c"))), pod(("gpu", 2, of_zone("a")))],
        [((0, 2), (1, 1), (2, 0)), ((2, 0),)],
        [((2, 2),), ((2, 0),)],
    ),
    (
        "a text that is no selector gives no answer",
        [FAST, SLOW],
        [pod(("gpu", 1, "device."))],
        [((0, 1), (1, 0))],
        [((1, 1),)],
    ),
]


@pytest.mark.parametrize(("reason", "entries", "pods", "ways", "needs"), LAID, ids=[row[0] for row in LAID])
def test_how_pods_lie_on_the_devices_of_a_pool(
    reason: str, entries: list[object], pods: list[PodClaims], ways: list[object], needs: list[object] | None
) -> None:
    devices = node_of(entries) if isinstance(entries[0], dict) else node(*entries)
    footprints = devices.layout(frozenset(pods), ample()).footprints
    assert [footprints[claimed].ways for claimed in pods] == ways, reason
    assert [footprints[claimed].needs for claimed in pods] == (ways if needs is None else needs), reason


def test_more_ways_than_are_told_apart_fill_a_node() -> None:
    entries = [entry(f"e{at}", 8, zone=str(at)) for at in range(4)]
    pods = [pod(("gpu", 8, "")), *(pod(("gpu", 1, of_zone(str(at)))) for at in range(4))]
    footprint = node_of(entries).layout(frozenset(pods), ample()).footprints[pods[0]]
    assert footprint.ways == ()
    assert len(footprint.needs) == MAX_WAYS


def test_ways_that_are_cut_are_never_taken_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of a cut may be few ways, or none: of others, it would count only those."""
    cut = Counter[bool]()
    for seed in range(300):
        draw = random.Random(seed)
        zones = [str(at) for at in range(draw.choice((2, 3, 4)))]
        entries = [entry(f"e{zone}", draw.randint(1, 4), zone=zone) for zone in zones]
        selectors = ("", *map(of_zone, zones))
        of = [("gpu", draw.randint(1, 3), draw.choice(selectors)) for _ in range(draw.choice((1, 2, 3)))]
        pods = [pod(*of), *(pod(("gpu", 1, of_zone(zone))) for zone in zones)]
        made = []
        for most in (1_000, 2):
            monkeypatch.setattr(device_accounting, "MAX_WAYS", most)
            made.append(node_of(entries).layout(frozenset(pods), ample()))
        whole, part = (layout.footprints[pods[0]] for layout in made)
        cut[made[1].cut] += 1
        assert not made[0].cut
        assert part == whole if not made[1].cut else part.ways == (), (seed, of, entries)
    assert min(cut.values()) > 50, cut


def test_where_ways_are_cut_a_shortage_is_not_told_unless_there_are_too_few_devices() -> None:
    """Nobody gives way in that doubt, and a refusal does not say that there is no room."""
    entries = [entry(f"e{at}", 8, zone=str(at)) for at in range(4)]
    anywhere = pod(("gpu", 4, ""))
    others = [pod(("gpu", 1, of_zone(str(at)))) for at in range(4)]
    for number, certain in ((1, False), (7, False), (8, True)):
        held = total([(Copies((Pods(claimed, 1),), 1),) for claimed in others])
        room = DeviceCapacity(1, node_of(entries), held)
        more = Demand(1, ((Copies((Pods(anywhere, 1),), number)),))
        budget = ample()
        assert room.take(more, budget) is None
        assert budget.cut is not certain, number
        if certain:
            assert room.shortage(more, ample()) == Shortage(1, 0)
        else:
            with pytest.raises(TooManyCases, match="more ways than are told apart"):
                room.shortage(more, ample())


def test_a_look_takes_the_same_steps_whether_or_not_it_is_remembered() -> None:
    """So that no memory changes an answer, also that a look ran out of steps."""
    pods = frozenset([pod(("gpu", 3, "")), pod(("gpu", 1, of_zone("0")))])
    devices = node_of([entry(f"e{at}", 2, zone=str(at)) for at in range(4)])
    for _ in range(2):
        with pytest.raises(OutOfSteps):
            devices.layout(pods, Budget(1))
    for _ in range(2):
        budget = Budget(10)
        devices.layout(pods, budget)
        assert budget.taken == 2
    with pytest.raises(OutOfSteps):
        devices.layout(pods, Budget(1))


def test_values_that_devices_share_are_bounded() -> None:
    """16 entries, three constraints on what no two have in common: 4,096 choices, none with enough."""
    entries = [entry(f"e{at}", 1, zone=str(at)) for at in range(16)]
    shared = [StampedConstraint(f"zone/{name}", ()) for name in "abc"]
    for device in entries:
        device["attributes"] |= {f"zone/{name}": {"string": device["name"]} for name in "abc"}
    claimed = PodClaims.of([StampedRequest("r", "gpu", 2)], shared)
    budget = ample()
    node_of(entries).layout(frozenset([claimed]), budget)
    assert budget.taken < 200


@pytest.mark.parametrize(
    ("reason", "nodes", "entries", "pods", "fits"),
    [
        (
            "pods that select the 8 of 8 + 1: one on each node",
            8,
            [FAST, SLOW],
            [pod(("gpu", 8, of_zone("a")))] * 8,
            True,
        ),
        ("and no ninth", 8, [FAST, SLOW], [pod(("gpu", 8, of_zone("a")))] * 9, False),
        (
            "half a node by one value in common: two on each",
            2,
            [LEFT, RIGHT],
            [pod(("gpu", 4, ""), same="zone")] * 4,
            True,
        ),
        ("and no fifth", 2, [LEFT, RIGHT], [pod(("gpu", 4, ""), same="zone")] * 5, False),
        (
            "half a node by selector: two of each side",
            2,
            [LEFT, RIGHT],
            [pod(("gpu", 4, of_zone(z))) for z in "aabb"],
            True,
        ),
        (
            "a third of one side has none",
            2,
            [LEFT, RIGHT],
            [pod(("gpu", 4, of_zone(z))) for z in "aaa"],
            False,
        ),
        ("small pods that bind either side", 1, [LEFT, RIGHT], [pod(("gpu", 1, ""))] * 8, True),
        (
            "are in the way of one that binds one",
            1,
            [LEFT, RIGHT],
            [pod(("gpu", 1, "")), pod(("gpu", 4, of_zone("a")))],
            False,
        ),
    ],
)
def test_several_entries_of_one_class(
    reason: str,
    nodes: int,
    entries: list[dict[str, object]],
    pods: list[PodClaims],
    fits: bool,  # noqa: FBT001
) -> None:
    held = total(gangs_of([Pods(claimed, 1)], 1, apart=False) for claimed in pods)
    assert (DeviceCapacity(nodes, node_of(entries), held).stranded(ample()) is None) == fits, reason


def test_only_what_a_claim_can_bind_is_counted() -> None:
    """Synthetic entries are facts: nothing binds them."""
    devices = [
        build.gpu(8),
        build.gpu(4, name="fact", claim="Synthetic"),
        build.nic(2, claim="DRA"),
    ]
    fleet = [one("a", pools=[build.pool("p", 2, devices)], accounting="Device")]
    [pool] = decide(World(ask(), fleet)).inputs.fleet.clusters["a"].pools
    assert [device.count for device in PoolDevices(pool).entries] == [8, 2]


def test_selectors_of_other_pods_are_compiled_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 replicas made by hand, no two with one selector, took 3.6 CPU seconds in each call."""
    looks: list[object] = []
    look = device_accounting._selected
    monkeypatch.setattr(device_accounting, "_selected", lambda *of: looks.append(of) or look(*of))
    entries = [entry(name, 8) for name in ("one", "other")]

    def shortage(*texts: str) -> Shortage | None:
        pods = [Pods(pod(("gpu", 1 + at % 2, text)), 1) for at, text in enumerate(texts)]
        return DeviceCapacity(1, node_of(entries), gangs_of(pods, 1, apart=False)).stranded(ample())

    most = 3 * (device_accounting.SELECTOR + len("'00' != ''"))
    monkeypatch.setattr(device_accounting, "MAX_TEXT", most)
    assert shortage(*(f"'{at % 3:02}' != ''" for at in range(6))) is None, "equal ones count once"
    assert len(looks) == 3 * len(entries), "however many pods ask them"
    looks.clear()
    with pytest.raises(TooManyCases, match="more selectors"):
        shortage(*(f"'{at:02}' != ''" for at in range(4)))
    assert not looks


@pytest.mark.parametrize(
    ("room", "nodes", "lacks", "left", "reason"),
    [
        (3, 2, None, 1, "enough"),
        (3, 3, None, 0, "just enough"),
        (3, 4, (4, 3), None, "one too few"),
        (-1, 0, (0, -1), None, "an overcommitted pool takes nothing, not even what costs nothing"),
        (0, 0, None, 0, "nothing of nothing"),
    ],
)
def test_whole_nodes_are_counted(
    room: int, nodes: int, lacks: tuple[int, int] | None, left: int | None, reason: str
) -> None:
    pool, demand = NodeCapacity(room), Demand(nodes)
    taken = None if left is None else NodeCapacity(left)
    assert (pool.shortage(demand, ample()), pool.take(demand, ample())) == (lacks, taken), reason


def test_pods_are_counted_by_what_they_claim() -> None:
    """Pods that claim nothing are left out; those that need not be apart count singly."""
    four, eight = claims({"gpu": 4}), claims({"gpu": 8})
    pods = [Pods(eight, 1), Pods(eight, 2), Pods(claims({}), 5), Pods(four, 1)]
    together = (Pods(four, 1), Pods(eight, 3))
    assert gangs_of(pods, 2, apart=True) == (Copies((Pods(four, 2), Pods(eight, 6)), 1),)
    assert gangs_of(pods, 2, apart=False) == (Copies((Pods(four, 1),), 2), Copies((Pods(eight, 1),), 6))
    assert total([(Copies(together, 2),), (Copies(together, -1),)]) == (Copies(together, 1),)
    assert total([(Copies(together, 2),), (Copies(together, -2),)]) == ()
    assert gangs_of(pods[2:3], 1, apart=True) == gangs_of(pods[2:3], 1, apart=False) == ()
