"""The matcher: which pools of a cluster the engines of a replica can use, capacity aside.

The rules are in `engine_options` (an engine on pools) and `device_matching` (a member on a pool's devices).
What does not depend on a cluster's name or on what is free there is found out once for each device list, and
kept in the deployment's `FitMemo`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar, cast

from function.api import Device, DeviceRequest, InferenceCluster, Member, Pool, StampedMember
from function.api.deployment import ReplicaShape, SubRequest
from function.api.reasons import DeferredGap, Reason, Rejection
from function.scheduler import engine_options
from function.scheduler.budget import CallBudget
from function.scheduler.device_matching import MAX_VARIANTS, Match, Refusal, resolve, resolve_every
from function.scheduler.engine_options import Barred, ClusterFit, EngineFit, EngineOption, Row, Unfit, Verdict
from function.scheduler.memo import MatchMemo, PoolContent, fit_memo
from function.scheduler.scheduling_input import SchedulingInput
from function.scheduler.selectors import gap

T = TypeVar("T")


class Matcher:
    """Matches the members and engines of one deployment on pools, for one pass."""

    def __init__(self, inputs: SchedulingInput, budget: CallBudget | None = None) -> None:
        """Take the input of the pass and the steps of the call; nothing is computed yet."""
        self._inputs = inputs
        self.budget = budget or CallBudget(inputs.config.search_budget, len(inputs.fleet.clusters))
        # All that have more than a search's own steps find the same in theirs.
        steps = min(inputs.config.search_budget, self.budget.allowance + 1)
        self._memo = MatchMemo(fit_memo(inputs.deployment, steps, inputs.config.cel_version))
        self.matched = 0
        """How many pairs of what members ask for and contents of pools were matched."""

    # A cluster

    def fit(self, shape: ReplicaShape, cluster: InferenceCluster) -> ClusterFit:
        """Fit the engines of one shape of the deployment on a cluster."""
        # Only what may change the fit is in its key, so that as many clusters as can be share one.
        fabrics = tuple(pool.fabrics for pool in cluster.pools) if shape.spreads else ()
        counted = cluster.pools if cluster.counts_devices else ()
        accounting = tuple((pool.accounting, pool.across_nodes) for pool in counted)
        nodes = tuple(pool.node for pool in cluster.pools) if self._inputs.selectors.pools else ()
        key = (shape.name, cluster.device_keys, fabrics, accounting, nodes)
        fit = self._memo.fits.clusters.get(key)
        if fit is None:
            if fabrics or accounting:
                fit = self._fit(shape, cluster.pools)
                # Those besides an option for each engine and pool, which fits share.
                number = sum(len(engine.options) + len(engine.unfit) for engine in fit.engines)
                self._memo.fits.options += number - len(fit.engines) * len(cluster.pools)
            else:
                fit = self._shared(shape, cluster.pools)
            self._memo.fits.clusters[key] = fit
        return fit

    def _shared(self, shape: ReplicaShape, pools: Sequence[Pool]) -> ClusterFit:
        """The fit that clusters share whose rows are of the same kinds. Only the rows are searched for."""
        kinds = [self._row(shape, at, pool).kind for at in range(len(shape.engines)) for pool in pools]
        key = (shape.name, *kinds)
        fit = self._memo.fits.shared.get(key)
        if fit is None:
            fit = self._memo.fits.shared[key] = self._fit(shape, pools)
        return fit

    def _fit(self, shape: ReplicaShape, pools: Sequence[Pool]) -> ClusterFit:
        """Fit every engine by itself: that they have room together is for `search` to find out."""
        engines = [self._engine(shape, at, pools) for at in range(len(shape.engines))]
        return ClusterFit(shape.name, tuple(engines))

    def _content(self, pool: Pool) -> PoolContent:
        """Return what decides every match on a pool."""
        return pool.device_key, pool.node if self._inputs.selectors.pools else None

    def _engine(self, shape: ReplicaShape, at: int, pools: Sequence[Pool]) -> EngineFit:
        """Find the options of one engine: on each pool, then over several of a fabric, then other claims.

        The order is that in which the search prefers them, so it is part of the answer.
        """
        engine = shape.engines[at]
        rows = [self._row(shape, at, pool) for pool in pools]
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
            options.extend(engine_options.across(engine, pools, verdicts))
        options, cut_short = self._varied(pools, options)
        options = [engine_options.kept_apart(option, pools) for option in options]
        members = range(len(engine.members))
        scattered = all(any(isinstance(row[at], Match) for row in verdicts) for at in members)
        return EngineFit(engine, tuple(options), tuple(unfit), scattered, cut_short)

    def _row(self, shape: ReplicaShape, at: int, pool: Pool) -> Row:
        """Match every member of an engine against one pool."""
        key = (shape.name, at, self._content(pool))
        row = self._memo.fits.rows.get(key)
        if row is None:
            members = shape.engines[at].members
            verdicts = tuple([self.member(member, pool) for member in members])
            kinds = self._memo.fits.kinds
            essence = tuple([item.essence if isinstance(item, Match) else None for item in verdicts])
            kind = kinds.setdefault(essence, next(self._memo.fits.numbers))
            row = self._memo.fits.rows[key] = Row(verdicts, engine_options.refused(members, verdicts), kind)
        return row

    def _single(
        self, shape: ReplicaShape, at: int, position: int, kind: int, verdicts: engine_options.Verdicts
    ) -> EngineOption | Unfit:
        """The engine on one pool; what does not depend on the cluster's other pools is found once."""
        engine, key = shape.engines[at], (shape.name, at, position, kind)
        singles = self._memo.fits.singles
        if key not in singles:
            pools = (position,) * len(engine.members)
            singles[key] = engine_options.alone(engine, verdicts[position], pools)
        return engine_options.stranding(engine, verdicts, singles[key])

    def _varied(self, pools: Sequence[Pool], options: list[EngineOption]) -> tuple[list[EngineOption], bool]:
        """Add, on pools that charge devices, the other claims that would do: those may find devices free."""
        if all(pool.accounting == "Node" for pool in pools):
            return options, False
        varied, cut_short = [], False
        for option in options:
            members = zip(option.engine.members, option.pools, option.matches, strict=True)
            ways = [self._every(member, pools[at], match) for member, at, match in members]
            varying = engine_options.variants(option, [matches for matches, _ in ways])
            varied += [option, *islice(varying, MAX_VARIANTS)]
            cut_short = cut_short or any(varying) or any(cut for _, cut in ways)
        return varied, cut_short

    def rejections(self, shape: ReplicaShape, fit: ClusterFit, pools: Sequence[Pool], at: int) -> Barred:
        """Why the engine at a position cannot use pools of a cluster, by the position of the pool.

        What a member lacks is said of the pool itself: clusters that share a fit may lack different things.
        """
        rejections = []
        for position, whole in fit.engines[at].unfit:
            if whole is not None:
                rejections.append((position, whole))
                continue
            refusal = self._row(shape, at, pools[position]).refusal
            assert refusal is not None  # noqa: S101 - some member does not fit: see `Unfit`
            rejections.append((position, refusal.explained(self._inputs.evaluations)))
        return tuple(rejections)

    # A member

    def member(self, member: Member, pool: Pool) -> Verdict:
        """Match one member against one pool.

        Once for all members that ask for the same: the roles of most gangs do.
        """
        key = (member.node_selector, self._content(pool))
        verdict = self._memo.fits.matches.get(key)
        if verdict is None:
            self.matched += 1
            verdict = self._noted(self._match(member, pool))
            self._memo.fits.matches[key] = verdict
        return verdict

    def _match(self, member: Member, pool: Pool) -> Verdict:
        """Ask the member's selectors on the pool first: where one fails, its devices are no question."""
        barred = self.barred(member, pool)
        return self._within(resolve, member, pool) if barred is None else Refusal.of(barred)

    def _every(self, member: Member, pool: Pool, first: Match) -> tuple[tuple[Match, ...], bool]:
        """Every match of a member on a pool that claims differently, and whether some may be missing."""
        if pool.accounting == "Node" or not first.claims:
            return (first,), False
        return self._within(resolve_every, member, pool)

    def as_stamped(self, member: Member, stamped: StampedMember, pool: Pool) -> Verdict:
        """Match a member against its pinned pool, using only entries that give the requests as stamped."""
        key = (member.node_selector, stamped.requests, self._content(pool))
        verdict = self._memo.fits.stamped.get(key)
        if verdict is None:
            verdict = self._noted(self._match_stamped(member, stamped, pool))
            self._memo.fits.stamped[key] = verdict
        return verdict

    def _match_stamped(self, member: Member, stamped: StampedMember, pool: Pool) -> Verdict:
        """Match with the claim held fixed, so that a running replica is not moved to another device entry."""
        claims = {request.name: (request.device_class, request.count) for request in stamped.requests}

        def allowed(request: DeviceRequest, sub: SubRequest, device: Device) -> bool:
            """Tell whether an entry gives what is stamped; a request that is not stamped claims nothing."""
            claimed = claims.get(request.name)
            if claimed is None:
                return not device.claimable
            return device.claimable and claimed == (device.device_class_name, sub.count)

        return self._within(resolve, member, pool, stamped.requests, allowed=allowed)

    def barred(self, member: Member, pool: Pool) -> Rejection | None:
        """Why a selector over pools keeps a member off; the first that does not hold. None where all do."""
        evaluations = self._inputs.evaluations
        for index, selector in enumerate(member.node_selector.selectors):
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
            self._memo.end_with_pass()
        return verdict

    def _within(
        self, search: Callable[..., T], member: Member, pool: Pool, claims: Hashable = None, **more: object
    ) -> T:
        """Search a pool's devices within the call's budget, a hard search once for pools of equal content."""
        of = (search, member.node_selector, claims)
        earlier = self._memo.hard(of, pool)
        if earlier is not None:
            return cast("T", earlier)
        budget = self.budget.open()
        outcome = search(self._inputs.evaluations, member, pool.devices or (), budget=budget, **more)
        if self.budget.settle(budget):
            self._memo.note_hard(of, pool, outcome)
        return outcome
