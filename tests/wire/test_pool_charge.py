"""What a pool publishes of its charge is read, or is a fault of its cluster: nothing is guessed."""

from __future__ import annotations

from typing import Any

import pytest

from function.api.charge import DIGEST, Charged, ChargedShare
from function.deployment.snapshot.charges import MAX_REPLICAS, read_charged
from function.wire import WireDocument, write
from tests.support import build

Plain = dict[str, Any]

CHAT = {"deployment": "ml/chat", "replicas": 2, "nodes": 4}
STRAY = {"replica": "ml/alone-0", "nodes": 1}
FIRST, SECOND = "0" * DIGEST, "1" * DIGEST
DIGESTS = {"replicas": 1, "nodes": 3, "digests": f"{FIRST} {SECOND}"}


def cluster(charged: Any, **more: Any) -> Plain:
    """Return a cluster of two pools; the first one publishes a charge, the second that it has none."""
    pools = [build.pool("p", 9) | {"charged": charged} | more, build.pool("q", 2) | {"charged": {"nodes": 0}}]
    return build.cluster("east", pools)


USUAL: list[tuple[Any, list[ChargedShare], str]] = [
    ({"nodes": 0}, [], "nobody holds anything"),
    ({"nodes": 4, "by": [CHAT]}, [ChargedShare("ml/chat", 2, 2, leaving=False)], "two replicas of two nodes"),
    (
        {"nodes": 1, "by": [STRAY]},
        [ChargedShare("replica ml/alone-0", 1, 1, leaving=False)],
        "one that nobody owns",
    ),
    (
        {"nodes": 5, "by": [{**CHAT, "leaving": True}, {**STRAY, "leaving": False}]},
        [
            ChargedShare("ml/chat", 2, 2, leaving=True),
            ChargedShare("replica ml/alone-0", 1, 1, leaving=False),
        ],
        "on its way out",
    ),
    (
        {"nodes": 10, "by": [CHAT], "others": [DIGESTS]},
        [
            ChargedShare("ml/chat", 2, 2, leaving=False),
            ChargedShare(FIRST, 1, 3, leaving=False),
            ChargedShare(SECOND, 1, 3, leaving=False),
        ],
        "equal shares of holders that are not named",
    ),
    (
        {"nodes": 4, "by": [CHAT], "since": "later"},
        [ChargedShare("ml/chat", 2, 2, leaving=False)],
        "a later field",
    ),
]

REFUSED: list[tuple[Any, str, str]] = [
    (None, "no charge", "no charge"),
    ("four", "object: expected a map, found a string", "a text"),
    ({}, "nodes: required, but missing", "no number"),
    ({"nodes": None, "by": [CHAT]}, "nodes: required, but missing", "null"),
    ({"nodes": "4", "by": [CHAT]}, 'nodes: expected a whole number, found "4"', "a number as a text"),
    ({"nodes": 4.5, "by": [CHAT]}, "nodes: expected a whole number, found 4.5", "half a node"),
    ({"nodes": True, "by": [STRAY]}, "nodes: expected a whole number, found true", "a boolean"),
    ({"nodes": 3, "by": [CHAT]}, "object: nodes: expected the sum of the shares", "not the sum"),
    (
        {"nodes": 3, "by": [{**CHAT, "nodes": 3}]},
        "by[0]: its nodes are not those of equal replicas",
        "three nodes of two equal replicas",
    ),
    (
        {"nodes": 0, "by": [{**CHAT, "nodes": 0}]},
        "by[0].nodes: must be at least 1, found 0",
        "a share of nothing",
    ),
    (
        {"nodes": 4, "by": [{**CHAT, "replicas": 0}]},
        "by[0].replicas: must be at least 1, found 0",
        "a share of nobody",
    ),
    (
        {"nodes": 4, "by": [{**CHAT, "leaving": "True"}]},
        'by[0].leaving: expected true or false, found "True"',
        "a boolean as a text",
    ),
    (
        {"nodes": 4, "by": [{**CHAT, "deployment": 7}]},
        "by[0].deployment: expected a string, found 7",
        "a name that is a number",
    ),
    ({"nodes": 4, "by": CHAT}, "by: expected a list, found a map", "an object for a list"),
    ({"nodes": 4, "by": [CHAT, None]}, "by[1]: expected a map, found null", "a null in a list"),
    (
        {"nodes": 3, "others": [{**DIGESTS, "digests": FIRST[:-1]}]},
        'others[0].digests: expected digests of 12 hex digits with a space between two, found "00000000000"',
        "a digest that is too short",
    ),
    (
        {"nodes": 3, "others": [{**DIGESTS, "digests": f"{FIRST} "}]},
        f'others[0].digests: expected digests of 12 hex digits with a space between two, found "{FIRST} "',
        "a space too many",
    ),
]


@pytest.mark.parametrize(("charged", "shares", "reason"), USUAL)
def test_the_shares_of_a_charge(charged: Any, shares: list[ChargedShare], reason: str) -> None:
    assert Charged.parse(charged).shares == tuple(shares), reason


@pytest.mark.parametrize(("charged", "fault", "reason"), REFUSED)
def test_a_charge_that_cannot_be_read_is_a_fault_of_its_pool(charged: Any, fault: str, reason: str) -> None:
    read = read_charged(WireDocument(write.struct(cluster(charged))))
    assert (read.shares, read.fault) == ((), f"pool p: {fault}"), reason


@pytest.mark.parametrize("by", [[], [CHAT]], ids=["nobody", "a holder"])
def test_a_pool_that_charges_devices_says_what_is_claimed(by: list[Plain]) -> None:
    charged = {"nodes": sum(share["nodes"] for share in by), "by": by}
    read = read_charged(WireDocument(write.struct(cluster(charged, accounting="Device"))))
    assert read.fault == ("pool p: its charge does not say which devices are claimed" if by else "")


def test_a_cluster_without_pools_has_no_charge() -> None:
    read = read_charged(WireDocument(write.struct(build.cluster("east", []))))
    assert (read.shares, read.fault) == ((), "")


HALF = MAX_REPLICAS // 2


@pytest.mark.parametrize(
    ("numbers", "where", "reason"),
    [
        ((MAX_REPLICAS,), "", "as many as a cluster may have"),
        ((HALF, HALF), "", "as many on two pools"),
        ((MAX_REPLICAS + 1,), "pool p0", "one more"),
        ((1_000_000,), "pool p0", "an absurd number"),
        ((HALF, HALF, 1), "3 pools together", "one more in the sum: no pool has too many by itself"),
        ((MAX_REPLICAS + 1, 0, 7), "2 pools together", "all that are charged count"),
    ],
)
def test_an_absurd_number_of_replicas_is_no_charge(numbers: tuple[int, ...], where: str, reason: str) -> None:
    """Numbers in a status would else cost every call seconds: the cluster takes nothing new instead."""
    pools = [
        build.pool(f"p{at}", number, [])
        | {
            "charged": {
                "nodes": number,
                "by": [{"deployment": "ml/chat", "replicas": number, "nodes": number}] if number else [],
            }
        }
        for at, number in enumerate(numbers)
    ]
    charged = read_charged(WireDocument(write.struct(build.cluster("east", pools))))
    fault = (
        f"status.gpuPools[].charged: {sum(numbers)} replicas on {where}, a cluster has at most {MAX_REPLICAS}"
    )
    assert charged.fault == (fault if where else ""), reason
    assert len(charged.shares) == (0 if where else sum(numbers)), reason
