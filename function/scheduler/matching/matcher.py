"""Fit: which pools of a cluster the engines of a replica can use, capacity aside.

The rules are in `options` (an engine on pools) and `resolve` (a member on a pool's devices). What does not
depend on a cluster's name or on what is free there is computed once per distinct shape, as far as the
deployment tells shapes apart (`alike`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, cast

from function.api import Pool
from function.api.reasons import Reason, Rejection
from function.scheduler.budget import ALLOWANCE, CallBudget, OutOfSteps
from function.scheduler.matching.devices import Match, resolve, resolve_every
from function.scheduler.matching.engine_options import (
    EngineOption,
    across,
    alone,
    may_strand,
    stranding,
    variants,
)
from function.scheduler.matching.equivalence import Alike
from function.scheduler.matching.published_value import Gap

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from function.api import Device, DeviceRequest, Engine, InferenceCluster, Member, StampedMember
    from function.api.deployment import NodeSelector, SubRequest
    from function.scheduler.budget import Budget
    from function.scheduler.matching.engine_options import Verdict, Verdicts
    from function.scheduler.scheduling_input import SchedulingInput


T = TypeVar("T")


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


KNOWN, KNOWN_CLUSTERS, KNOWN_LISTS = 256, 512, 1_024
"""Pool shapes, combinations of them on a cluster, and device lists told apart, remembered from pass to pass
for one deployment."""


class Known:
    """What was found out about a deployment's members and engines on pool shapes.

    It depends on nothing else, so it holds for as long as the deployment does; one that is reused from an
    earlier call brings it along. What is known by identity is kept alive here, so that an identity never
    comes to mean something else. Safe for many threads: at worst something is found out twice.
    """

    def __init__(self) -> None:
        """Know nothing."""
        self.numbers = count()
        self.alike: dict[Hashable, int] = {}
        self.shapes: dict[object, tuple[int, object]] = {}
        self.rows: dict[tuple[int, int], tuple[Engine, tuple[Verdict, ...]]] = {}
        self.members: dict[tuple[int, int], tuple[Member, Verdict]] = {}
        self.asked: dict[NodeSelector | None, int] = {}
        self.asking: dict[int, tuple[Member, int]] = {}
        self.matches: dict[tuple[int, int], Verdict] = {}
        self.stamped: dict[tuple[object, ...], tuple[Member, Verdict]] = {}
        self.singles: dict[tuple[int, int, int], tuple[Engine, EngineOption | Rejection, bool]] = {}
        self.clusters: dict[tuple[object, ...], ClusterFit] = {}

    @classmethod
    def of(cls, inputs: SchedulingInput) -> Known:
        """What is known of a question's deployment, unless that has become too much.

        It was found within the steps that every search has of its own, so it depends on no other search.
        """
        steps = min(inputs.config.search_budget, ALLOWANCE)
        notes, name = inputs.deployment.notes, f"fits within {steps} steps"
        found = notes.get(name)
        if found is None or found.too_much:
            notes.clear()  # What else is noted may hold devices that nothing will know of any more.
            found = notes[name] = cls()
        return found

    @property
    def entries(self) -> int:
        """How many things are known."""
        return sum(len(held) for held in vars(self).values() if isinstance(held, dict))

    def apart(self) -> Known:
        """A copy for one pass, for what must not be remembered longer."""
        copied = Known()
        for name, held in vars(self).items():
            setattr(copied, name, held.copy() if isinstance(held, dict) else held)
        return copied

    @property
    def too_much(self) -> bool:
        """Whether it takes more room than a deployment has."""
        return len(self.alike) > KNOWN or len(self.shapes) > KNOWN_LISTS or len(self.stamped) > KNOWN_CLUSTERS


class Fits:
    """Computes fits for one pass: what is asked of a pool shape, and engines on pool shapes, once each."""

    def __init__(self, inputs: SchedulingInput, budget: CallBudget | None = None) -> None:
        """Take the question and the steps of this call; nothing is computed yet."""
        self._inputs = inputs
        self.budget = budget or CallBudget.of(inputs)
        self._hard: dict[tuple[object, ...], Any] = {}
        self._known = Known.of(inputs)
        self._clusters: dict[tuple[object, ...], ClusterFit] = {}
        self.matched = 0
        """How many pairs of what members ask for and pool shapes were matched."""

    @cached_property
    def _alike(self) -> Alike:
        """What tells device lists apart; a pass that knows every shape does not need it."""
        return Alike(self._inputs)

    def shape_of(self, pool: Pool) -> int:
        """Number a pool's shape: equal numbers mean equal matches."""
        known, node = self._known, pool.node if self._inputs.reads_nodes else None
        key = (pool.shape, node)
        found = known.shapes.get(key)
        if found is None:
            number = known.alike.setdefault((self._alike.of(pool.devices), node), next(known.numbers))
            found = known.shapes[key] = (number, pool.devices)
        return found[0]

    def member(self, member: Member, pool: Pool, shape: int) -> Verdict:
        """Match one member against one pool."""
        key = (id(member), shape)
        found = self._known.members.get(key)
        if found is None:
            verdict = self._asked(member, pool, shape)
            if isinstance(verdict, Rejection):
                verdict = verdict.at(member=member.role)
            found = self._known.members[key] = (member, verdict)
        return found[1]

    def _asked(self, member: Member, pool: Pool, shape: int) -> Verdict:
        """Match what a member asks for, whoever asks: the roles of most gangs ask for the same."""
        known = self._known
        asking = known.asking.get(id(member))
        if asking is None:
            number = known.asked.setdefault(member.node_selector, next(known.numbers))
            asking = known.asking[id(member)] = (member, number)
        key = (asking[1], shape)
        found = known.matches.get(key)
        if found is None:
            self.matched += 1
            found = self._match(member, pool)
            self._known.matches[key] = found
        return found

    def as_stamped(self, member: Member, stamped: StampedMember, pool: Pool) -> Verdict:
        """Match a member against its pinned pool, using only entries that give the requests as stamped."""
        key = (id(member), stamped.requests, self.shape_of(pool))
        found = self._known.stamped.get(key)
        if found is None:
            found = self._known.stamped[key] = (member, self._match_stamped(member, stamped, pool))
        return found[1]

    def _match_stamped(self, member: Member, stamped: StampedMember, pool: Pool) -> Verdict:
        claims = {each.name: (each.device_class, each.count) for each in stamped.requests}

        def allowed(request: DeviceRequest, sub: SubRequest, device: Device) -> bool:
            claimed = claims.get(request.name)
            if claimed is None:
                return not device.claimable
            return device.claimable and claimed == (device.device_class_name, sub.count)

        return self._within(
            ("stamped", id(member), stamped.requests, pool),
            lambda budget: resolve(
                self._inputs.selectors, member, pool.devices or (), budget=budget, allowed=allowed
            ),
        )

    def _within(self, key: tuple[object, ...], run: Callable[[Budget], T]) -> T:
        """Run a search within the call's budget.

        What a hard one finds depends on what others left to it: it is remembered for this pass only, and for
        equal pools, so that it is run as often whichever of them share their device lists.
        """
        key = tuple(part.canonical if isinstance(part, Pool) else part for part in key) if self._hard else key
        if key in self._hard:
            return cast("T", self._hard[key])
        budget = self.budget.open()
        found = run(budget)
        if self.budget.settle(budget):
            if not self._hard:
                self._known = self._known.apart()
                key = tuple(part.canonical if isinstance(part, Pool) else part for part in key)
            self._hard[key] = found
        return found

    def _row(self, engine: Engine, pool: Pool, shape: int) -> tuple[Verdict, ...]:
        """Match every member of an engine against one pool."""
        key = (id(engine), shape)
        found = self._known.rows.get(key)
        if found is None:
            row = tuple(self.member(member, pool, shape) for member in engine.members)
            found = self._known.rows[key] = (engine, row)
        return found[1]

    def _match(self, member: Member, pool: Pool) -> Verdict:
        barred = self._barred(member, pool)
        if barred is not None:
            return barred
        return self._within(
            ("match", member.node_selector, pool),
            lambda budget: resolve(self._inputs.selectors, member, pool.devices or (), budget=budget),
        )

    def node_verdict(self, member: Member, pool: Pool) -> Rejection | None:
        """Ask the member's selectors on the pool itself."""
        barred = self._barred(member, pool)
        return None if barred is None else barred.at(member=member.role)

    def _barred(self, member: Member, pool: Pool) -> Rejection | None:
        selectors = self._inputs.selectors
        for index, each in enumerate(member.node_selector.selectors if member.node_selector else ()):
            said = selectors.evaluations.outcome(selectors.node[each.cel], pool.node)
            if said.kind != "match":
                reason = Reason.NodeSelectorMismatch if said.kind == "nomatch" else Reason.NodeSelectorError
                selector = selectors.node[each.cel]
                gap = Gap(said.message) if said.message else selectors.gap(selector, pool.node)
                return Rejection(reason, detail=gap.has, wants=gap.wants, selector=index)
        return None

    def cluster(self, engines: Sequence[Engine], cluster: InferenceCluster) -> ClusterFit:
        """Fit the engines of one shape of the deployment on a cluster."""
        spread = any(engine.pool_policy == "SameFabric" for engine in engines)
        fabrics = tuple(pool.fabrics for pool in cluster.pools) if spread else ()
        charged = tuple(pool.accounting for pool in cluster.pools) if cluster.counts_devices else ()
        nodes = tuple(pool.node for pool in cluster.pools) if self._inputs.reads_nodes else ()
        key = (*map(id, engines), cluster.shapes, fabrics, charged, nodes)
        found = self._known.clusters.get(key) or self._clusters.get(key)
        if found is None:
            numbers = tuple(self.shape_of(pool) for pool in cluster.pools)
            found = ClusterFit(tuple(self._engine(engine, cluster.pools, numbers) for engine in engines))
            room = len(self._known.clusters) < KNOWN_CLUSTERS
            (self._known.clusters if room else self._clusters)[key] = found
        return found

    def _engine(self, engine: Engine, pools: Sequence[Pool], numbers: Sequence[int]) -> EngineFit:
        verdicts = [self._row(engine, pool, number) for pool, number in zip(pools, numbers, strict=True)]
        options: list[EngineOption] = []
        rejections: list[tuple[int, Rejection]] = []
        for at, number in enumerate(numbers):
            found = self._single(engine, at, number, verdicts)
            if isinstance(found, Rejection):
                rejections.append((at, found))
            else:
                options.append(found)
        if engine.pool_policy == "SameFabric":
            options.extend(across(engine, pools, verdicts))
        options, cut_short = self._varied(engine, pools, options)
        scattered = bool(options) or _scattered(verdicts, len(engine.members))
        return EngineFit(engine, tuple(options), tuple(rejections), scattered, cut_short)

    def _single(self, engine: Engine, at: int, number: int, verdicts: Verdicts) -> EngineOption | Rejection:
        """The engine on one pool; what does not depend on the cluster's other pools is found once."""
        key = (id(engine), at, number)
        known = self._known.singles.get(key)
        if known is None:
            found = alone(engine, verdicts[at], (at,) * len(engine.members))
            strands = not isinstance(found, Rejection) and may_strand(engine, found)
            known = self._known.singles[key] = (engine, found, strands)
        _, found, strands = known
        return stranding(engine, verdicts, found) if strands and isinstance(found, EngineOption) else found

    def _varied(
        self, engine: Engine, pools: Sequence[Pool], options: list[EngineOption]
    ) -> tuple[list[EngineOption], bool]:
        """Add, on pools that charge devices, the other claims that would do: those may find devices free."""
        if all(pool.accounting == "Node" for pool in pools):
            return options, False
        varied, cut_short = [], False
        for each in options:
            found = [
                self._every(member, pools[at], match)
                for member, at, match in zip(engine.members, each.pools, each.matches, strict=True)
            ]
            others, cut = self._within(
                ("variants", id(engine), each.pools, *pools),
                partial(_counted, variants(engine, each, [matches for matches, _ in found])),
            )
            varied += [each, *others]
            cut_short = cut_short or cut or any(cut for _, cut in found)
        return varied, cut_short

    def _every(self, member: Member, pool: Pool, first: Match) -> tuple[tuple[Match, ...], bool]:
        """Every match of a member on a pool that claims differently, and whether some may be missing."""
        if pool.accounting == "Node" or not first.claims:
            return (first,), False
        return self._within(
            ("every", member.node_selector, pool),
            lambda budget: resolve_every(self._inputs.selectors, member, pool.devices or (), budget=budget),
        )


def _counted(options: Iterator[EngineOption], budget: Budget) -> tuple[list[EngineOption], bool]:
    """As many options as there are steps for, and whether there are more."""
    found: list[EngineOption] = []
    try:
        for each in options:
            budget.step()
            found.append(each)
    except OutOfSteps:
        return found, True
    return found, False


def _scattered(verdicts: Verdicts, members: int) -> bool:
    return all(any(isinstance(row[at], Match) for row in verdicts) for at in range(members))
