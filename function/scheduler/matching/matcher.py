"""The matcher: which pools of a cluster the engines of a replica can use, capacity aside.

The rules are in `engine_options` (an engine on pools) and `devices` (a member on a pool's devices). What does
not depend on a cluster's name or on what is free there is found out once for each class of equal device lists
(`equivalence`) and kept in the deployment's `FitCache`.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar, cast

from function.api.devices import values_of
from function.api.reasons import DeferredGap, Reason, Rejection
from function.scheduler.budget import ALLOWANCE, CallBudget, OutOfSteps
from function.scheduler.matching.cache import MatchCache, fit_cache
from function.scheduler.matching.devices import Match, Refusal, resolve, resolve_every
from function.scheduler.matching.engine_options import (
    ClusterFit,
    EngineFit,
    EngineOption,
    Row,
    across,
    alone,
    kept_apart,
    may_strand,
    refused,
    stranding,
    variants,
)
from function.scheduler.selectors import gap

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from function.api import Device, DeviceRequest, InferenceCluster, Member, Pool, StampedMember
    from function.api.engine import ReplicaShape, SubRequest
    from function.scheduler.budget import Budget
    from function.scheduler.matching.engine_options import Barred, Unfit, Verdict, Verdicts
    from function.scheduler.scheduling_input import SchedulingInput


# Device equivalence classes: device lists that one deployment cannot tell apart.
#
# A match depends on what the deployment's selectors and constraints read of a device, and on what every
# claim takes (its name, driver, class, count). Nodes that differ in a driver version nobody asks for match
# alike.

MAX_COMPARED = 32
"""Devices x selectors up to which a list is looked at: a node has a few entries, a member a few selectors."""


class DeviceEquivalence:
    """Tells device lists apart as far as a deployment can. Matches on lists of one class are equal.

    They may hold the devices of the other list, which differ in what the deployment does not read.
    """

    def __init__(self, inputs: SchedulingInput) -> None:
        """Note what the deployment reads of a device."""
        self._selectors = inputs.selectors.devices
        named = {
            constraint.match_attribute
            for reference in inputs.deployment.members
            if reference.member.node_selector
            for constraint in reference.member.node_selector.constraints
        }
        self._attributes = tuple(sorted(named))

    def of(self, pool: Pool) -> Hashable:
        """Return what decides every match on a pool's devices; None where it publishes no list of them.

        A long list, or many selectors, would take longer than is saved: then nothing but the list itself is
        like it.
        """
        if pool.devices is None:
            return None
        if len(pool.devices) * len(self._selectors) > MAX_COMPARED:
            return pool.device_key
        return tuple([self._device(device) for device in pool.devices])

    def _device(self, device: Device) -> Hashable:
        subject = device.subject
        return (
            device.name,
            device.driver,
            device.claim,
            device.device_class_name,
            device.count,
            device.domains,
            *(selector.projection(subject) for selector in self._selectors),
            *(values_of(device, name) for name in self._attributes),
        )


T = TypeVar("T")


class Matcher:
    """Matches the members and engines of one deployment on pools, for one pass."""

    def __init__(self, inputs: SchedulingInput, budget: CallBudget | None = None) -> None:
        """Take the input of the pass and the steps of the call; nothing is computed yet."""
        self._inputs = inputs
        self.budget = budget or CallBudget.of(inputs)
        steps = min(inputs.config.search_budget, ALLOWANCE + 1)  # All that have more find the same in theirs.
        self._cache = MatchCache(fit_cache(inputs.deployment, steps, inputs.config.cel_version))
        self.matched = 0
        """How many pairs of what members ask for and classes of pools were matched."""

    @cached_property
    def _equivalence(self) -> DeviceEquivalence:
        """Return the key that tells device lists apart; a pass that knows every list does not need it."""
        return DeviceEquivalence(self._inputs)

    # A cluster

    def fit(self, shape: ReplicaShape, cluster: InferenceCluster) -> ClusterFit:
        """Fit the engines of one shape of the deployment on a cluster."""
        fabrics = tuple(pool.fabrics for pool in cluster.pools) if shape.spreads else ()
        counted = cluster.pools if cluster.counts_devices else ()
        accounting = tuple((pool.accounting, pool.across_nodes) for pool in counted)
        nodes = tuple(pool.node for pool in cluster.pools) if self._inputs.selectors.reads_pools else ()
        key = (shape.name, cluster.device_keys, fabrics, accounting, nodes)
        fit = self._cache.cluster(key)
        if fit is None:
            classes = [self._class_of(pool) for pool in cluster.pools]
            apart = bool(fabrics or accounting)
            fit = (self._fit if apart else self._shared)(shape, cluster.pools, classes)
            self._cache.note_cluster(key, fit, fit.further_options(len(cluster.pools)) if apart else 0)
        return fit

    def _shared(self, shape: ReplicaShape, pools: Sequence[Pool], classes: Sequence[int]) -> ClusterFit:
        """The fit that clusters share whose rows are of the same kinds. Only the rows are searched for."""
        engines, numbered = range(len(shape.engines)), list(zip(pools, classes, strict=True))
        kinds = [self._row(shape, at, pool, number).kind for at in engines for pool, number in numbered]
        key = (shape.name, *kinds)
        fit = self._cache.fits.shared.get(key)
        if fit is None:
            fit = self._fit(shape, pools, classes)
            self._cache.fits.share(key, fit)
        return fit

    def _fit(self, shape: ReplicaShape, pools: Sequence[Pool], classes: Sequence[int]) -> ClusterFit:
        engines = [self._engine(shape, at, pools, classes) for at in range(len(shape.engines))]
        return ClusterFit(shape.name, tuple(engines))

    def _class_of(self, pool: Pool) -> int:
        """Number the equivalence class of a pool."""
        node = pool.node if self._inputs.selectors.reads_pools else None
        number = self._cache.fits.lists.get((pool.device_key, node))
        if number is None:
            decides = (self._equivalence.of(pool), node)
            number = self._cache.fits.classes.setdefault(decides, next(self._cache.fits.numbers))
            self._cache.fits.lists[pool.device_key, node] = number
        return number

    def _engine(
        self, shape: ReplicaShape, at: int, pools: Sequence[Pool], classes: Sequence[int]
    ) -> EngineFit:
        engine = shape.engines[at]
        rows = [self._row(shape, at, pool, number) for pool, number in zip(pools, classes, strict=True)]
        verdicts = [row.verdicts for row in rows]
        options: list[EngineOption] = []
        unfit: list[tuple[int, Unfit]] = []
        for position, row in enumerate(rows):
            outcome = self._single(shape, at, position, row.kind, verdicts)
            if isinstance(outcome, EngineOption):
                options.append(outcome)
            else:
                unfit.append((position, outcome))
        if engine.pool_policy == "SameFabric":
            options.extend(across(engine, pools, verdicts))
        options, cut_short = self._varied(shape, pools, options)
        options = [kept_apart(option, pools) for option in options]
        scattered = bool(options) or _scattered(verdicts, len(engine.members))
        return EngineFit(engine, tuple(options), tuple(unfit), scattered, cut_short)

    def _row(self, shape: ReplicaShape, at: int, pool: Pool, number: int) -> Row:
        """Match every member of an engine against one pool."""
        key = (shape.name, at, number)
        row = self._cache.fits.rows.get(key)
        if row is None:
            members = shape.engines[at].members
            verdicts = tuple([self._of_class(member, pool, number) for member in members])
            kind = self._cache.fits.kinds.setdefault(Row.essence(verdicts), next(self._cache.fits.numbers))
            row = self._cache.fits.rows[key] = Row(verdicts, refused(members, verdicts), kind)
        return row

    def _single(
        self, shape: ReplicaShape, at: int, position: int, kind: int, verdicts: Verdicts
    ) -> EngineOption | Unfit:
        """The engine on one pool; what does not depend on the cluster's other pools is found once."""
        engine, key = shape.engines[at], (shape.name, at, position, kind)
        single = self._cache.fits.singles.get(key)
        if single is None:
            outcome = alone(engine, verdicts[position], (position,) * len(engine.members))
            strands = isinstance(outcome, EngineOption) and may_strand(engine, outcome)
            single = self._cache.fits.singles[key] = (outcome, strands)
        outcome, strands = single
        return (
            stranding(engine, verdicts, outcome) if strands and isinstance(outcome, EngineOption) else outcome
        )

    def _varied(
        self, shape: ReplicaShape, pools: Sequence[Pool], options: list[EngineOption]
    ) -> tuple[list[EngineOption], bool]:
        """Add, on pools that charge devices, the other claims that would do: those may find devices free."""
        if all(pool.accounting == "Node" for pool in pools):
            return options, False
        varied, cut_short = [], False
        for option in options:
            members = zip(option.engine.members, option.pools, option.matches, strict=True)
            ways = [self._every(member, pools[at], match) for member, at, match in members]
            others, cut = self._within(
                "variants",
                (shape.name, option.engine.name, *option.pools),
                pools,
                partial(_counted, variants(option, [matches for matches, _ in ways])),
            )
            varied += [option, *others]
            cut_short = cut_short or cut or any(cut for _, cut in ways)
        return varied, cut_short

    def rejections(self, shape: ReplicaShape, fit: ClusterFit, at: int, pools: Sequence[Pool]) -> Barred:
        """Why each pool of a cluster that is no option for an engine is none.

        What a member lacks is said of the pool itself: clusters that share a fit may lack different things.
        """
        return tuple(
            [
                (position, rejection or self._unfit(shape, at, pools[position]))
                for position, rejection in fit.engines[at].unfit
            ]
        )

    def _unfit(self, shape: ReplicaShape, at: int, pool: Pool) -> Rejection:
        refusal = self._row(shape, at, pool, self._class_of(pool)).refusal
        assert refusal is not None  # noqa: S101 - some member does not fit, or it would be said why not
        return refusal.explained(self._inputs.evaluations)

    # A member

    def member(self, member: Member, pool: Pool) -> Verdict:
        """Match one member against one pool."""
        return self._of_class(member, pool, self._class_of(pool))

    def _of_class(self, member: Member, pool: Pool, number: int) -> Verdict:
        """The same on a pool whose equivalence class is numbered.

        Once for all members that ask for the same: the roles of most gangs do.
        """
        key = (member.node_selector, number)
        verdict = self._cache.fits.matches.get(key)
        if verdict is None:
            self.matched += 1
            verdict = self._noted(self._match(member, pool))
            self._cache.fits.matches[key] = verdict
        return verdict

    def _match(self, member: Member, pool: Pool) -> Verdict:
        barred = self._barred(member, pool)
        if barred is not None:
            return Refusal.of(barred)
        search = partial(resolve, self._inputs.evaluations, member, pool.devices or ())
        return self._within("match", (member.node_selector,), [pool], lambda budget: search(budget=budget))

    def _every(self, member: Member, pool: Pool, first: Match) -> tuple[tuple[Match, ...], bool]:
        """Every match of a member on a pool that claims differently, and whether some may be missing."""
        if pool.accounting == "Node" or not first.claims:
            return (first,), False
        search = partial(resolve_every, self._inputs.evaluations, member, pool.devices or ())
        return self._within("every", (member.node_selector,), [pool], lambda budget: search(budget=budget))

    def as_stamped(self, member: Member, stamped: StampedMember, pool: Pool) -> Verdict:
        """Match a member against its pinned pool, using only entries that give the requests as stamped."""
        key = (member.node_selector, stamped.requests, self._class_of(pool))
        verdict = self._cache.fits.stamped.get(key)
        if verdict is None:
            verdict = self._noted(self._match_stamped(member, stamped, pool))
            self._cache.fits.stamped[key] = verdict
        return verdict

    def _match_stamped(self, member: Member, stamped: StampedMember, pool: Pool) -> Verdict:
        claims = {request.name: (request.device_class, request.count) for request in stamped.requests}

        def allowed(request: DeviceRequest, sub: SubRequest, device: Device) -> bool:
            claimed = claims.get(request.name)
            if claimed is None:
                return not device.claimable
            return device.claimable and claimed == (device.device_class_name, sub.count)

        search = partial(resolve, self._inputs.evaluations, member, pool.devices or (), allowed=allowed)
        of = (member.node_selector, stamped.requests)
        return self._within("stamped", of, [pool], lambda budget: search(budget=budget))

    def node_verdict(self, member: Member, pool: Pool) -> Rejection | None:
        """Ask the member's selectors on the pool itself."""
        barred = self._barred(member, pool)
        return None if barred is None else barred.at(member=member.role)

    def _barred(self, member: Member, pool: Pool) -> Rejection | None:
        evaluations = self._inputs.evaluations
        for index, selector in enumerate(member.node_selector.selectors if member.node_selector else ()):
            program = evaluations.program(selector)
            outcome = evaluations.outcome(program, pool.node)
            if outcome.kind != "match":
                error = outcome.kind != "nomatch"
                reason = Reason.NodeSelectorError if error else Reason.NodeSelectorMismatch
                message = outcome.message
                deferred = None if message else DeferredGap(partial(gap, program, pool.node))
                return Rejection(reason, detail=message, gap=deferred, selector=index)
        return None

    # The budget

    def _noted(self, verdict: Verdict) -> Verdict:
        """Return what is to be noted; what rests on a dear evaluation is noted for this pass only."""
        if self._inputs.evaluations.dear:
            self._cache.end_with_pass()
        return verdict

    def _within(
        self, what: str, of: tuple[Hashable, ...], pools: Sequence[Pool], run: Callable[[Budget], T]
    ) -> T:
        """Run a search within the call's budget, a hard one once for pools of equal content."""
        earlier = self._cache.hard(what, of, pools)
        if earlier is not None:
            return cast("T", earlier)
        budget = self.budget.open()
        outcome = run(budget)
        if self.budget.settle(budget):
            self._cache.note_hard(what, of, pools, outcome)
        return outcome


def _counted(options: Iterator[EngineOption], budget: Budget) -> tuple[list[EngineOption], bool]:
    """Take the options that there are steps for, and say whether there are more."""
    counted: list[EngineOption] = []
    try:
        for option in options:
            budget.step()
            counted.append(option)
    except OutOfSteps:
        return counted, True
    return counted, False


def _scattered(verdicts: Verdicts, members: int) -> bool:
    return all(any(isinstance(row[at], Match) for row in verdicts) for at in range(members))
