"""Short builders for adapters and their bases, and random small worlds of them, the same for a seed."""

from __future__ import annotations

import random
from typing import Any

from function.adapter.schedule import AdapterInput, OwnPlacement
from function.api.adapter import AdapterPlacement, AdapterRoom, BaseReplica, placement_name

ADAPTER = "support"


def base(
    name: str,
    cluster: str = "a",
    slots: int | None = 2,
    rank: int = 16,
    capabilities: tuple[str, ...] = (),
    **more: Any,
) -> BaseReplica:
    """Return a replica of the base; `slots` None: without room."""
    room = None if slots is None else AdapterRoom(slots=slots, max_rank=rank, capabilities=capabilities)
    fields = {"ready": True, "terminating": False, "configured": frozenset(), **more}
    return BaseReplica(name, cluster, room, **fields)


def on(
    replica: str, adapter: str = ADAPTER, created: str = "2026-01-01T00:00:00Z", **more: Any
) -> AdapterPlacement:
    """Return a placement of an adapter."""
    return AdapterPlacement(placement_name(adapter, replica), adapter, replica, "acme/lora", created, **more)


def existing(replica: str, **more: Any) -> OwnPlacement:
    """Return a placement of the adapter at hand."""
    return OwnPlacement(replica, placement_name(ADAPTER, replica), **more)


def world(
    *bases: BaseReplica,
    wanted: int = 1,
    minimum: int = 0,
    have: tuple[str, ...] = (),
    others: tuple[AdapterPlacement, ...] = (),
    **more: Any,
) -> AdapterInput:
    """Return the input of a pass. `have`: replicas that the adapter is on."""
    placements: dict[str, tuple[AdapterPlacement, ...]] = {}
    for placement in (*others, *(on(replica) for replica in have)):
        placements[placement.replica] = (*placements.get(placement.replica, ()), placement)
    fields: dict[str, Any] = {
        "rank": 16,
        "requirements": (),
        "existing": tuple(existing(replica) for replica in have),
        "complete": True,
        **more,
    }
    return AdapterInput(
        name=ADAPTER,
        wanted=wanted,
        minimum=minimum,
        bases={item.name: item for item in bases},
        placements=placements,
        **fields,
    )


def random_world(seed: int) -> AdapterInput:
    """Return a world of up to five replicas on up to three clusters, with others' adapters on them."""
    draw = random.Random(seed)
    bases = [
        base(
            f"r{number}",
            draw.choice("abc"),
            draw.choice((None, 1, 1, 2, 3)),
            draw.choice((8, 16, 64)),
            draw.choice(((), ("json",), ("json", "tools"))),
            ready=draw.choice((True, True, False, None)),
            terminating=draw.random() < 0.1,
            configured=frozenset({ADAPTER} if draw.random() < 0.4 else ()),
            fault="spec: unreadable" if draw.random() < 0.05 else "",
            leaving="drain" if draw.random() < 0.15 else "",
        )
        for number in range(draw.randint(0, 5))
    ]
    names = [item.name for item in bases]
    have = tuple(name for name in (*names, "gone") if draw.random() < 0.4)
    others = tuple(
        on(name, f"other-{number}", draw.choice(("2025-01-01T00:00:00Z", "2026-06-01T00:00:00Z")))
        for name in names
        for number in range(draw.randint(0, 3))
    )
    wanted = draw.randint(0, 4)
    return world(
        *(item for item in bases if draw.random() < 0.95),
        wanted=wanted,
        minimum=draw.randint(0, wanted),
        have=have,
        others=others,
        rank=draw.choice((8, 16, 32)),
        requirements=draw.choice(((), (), ("json",))),
        absent=frozenset({"gone"} if draw.random() < 0.7 else ()),
        complete=draw.random() < 0.9,
        routed=frozenset(name for name in have if draw.random() < 0.7),
    )
