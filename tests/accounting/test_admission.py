"""Device accounting: what is admitted can be stranded by no packing, and as much is admitted as can be."""

from __future__ import annotations

import random

import pytest

from function.scheduler.device_accounting import (
    Claim,
    Copies,
    DeviceCapacity,
    DeviceKind,
    Gangs,
    Pods,
    gang,
    total,
)
from tests.accounting.packings import Gangs as Plain
from tests.accounting.packings import Pod, strands
from tests.support.scale import count

CLASSES = ("gpu", "nic", "mig")


def packed(nodes: int, devices: Pod, gangs: Plain) -> DeviceCapacity:
    kinds = tuple(DeviceKind(name, number) for name, number in zip(CLASSES, devices, strict=False))
    return DeviceCapacity(nodes, kinds, charged(gangs))


def charged(gangs: Plain) -> Gangs:
    return total((Copies(gang(Pods(claims(pod), 1) for pod in one_gang), 1),) for one_gang in gangs)


def claims(pod: Pod) -> tuple[Claim, ...]:
    return tuple(sorted(Claim(name, size) for name, size in zip(CLASSES, pod, strict=False) if size))


def admitted(nodes: int, devices: Pod, gangs: Plain) -> bool:
    return packed(nodes, devices, gangs).stranded is None


def small_pool(draw: random.Random) -> tuple[int, Pod, Plain]:
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
        wider = [*gangs, [pod for pod in more if any(pod)]]
        if sum(map(len, wider)) <= 7 and wider[-1]:
            gangs = wider
    return nodes, devices, gangs


def test_no_admitted_set_can_be_stranded_by_any_packing() -> None:
    """The law of this accounting, whether or not the cluster keeps a gang's pods on distinct nodes."""
    tried = 0
    for seed in range(count(600, 20_000, 100_000)):
        nodes, devices, gangs = small_pool(random.Random(seed))
        if admitted(nodes, devices, gangs):
            tried += 1
            for apart in (True, False):
                assert not strands(nodes, devices, gangs, apart=apart), (seed, nodes, devices, gangs, apart)
    assert tried > 100, "too few admitted sets: the test would prove nothing"


def test_for_one_kind_and_one_size_exactly_the_safe_sets_are_admitted() -> None:
    for devices in range(1, 9):
        for size in range(1, devices + 1):
            for nodes in range(1, 4):
                for pods in range(1, 8):
                    gangs: Plain = [[(size,)] for _ in range(pods)]
                    safe = not strands(nodes, (devices,), gangs, apart=True)
                    assert admitted(nodes, (devices,), gangs) == safe, (devices, size, nodes, pods)


def test_pods_that_take_whole_nodes_are_counted_as_node_accounting_counts_them() -> None:
    """Gangs too: admitted if and only if there are as many nodes as pods."""
    draw = random.Random(7)
    for _ in range(2_000):
        devices = tuple(draw.choice((1, 2, 4, 8)) for _ in range(draw.choice((1, 2, 3))))
        nodes = draw.randint(0, 8)
        gangs: Plain = [[devices] * draw.randint(1, 4) for _ in range(draw.randint(1, 4))]
        pods = sum(map(len, gangs))
        assert admitted(nodes, devices, gangs) == (pods <= nodes)
        assert packed(nodes, devices, gangs).free_nodes == nodes - pods


def naive(nodes: int, devices: Pod, gangs: Plain) -> bool:
    """Count free devices of the whole pool: what most people would do."""
    pods = [pod for one_gang in gangs for pod in one_gang]
    return all(sum(pod[at] for pod in pods) <= nodes * most for at, most in enumerate(devices))


def kind_by_kind(nodes: int, devices: Pod, gangs: Plain) -> bool:
    """Check each kind for itself: unsound, because a pod needs all of its kinds on one node."""
    return all(
        admitted(nodes, (most,), [[(pod[at],) for pod in one_gang if pod[at]] for one_gang in gangs])
        for at, most in enumerate(devices)
    )


@pytest.mark.parametrize("unsound", [naive, kind_by_kind])
def test_the_brute_force_finds_out_an_unsound_rule(unsound: object) -> None:
    caught = 0
    for seed in range(300):
        draw = random.Random(seed)
        nodes, devices = draw.choice((2, 3)), (draw.choice((2, 4)), draw.choice((1, 2)))
        pods = [tuple(draw.randint(0, most) for most in devices) for _ in range(4)]
        gangs = [[pod] for pod in pods if any(pod)]
        if unsound(nodes, devices, gangs) and strands(nodes, devices, gangs, apart=True):  # type: ignore[operator]
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
def test_cases(reason: str, nodes: int, devices: Pod, gangs: Plain, fits: bool) -> None:  # noqa: FBT001 - a table
    assert admitted(nodes, devices, gangs) == fits, reason
    assert strands(nodes, devices, gangs, apart=True) != fits, f"the table itself is wrong: {reason}"


def test_what_only_distinct_nodes_of_other_gangs_would_make_safe_is_not_admitted() -> None:
    """Two gangs of 2 half pods fill 2 nodes only if each gang is kept apart; nobody here can tell that."""
    gangs: Plain = [[(4,), (4,)], [(4,), (4,)]]
    assert not strands(2, (8,), gangs, apart=True)
    assert not admitted(2, (8,), gangs)


@pytest.mark.parametrize(
    ("reason", "kinds", "gangs", "fits"),
    [
        (
            "a class the pool does not publish may hold anything, so it counts as a node",
            [("gpu", 8)],
            [[[("gone", 1)]], [[("gpu", 8)]]],
            False,
        ),
        (
            "two entries of one class: a claim may sit on either, and is counted on both",
            [("gpu", 4), ("gpu", 4)],
            [[[("gpu", 4)]], [[("gpu", 4)]]],
            False,
        ),
        (
            "two entries of one class with room for both claims on each",
            [("gpu", 4), ("gpu", 8)],
            [[[("gpu", 2)]], [[("gpu", 2)]]],
            True,
        ),
        (
            "a claim larger than the node's devices shrank to blocks its node and asks for none",
            [("gpu", 4)],
            [[[("gpu", 8)]]],
            True,
        ),
    ],
)
def test_what_cannot_be_told_is_counted_against_the_set(
    reason: str,
    kinds: list[tuple[str, int]],
    gangs: list[list[list[tuple[str, int]]]],
    fits: bool,  # noqa: FBT001
) -> None:
    held = total(
        (Copies(gang(Pods(tuple(Claim(*claim) for claim in pod), 1) for pod in one_gang), 1),)
        for one_gang in gangs
    )
    capacity = DeviceCapacity(1, tuple(DeviceKind(*kind) for kind in kinds), held)
    assert (capacity.stranded is None) == fits, reason
