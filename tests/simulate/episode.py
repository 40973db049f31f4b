"""Episodes: a fleet from a seed, things happen to it, and the promises are looked at after every step.

Whole days (`swarm`) have engines and pools of one or two shapes, and are at rest after minutes. Here devices,
labels and policies are drawn freely, and after the last event three reconciles are enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulate import events
from tests.simulate.driven import DEPLOYMENT, Driven
from tests.support import build, law, optins, parts
from tests.support.crossplane import VERSIONS, WATCHING
from tests.support.promises import gates, identity, ledger, opted_in
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.support.drive import Answer

    Event = Callable[[parts.Source, Driven], Any]
    Check = Callable[[World, Answer], None]

Plain = dict[str, Any]

CALLS = 3
"""Requirements settle in the second call at the latest, and the third says so."""
TAKES_BACK = 1
"""One more before 2.4, where no block hands everything over: it takes back what is not to be watched."""
SETTLES = 3
"""After the last event, this many reconciles at most until nothing changes."""
PATIENCE = 40
"""Rounds of nothing but objects going and replicas starting until all is quiet."""


class BrokenPromise(AssertionError):
    """A promise was broken."""


def fleet(draw: parts.Source) -> tuple[list[Plain], list[Plain]]:
    """Return a few clusters, and one or two deployments."""
    names = parts.CLUSTERS[: draw.choice((1, 2, 3, 4))]
    clusters = [parts.cluster(draw, name, parts.CALM) for name in names]
    deployments = [_deployment(draw, clusters, "ml-team")]
    if draw.odds(0.4):
        deployments.append(_deployment(draw, clusters, "ads"))
    return clusters, deployments


def _deployment(draw: parts.Source, clusters: list[Plain], namespace: str) -> Plain:
    plain = parts.deployment(draw, clusters, parts.CALM)
    plain["metadata"] |= {"namespace": namespace, "uid": build.uid(namespace, "my-model")}
    return plain


def driven(
    seed: int, clusters: list[Plain], deployments: list[Plain], look: Check, given: Plain | None = None
) -> Driven:
    """Return a control plane of any version, with a bootstrap block or as we ship it."""
    caches = [build.cache("weights"), build.cache("weights", namespace="ads")]
    objects = [*clusters, *caches, *deployments]
    version, block = VERSIONS[seed % 3], seed // 3 % 2 == 0
    return Driven(objects, look, given=given, version=version, block=block)


def opted(seed: int) -> Driven:
    """Return a control plane whose clusters, deployments and function use opt-in fields."""
    clusters, deployments = fleet(parts.Source(seed))
    given: Plain | None = None
    for number, plain in enumerate(deployments):
        world = World(plain, clusters if number == 0 else ())
        world = optins.opted(parts.Source(f"opted {seed} {number}"), world)
        deployments[number] = world.deployment
        clusters = list(world.clusters or ()) or clusters
        given = given or world.input
    return driven(seed, clusters, deployments, check_opted, given)


def check_opted(world: World, answer: Answer) -> None:
    """Look at the promises that hold with opt-in fields; the checker reads capacity and gates."""
    complaints = list(law.unexplained(world, answer))
    if answer.fatal:
        complaints.append("the answer is fatal")
    if readable(world):
        for promise in (
            opted_in.uncertified,
            ledger.too_many,
            opted_in.split,
            opted_in.ready_yields,
            identity.moved,
            identity.reused,
            gates.dead_ends,
        ):
            complaints += promise(world, answer)
    if complaints:
        raise BrokenPromise(f"{complaints}\n{world.dump()}")


def check(world: World, answer: Answer) -> None:
    """Look at the promises on one request and its answer."""
    complaints = law.unexplained(world, answer)
    if answer.fatal:
        complaints.append("the answer is fatal")
    if readable(world):
        for promise in (ledger.overcharged, ledger.too_many, identity.moved, identity.reused, identity.split):
            complaints += promise(world, answer)
        complaints += [*gates.barred(world, answer), *gates.dead_ends(world, answer)]
    if complaints:
        raise BrokenPromise(f"{complaints}\n{world.dump()}")


def readable(world: World) -> bool:
    """Say whether every cluster can be read."""
    return all(
        isinstance(cluster.get("status", {}), dict)
        and isinstance(cluster.get("status", {}).get("gpuPools", []), list)
        and all(isinstance(one, dict) for one in cluster.get("status", {}).get("gpuPools", []))
        for cluster in world.clusters or ()
    )


def live(seed: int, steps: int = 12) -> Driven:
    """Live through an episode."""
    draw = parts.Source(seed)
    return _live(seed, draw, driven(seed, *fleet(draw), check), events.EVENTS, steps)


def live_opted(seed: int, steps: int = 12) -> Driven:
    """Live through an episode in which opt-in fields are in use."""
    return _live(seed, parts.Source(f"life {seed}"), opted(seed), events.OPTED, steps)


def _live(seed: int, draw: parts.Source, lived: Driven, kinds: Sequence[Event], steps: int) -> Driven:
    happened: list[str] = []
    try:
        for _ in range(steps):
            event = draw.choice(kinds)
            happened.append(event.__name__)
            event(draw, lived)
            if draw.odds(0.5):
                lived.age()
            _reconcile(lived)
        events.reads_catch_up(draw, lived)
        settle(draw, lived)
    except AssertionError as broken:
        raise BrokenPromise(f"seed {seed}, after {', '.join(happened)}: {broken}") from broken
    return lived


def _reconcile(lived: Driven) -> list[dict[str, Plain]]:
    """Reconcile every deployment once, and return what is desired."""
    desired = [dict(lived.reconcile(of).desired) for of in lived.living(DEPLOYMENT)]
    most = CALLS + TAKES_BACK * (lived.version < WATCHING and not lived.has_block)
    if max(lived.calls.values()) > most:
        raise BrokenPromise(f"{lived.calls} calls until the requirements settled")
    return desired


def settle(draw: parts.Source, lived: Driven) -> None:
    """Let everything come to rest: after each last event three reconciles are enough, and it stays so."""
    for _ in range(PATIENCE):
        said = [_reconcile(lived) for _ in range(SETTLES + 2)]
        if said[SETTLES - 1] != said[SETTLES] or said[SETTLES] != said[SETTLES + 1]:
            raise BrokenPromise(f"still changing after {SETTLES} reconciles: {_changes(said)}")
        if not lived.age() and not events.starts(draw, lived) and not lived.leaving():
            return
    raise BrokenPromise(f"no rest after {PATIENCE} rounds")


def _changes(said: list[list[dict[str, Plain]]]) -> list[list[list[str]]]:
    return [[sorted(item) for item in one] for one in said]
