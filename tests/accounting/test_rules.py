"""Device accounting, rule by rule: what a pod blocks, what it needs, and what reports call free."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace

import pytest

from function.api.replica import StampedConstraint, StampedEngine, StampedMember, StampedRequest
from function.scheduler import device_accounting
from function.scheduler.budget import Budget, OutOfSteps, TooManyCases
from function.scheduler.device_accounting import (
    MAX_LENGTH,
    MAX_WAYS,
    Claim,
    Copies,
    Demand,
    DeviceCapacity,
    Gangs,
    PodClaims,
    Pods,
    PoolDevices,
    SharedValue,
    Shortage,
    gangs_of,
    stamped_gangs,
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
    Case(
        "of several gangs, too, whichever comes first",
        5,
        (EIGHT,),
        gangs(({"gpu": 1},) * 6),
        gangs(({"gpu": 1},) * 9),
        (9, 5),
    ),
    Case(
        "a gang waits for its pods that a node hosts, beside those that none does",
        2,
        (EIGHT,),
        (),
        gangs(({"gpu": 7}, {"gpu": 7}, {"other": 1})),
        (3, 2),
    ),
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
        (4, (EIGHT,), alone({"other": 1}, {"gpu": 8}), 2, "what fills a node takes no device of another"),
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


def pod(*requests: tuple[str, int, str], same: str = "", among: tuple[str, ...] = ()) -> PodClaims:
    """A pod with requests of a class, a number and a selector, some or all with one attribute in common."""
    stamped = [
        StampedRequest(f"r{at}", device_class, number, (selector,) if selector else ())
        for at, (device_class, number, selector) in enumerate(requests)
    ]
    return PodClaims.of(stamped, [StampedConstraint(same, among)] if same else [])


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
        "and whichever value it shares, as much of each",
        [LEFT, RIGHT],
        [pod(("gpu", 2, "device."), same="zone")],
        [((0, 2), (2, 0))],
        [((2, 2),)],
    ),
    (
        "a text that is no selector gives no answer",
        [FAST, SLOW],
        [pod(("gpu", 1, "device."))],
        [((0, 1), (1, 0))],
        [((1, 1),)],
    ),
    (
        "nor does one that takes more units than are spent on it",
        [FAST, SLOW],
        [pod(("gpu", 1, f"{list(range(99))}.all(x, x < 99) && {of_zone('a')}"))],
        [((0, 1), (1, 0))],
        [((1, 1),)],
    ),
    (
        "selectors as long as are read",
        [FAST, SLOW],
        [pod(("gpu", 1, of_zone("a").ljust(MAX_LENGTH)))],
        [((1,),)],
        None,
    ),
    (
        "longer ones give no answer",
        [FAST, SLOW],
        [pod(("gpu", 1, of_zone("a").ljust(MAX_LENGTH + 1)))],
        [((0, 1), (1, 0))],
        [((1, 1),)],
    ),
    (
        "an entry with a taint may be held, by who tolerates it or was there before, and may not",
        [FAST | {"taints": [{"key": "x", "value": "", "effect": "NoSchedule"}]}, SLOW],
        [pod(("gpu", 1, ""))],
        [((0, 1), (1, 0))],
        [((1, 1),)],
    ),
    (
        "requests that would do alone and are too many together",
        [LEFT, RIGHT],
        [pod(("gpu", 5, ""), ("gpu", 4, ""))],
        [()],
        [()],
    ),
    (
        "a value that requests share binds no other request",
        [LEFT, RIGHT, entry("nic", 2, "nic", zone="b")],
        [pod(("gpu", 5, ""), ("nic", 1, ""), same="zone", among=("r1",))],
        [((5, 1),)],
        None,
    ),
    (
        "a value that no request of the pod is to share binds none",
        [LEFT, RIGHT],
        [pod(("gpu", 5, ""), same="zone", among=("gone",))],
        [((5,),)],
        None,
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


UNTOLD = r"^pods can be served, or can share nodes, in more ways than are told apart$"


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
            with pytest.raises(TooManyCases, match=UNTOLD):
                room.shortage(more, ample())


def test_loads_that_are_not_told_apart_are_a_shortage_only_where_devices_are_too_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_many(*_: object) -> bool:
        raise TooManyCases

    monkeypatch.setattr(device_accounting, "can_block", too_many)
    assert DeviceCapacity(2, node(EIGHT), alone(*[{"gpu": 8}] * 3)).stranded(ample()) == Shortage(1, 0)
    with pytest.raises(TooManyCases, match=UNTOLD):
        DeviceCapacity(2, node(EIGHT), alone(*[{"gpu": 1}] * 3)).stranded(ample())


def test_what_is_called_free_where_that_is_not_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes without a pod: never more than there are."""
    held = gangs_of([Pods(pod(("gpu", 1, "true")), 3)], 1, apart=False)
    assert DeviceCapacity(5, node(EIGHT), held).free_nodes == 4
    monkeypatch.setattr(device_accounting, "MAX_TEXT", 0)
    assert DeviceCapacity(5, node(EIGHT), held).free_nodes == 2


def test_a_pool_with_other_nodes_holds_the_same_pods() -> None:
    pool = DeviceCapacity(1, node(EIGHT), alone({"gpu": 8}))
    assert pool.grown(0) is pool
    assert pool.grown(2) == replace(pool, nodes=3)
    assert pool.grown(-1) == replace(pool, nodes=0)
    assert DeviceCapacity(1, node(EIGHT)).grown(-2).stranded(ample()) is None, (
        "nobody is there to be stranded"
    )


def test_pods_that_are_no_more_than_nodes_are_only_counted() -> None:
    """A node for each is enough whatever they claim, and however dear it were to look at them."""
    budget = ample()
    before = budget.units
    assert DeviceCapacity(2, node(EIGHT), alone(*[{"gpu": 8}] * 2)).stranded(budget) is None
    assert before - budget.units == device_accounting.COUNT


@pytest.mark.parametrize(("packed", "more"), [(True, 0), (False, 2 * 2)])
def test_a_look_at_more_pods_than_nodes_takes_units(
    monkeypatch: pytest.MonkeyPatch,
    packed: bool,  # noqa: FBT001
    more: int,
) -> None:
    """Besides laying and packing them: for the look, for each different pod, and for counting the devices."""

    def blocked(*_: object) -> bool:
        if packed:
            return False
        raise TooManyCases

    monkeypatch.setattr(device_accounting, "can_block", blocked)
    room = DeviceCapacity(2, node(EIGHT), alone({"gpu": 1}, {"gpu": 2}, {"gpu": 2}))
    laid = ample()
    room.devices.layout(frozenset(pods.claims for gang, _ in room.gangs for pods in gang), laid)
    budget = ample()
    with nullcontext() if packed else pytest.raises(TooManyCases):
        room.stranded(budget)
    look = device_accounting.COUNT + device_accounting.LOOK + 2
    assert laid.units - budget.units == look + more


def test_ways_are_made_as_they_are_asked_for() -> None:
    """A kind may have a million devices: no more ways are listed than are told apart, squared."""
    entries = [entry("left", 1_000_000, zone="a"), entry("right", 1_000_000, zone="b")]
    budget = Budget(10_000)
    assert node_of(entries).layout(frozenset([pod(("gpu", 500_000, "")), SIDED]), budget).cut


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
            "pods that ask otherwise for the same devices count together",
            1,
            [FAST],
            [pod(("gpu", 4, selector)) for selector in ("", of_zone("a"), of_zone("a"))],
            False,
        ),
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
    with pytest.raises(TooManyCases, match=r"^the pods of a pool have more selectors than are compiled$"):
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


def test_what_a_pod_claims_is_read_from_its_stamp() -> None:
    """Claims are sorted and shared values name their positions, so that equal pods are equal."""
    requests = [StampedRequest("n", "nic", 1), StampedRequest("g", "gpu", 2, ("true",))]
    constraints = [
        StampedConstraint("zone", ("n",)),
        StampedConstraint("root"),
        StampedConstraint("rack", ("gone",)),
    ]
    made = PodClaims.of(requests, constraints)
    assert made.claims == (Claim("gpu", 2, ("true",)), Claim("nic", 1))
    assert made.shared == (SharedValue("root", (0, 1)), SharedValue("zone", (1,)))
    assert made == PodClaims.of(reversed(requests), reversed(constraints))


def test_pods_of_a_replica_are_gangs_on_the_pools_where_they_are_kept_apart() -> None:
    gpu = (StampedRequest("g", "gpu", 1),)
    leader, worker = StampedMember("Leader", "p", 1, gpu), StampedMember("Worker", "p", 2, gpu)
    other = StampedMember("Side", "q", 1, gpu)
    engines = [StampedEngine("main", 2, (leader, worker, other))]
    one_pod, gang = (Pods(claims({"gpu": 1}), 1),), (Pods(claims({"gpu": 1}), 6),)
    singly = {"p": (Copies(one_pod, 6),), "q": (Copies(one_pod, 2),)}
    assert stamped_gangs(engines) == singly
    assert stamped_gangs(engines, apart=["p"]) == singly | {"p": (Copies(gang, 1),)}


def test_pools_of_equal_devices_are_one_to_those_who_remember() -> None:
    one_pool, same, other = node(EIGHT), node(EIGHT), node(FOUR)
    assert (one_pool == same, hash(one_pool)) == (True, hash(same))
    assert one_pool != other
    assert hash(one_pool) != hash(other), "else each is compared with all"
    assert one_pool != EIGHT


@pytest.mark.parametrize(
    ("bound", "most", "zones", "certain"),
    [
        ("MAX_WAYS", 2, "ab", True),
        ("MAX_WAYS", 2, "abc", False),
        ("MAX_CHOICES", 2, "ab", True),
        ("MAX_CHOICES", 2, "abc", False),
    ],
)
def test_as_many_ways_and_values_as_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    most: int,
    zones: str,
    certain: bool,  # noqa: FBT001
) -> None:
    """Beyond the bound the pod may hold any device of its class: some of its ways are not all of them."""
    monkeypatch.setattr(device_accounting, bound, most)
    devices = node_of([entry(f"e{zone}", 4, zone=zone) for zone in zones])
    bindings = devices.bindings(pod(("gpu", 4, ""), same="zone"), ample())
    whole = tuple(range(len(zones)))
    assert bindings.certain is certain
    assert [part.entries for way in bindings.possible for part in way] == (
        [(at,) for at in whole] if certain else [whole]
    )


def test_as_many_ways_over_kinds_as_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_accounting, "MAX_WAYS", 2)
    layout = node_of([LEFT, RIGHT]).layout(frozenset([pod(("gpu", 1, "")), SIDED]), ample())
    assert (layout.cut, layout.footprints[pod(("gpu", 1, ""))].ways) == (False, ((0, 1), (1, 0)))
    layout = node_of([LEFT, RIGHT]).layout(frozenset([pod(("gpu", 2, "")), SIDED]), ample())
    assert (layout.cut, layout.footprints[pod(("gpu", 2, ""))].ways) == (True, ())


SIDED = pod(("gpu", 1, of_zone("a")))


@pytest.mark.parametrize(
    ("reason", "entries", "claimed", "units"),
    [
        ("a look at each entry", [FAST, entry("nic", 2, "nic")], pod(("gpu", 1, of_zone("a"))), 2),
        ("for each claim", [FAST], pod(("gpu", 1, ""), ("gpu", 1, "")), 2),
        (
            "an evaluation where several are of a class",
            [FAST, SLOW],
            pod(("gpu", 1, of_zone("a"))),
            2 + 60 + 1,
        ),
        (
            "none where its class has one entry",
            [FAST, SLOW, entry("nic", 2, "nic")],
            pod(("gpu", 1, ""), ("nic", 1, of_zone("a"))),
            6 + 2,
        ),
        ("none without a selector", [FAST, SLOW], pod(("gpu", 1, "")), 2 + 1),
        (
            "what entries share: their values, and each part for each value",
            [FAST, SLOW],
            pod(("gpu", 1, ""), same="zone"),
            2 + (2 * 5 + 2) + 2 * (1 + 2 * 5),
        ),
        (
            "of those claims alone that share it",
            [FAST, SLOW],
            pod(("gpu", 1, ""), ("gpu", 2, ""), same="zone", among=("r1",)),
            4 + (2 * 5 + 2) + 2 * (1 + 1 + 2 * 5),
        ),
    ],
)
def test_what_finding_the_devices_of_a_pod_takes(
    reason: str, entries: list[dict[str, object]], claimed: PodClaims, units: int
) -> None:
    """In units, so that a large pool costs its own deployment and not the time of others."""
    devices, budget = node_of(entries), ample()
    before = budget.units
    bindings = devices.bindings(claimed, budget)
    assert before - budget.units == units, reason
    assert devices.bindings(claimed, budget) is bindings
    assert before - budget.units == 2 * units, "a second look takes the same, and finds nothing out"


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
