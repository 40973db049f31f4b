"""Quotas, guarantees and classes on small fleets, held against the sentences of docs/priority.md.

Nothing of the scheduler is used here: who is borrowed, who may give way and where the least is lost are
worked out anew, by every choice that there is.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support import build, scale
from tests.support.cases import ask
from tests.support.drive import run
from tests.support.preempting import CLASSES, PREFIX, Resident, arbitrating
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Plain = dict[str, Any]
NAMESPACES = {"a": "ml-team", "b": "team-b", "": "third"}
"""The namespaces of two teams, and one to which nothing is guaranteed."""
VALUES = {"production": 1000, "standard": 100, "batch": 10, None: 0}


class Fleet(NamedTuple):
    """A fleet, and one replica that is to be placed."""

    sizes: dict[str, int]
    residents: list[Resident]
    guaranteed: dict[str, int]
    """Nodes, by team; a team that is missing has no guarantee."""
    most: int | None
    """Nodes that the team of the new replica may hold."""
    named: str | None
    """Its class."""
    team: str
    needs: int


def drawn(seed: int) -> Fleet:
    """Up to three clusters of one pool, what holds a node of them, and what is guaranteed."""
    draw = random.Random(seed)
    sizes = {name: draw.choice((0, 1, 2, 3)) for name in "abc"[: draw.choice((1, 2, 3))]}
    guaranteed = {team: draw.choice((0, 1, 3, 4, 6)) for team in "ab" if draw.random() < 0.85}
    residents = [
        Resident(
            name=f"r-{cluster}-{index}",
            cluster=cluster,
            team=draw.choice(("a", "b", "b", "")),
            deployment=draw.choice("stuv"),
            value=draw.choice((None, 0, 10, 10, 100, 100, 1000)),
            age=draw.randrange(4),
            spare=draw.choice((0, 1, 2, 9)),
            is_ready=draw.random() < 0.8,
            leaves=draw.random() < 0.1,
        )
        for cluster, nodes in sizes.items()
        for index in range(max(0, nodes + draw.choice((-1, 0, 0, 0, 1))))
    ]
    words = standings(residents, guaranteed)
    return Fleet(
        sizes,
        [one._replace(word=words.get(one.name, "")) for one in residents],
        guaranteed,
        draw.choice((None, None, None, 1, 2, 4)),
        draw.choice([*VALUES]),
        draw.choice(("a", "a", "b", "")),
        draw.choice((1, 1, 2)),
    )


def standings(residents: Sequence[Resident], guaranteed: dict[str, int]) -> dict[str, str]:
    """Who is borrowed: the highest class first, then the oldest; one whose class is not known before all."""
    words = {}
    for team, most in guaranteed.items():
        members = [one for one in residents if one.team == team and not one.leaves]
        members.sort(key=lambda one: (one.value is not None, -(one.value or 0), -one.age, one.name))
        for number, one in enumerate(members, start=1):
            words[one.name] = "Within" if number <= most else "Borrowed"
    return words


def quotas(fleet: Fleet) -> list[Plain]:
    """The quotas as they are stated."""
    made = [
        {"name": team, "namespaces": [NAMESPACES[team]], "guaranteed": {"nodes": nodes}}
        for team, nodes in fleet.guaranteed.items()
    ]
    if fleet.most is not None:
        limit = {"name": "most", "namespaces": [NAMESPACES[fleet.team]], "atMost": {"nodes": fleet.most}}
        made.append(limit)
    return made


def rank(one: Resident) -> int:
    return -1 if one.word == "Borrowed" else one.value or 0


def dear(one: Resident) -> tuple[bool, int, int, tuple[int, ...]]:
    """A Ready one before all others, then a high class, then an old one."""
    return (
        one.is_ready,
        rank(one),
        one.age,
        tuple(-ord(letter) for letter in f"{NAMESPACES[one.team]} {one.name}"),
    )


def held(fleet: Fleet, least: int = -1) -> int:
    """Nodes that the team of the new replica holds, of classes of a value and above."""
    living = [one for one in fleet.residents if one.team == fleet.team and not one.leaves]
    return sum(one.value is None or one.value >= least for one in living)


def goes(one: Resident, fleet: Fleet) -> bool:
    """Tell whether one may give way to the new replica."""
    preempts = fleet.named == "production"
    if one.leaves or one.value is None or rank(one) >= (1000 if preempts else 0):
        return False
    same_team = one.team == fleet.team and one.team in fleet.guaranteed
    if one.word == "Borrowed":
        return preempts or not same_team
    return not one.word or same_team


def sets_of(living: list[Resident], fleet: Fleet) -> Iterator[Sequence[Resident]]:
    """Every set of those that may give way, of each deployment the cheapest that it spares."""
    lower = sorted((one for one in living if goes(one, fleet)), key=dear)
    spent, able = Counter[tuple[str, str]](), []
    for one in lower:
        holder = (one.team, one.deployment)
        budget = min(other.spare for other in lower if (other.team, other.deployment) == holder)
        spent[holder] += one.is_ready
        if not one.is_ready or spent[holder] <= budget:
            able.append(one)
    for size in range(len(able) + 1):
        yield from combinations(able, size)


def expected(fleet: Fleet) -> tuple[str, set[str]] | None:
    """The cluster and who is to give way; None where nobody can, or it has no right to it."""
    preempts, guaranteed = fleet.named == "production", fleet.guaranteed.get(fleet.team)
    total = sum(one.team == fleet.team for one in fleet.residents)
    if fleet.most is not None and total + fleet.needs > fleet.most:
        return None
    if guaranteed is None and not preempts:
        return None
    if guaranteed is not None and held(fleet, 1000 if preempts else -1) + fleet.needs > guaranteed:
        return None
    ways = []
    for cluster, nodes in fleet.sizes.items():
        living = [one for one in fleet.residents if one.cluster == cluster and not one.leaves]
        enough = [gone for gone in sets_of(living, fleet) if nodes - len(living) + len(gone) >= fleet.needs]
        if enough:
            best = min(enough, key=lambda gone: sorted(map(dear, gone), reverse=True))
            values = sorted((rank(one) for one in best if one.is_ready), reverse=True)
            ways.append((values, sum(not one.is_ready for one in best), cluster, {one.name for one in best}))
    return min(ways, key=lambda way: way[:3])[2:] if ways else None


def noted(fleet: Fleet) -> str:
    """How the new replica stands where there is room for it."""
    most = fleet.guaranteed.get(fleet.team)
    if most is None:
        return ""
    within = held(fleet, VALUES[fleet.named]) + fleet.needs <= most
    return f"{'Within' if within else 'Borrowed'} {fleet.team}"


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_it_is_what_the_rules_say(number: int) -> None:
    happened = Counter[str]()
    for seed in scale.batch(number, 800, 20_000, 100_000):
        fleet = drawn(seed)
        engine = build.engine(members=[build.member(devices=[build.request("gpu", 8)])], copies=fleet.needs)
        ours = ask(engines=[engine])
        ours["metadata"] |= {"name": "chat", "uid": build.uid("chat"), "namespace": NAMESPACES[fleet.team]}
        if fleet.named:
            ours["spec"]["placement"] = {"priorityClassName": fleet.named}
        settings = {"overcommit": "Yield", "priorityClasses": CLASSES, "quotas": quotas(fleet)}
        listed = [one.manifest(NAMESPACES[one.team]) for one in fleet.residents]
        answer = run(World(ours, arbitrating(**fleet.sizes), listed, input=settings))
        on = Counter(one.cluster for one in fleet.residents)
        roomy = any(nodes - on[cluster] >= fleet.needs for cluster, nodes in fleet.sizes.items())
        total = sum(one.team == fleet.team for one in fleet.residents)
        allowed = fleet.most is None or total + fleet.needs <= fleet.most
        if roomy and any(nodes < on[cluster] for cluster, nodes in fleet.sizes.items()):
            # Those that are too many elsewhere get a place before it, and may take this one.
            happened["queue"] += 1
            continue
        if roomy and allowed:
            [made] = answer.replicas.values()
            assert f"{PREFIX}preempting" not in made["metadata"]["labels"], f"seed {seed}: there is room"
            assert made["metadata"]["annotations"].get(f"{PREFIX}guarantee", "") == noted(fleet), (
                f"seed {seed}"
            )
            happened["free"] += 1
            continue
        wanted = expected(fleet)
        placed = [
            (one.identity.cluster, {victim.name for victim in one.preempts or ()})
            for one in answer.decision.placed
        ]
        assert placed == ([] if wanted is None else [wanted]), f"seed {seed}"
        happened["placed" if placed else "waits"] += 1
        happened["reclaimed"] += bool(placed) and fleet.named != "production"
        happened["several"] += bool(placed) and len(placed[0][1]) > 1
    assert all(happened[what] for what in ("free", "placed", "waits", "reclaimed")), happened
