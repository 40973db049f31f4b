"""Explain where an adapter is, and why it is on no other replica, for the command line.

    run ▶ the answer of the handler        verdicts ▶ every replica of the base        hints ▶ what would help

Nothing is decided here: the pass is that of `schedule`, on everything that was delivered. A placed replica is
compared with the one that would have come next, by the same preference. A hint was tried out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from function.adapter.handler import run
from function.adapter.schedule import (
    AdapterDecision,
    AdapterInput,
    RefusalReason,
    cluster_of,
    filtered,
    gained,
    one_more_slot,
    preference,
    schedule,
    serves,
)
from function.adapter.snapshot import read_snapshot
from function.api.adapter import AdapterRoom, BaseReplica
from function.api.text import counted
from function.boundary import NO_REUSE, Request, Response, frozen
from function.fail_static import Doubt


@frozen
class ReplicaVerdict:
    """The fate of an adapter on one replica, and why."""

    replica: str
    cluster: str
    action: str
    """`Retained`, `Placed`, `Replaced` (stays until others serve), `Dropped`, `Eligible` or `Rejected`."""
    why: str
    adapters: tuple[str, ...] = ()
    """Those that hold its slots."""
    slots: int | None = None
    """How many adapters it holds at most; None without room."""

    @property
    def plain(self) -> dict[str, Any]:
        """The verdict as plain data."""
        room = {} if self.slots is None else {"slots": self.slots}
        head = {"name": self.replica, "cluster": self.cluster, "action": self.action, "why": self.why}
        return {**head, "adapters": list(self.adapters), **room}


@dataclass(frozen=True)
class AdapterForecast:
    """The answer about one adapter, and what it stands on."""

    request: Request
    response: Response

    @cached_property
    def decision(self) -> AdapterDecision | None:
        """The decision on everything that was delivered; None of an adapter that cannot be read."""
        snapshot = read_snapshot(self.request, NO_REUSE, whole=True)
        return None if isinstance(snapshot, Doubt) else schedule(snapshot.inputs)

    @property
    def verdicts(self) -> tuple[ReplicaVerdict, ...]:
        """Every replica of the base, and those that the adapter is on, by name."""
        decision = self.decision
        if decision is None:
            return ()
        inputs = decision.inputs
        stays = {kept.existing.replica: kept for kept in decision.kept}
        leaves = {existing.replica: cause for existing, cause in decision.dropped}
        chosen = _why_chosen(decision)
        _, rejections = filtered(inputs, {existing.replica for existing in inputs.existing} | set(chosen))
        refused = {replica: (reason, detail) for replica, reason, detail in rejections}
        verdicts = []
        for name in sorted({*inputs.bases, *stays, *leaves}):
            base = inputs.bases.get(name)
            if name in chosen:
                action, why = "Placed", chosen[name]
            elif name in leaves:
                action, why = "Dropped", leaves[name].value
            elif name in stays:
                outgoing = stays[name].outgoing
                action = "Replaced" if outgoing else "Retained"
                why = f"{outgoing}; it stays until others serve" if outgoing else _why_kept(inputs, name)
            elif name in refused:
                action, why = "Rejected", _why_refused(inputs, name, *refused[name])
            else:
                action, why = "Eligible", "it could take the adapter, and as many as are wanted have a place"
                if decision.lasting < inputs.wanted:
                    why = f"it could take the adapter, but minReplicas {inputs.minimum} cannot be met"
            slots = None if base is None or base.room is None else base.room.adapters
            verdicts.append(
                ReplicaVerdict(name, cluster_of(inputs, name), action, why, _holders(inputs, name), slots)
            )
        return tuple(verdicts)

    @property
    def hints(self) -> tuple[tuple[str, int], ...]:
        """Edits of the base that would place more, with how many; each was tried."""
        decision = self.decision
        if decision is None or decision.lasting >= decision.inputs.wanted:
            return ()
        tried = ((text, gained(decision, edit)) for text, edit in _edits(decision.inputs))
        return tuple((text, more) for text, more in tried if more > 0)


def forecast(request: Request) -> AdapterForecast:
    """Answer a request. Why it is so is worked out when it is asked for: `plan` and the map never do."""
    return AdapterForecast(request, run(request))


def _holders(inputs: AdapterInput, replica: str) -> tuple[str, ...]:
    return tuple(sorted({placement.adapter for placement in inputs.placements.get(replica, ())}))


def _why_kept(inputs: AdapterInput, replica: str) -> str:
    base = inputs.bases.get(replica)
    if base is None or base.fault:
        return f"it stays where it is: the replica cannot be read{f' ({base.fault})' if base else ''}"
    if serves(inputs, replica):
        return "it stays where it is, and serves"
    return (
        f"it stays where it is: {'not configured' if base.ready is True else 'the replica is not Ready'} yet"
    )


def _why_refused(inputs: AdapterInput, replica: str, reason: RefusalReason, detail: str) -> str:
    text = detail or reason.value
    if reason is RefusalReason.NO_SLOT:
        return f"no free slot: {detail} by {', '.join(_holders(inputs, replica))}"
    return text


def _why_chosen(decision: AdapterDecision) -> dict[str, str]:
    """Return what decided for every new place: the first thing in which the next best replica is worse."""
    inputs = decision.inputs
    clusters = Counter(cluster_of(inputs, existing.replica) for existing in decision.staying)
    taken = {existing.replica for existing in inputs.existing}
    reasons: dict[str, str] = {}
    for name in decision.placed:
        feasible, _ = filtered(inputs, taken | set(reasons))
        others = [base for base in feasible if base.name != name]
        best = inputs.bases[name]
        if others:
            second = min(others, key=lambda base: preference(inputs, clusters, base))
            reasons[name] = _compared(inputs, clusters, best, second)
        else:
            reasons[name] = "no other replica of the base can take it"
        clusters[best.cluster] += 1
    return reasons


def _compared(
    inputs: AdapterInput, clusters: Mapping[str, int], best: BaseReplica, second: BaseReplica
) -> str:
    pairs = zip(preference(inputs, clusters, best), preference(inputs, clusters, second), strict=True)
    step = next(at for at, (one, other) in enumerate(pairs) if one != other)
    slots = f"{counted(inputs.free[best.name], 'free slot')}, {second.name} has {inputs.free[second.name]}"
    count, other = clusters.get(best.cluster, 0), clusters.get(second.cluster, 0)
    return (
        f"its engine has the adapter already, that of {second.name} does not",
        f"{best.cluster} has {count} of its places, {second.cluster} has {other}",
        f"it has {slots}",
        f"as good as {second.name}, and first by name",
    )[step]


def _edits(inputs: AdapterInput) -> list[tuple[str, Callable[[AdapterRoom | None], AdapterRoom | None]]]:
    """Return edits of the base that could make room, in words and as what they do to a replica."""
    least = AdapterRoom(slots=1, max_rank=inputs.rank, capabilities=inputs.requirements)
    wanted = ", ".join(inputs.requirements)

    def offering(room: AdapterRoom | None) -> AdapterRoom | None:
        offered = {} if room is None else {"capabilities": (*room.capabilities, *inputs.requirements)}
        return room and room.model_copy(update=offered)

    return [
        ("one slot more on each replica", one_more_slot),
        (
            f"adapters.maxRank {inputs.rank} on the engines of the base",
            lambda room: room and room.model_copy(update={"max_rank": max(room.max_rank, inputs.rank)}),
        ),
        (f"adapters.capabilities with {wanted} on the engines of the base", offering),
        ("adapters.slots 1 on engines of the base that have no room", lambda room: room or least),
    ]
