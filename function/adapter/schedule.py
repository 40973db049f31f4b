"""Place an adapter on replicas of its base: the pass of the fleet scheduler, one level down.

    retain ▶ scale down ▶ fill ▶ give up what was replaced

1. **Retain.** Every placement stays, unless its replica is gone or the placement itself is being deleted. A
   replica that is not delivered, cannot be read or is not Ready keeps its adapters (Law 2).
2. A placement is *outgoing* where its replica is being deleted or about to leave, has too little room for it
   by now (slots, rank, capabilities), or lost the race for a slot. It stays until it is replaced, and does
   not count. One on a replica that is only about to leave serves on, so it counts while too few others do.
3. **Scale down** where more stay than are wanted: first on a replica known not to be Ready, then one that is
   not configured yet, then on the cluster with most, then the later name.
4. **Fill** the shortfall over the replicas that pass the filters: first one that has the adapter loaded, then
   on the cluster with the fewest, then the one with the most free slots, then by name.
5. An outgoing placement is given up when as many others as are wanted serve the adapter; one with an
   endpoint, when they have endpoints too. One that lost the race serves nothing and leaves as soon as it is
   replaced. So no request for an adapter finds it nowhere.

Limits: the pass reads no device and no memory. A slot is what the deployment says it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TypeVar

from function.api.adapter import AdapterPlacement, AdapterRoom, BaseReplica, holders
from function.boundary import frozen

T = TypeVar("T")


class RefusalReason(Enum):
    """Why a replica takes no further adapter, in the order of evaluation; the value is how it reads."""

    UNREADABLE = "unreadable"
    LEAVING = "leaving"
    NO_ROOM = "without room for adapters"
    RANK = "of too small a rank"
    CAPABILITY = "without a capability"
    HAS_IT = "already with this adapter"
    NO_SLOT = "without a free slot"


class LeaveCause(Enum):
    """Why a placement leaves: the whole list (Law 2)."""

    DELETED = "it is being deleted"
    REPLICA_GONE = "its replica is gone"
    SCALED_DOWN = "fewer replicas are wanted"
    REPLACED = "it was replaced"


@frozen
class OwnPlacement:
    """One placement of the adapter at hand."""

    replica: str
    name: str
    observed: bool = True
    terminating: bool = False


@dataclass(frozen=True)
class AdapterInput:
    """All that one pass depends on."""

    name: str
    wanted: int
    minimum: int
    """Below this many nothing new is placed."""
    rank: int
    requirements: tuple[str, ...]
    existing: tuple[OwnPlacement, ...]
    bases: Mapping[str, BaseReplica]
    """Replicas of the base that were delivered and could be decoded, by name."""
    absent: frozenset[str] = frozenset()
    """Replicas of own placements that were asked for by name and do not exist."""
    placements: Mapping[str, tuple[AdapterPlacement, ...]] = field(default_factory=dict)
    """All that hold a slot, ours included, by replica; empty while they are not delivered."""
    complete: bool = False
    """Whether the replicas of the base and the placements were delivered: else nothing is placed."""
    routed: frozenset[str] = frozenset()
    """Replicas of own placements whose endpoint of the adapter exists: a desired one has no backend yet."""

    @cached_property
    def free(self) -> Mapping[str, int]:
        """The free slots of each replica. A placement holds its slot until it is gone."""
        names = {base: {placement.name for placement in self.placements.get(base, ())} for base in self.bases}
        for existing in self.existing:
            names.setdefault(existing.replica, set()).add(existing.name)
        return {
            name: (base.room.adapters if base.room else 0) - len(names[name])
            for name, base in self.bases.items()
        }


@frozen
class KeptPlacement:
    """A placement that stays."""

    existing: OwnPlacement
    outgoing: str = ""
    """Why it has to be replaced; empty where it counts."""
    lost: bool = False
    """Whether it lost the race for its slot, so that the replica does not load it."""
    lasts: bool = False
    """Whether it is outgoing because its replica is about to leave: until then it serves."""


class AdapterDecision:
    """The outcome of one pass."""

    def __init__(
        self,
        inputs: AdapterInput,
        kept: Iterable[KeptPlacement],
        placed: Iterable[str],
        dropped: Iterable[tuple[OwnPlacement, LeaveCause]],
        rejections: Iterable[tuple[str, RefusalReason, str]],
    ) -> None:
        """`rejections`: replica, reason and numbers of those that cannot take another, if a place misses."""
        self.inputs, self.kept, self.placed = inputs, tuple(kept), tuple(placed)
        """Of what is placed, the replicas that take the adapter now."""
        self.dropped, self.rejections = tuple(dropped), tuple(rejections)
        self.staying = [kept.existing for kept in self.kept if not kept.outgoing]
        """The kept placements that count."""
        self.outgoing = [kept for kept in self.kept if kept.outgoing]
        """The kept placements that wait for their replacement."""
        last = [kept.existing for kept in self.kept if kept.lasts]
        self.lasting = len(self.staying) + len(self.placed)
        """How many replicas the adapter is on, those that are to be replaced left out."""
        self.total = self.lasting + min(len(last), max(0, inputs.wanted - self.lasting))
        """The same, made up to what is wanted by those on replicas that are only about to leave."""
        lasting_serve, last_serve = (
            [existing.replica for existing in part if serves(inputs, existing.replica)]
            for part in (self.staying, last)
        )
        self.serving = (*lasting_serve, *last_serve[: max(0, self.total - len(lasting_serve))])
        """Replicas that are known to serve it, of those about to leave no more than are counted."""

    @property
    def needs_fleet(self) -> bool:
        """Tell whether only the whole base answers: something is short, to be replaced or not configured."""
        gone = any(existing.replica in self.inputs.absent for existing, _ in self.dropped) or any(
            existing.replica in self.inputs.absent for existing in self.staying
        )
        unconfigured = any(
            existing.replica in self.inputs.bases
            and self.inputs.name not in self.inputs.bases[existing.replica].configured
            for existing in self.staying
        )
        return self.lasting < self.inputs.wanted or bool(self.outgoing) or gone or unconfigured


def serves(inputs: AdapterInput, replica: str) -> bool:
    """Tell whether a replica is Ready and its handler says that the adapter is configured there."""
    base = inputs.bases.get(replica)
    return base is not None and base.ready is True and inputs.name in base.configured


def schedule(inputs: AdapterInput) -> AdapterDecision:
    """Run the pass. The same input gives the same decision, whatever the order of its parts (Law 1)."""
    kept, dropped = _retain(inputs)
    kept, victims = _scale_down(inputs, kept)
    dropped += victims
    staying = [item.existing for item in kept if not item.outgoing]
    placed, rejections = _fill(inputs, kept, inputs.wanted - len(staying))
    if len(kept) + len(placed) < inputs.minimum:
        placed = []
    serving = [existing.replica for existing in staying if serves(inputs, existing.replica)]
    reached = sum(replica in inputs.routed for replica in serving)
    is_replaced = len(staying) + len(placed) >= inputs.wanted
    remaining = []
    for item in kept:
        others = reached if item.existing.replica in inputs.routed else len(serving)
        if item.outgoing and (others >= inputs.wanted or (item.lost and is_replaced)):
            dropped.append((item.existing, LeaveCause.REPLACED))
        else:
            remaining.append(item)
    return AdapterDecision(inputs, remaining, placed, dropped, rejections)


def _retain(inputs: AdapterInput) -> tuple[list[KeptPlacement], list[tuple[OwnPlacement, LeaveCause]]]:
    kept: list[KeptPlacement] = []
    dropped = []
    for existing in sorted(inputs.existing, key=lambda existing: existing.replica):
        base = inputs.bases.get(existing.replica)
        if existing.terminating:
            dropped.append((existing, LeaveCause.DELETED))
        elif base is None and existing.replica in inputs.absent and inputs.complete and inputs.bases:
            dropped.append((existing, LeaveCause.REPLICA_GONE))
        elif base is None and existing.replica in inputs.absent:
            # An emptied list is doubt: a placement on a replica that is really gone costs nothing.
            kept.append(KeptPlacement(existing, outgoing=f"{existing.replica} does not exist"))
        elif base is None or base.fault:
            kept.append(
                KeptPlacement(existing)
            )  # Law 2: undelivered or unreadable is doubt, and doubt keeps.
        else:
            kept.append(_judged(inputs, existing, base))
    return kept, dropped


def _judged(inputs: AdapterInput, existing: OwnPlacement, base: BaseReplica) -> KeptPlacement:
    """Return a placement with why it has to be replaced, if it has to."""
    if base.terminating:
        return KeptPlacement(existing, outgoing=f"{base.name} is being deleted")
    refusal = _refusal(inputs, base.room)
    if refusal is not None:
        return KeptPlacement(existing, outgoing=f"{base.name} {refusal[1]}")
    listed = inputs.placements.get(base.name, ())
    first = {placement.name for placement in holders(listed, base.room.adapters if base.room else 0)}
    is_listed = any(placement.name == existing.name for placement in listed)
    if is_listed and existing.name not in first:
        return KeptPlacement(existing, outgoing=f"{base.name} has more adapters than slots", lost=True)
    if base.leaving:
        return KeptPlacement(existing, outgoing=f"{base.name} is about to leave: {base.leaving}", lasts=True)
    return KeptPlacement(existing)


def _refusal(inputs: AdapterInput, room: AdapterRoom | None) -> tuple[RefusalReason, str] | None:
    """Return what of a replica's room does not fit the adapter, whoever else is there."""
    if room is None:
        return RefusalReason.NO_ROOM, "has no room for adapters"
    if inputs.rank > room.max_rank:
        return RefusalReason.RANK, f"takes rank {room.max_rank}, rank {inputs.rank} is needed"
    missing = sorted(set(inputs.requirements) - set(room.capabilities))
    return (RefusalReason.CAPABILITY, f"does not offer {missing[0]}") if missing else None


def _scale_down(
    inputs: AdapterInput, kept: list[KeptPlacement]
) -> tuple[list[KeptPlacement], list[tuple[OwnPlacement, LeaveCause]]]:
    """Give up what is too many of those that count, one at a time."""
    staying = [item for item in kept if not item.outgoing]
    load: Counter[str] = Counter()
    ranked = []
    for item in sorted(staying, key=lambda item: item.existing.replica, reverse=True):
        base, cluster = inputs.bases.get(item.existing.replica), cluster_of(inputs, item.existing.replica)
        load[cluster] -= 1
        healthy = base is None or base.ready is not False, base is None or inputs.name in base.configured
        ranked.append((healthy, cluster, item.existing))
    victims = [*islice(_in_turn(ranked, load), max(0, len(staying) - inputs.wanted))]
    gone = {victim.replica for victim in victims}
    dropped = [(victim, LeaveCause.SCALED_DOWN) for victim in victims]
    return [item for item in kept if item.existing.replica not in gone], dropped


def _in_turn(ranked: Iterable[tuple[tuple[bool, ...], str, T]], load: Counter[str]) -> Iterator[T]:
    """Yield items by rank, then by the load of their cluster, both ascending, then as they are given.

    `load` grows by one with each that is taken, and never shrinks. So the next is the first of some cluster
    and rank, and no item is compared with all the others each time.
    """
    queues: dict[tuple[tuple[bool, ...], str], deque[tuple[int, T]]] = defaultdict(deque)
    for at, (rank, cluster, item) in enumerate(ranked):
        queues[rank, cluster].append((at, item))
    heap = [(rank, load[cluster], queue[0][0], cluster) for (rank, cluster), queue in queues.items()]
    heapify(heap)
    while heap:
        rank, had, at, cluster = heappop(heap)
        queue = queues[rank, cluster]
        if had == load[cluster]:
            yield queue.popleft()[1]
            load[cluster] += 1
        if queue:
            heappush(heap, (rank, load[cluster], queue[0][0], cluster))


def cluster_of(inputs: AdapterInput, replica: str) -> str:
    """Return the cluster of a replica; empty while nobody says it."""
    base = inputs.bases.get(replica)
    return "" if base is None else base.cluster


def _fill(
    inputs: AdapterInput, kept: list[KeptPlacement], shortfall: int
) -> tuple[list[str], list[tuple[str, RefusalReason, str]]]:
    """Place one at a time; return the replicas, and why the others take none where places were missing."""
    if shortfall <= 0 or not inputs.complete:
        return [], []
    load = Counter(cluster_of(inputs, item.existing.replica) for item in kept if not item.outgoing)
    taken = {existing.replica for existing in inputs.existing}
    feasible, _ = filtered(inputs, taken)
    ranked = sorted(
        ((inputs.name not in base.configured,), -inputs.free[base.name], base.name, base.cluster)
        for base in feasible
    )
    placed = [
        *islice(_in_turn([(rank, cluster, name) for rank, _, name, cluster in ranked], load), shortfall)
    ]
    return placed, filtered(inputs, taken.union(placed))[1] if len(placed) < shortfall else []


def preference(
    inputs: AdapterInput, clusters: Mapping[str, int], base: BaseReplica
) -> tuple[bool, int, int, str]:
    """Return the order in which replicas that take the adapter are chosen; smaller comes first.

    `clusters`: how many of its places each cluster has.
    """
    is_loaded = inputs.name in base.configured
    return (not is_loaded, clusters.get(base.cluster, 0), -inputs.free[base.name], base.name)


def filtered(
    inputs: AdapterInput, taken: Collection[str]
) -> tuple[list[BaseReplica], list[tuple[str, RefusalReason, str]]]:
    """Split the replicas of the base into those that can take the adapter, and the others with why not.

    `taken`: those that have it.
    """
    feasible, rejections = [], []
    for name in sorted(inputs.bases):
        base = inputs.bases[name]
        refusal = _refusal(inputs, base.room)
        if base.fault:
            rejections.append((name, RefusalReason.UNREADABLE, base.fault))
        elif base.terminating or base.leaving:
            about = f"is about to leave: {base.leaving}"
            rejections.append((name, RefusalReason.LEAVING, "" if base.terminating else about))
        elif refusal is not None:
            rejections.append((name, *refusal))
        elif name in taken:
            rejections.append((name, RefusalReason.HAS_IT, ""))
        elif inputs.free[name] < 1:
            total = base.room.adapters if base.room else 0
            rejections.append((name, RefusalReason.NO_SLOT, f"{total - inputs.free[name]} of {total} taken"))
        else:
            feasible.append(base)
    return feasible, rejections


def gained(decision: AdapterDecision, edit: Callable[[AdapterRoom | None], AdapterRoom | None]) -> int:
    """Return how many more replicas another room on each replica would give, by running the pass."""
    inputs = decision.inputs
    edited = {name: replace(base, room=edit(base.room)) for name, base in inputs.bases.items()}
    return schedule(replace(inputs, bases=edited)).lasting - decision.lasting


def one_more_slot(room: AdapterRoom | None) -> AdapterRoom | None:
    """Return a room with one slot more; none stays none."""
    return room and room.model_copy(update={"slots": room.slots + 1})
