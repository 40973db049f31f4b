"""Where a replica that preempts is placed, held against every choice that there is on small fleets."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Any

from tests.support import build, scale
from tests.support.cases import ask
from tests.support.drive import run
from tests.support.preempting import CHAT, ON, PREFIX, Resident, arbitrating
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Plain = dict[str, Any]


def drawn(seed: int) -> tuple[dict[str, int], list[Resident]]:
    """Up to three clusters of one pool, and what holds a node of them."""
    draw = random.Random(seed)
    sizes = {name: draw.choice((0, 1, 2, 3)) for name in "abc"[: draw.choice((1, 2, 3))]}
    residents = [
        Resident(
            f"r-{cluster}-{index}",
            cluster,
            draw.choice("stuv"),
            draw.choice((None, 10, 10, 100, 100, 1000)),
            draw.randrange(4),
            draw.choice((0, 1, 2, 9)),
            draw.random() < 0.8,
            draw.random() < 0.1,
        )
        for cluster, nodes in sizes.items()
        for index in range(max(0, nodes + draw.choice((-1, 0, 0, 0, 1))))
    ]
    return sizes, residents


def expected(sizes: dict[str, int], residents: list[Resident], needs: int) -> tuple[str, set[str]] | None:
    """The cluster and who is to give way, by the sentences of docs/priority.md; None where nobody can."""
    ways = []
    for cluster, nodes in sizes.items():
        living = [one for one in residents if one.cluster == cluster and not one.leaves]
        enough = [gone for gone in sets_of(living) if nodes - len(living) + len(gone) >= needs]
        if enough:
            best = min(enough, key=lambda gone: sorted(map(dear, gone), reverse=True))
            values = sorted((one.value or 0 for one in best if one.is_ready), reverse=True)
            others = sum(not one.is_ready for one in best)
            ways.append((values, others, cluster, {one.name for one in best}))
    return min(ways, key=lambda way: way[:3])[2:] if ways else None


def dear(one: Resident) -> tuple[bool, int, int, tuple[int, ...]]:
    """A Ready one before all others, then a high class, then an old one."""
    return (one.is_ready, one.value or 0, one.age, tuple(-ord(letter) for letter in one.name))


def sets_of(living: list[Resident]) -> Iterator[Sequence[Resident]]:
    """Every set of those that may give way, of each deployment the cheapest that it spares."""
    lower = sorted((one for one in living if one.value is not None and one.value < 1000), key=dear)
    spent, able = Counter[str](), []
    for one in lower:
        budget = min(other.spare for other in lower if other.deployment == one.deployment)
        spent[one.deployment] += one.is_ready
        if not one.is_ready or spent[one.deployment] <= budget:
            able.append(one)
    for size in range(len(able) + 1):
        yield from combinations(able, size)


def test_the_least_is_lost_of_all_that_could_be() -> None:
    happened = Counter[str]()
    for seed in scale.seeds(400, 4_000, 20_000):
        sizes, residents = drawn(seed)
        copies = random.Random(seed).choice((1, 1, 2))
        engine = build.engine(members=[build.member(devices=[build.request("gpu", 8)])], copies=copies)
        ours = ask(engines=[engine])
        ours["metadata"] |= {key: CHAT["metadata"][key] for key in ("name", "uid")}
        ours["spec"]["placement"] = CHAT["spec"]["placement"]
        fleet = arbitrating(**sizes)
        answer = run(World(ours, fleet, [one.manifest() for one in residents], input=ON))
        held = Counter(one.cluster for one in residents)
        if any(nodes - held[cluster] >= copies for cluster, nodes in sizes.items()):
            assert f"{PREFIX}preempting" not in str(answer.replicas), f"seed {seed}: there is room"
            continue
        wanted = expected(sizes, residents, copies)
        placed = [
            (one.identity.cluster, {victim.name for victim in one.preempts or ()})
            for one in answer.decision.placed
        ]
        assert placed == ([] if wanted is None else [wanted]), f"seed {seed}"
        happened["placed" if placed else "waits"] += 1
        happened["several"] += bool(placed) and len(placed[0][1]) > 1
    assert min(happened[what] for what in ("placed", "waits", "several")) > 5, happened
