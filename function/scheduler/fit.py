"""Fit: which pools of a cluster an engine can use, capacity aside.

Every member of an engine goes on one pool (a gang talks over its pool's fabric), unless the engine allows
proven-equal fabrics. An engine none of whose members claims a device does not fit (its pods would bind no
GPU), and a pool must not strand a member on Synthetic matches that could claim a device on another pool of
the cluster. What does not depend on a cluster's name or its free nodes is computed once per distinct shape.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING

from function.scheduler.actual import actual
from function.scheduler.reason import Reason, Rejection, combined
from function.scheduler.resolve import Match, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from function.api import Engine, InferenceCluster, Member, Pool
    from function.scheduler.question import Question

Verdict = Match | Rejection


@dataclass(frozen=True, slots=True)
class EngineOption:
    """One way to put an engine on a cluster, pools by their position."""

    pools: tuple[int, ...]
    """The pool of each member."""
    matches: tuple[Match, ...]
    """What each member claims there."""
    nodes: tuple[tuple[int, int], ...]
    """Nodes it takes, by pool."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks chosen by firstAvailable, over all members."""
        return tuple(rank for match in self.matches for rank in match.ranks)


@dataclass(frozen=True, slots=True)
class EngineFit:
    """The options of one engine on a cluster, and why each pool that is none is none."""

    engine: Engine
    options: tuple[EngineOption, ...]
    rejections: tuple[tuple[int, Rejection], ...]
    scattered: bool = False
    """Whether every member fits some pool, so that only being together stands in the way."""


@dataclass(frozen=True, slots=True)
class ClusterFit:
    """The options of every engine on one cluster."""

    engines: tuple[EngineFit, ...]

    @property
    def possible(self) -> bool:
        """Whether every engine has an option, capacity aside."""
        return all(each.options for each in self.engines)


class Fits:
    """Computes fits for one pass, each distinct (member, pool shape) and (engines, pool shapes) once."""

    def __init__(self, question: Question) -> None:
        """Take the question; nothing is computed yet."""
        self._question = question
        self._shapes: dict[object, int] = {}
        self._members: dict[tuple[int, int], Verdict] = {}
        self._clusters: dict[tuple[object, ...], ClusterFit] = {}
        self.matched = 0
        """How many (member, pool shape) pairs were matched."""

    def shape_of(self, pool: Pool) -> int:
        """Number a pool's shape: equal numbers mean equal matches."""
        key = (pool.shape, pool.node) if self._question.reads_nodes else pool.shape
        return self._shapes.setdefault(key, len(self._shapes))

    def member(self, member: Member, pool: Pool, shape: int) -> Verdict:
        """Match one member against one pool."""
        key = (id(member), shape)
        found = self._members.get(key)
        if found is None:
            self.matched += 1
            found = self._members[key] = self._match(member, pool)
        return found

    def _match(self, member: Member, pool: Pool) -> Verdict:
        barred = self.node_verdict(member, pool)
        if barred is not None:
            return barred
        steps = self._question.config.search_budget
        found = resolve(self._question.selectors, member, pool.devices or (), steps=steps)
        return found.at(member=member.role) if isinstance(found, Rejection) else found

    def node_verdict(self, member: Member, pool: Pool) -> Rejection | None:
        """Ask the member's selectors on the pool itself."""
        selectors = self._question.selectors
        for index, each in enumerate(member.node_selector.selectors if member.node_selector else ()):
            said = selectors.evaluations.outcome(selectors.node[each.cel], pool.node)
            if said.kind != "match":
                reason = Reason.NodeSelectorMismatch if said.kind == "nomatch" else Reason.NodeSelectorError
                detail = said.message or actual(selectors.node[each.cel], pool.node)
                return Rejection(reason, detail=detail, member=member.role, selector=index)
        return None

    def cluster(self, shape: int, engines: Sequence[Engine], cluster: InferenceCluster) -> ClusterFit:
        """Fit the engines of one shape of the deployment on a cluster."""
        pools = cluster.pools
        fabrics = (
            tuple(pool.fabric for pool in pools)
            if any(e.pool_policy == "SameFabric" for e in engines)
            else ()
        )
        numbers = tuple(self.shape_of(pool) for pool in pools)
        key = (shape, numbers, fabrics)
        found = self._clusters.get(key)
        if found is None:
            found = ClusterFit(tuple(self._engine(engine, pools, numbers) for engine in engines))
            self._clusters[key] = found
        return found

    def _engine(self, engine: Engine, pools: Sequence[Pool], numbers: Sequence[int]) -> EngineFit:
        verdicts = [
            [self.member(member, pool, number) for member in engine.members]
            for pool, number in zip(pools, numbers, strict=True)
        ]
        options: list[EngineOption] = []
        rejections: list[tuple[int, Rejection]] = []
        for at in range(len(pools)):
            found = _option(engine, verdicts, (at,) * len(engine.members))
            if isinstance(found, Rejection):
                rejections.append((at, found))
            else:
                options.append(found)
        if engine.pool_policy == "SameFabric":
            steps = self._question.config.search_budget
            options.extend(islice(_across(engine, pools, verdicts), steps))
        return EngineFit(engine, tuple(options), tuple(rejections), _scattered(verdicts, len(engine.members)))


def _scattered(verdicts: Sequence[Sequence[Verdict]], members: int) -> bool:
    return all(any(isinstance(row[at], Match) for row in verdicts) for at in range(members))


def _option(
    engine: Engine, verdicts: Sequence[Sequence[Verdict]], pools: tuple[int, ...]
) -> EngineOption | Rejection:
    """Put the engine's members on these pools, or say what stands against it."""
    found = [verdicts[pool][at] for at, pool in enumerate(pools)]
    barred = [each for each in found if isinstance(each, Rejection)]
    if barred:
        return combined(barred)
    matches = [each for each in found if isinstance(each, Match)]
    if not any(match.claims for match in matches):
        return Rejection(Reason.NothingClaimable, detail="no member would bind a device")
    for at, member in enumerate(engine.members):
        if member.requests and not matches[at].claims and _claims_elsewhere(verdicts, at):
            return Rejection(
                Reason.NothingClaimable, detail="could bind a device on another pool", member=member.role
            )
    return EngineOption(pools, tuple(matches), _nodes(engine, pools, matches))


def _claims_elsewhere(verdicts: Sequence[Sequence[Verdict]], at: int) -> bool:
    return any(isinstance(row[at], Match) and row[at].claims for row in verdicts)  # type: ignore[union-attr]


def _nodes(engine: Engine, pools: tuple[int, ...], matches: Sequence[Match]) -> tuple[tuple[int, int], ...]:
    """Count nodes: pods x copies of every member that claims a device."""
    taken: dict[int, int] = defaultdict(int)
    for member, pool, match in zip(engine.members, pools, matches, strict=True):
        if match.claims:
            taken[pool] += member.pods * engine.copies
    return tuple(sorted(taken.items()))


def _across(
    engine: Engine, pools: Sequence[Pool], verdicts: Sequence[Sequence[Verdict]]
) -> Iterator[EngineOption]:
    """Spread an engine's members over pools of one proven fabric, in declaration order."""
    fabrics = dict.fromkeys(pool.fabric for pool in pools if pool.fabric)
    for fabric in fabrics:
        same = [at for at, pool in enumerate(pools) if pool.fabric == fabric]
        for chosen in product(same, repeat=len(engine.members)):
            if len(set(chosen)) > 1:
                found = _option(engine, verdicts, chosen)
                if isinstance(found, EngineOption):
                    yield found
