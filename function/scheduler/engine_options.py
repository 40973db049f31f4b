"""Options: the ways to put one engine on the pools of a cluster, capacity aside.

Every member of an engine goes on one pool (a gang talks over its pool's fabric), unless the engine allows
pools whose fabric is proven to be the same. An engine none of whose members claims a device does not fit (its
pods would bind no GPU), and a pool must not strand a member on Synthetic matches that could claim a device on
another pool of the cluster.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import NamedTuple, TypeAlias

from function.api import Engine, InferenceCluster, Member, Pool
from function.api.deployment import ReplicaShape
from function.api.reasons import Reason, Rejection, combined
from function.api.replica import StampedConstraint
from function.boundary import frozen
from function.scheduler.device_accounting import Demand, PodClaims, Pods, gangs_of, total
from function.scheduler.device_matching import Match, Refusal
from function.scheduler.price import price_of

# A candidate: one cluster with a complete choice of pools for one new replica.


@frozen
class Candidate:
    """Where a new replica could go."""

    cluster: InferenceCluster
    shape: ReplicaShape
    options: tuple[EngineOption, ...]
    """One per engine, in the order of the shape's engines."""
    free_left: int
    """Free nodes left in the pools it would use."""
    grows: bool = False
    """Whether nodes have to be added first: it fits no pools as they are now."""

    @property
    def demands(self) -> dict[str, Demand]:
        """The option's demands, by pool name."""
        parts: dict[str, list[Demand]] = defaultdict(list)
        for option in self.options:
            for at, demand in option.demands:
                parts[self.cluster.pools[at].name].append(demand)
        return {
            pool: Demand(sum(part.nodes for part in taken), total(part.gangs for part in taken))
            for pool, taken in parts.items()
        }

    @property
    def nodes(self) -> dict[str, int]:
        """Nodes it takes, by pool name."""
        return {pool: demand.nodes for pool, demand in self.demands.items()}

    @property
    def engines(self) -> tuple[tuple[Engine, EngineOption], ...]:
        """Each engine with its option."""
        return tuple(zip(self.shape.engines, self.options, strict=True))

    @property
    def devices(self) -> Counter[str]:
        """Devices it claims, by pool name."""
        claimed: Counter[str] = Counter()
        for engine, option in self.engines:
            for at, (member, match) in enumerate(zip(engine.members, option.matches, strict=True)):
                number = sum(claim.count for claim in match.claimed)
                pool = self.cluster.pools[option.pools[at]].name
                claimed[pool] += number * member.pods * engine.copies
        return claimed

    @property
    def cents(self) -> int | None:
        """Its price for an hour; None where that is not known."""
        return price_of(self.cluster, self.nodes, self.devices)


Verdict: TypeAlias = "Match | Refusal"
Verdicts: TypeAlias = "Sequence[Sequence[Verdict]]"
"""What was found about every member (inner) on every pool (outer)."""
Unfit: TypeAlias = "Rejection | None"
"""Why members that fit a pool make no engine there; None where some member does not fit, as its row says."""
Barred: TypeAlias = "tuple[tuple[int, Rejection], ...]"
"""Why an engine does not fit pools, by their position."""


class Row(NamedTuple):
    """The matches of an engine's members on one class of pools."""

    verdicts: tuple[Verdict, ...]
    refusal: Refusal | None
    """Of the members that do not fit together; None where all fit."""
    kind: int
    """Rows of one kind make the same options; what they lack may differ."""


class PoolDemand(NamedTuple):
    """The demand of an option on one pool, by the pool's position."""

    pool: int
    demand: Demand


@frozen(slots=False)
class EngineOption:
    """One way to put an engine on a cluster, pools by their position."""

    engine: Engine
    pools: tuple[int, ...]
    """The pool of each member."""
    matches: tuple[Match, ...]
    """What each member claims there."""
    demands: tuple[PoolDemand, ...]
    """What it takes, by pool; nothing of a pool on which no member claims a device."""

    @property
    def nodes(self) -> int:
        """Nodes it takes, on all pools together."""
        return sum(taken.demand.nodes for taken in self.demands)

    @property
    def preference(self) -> tuple[object, ...]:
        """The sort key before declaration order: one pool before several, then lower ranks."""
        ranks = tuple(choice.rank for match in self.matches for choice in match.resolved)
        return (len(set(self.pools)) > 1, ranks)


@frozen(slots=False, eq=False)
class EngineFit:
    """The options of one engine on a cluster, and the pools that it cannot use."""

    engine: Engine
    options: tuple[EngineOption, ...]
    unfit: tuple[tuple[int, Unfit], ...]
    """The pools that are no option, by their position."""
    scattered: bool = False
    """Whether every member fits some pool, so that only being together stands in the way."""
    cut_short: bool = False
    """Whether there may be more options than the budget allowed to find."""

    @cached_property
    def preferences(self) -> tuple[tuple[object, ...], ...]:
        """The preferences of the options, the most preferred first: of all clusters with the same devices."""
        return tuple(sorted({option.preference for option in self.options}))


@frozen(eq=False)
class ClusterFit:
    """The options of every engine of one shape on a cluster. Compared by identity.

    Clusters whose rows are of the same kinds share one.
    """

    shape: str
    engines: tuple[EngineFit, ...]

    @property
    def possible(self) -> bool:
        """Tell whether every engine has an option, capacity aside."""
        return all(engine.options for engine in self.engines)


def option(engine: Engine, verdicts: Verdicts, pools: tuple[int, ...]) -> EngineOption | Unfit:
    """Put the engine's members on these pools, or say what stands against it."""
    outcome = alone(engine, [verdicts[pool][at] for at, pool in enumerate(pools)], pools)
    return stranding(engine, verdicts, outcome)


def alone(engine: Engine, verdicts: Sequence[Verdict], pools: tuple[int, ...]) -> EngineOption | Unfit:
    """The same, looking at these pools only. `verdicts` has one for each member, on its pool."""
    matches = [verdict for verdict in verdicts if isinstance(verdict, Match)]
    if len(matches) < len(verdicts):
        return None
    if not any(match.claims for match in matches):
        return Rejection(Reason.NothingClaimable, detail="no member would bind a device")
    return EngineOption(engine, pools, tuple(matches), _demands(engine, pools, matches))


def refused(members: Sequence[Member], verdicts: Sequence[Verdict]) -> Refusal | None:
    """Return the refusal of the members that do not fit, if there are any."""
    pairs = zip(members, verdicts, strict=True)
    barred = [(member.role, verdict) for member, verdict in pairs if isinstance(verdict, Refusal)]
    if not barred:
        return None
    return Refusal(lambda asked: combined([why.explained(asked).at(member=role) for role, why in barred]))


def stranding(engine: Engine, verdicts: Verdicts, outcome: EngineOption | Unfit) -> EngineOption | Unfit:
    """Refuse an option that strands a member which could bind a device on another pool of the cluster."""
    if not isinstance(outcome, EngineOption):
        return outcome
    for at, member in enumerate(engine.members):
        if outcome.matches[at].claims:
            continue
        elsewhere = (row[at] for row in verdicts)
        if any(isinstance(verdict, Match) and verdict.claims for verdict in elsewhere):
            detail = "could bind a device on another pool"
            return Rejection(Reason.NothingClaimable, detail=detail, member=member.role)
    return outcome


def kept_apart(option: EngineOption, pools: Sequence[Pool]) -> EngineOption:
    """The same option, where pods of an engine may share no node of some pools."""
    apart = [at for at in set(option.pools) if pools[at].across_nodes]
    if not apart:
        return option
    return replace(option, demands=_demands(option.engine, option.pools, option.matches, apart))


def _demands(
    engine: Engine, pools: tuple[int, ...], matches: Sequence[Match], apart: Collection[int] = ()
) -> tuple[PoolDemand, ...]:
    """Count nodes: pods x copies of every member that claims a device; on pools `apart` they are a gang."""
    pods: dict[int, list[Pods]] = defaultdict(list)
    for member, pool, match in zip(engine.members, pools, matches, strict=True):
        if match.claims:
            pods[pool].append(Pods(_claims(member, match), member.pods))
    return tuple(
        PoolDemand(
            pool,
            Demand(
                engine.copies * sum(request.number for request in claiming),
                gangs_of(claiming, engine.copies, apart=pool in apart),
            ),
        )
        for pool, claiming in sorted(pods.items())
    )


def _claims(member: Member, match: Match) -> PodClaims:
    """Return the claims of one pod, as they will be stamped."""
    constraints = [StampedConstraint(rule.match_attribute, rule.requests) for rule in member.constraints]
    return PodClaims.of(match.stamped, constraints)


def across(engine: Engine, pools: Sequence[Pool], verdicts: Verdicts) -> Iterator[EngineOption]:
    """Spread an engine's members over several pools of one proven fabric, in declaration order."""
    for chosen in product(range(len(pools)), repeat=len(engine.members)):
        if len(set(chosen)) > 1 and proven_same(pools, chosen):
            engine_option = option(engine, verdicts, chosen)
            if isinstance(engine_option, EngineOption):
                yield engine_option


def proven_same(pools: Sequence[Pool], chosen: Sequence[int]) -> bool:
    """Tell whether every two of the chosen pools are proven to have the same fabric. No id proves nothing."""
    used = [pools[at] for at in dict.fromkeys(chosen)]
    return all(pool.shares_fabric(other) for pool in used for other in used)


def variants(option: EngineOption, others: Sequence[Sequence[Match]]) -> Iterator[EngineOption]:
    """The same pools with every other combination of claims: they matter where devices are charged."""
    claims = [match.stamped for match in option.matches]
    for matches in product(*others):
        if [match.stamped for match in matches] != claims:
            demands = _demands(option.engine, option.pools, matches)
            yield EngineOption(option.engine, option.pools, matches, demands)
