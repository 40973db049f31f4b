"""Device accounting, rule by rule: what a pod blocks, what it needs, and what reports call free."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from function.scheduler.device_accounting import (
    Claim,
    Copies,
    Demand,
    DeviceCapacity,
    DeviceKind,
    Gangs,
    PodLoad,
    Pods,
    gang,
    kinds_of,
    load,
    total,
)
from function.scheduler.ledger import NodeCapacity
from tests.support import build
from tests.support.cases import ask, one
from tests.support.scarce import decide
from tests.support.world import World

Pod = dict[str, int]
"""Devices a pod claims, by class."""
EIGHT_GPUS, FOUR_GPUS = (Claim("gpu", 8),), (Claim("gpu", 4),)
EIGHT, FOUR, NICS = DeviceKind("gpu", 8), DeviceKind("gpu", 4), DeviceKind("nic", 2)


def gangs(*item: tuple[Pod, ...]) -> Gangs:
    """Gangs of pods, one copy of each."""
    return total((Copies(gang(Pods(_claims(pod), 1) for pod in pods), 1),) for pods in item)


def _claims(pod: Pod) -> tuple[Claim, ...]:
    return tuple(Claim(*claim) for claim in sorted(pod.items()))


def alone(*pods: Pod) -> Gangs:
    """Pods that are no gang."""
    return gangs(*((pod,) for pod in pods))


@dataclass(frozen=True)
class Case:
    reason: str
    nodes: int
    kinds: tuple[DeviceKind, ...]
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
    pool = DeviceCapacity(case.nodes, case.kinds, case.stands)
    assert pool.shortage(Demand(0, case.more)) == case.lacks
    taken = pool.take(Demand(0, case.more))
    assert taken == (
        None if case.lacks else DeviceCapacity(case.nodes, case.kinds, total((case.stands, case.more)))
    )


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
    nodes: int, kinds: tuple[DeviceKind, ...], stands: Gangs, free: int, reason: str
) -> None:
    assert DeviceCapacity(nodes, kinds, stands).free_nodes == free, reason


@pytest.mark.parametrize(
    ("claims", "kinds", "expected", "reason"),
    [
        ((("gpu", 2),), (EIGHT,), PodLoad((2,), (2,)), "one request"),
        ((("gpu", 2), ("gpu", 3)), (EIGHT,), PodLoad((5,), (5,)), "requests of one class may share an entry"),
        ((("gpu", 5), ("gpu", 5)), (EIGHT,), PodLoad((10,), (8,)), "and cannot need more than the entry has"),
        ((("gpu", 9),), (EIGHT,), PodLoad((9,), (0,)), "no node hosts it: nothing is kept free for it"),
        ((("gpu", 8), ("nic", 3)), (EIGHT, NICS), PodLoad((8, 3), (0, 0)), "one request too many is enough"),
        ((("gpu", 5),), (FOUR, EIGHT), PodLoad((5, 5), (0, 5)), "an entry that is too small is not needed"),
        ((("other", 1),), (EIGHT,), PodLoad((0,), (0,), strange=True), "a class that is not published"),
        (
            (("gpu", 1), ("other", 1)),
            (EIGHT,),
            PodLoad((1,), (0,), strange=True),
            "or one of two that is not",
        ),
        ((("nic", 1),), (EIGHT, NICS), PodLoad((0, 1), (0, 1)), "kinds it does not claim are left alone"),
    ],
)
def test_how_a_pod_lies_on_the_kinds_of_a_pool(
    claims: tuple[Claim, ...], kinds: tuple[DeviceKind, ...], expected: PodLoad, reason: str
) -> None:
    assert load(claims, kinds) == expected, reason


def test_only_what_a_claim_can_bind_is_counted() -> None:
    """Synthetic entries are facts: nothing binds them."""
    devices = [
        build.gpu(8),
        build.gpu(4, name="fact", claim="Synthetic"),
        build.nic(2, claim="DRA"),
    ]
    fleet = [one("a", pools=[build.pool("p", 2, devices)], accounting="Device")]
    [pool] = decide(World(ask(), fleet)).inputs.fleet.clusters["a"].pools
    assert kinds_of(pool) == (DeviceKind("gpu.nvidia.com", 8), DeviceKind("rdma.dra.net", 2))


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
    assert (pool.shortage(demand), pool.take(demand)) == (lacks, taken), reason


def test_gangs_are_counted_by_what_their_pods_claim() -> None:
    """Pods that claim nothing are not in them, and equal pods are one entry."""
    made = gang([Pods(EIGHT_GPUS, 1), Pods(EIGHT_GPUS, 2), Pods((), 5), Pods(FOUR_GPUS, 1)])
    assert made == (Pods(FOUR_GPUS, 1), Pods(EIGHT_GPUS, 3))
    assert total([(Copies(made, 2),), (Copies(made, -1),), (Copies((), 3),)]) == (Copies(made, 1),)
    assert total([(Copies(made, 2),), (Copies(made, -2),)]) == ()
