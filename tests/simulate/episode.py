"""Episodes: a fleet from a seed, things happen to it, and the promises are looked at after every step.

Whole days (`swarm`) have engines and pools of one or two shapes, and are at rest after minutes. Here devices,
labels and policies are drawn freely, and after the last event three reconciles are enough.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tests.simulate import events
from tests.simulate.plane import Deployment, Plane
from tests.support import build, law, optins, parts
from tests.support.promises import gates, identity, ledger, opted_in
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.support.drive import Answer

    Event = Callable[[parts.Source, Plane], Any]
    Check = Callable[[World, Answer], None]

Plain = dict[str, Any]

CALLS = 2
"""Requirements settle in the second call at the latest."""
SETTLES = 3
"""After the last event, this many reconciles at most until nothing changes."""
PATIENCE = 40
"""Rounds of nothing but objects going and replicas starting until all is quiet."""


class BrokenPromise(AssertionError):
    """A promise was broken."""


def plane(draw: parts.Source) -> Plane:
    """Return a control plane with a fleet and one or two deployments."""
    names = parts.CLUSTERS[: draw.choice((1, 2, 3, 4))]
    clusters = {name: parts.cluster(draw, name, parts.CALM) for name in names}
    made = [_deployment(draw, clusters, "ml-team")]
    if draw.odds(0.4):
        made.append(_deployment(draw, clusters, "ads"))
    return Plane(clusters, made, caches=[build.cache("weights"), build.cache("weights", namespace="ads")])


def _deployment(draw: parts.Source, clusters: dict[str, Plain], namespace: str) -> Deployment:
    plain = parts.deployment(draw, list(clusters.values()), parts.CALM)
    plain["metadata"] |= {"namespace": namespace, "uid": build.uid(namespace, "my-model")}
    return Deployment(plain)


def opted(seed: int) -> Plane:
    """Return a control plane whose clusters, deployments and function use opt-in fields."""
    made = plane(parts.Source(seed))
    for number, of in enumerate(made.deployments):
        world = World(of.plain, list(made.clusters.values()) if number == 0 else ())
        world = optins.opted(parts.Source(f"opted {seed} {number}"), world)
        of.plain = world.deployment
        made.clusters.update({cluster["metadata"]["name"]: cluster for cluster in world.clusters or ()})
        made.input = made.input or world.input
    return made


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


def live(seed: int, steps: int = 12) -> Plane:
    """Live through an episode."""
    draw = parts.Source(seed)
    return _live(seed, draw, plane(draw), events.EVENTS, check, steps)


def live_opted(seed: int, steps: int = 12) -> Plane:
    """Live through an episode in which opt-in fields are in use."""
    return _live(seed, parts.Source(f"life {seed}"), opted(seed), events.OPTED, check_opted, steps)


def _live(
    seed: int, draw: parts.Source, lived: Plane, kinds: Sequence[Event], look: Check, steps: int
) -> Plane:
    complaints: list[str] = []
    try:
        for _ in range(steps):
            event = draw.choice(kinds)
            complaints.append(event.__name__)
            event(draw, lived)
            if draw.odds(0.5):
                lived.age()
            _reconcile(lived, look)
        events.reads_catch_up(draw, lived)
        settle(draw, lived, look)
    except AssertionError as broken:
        raise BrokenPromise(f"seed {seed}, after {', '.join(complaints)}: {broken}") from broken
    return lived


def _reconcile(lived: Plane, look: Check) -> list[dict[str, Plain]]:
    """Reconcile every deployment once, and return what is desired."""
    for deployment in lived.deployments:
        lived.reconcile(deployment, look)
        if deployment.calls > CALLS + 1:
            raise BrokenPromise(f"{deployment.calls} calls until the requirements settled")
    return [copy.deepcopy(deployment.desired or {}) for deployment in lived.deployments]


def settle(draw: parts.Source, lived: Plane, look: Check) -> None:
    """Let everything come to rest: after each last event three reconciles are enough, and it stays so."""
    for _ in range(PATIENCE):
        said = [_reconcile(lived, look) for _ in range(SETTLES + 2)]
        if said[SETTLES - 1] != said[SETTLES] or said[SETTLES] != said[SETTLES + 1]:
            raise BrokenPromise(f"still changing after {SETTLES} reconciles: {_changes(said)}")
        if not lived.age() and not events.starts(draw, lived) and not lived.dying:
            return
    raise BrokenPromise(f"no rest after {PATIENCE} rounds")


def _changes(said: list[list[dict[str, Plain]]]) -> list[list[list[str]]]:
    return [[sorted(item) for item in one] for one in said]
