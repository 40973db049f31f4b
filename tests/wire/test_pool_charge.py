"""Where the quick reader of published charges gives an answer, it is the lenient reader's."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import given, strategies as st

from function.api.charge import DIGEST, ChargedShare, read_shares
from function.deployment.snapshot.charges import MAX_REPLICAS, read_charged
from function.wire import WireDocument, write
from tests.support import build
from tests.support.odd_values import ODD, damaged, paths_of, put

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Plain = dict[str, Any]

CHAT = {"deployment": "ml/chat", "replicas": 2, "nodes": 4}
STRAY = {"replica": "ml/alone-0", "nodes": 1}
CLAIMING = {
    **CHAT,
    "engines": [
        {"copies": 1, "members": [{"pods": 2, "requests": [{"deviceClassName": "gpu", "count": 8}]}]}
    ],
}
FIRST, SECOND = "0" * DIGEST, "1" * DIGEST
DIGESTS = {"replicas": 1, "nodes": 3, "digests": f"{FIRST} {SECOND}"}
GIVES_WAY = [{"replica": "ml/late-0", "deployment": "late"}]


class Lenient(WireDocument):
    """A document whose charges are read leniently."""

    __slots__ = ()

    def opened(self) -> Any:
        return self

    def pool_charges(self, _make: Callable[..., T | None]) -> dict[str, T]:
        return {}


def cluster(charged: Any, **more: Any) -> Plain:
    """Return a cluster of two pools; the first one publishes a charge, the second that it has none."""
    pools = [build.pool("p", 9) | {"charged": charged} | more, build.pool("q", 2) | {"charged": {"nodes": 0}}]
    return build.cluster("east", pools)


def read_quickly(content: Plain) -> dict[str, tuple[ChargedShare, ...]]:
    return WireDocument(write.struct(content)).opened().pool_charges(read_shares)


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

UNUSUAL: list[tuple[Any, str]] = [
    (None, "no charge"),
    ("four", "a text"),
    ({}, "no number"),
    ({"nodes": None, "by": [CHAT]}, "null"),
    ({"nodes": "4", "by": [CHAT]}, "a number as a text"),
    ({"nodes": 4.5, "by": [CHAT]}, "half a node"),
    ({"nodes": True, "by": [STRAY]}, "a boolean"),
    ({"nodes": -3}, "fewer than none is none"),
    ({"nodes": 3, "by": [CHAT]}, "not the sum"),
    ({"nodes": 3, "by": [{**CHAT, "nodes": 3}]}, "three nodes of two equal replicas"),
    ({"nodes": 0, "by": [{**CHAT, "nodes": 0}]}, "a share of nothing"),
    ({"nodes": 4, "by": [{**CHAT, "replicas": 0}]}, "a share of nobody"),
    ({"nodes": 4, "by": [{**CHAT, "leaving": "True"}]}, "a boolean as a text"),
    ({"nodes": 4, "by": [{**CHAT, "deployment": 7}]}, "a name that is a number"),
    ({"nodes": 4, "by": [{**CHAT, "deployment": ""}]}, "an empty name"),
    ({"nodes": 4, "by": CHAT}, "an object for a list"),
    ({"nodes": 4, "by": [CHAT, None]}, "a null in a list"),
    ({"nodes": 4, "by": [CLAIMING]}, "a share that claims devices"),
    ({"nodes": 3, "others": [{**DIGESTS, "digests": FIRST[:-1]}]}, "a digest that is too short"),
    ({"nodes": 3, "others": [{**DIGESTS, "digests": f"{FIRST} "}]}, "a space too many"),
    ({"nodes": 4, "by": [CHAT], "givesWay": GIVES_WAY}, "somebody gives way"),
    ({"nodes": 4, "by": [CHAT], "gives_way": GIVES_WAY}, "in the other spelling that is taken"),
]

CONTENTS = [
    *(cluster(charged) for charged, _, _ in USUAL),
    *(cluster(charged) for charged, _ in UNUSUAL),
    cluster({"nodes": 4, "by": [CLAIMING]}, accounting="Device"),
    cluster({"nodes": 4, "by": [CHAT]}, accounting="Device"),
    cluster({"nodes": 0}, accounting="Device"),
]


def agree(content: bytes) -> bool:
    return read_charged(WireDocument(content)) == read_charged(Lenient(content))


@pytest.mark.parametrize(("charged", "shares", "reason"), USUAL)
def test_what_is_written_as_usual_is_read_quickly(
    charged: Any, shares: list[ChargedShare], reason: str
) -> None:
    assert read_quickly(cluster(charged)) == {"p": tuple(shares), "q": ()}, reason


@pytest.mark.parametrize(("charged", "reason"), UNUSUAL)
def test_what_is_not_is_left_to_the_lenient_reader_pool_by_pool(charged: Any, reason: str) -> None:
    assert read_quickly(cluster(charged)) == {"q": ()}, reason


@pytest.mark.parametrize("content", CONTENTS)
def test_both_readers_agree(content: Plain) -> None:
    assert agree(write.struct(content))


@pytest.mark.parametrize(
    ("path", "odd", "reason"),
    [
        (("status",), "text", "a status that is a text"),
        (("status", "gpuPools"), {"p": {}}, "pools by name"),
        (("status", "gpuPools"), [None, "p", [[]]], "pools that are no objects"),
        (("status", "gpuPools", 0, "name"), 7, "a name that is a number"),
        ((), {"metadata": {"name": "east"}}, "no status"),
    ],
)
def test_where_there_is_no_list_of_pools_no_charge_is_read(path: Any, odd: Any, reason: str) -> None:
    content = put(cluster({"nodes": 4, "by": [CHAT]}), path, odd)
    assert "p" not in read_quickly(content), reason
    assert agree(write.struct(content)), reason


@given(st.sampled_from(CONTENTS), st.data())
def test_both_readers_agree_whatever_stands_there(content: Plain, data: st.DataObject) -> None:
    places = [path for path in paths_of(content) if "charged" in path] + paths_of(content)
    odd = data.draw(st.sampled_from((*ODD, 2, 2.0**60, float("nan"), FIRST, [CHAT], [DIGESTS])))
    assert agree(write.struct(put(content, data.draw(st.sampled_from(places)), odd)))


@given(st.sampled_from(CONTENTS), st.integers(0, 2**32), st.integers(1, 3))
def test_both_readers_agree_on_damaged_bytes(content: Plain, seed: int, times: int) -> None:
    assert agree(damaged(write.struct(content), random.Random(seed), times))


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
