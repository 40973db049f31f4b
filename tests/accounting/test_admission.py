"""Device accounting: what is admitted can be stranded by no packing, and as much is admitted as can be."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING

import pytest

from function.api.replica import StampedRequest
from function.scheduler import worst_packing
from function.scheduler.budget import Budget, TooManyCases
from function.scheduler.device_accounting import (
    Claim,
    DeviceCapacity,
    Gangs,
    PodClaims,
    Pods,
    gangs_of,
    minus,
    plus,
    total,
)
from function.scheduler.worst_packing import Footprint, _weigh, can_block
from tests.accounting.packings import Gangs as Plain, Pod, Way, can_close, plain, strands, strands_one
from tests.support.nodes import ample, node
from tests.support.scale import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CLASSES = ("gpu", "nic", "mig")


def packed(nodes: int, devices: Way, gangs: Plain, *, apart: bool = False) -> DeviceCapacity:
    return DeviceCapacity(nodes, node(*zip(CLASSES, devices, strict=False)), charged(gangs, apart=apart))


def charged(gangs: Plain, *, apart: bool) -> Gangs:
    return total(gangs_of([Pods(claims(pod), 1) for pod in gang], 1, apart=apart) for gang in gangs)


def claims(pod: Pod) -> PodClaims:
    """The claims of a pod that is served in one way."""
    [way] = pod
    sizes = zip(CLASSES, way, strict=False)
    return PodClaims.of((StampedRequest(name, name, size) for name, size in sizes if size), ())


def admitted(nodes: int, devices: Way, gangs: Plain, *, apart: bool = False) -> bool:
    return packed(nodes, devices, gangs, apart=apart).stranded(ample()) is None


def small_pool(draw: random.Random) -> tuple[int, Way, Plain]:
    """A pool of 1 to 4 nodes with one to three kinds, and gangs of mixed sizes, one after the other."""
    devices = tuple(draw.choice((1, 2, 3, 4, 6, 8)) for _ in range(draw.choice((1, 1, 2, 2, 3))))
    nodes = draw.choice((1, 2, 2, 3, 3, 4))
    sizes = [
        tuple(draw.randint(0, most) if draw.random() < 0.7 else most for most in devices)
        for _ in range(draw.choice((1, 2, 2, 3)))
    ]
    gangs: Plain = []
    for _ in range(draw.randint(1, 6)):
        more = [draw.choice(sizes) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
        wider = [*gangs, [plain(*pod) for pod in more if any(pod)]]
        if sum(map(len, wider)) <= 7 and wider[-1]:
            gangs = wider
    return nodes, devices, gangs


def test_no_admitted_set_can_be_stranded_and_every_other_can() -> None:
    """The law of this accounting. On small pools it is exact: every packing is tried."""
    verdicts = Counter[bool]()
    for seed in range(count(600, 20_000, 100_000)):
        nodes, devices, gangs = small_pool(random.Random(seed))
        verdict = admitted(nodes, devices, gangs)
        verdicts[verdict] += 1
        assert strands(nodes, devices, gangs, apart=False) != verdict, (seed, nodes, devices, gangs)
    assert min(verdicts.values()) > 100, "too few of one kind: the test would prove nothing"


def test_no_admitted_set_can_be_stranded_where_gangs_must_be_kept_apart() -> None:
    tried = 0
    for seed in range(count(400, 20_000, 100_000)):
        nodes, devices, gangs = small_pool(random.Random(seed))
        if admitted(nodes, devices, gangs, apart=True):
            tried += 1
            assert not strands(nodes, devices, gangs, apart=True), (seed, nodes, devices, gangs)
    assert tried > 50, "too few admitted sets: the test would prove nothing"


def test_pods_that_are_served_in_several_ways_are_judged_exactly() -> None:
    """Entries of one class: which of them a pod gets is the choice of the worst packing, too."""
    verdicts = Counter[bool]()
    for seed in range(count(400, 20_000, 100_000)):
        draw = random.Random(seed)
        devices = tuple(draw.choice((1, 2, 3, 4)) for _ in range(draw.choice((2, 2, 3))))
        nodes = draw.choice((1, 2, 3))
        kinds: list[Pod] = []
        for _ in range(draw.choice((1, 2, 3))):
            ways = {tuple(draw.randint(0, most) for most in devices) for _ in range(draw.choice((1, 2, 3)))}
            kinds.append(tuple(sorted(way for way in ways if any(way))) or plain(*devices))
        pods = Counter(draw.choice(kinds) for _ in range(draw.randint(1, 6)))
        others = Counter({Footprint(pod, pod): number for pod, number in pods.items()})
        blocked = any(can_block(nodes, pod, others - Counter([pod]), devices, ample()) for pod in others)
        verdicts[blocked] += 1
        gangs: Plain = [[pod] for pod in pods.elements()]
        assert strands(nodes, devices, gangs, apart=False) == blocked, (seed, nodes, devices, gangs)
        assert strands_one(nodes, devices, pods, 100_000) == blocked, (seed, nodes, devices, gangs)
    assert min(verdicts.values()) > 20, "too few of one kind: the test would prove nothing"


def test_it_is_never_stricter_than_a_node_for_each_pod() -> None:
    """Blocked nodes are no more than there are other pods, whatever their sizes and kinds."""
    for seed in range(2_000):
        draw = random.Random(seed)
        devices = tuple(draw.randint(1, 12) for _ in range(draw.randint(1, 4)))[:3]
        nodes = draw.randint(1, 40)
        pods = [plain(*(draw.randint(1, most) for most in devices)) for _ in range(nodes)]
        at = [draw.randint(0, nodes) for _ in range(3)]
        gangs: Plain = [pods[a:b] for a, b in itertools.pairwise(sorted({0, *at, nodes}))]
        for apart in (False, True):
            assert admitted(nodes, devices, gangs, apart=apart), (seed, nodes, devices, gangs, apart)


def test_for_one_kind_and_one_size_exactly_the_safe_sets_are_admitted() -> None:
    for devices in range(1, 9):
        for size in range(1, devices + 1):
            for nodes in range(1, 4):
                for pods in range(1, 8):
                    gangs: Plain = [[plain(size)] for _ in range(pods)]
                    safe = not strands(nodes, (devices,), gangs, apart=True)
                    assert admitted(nodes, (devices,), gangs) == safe, (devices, size, nodes, pods)


def test_pods_that_take_whole_nodes_are_counted_as_node_accounting_counts_them() -> None:
    """Gangs too: admitted if and only if there are as many nodes as pods."""
    draw = random.Random(7)
    for _ in range(2_000):
        devices = tuple(draw.choice((1, 2, 4, 8)) for _ in range(draw.choice((1, 2, 3))))
        nodes = draw.randint(0, 8)
        gangs: Plain = [[plain(*devices)] * draw.randint(1, 4) for _ in range(draw.randint(1, 4))]
        pods = sum(map(len, gangs))
        for apart in (False, True):
            assert admitted(nodes, devices, gangs, apart=apart) == (pods <= nodes)
        assert packed(nodes, devices, gangs).free_nodes == nodes - pods


def naive(nodes: int, devices: Way, gangs: Plain) -> bool:
    """Count free devices of the whole pool: what most people would do."""
    pods = [way for gang in gangs for [way] in gang]
    return all(sum(pod[at] for pod in pods) <= nodes * most for at, most in enumerate(devices))


def kind_by_kind(nodes: int, devices: Way, gangs: Plain) -> bool:
    """Check each kind for itself: unsound, because a pod needs all of its kinds on one node."""
    return all(
        admitted(nodes, (most,), [[plain(way[at]) for [way] in gang if way[at]] for gang in gangs])
        for at, most in enumerate(devices)
    )


@pytest.mark.parametrize("unsound", [naive, kind_by_kind])
def test_the_brute_force_finds_out_an_unsound_rule(unsound: object) -> None:
    caught = 0
    for seed in range(300):
        draw = random.Random(seed)
        nodes, devices = draw.choice((2, 3)), (draw.choice((2, 4)), draw.choice((1, 2)))
        pods = [tuple(draw.randint(0, most) for most in devices) for _ in range(4)]
        gangs = [[plain(*pod)] for pod in pods if any(pod)]
        if unsound(nodes, devices, gangs) and strands(nodes, devices, gangs, apart=False):
            caught += 1
    assert caught


@pytest.mark.parametrize(
    ("reason", "nodes", "devices", "gangs", "fits"),
    [
        ("an empty pool takes a pod that fills a node", 1, (8,), [[(8,)]], True),
        ("a pool without nodes takes nothing", 0, (8,), [[(1,)]], False),
        ("8 single GPUs fill a node", 1, (8,), [[(1,)]] * 8, True),
        ("a ninth does not", 1, (8,), [[(1,)]] * 9, False),
        (
            "one GPU pod may sit on either node, and an 8-GPU pod needs the other",
            2,
            (8,),
            [[(1,)], [(8,)]],
            True,
        ),
        ("two GPU pods may sit on both nodes, and strand it", 2, (8,), [[(1,)], [(1,)], [(8,)]], False),
        ("halves: 3 pods of 4 on 2 nodes leave room for a fourth", 2, (8,), [[(4,)]] * 4, True),
        ("3 of 8 each: two to a node, so 4 fit on 2 nodes", 2, (8,), [[(3,)]] * 4, True),
        ("3 of 8 each: a fifth fits nowhere", 2, (8,), [[(3,)]] * 5, False),
        (
            "threes and a two: the packing 3+2, 3 leaves room for every one",
            2,
            (8,),
            [[(3,)], [(3,)], [(2,)]],
            True,
        ),
        ("a gang of 2 half pods needs 2 nodes that are open", 2, (8,), [[(4,), (4,)]], True),
        (
            "a gang of 2 does not fit on one node, if only because it may be kept apart",
            1,
            (8,),
            [[(4,), (4,)]],
            False,
        ),
        ("two gangs of 2 half pods share 3 nodes", 3, (8,), [[(4,), (4,)], [(4,), (4,)]], True),
        ("a gang next to a whole-node pod needs a third node", 2, (8,), [[(4,), (4,)], [(8,)]], False),
        ("GPUs and NICs: a pod with all NICs blocks a pod with one", 1, (8, 1), [[(1, 1)], [(1, 1)]], False),
        (
            "GPUs and NICs: pods that want no NIC are not blocked by one",
            1,
            (8, 1),
            [[(1, 1)], [(1, 0)]],
            True,
        ),
    ],
)
def test_cases(reason: str, nodes: int, devices: Way, gangs: list[list[Way]], fits: bool) -> None:  # noqa: FBT001 - a table
    pods: Plain = [[plain(*way) for way in gang] for gang in gangs]
    assert admitted(nodes, devices, pods, apart=True) == fits, reason
    assert strands(nodes, devices, pods, apart=True) != fits, f"the table itself is wrong: {reason}"


def test_gangs_that_may_share_nodes_count_singly() -> None:
    """Two gangs of 2 half pods fill 2 nodes, and where each gang is kept apart nobody here can tell that."""
    gangs: Plain = [[plain(4), plain(4)], [plain(4), plain(4)]]
    assert admitted(2, (8,), gangs)
    assert not strands(2, (8,), gangs, apart=True)
    assert not admitted(2, (8,), gangs, apart=True)


def test_ten_gpus_and_ten_nics() -> None:
    """By the floors of the kinds the others block six nodes; four pods sit on at most four."""
    pods: Plain = [[plain(*way)] for way in [(4, 4), (4, 4), (5, 5), (5, 5), (5, 5)]]
    assert admitted(5, (10, 10), pods)
    assert not strands(5, (10, 10), pods, apart=False)


@pytest.mark.parametrize(
    ("reason", "kinds", "pods", "fits"),
    [
        (
            "a class the pool does not publish may hold anything: it counts as a node",
            [("gpu", 8)],
            ["gone", 1, "gpu", 8],
            False,
        ),
        ("beside it a pod has the next node", [("gpu", 8)], ["gone", 1], True),
        ("two entries of one class are as good as one", [("gpu", 4), ("gpu", 4)], ["gpu", 4, "gpu", 4], True),
        ("and one request may be served by both", [("gpu", 4), ("gpu", 4)], ["gpu", 8], True),
        (
            "a claim larger than the devices shrank to blocks its node and asks for none",
            [("gpu", 4)],
            ["gpu", 8],
            True,
        ),
    ],
)
def test_what_cannot_be_told_is_counted_against_the_set(
    reason: str,
    kinds: list[tuple[str, int]],
    pods: list[object],
    fits: bool,  # noqa: FBT001
) -> None:
    listed = [PodClaims.of([StampedRequest("r", *pods[at : at + 2])], ()) for at in range(0, len(pods), 2)]
    held = total(gangs_of([Pods(pod, 1)], 1, apart=False) for pod in listed)
    assert (DeviceCapacity(1, node(*kinds), held).stranded(ample()) is None) == fits, reason


@pytest.mark.parametrize(
    ("reason", "devices", "kinds", "most", "doubts"),
    [
        ("1,000 pods of every size of eight GPUs", (8,), 8, 200, 0),
        ("sizes of GPUs and NICs", (8, 8), 6, 800, 0),
        ("more of them, on more devices, than are searched to the end", (16, 16, 7), 30, 4_000, 14),
    ],
)
def test_a_check_of_a_thousand_pods_is_bounded(
    reason: str, devices: Way, kinds: int, most: int, doubts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loads that are looked at and bundles that are tried, for all pods of the pool together.

    What is not searched to the end is doubt: it is no shortage for which somebody gives way. Where all pods
    together need more nodes than there are, that is one, however many ways they have.
    """
    untold = 0
    looked = Counter[str]()
    for name in ("_blocks", "_weigh", "_disjoint"):
        monkeypatch.setattr(worst_packing, name, counted(looked, name, getattr(worst_packing, name)))
    worst_packing._bundles.cache_clear()
    for seed in range(2):
        draw = random.Random(seed)
        sizes = [plain(*(draw.randint(1, most // 2) for most in devices)) for _ in range(kinds)]
        gangs: Plain = [[draw.choice(sizes)] for _ in range(1_000)]
        for nodes in range(150, 700, 50):
            looked.clear()
            try:
                packed(nodes, devices, gangs).stranded(ample())
            except TooManyCases:
                untold += 1
            assert looked.total() <= most, (reason, seed, looked)
    assert untold == doubts, reason


def counted(looked: Counter[str], name: str, function: Callable[..., object]) -> Callable[..., object]:
    def run(*args: object) -> object:
        looked[name] += 1
        return function(*args)

    return run


def test_pods_of_any_devices_of_several_entries() -> None:
    """22 of 32 devices are taken: one of the two nodes has one left, whatever they were taken of.

    The bundles are too many to list, and by one entry alone the others would block both nodes.
    """
    one, two, three = (tuple((taken, size - taken) for taken in range(size + 1)) for size in (1, 2, 3))
    pods = {one: 4, two: 6, three: 2}
    for pod in pods:
        others = {Footprint(kind, kind): number - (kind == pod) for kind, number in pods.items()}
        assert not can_block(2, Footprint(pod, pod), others, (8, 8), ample())
    assert not strands_one(2, (8, 8), pods, 400_000)


def ring(first: int) -> list[Pod]:
    """Three pods of six kinds of which any two take both devices of one kind, from `first` on."""
    pairs = itertools.combinations(range(first, first + 3), 2)
    return [plain(*(int(kind in pair) for kind in range(6))) for pair in pairs]


@pytest.mark.parametrize(
    ("reason", "nodes", "pod", "others", "devices", "blocked"),
    [
        (
            "a pod of two ways is blocked where both are",
            1,
            ((2, 0), (0, 2)),
            [((3, 0),), ((0, 3),)],
            (4, 4),
            True,
        ),
        (
            "and has a node where one of them is open",
            1,
            ((2, 0), (0, 2)),
            [((3, 0),), ((0, 2),)],
            (4, 4),
            False,
        ),
        (
            "two of three pods block a node, and the third is left",
            1,
            plain(*[1] * 6),
            ring(0),
            (2,) * 6,
            True,
        ),
        ("two such rings block two", 2, plain(*[1] * 6), [*ring(0), *ring(3)], (2,) * 6, True),
        (
            "half of each pod would do for a third, but none is cut",
            3,
            plain(*[1] * 6),
            [*ring(0), *ring(3)],
            (2,) * 6,
            False,
        ),
        (
            "34 pods block a node with the one of the other size alone",
            1,
            plain(2, 2),
            [plain(2, 2), *[plain(1, 4)] * 34],
            (10, 10),
            True,
        ),
        (
            "so they block no second one",
            2,
            plain(2, 2),
            [plain(2, 2), *[plain(1, 4)] * 34],
            (10, 10),
            False,
        ),
        (
            "large pods block a node with a small one each",
            5,
            plain(7),
            [plain(7), *[plain(6)] * 4, *[plain(18)] * 36],
            (28,),
            True,
        ),
        (
            "and no more nodes than there are small ones",
            6,
            plain(7),
            [plain(7), *[plain(6)] * 4, *[plain(18)] * 36],
            (28,),
            False,
        ),
    ],
)
def test_how_many_nodes_others_block(
    reason: str,
    nodes: int,
    pod: Pod,
    others: list[Pod],
    devices: Way,
    blocked: bool,  # noqa: FBT001 - a table
) -> None:
    loads = Counter(Footprint(other, other) for other in others)
    assert can_block(nodes, Footprint(pod, pod), loads, devices, ample()) == blocked, reason
    assert can_close(nodes, pod, Counter(others), devices, 100_000) == blocked, "the table itself is wrong"


def corner(tight: Sequence[tuple[Way, int]]) -> list[Fraction] | None:
    """Return the weights by which so many loads weigh what is stated; None where that is no one point."""
    table = [[*map(Fraction, load), Fraction(weight)] for load, weight in tight]
    for at in range(len(table)):
        pivot = next((row for row in table[at:] if row[at]), None)
        if pivot is None:
            return None
        table.remove(pivot)
        pivot = [entry / pivot[at] for entry in pivot]
        table = [[one - row[at] * two for one, two in zip(row, pivot, strict=True)] for row in table]
        table.insert(at, pivot)
    return [row[-1] for row in table]


def pods_and_bundles(seed: int) -> tuple[list[Way], Way]:
    """Up to six bundles of up to three kinds of pods, and how many pods there are of each kind."""
    draw = random.Random(seed)
    kinds = draw.randint(1, 3)
    loads = {tuple(draw.choice((0, 0, 1, 2, 3)) for _ in range(kinds)) for _ in range(draw.randint(1, 6))}
    bundles = sorted(load for load in loads if any(load)) or [(1,) * kinds]
    return bundles, tuple(draw.choice((1, 2, 2, 5, 40)) for _ in range(kinds))


TWICE = (
    [
        *((0, 0, 2, 3, 4), (0, 1, 4, 4, 3), (1, 3, 1, 2, 4), (2, 0, 0, 4, 1)),
        *((2, 1, 4, 0, 0), (3, 0, 0, 3, 0), (3, 0, 0, 4, 0)),
    ],
    (7, 2, 7, 3, 2),
)
"""A kind weighs nothing for a while: it leaves, and comes back."""
EQUAL = (
    [
        *((0, 1, 2, 1), (2, 0, 2, 3), (2, 3, 2, 0), (3, 0, 0, 1)),
        *((3, 3, 1, 0), (3, 3, 2, 4), (3, 4, 2, 0), (4, 0, 0, 2)),
    ],
    (3, 1, 2, 3),
)
"""Several rows bind alike, and one of them is not touched by what enters."""


@pytest.mark.parametrize(("bundles", "counts"), [TWICE, EQUAL, *map(pods_and_bundles, range(60))])
def test_pods_weigh_as_little_as_they_can_where_no_bundle_weighs_less_than_one(
    bundles: list[Way], counts: Way
) -> None:
    """The least of a linear program is at one of its corners: all of them are gone through."""
    kinds = len(counts)
    alone = [tuple(int(at == kind) for at in range(kinds)) for kind in range(kinds)]
    limits = [*((bundle, 1) for bundle in bundles), *((load, 0) for load in alone)]
    corners = filter(None, map(corner, itertools.combinations(limits, kinds)))
    least = min(
        sum(map(mul, weights, counts))
        for weights in corners
        if all(sum(map(mul, weights, load)) >= weight for load, weight in limits)
    )
    weighed = _weigh(bundles, counts, ample())
    assert min(weighed.weights) >= 0
    assert min(map(weighed.of, bundles)) >= weighed.unit > 0
    assert Fraction(weighed.of(counts), weighed.unit) == least


def test_with_a_few_steps_more_or_less_the_same_list_is_remembered() -> None:
    """A pool is looked at again and again while the budget goes down."""
    pod, others = plain(*[1] * 6), {Footprint(other, other): 1 for other in ring(0)}
    worst_packing._bundles.cache_clear()
    for steps in (4, 3):
        assert can_block(1, Footprint(pod, pod), others, (2,) * 6, Budget(steps))
    assert worst_packing._bundles.cache_info().hits == 1


def alone(device_class: str, number: int = 1, copies: int = 1) -> Gangs:
    """Pods with one claim, each in a gang of its own."""
    return gangs_of([Pods(PodClaims((Claim(device_class, number),)), 1)], copies, apart=False)


def test_adding_a_few_gangs_is_adding_them_up() -> None:
    """Gangs are compared as often as they are halved: 3,000 replicas like no other took 40 s to charge."""
    compared = 0

    class Counted(str):
        __slots__ = ()

        def __lt__(self, other: str) -> bool:
            nonlocal compared
            compared += 1
            return str.__lt__(self, other)

    for seed in range(200):
        draw = random.Random(seed)
        listed = [alone(draw.choice("abcdef"), draw.randint(1, 2), draw.randint(1, 3)) for _ in range(9)]
        many = total(listed)
        few = draw.choice(listed)
        assert plus(many, few) == total([many, few]), seed
        assert plus(many, minus(few)) == total([many, minus(few)]), seed
    held = total(alone(Counted(f"{at:04}")) for at in range(1_000))
    one = alone(Counted("0500x"))
    compared = 0
    assert len(plus(held, one)) == 1_001
    assert compared <= 11
