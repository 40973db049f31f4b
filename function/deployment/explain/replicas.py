"""List every replica of a deployment as one row: for reports, tables and forecasts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from function.api.names import replica_key
from function.deployment.explain.phrases import because_phrase, dropped_phrase, kept_phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from function.scheduler.decision import Decision
    from function.scheduler.outcomes import Dropped, Kept, Placed


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """One replica, where it is, what is done with it, and why."""

    name: str
    cluster: str
    index: int | None
    """None where its key cannot be read."""
    action: str
    """Placed, Replaced, Retained or Held; Dropped for one that leaves."""
    phrase: str
    """Why, in one line."""
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The pools of each engine, in the order of its members, each once."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Nodes a new replica takes, by pool."""
    alternative: str = ""
    """The alternative a new replica is placed as; empty for the primary engines."""
    runner_up: str = ""
    key: str = ""
    """The key of a new replica among the desired resources."""
    cause: str = ""
    """The reason on record why a replica leaves."""

    @property
    def is_new(self) -> bool:
        """Whether it is placed by this decision."""
        return self.action in ("Placed", "Replaced")

    @property
    def pools_phrase(self) -> str:
        """`main: h100, draft: l4+l40`."""
        return ", ".join(f"{engine}: {'+'.join(names)}" for engine, names in self.pools.items())

    @property
    def all_pools(self) -> tuple[str, ...]:
        """The pools of all engines, each once."""
        return _once(pool for pools in self.pools.values() for pool in pools)


def standing(decision: Decision) -> list[ReplicaRow]:
    """Every replica that has a place, by cluster and index."""
    rows = [*map(_kept, decision.kept), *map(_placed, decision.placed)]
    return sorted(rows, key=lambda row: (row.cluster, -1 if row.index is None else row.index, row.name))


def leaving(decision: Decision) -> list[ReplicaRow]:
    """Every replica that leaves, in the order in which that was decided."""
    return [*map(_dropped, decision.dropped)]


def _kept(kept: Kept) -> ReplicaRow:
    own_replica = kept.own_replica
    return ReplicaRow(
        own_replica.replica.name,
        own_replica.cluster,
        own_replica.identity.index if own_replica.identity else None,
        "Held" if kept.outgoing else "Retained",
        kept_phrase(kept),
        {
            engine.name: _once(member.pool for member in engine.members)
            for engine in own_replica.replica.engines
        },
    )


def _placed(placed: Placed) -> ReplicaRow:
    candidate = placed.candidate
    return ReplicaRow(
        placed.name,
        placed.identity.cluster,
        placed.identity.index,
        "Replaced" if placed.replaces else "Placed",
        because_phrase(placed),
        {
            engine.name: _once(candidate.pool(option, at) for at in range(len(engine.members)))
            for engine, option in candidate.engines
        },
        candidate.nodes,
        candidate.shape.name,
        placed.runner_up,
        replica_key(placed.identity),
    )


def _dropped(dropped: Dropped) -> ReplicaRow:
    own_replica = dropped.own_replica
    index = own_replica.identity.index if own_replica.identity else None
    phrase, cause = dropped_phrase(dropped), dropped.cause.name
    return ReplicaRow(own_replica.replica.name, own_replica.cluster, index, "Dropped", phrase, cause=cause)


def _once(pools: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pools))
