"""Fit: which pools of a cluster the engines of a replica can use, capacity aside.

The rules are in `options` (an engine on pools) and `resolve` (a member on a pool's devices). What does not
depend on a cluster's name or on what is free there is computed once per distinct shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from function.scheduler.actual import actual
from function.scheduler.options import EngineOption, across, alone, stranding, variants
from function.scheduler.reason import Reason, Rejection
from function.scheduler.resolve import Match, resolve, resolve_every

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.api import Engine, InferenceCluster, Member, Pool
    from function.scheduler.options import Verdict, Verdicts
    from function.scheduler.question import Question


@dataclass(frozen=True, slots=True)
class EngineFit:
    """The options of one engine on a cluster, and why each pool that is none is none."""

    engine: Engine
    options: tuple[EngineOption, ...]
    rejections: tuple[tuple[int, Rejection], ...]
    scattered: bool = False
    """Whether every member fits some pool, so that only being together stands in the way."""
    cut_short: bool = False
    """Whether there may be more options than the budget allowed to find."""


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
        self._singles: dict[tuple[int, int, int], EngineOption | Rejection] = {}
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
        numbers = tuple(self.shape_of(pool) for pool in pools)
        spread = any(engine.pool_policy == "SameFabric" for engine in engines)
        fabrics = tuple(pool.fabrics for pool in pools) if spread else ()
        charged = tuple(pool.accounting for pool in pools) if cluster.counts_devices else ()
        key = (shape, numbers, fabrics, charged)
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
            found = self._single(engine, at, numbers[at], verdicts)
            if isinstance(found, Rejection):
                rejections.append((at, found))
            else:
                options.append(found)
        if engine.pool_policy == "SameFabric":
            options.extend(across(engine, pools, verdicts))
        options, cut_short = self._varied(engine, pools, options)
        scattered = _scattered(verdicts, len(engine.members))
        return EngineFit(engine, tuple(options), tuple(rejections), scattered, cut_short)

    def _single(self, engine: Engine, at: int, number: int, verdicts: Verdicts) -> EngineOption | Rejection:
        """The engine on one pool; what does not depend on the cluster's other pools is found once."""
        key = (id(engine), at, number)
        found = self._singles.get(key)
        if found is None:
            found = self._singles[key] = alone(engine, verdicts[at], (at,) * len(engine.members))
        return found if isinstance(found, Rejection) else stranding(engine, verdicts, found)

    def _varied(
        self, engine: Engine, pools: Sequence[Pool], options: list[EngineOption]
    ) -> tuple[list[EngineOption], bool]:
        """Add, on pools that charge devices, the other claims that would do: those may find devices free."""
        if all(pool.accounting == "Node" for pool in pools):
            return options, False
        varied, cut_short = [], False
        limit = self._question.config.search_budget
        for each in options:
            found = [
                self._every(member, pools[at], match)
                for member, at, match in zip(engine.members, each.pools, each.matches, strict=True)
            ]
            others = list(islice(variants(engine, each, [matches for matches, _ in found]), limit))
            varied += [each, *others]
            cut_short = cut_short or len(others) == limit or any(cut for _, cut in found)
        return varied, cut_short

    def _every(self, member: Member, pool: Pool, first: Match) -> tuple[tuple[Match, ...], bool]:
        """Every match of a member on a pool that claims differently, and whether some may be missing."""
        if pool.accounting == "Node" or not first.claims:
            return (first,), False
        steps = self._question.config.search_budget
        return resolve_every(self._question.selectors, member, pool.devices or (), steps=steps)


def _scattered(verdicts: Verdicts, members: int) -> bool:
    return all(any(isinstance(row[at], Match) for row in verdicts) for at in range(members))
