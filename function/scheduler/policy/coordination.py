"""coordination: GlobalOrder. Every instance places for all deployments in one order, on one ledger.

Those whose turn comes before ours are taken through a pass of their own first; what they would place is
charged, and only our slice is emitted. Equal snapshots give disjoint claims without a lock; old lists may
differ once replicas come and go, and what they did is mended by `overcommit: Yield` only. A deployment whose
selectors do not compile places nothing in its pass, here as on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.scheduler.scheduling_input import scheduling_input

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.api.ownership import OwnReplica
    from function.scheduler.budget import CallBudget
    from function.scheduler.capacity.ledger import Ledger
    from function.scheduler.decision import Decision, Placed
    from function.scheduler.scheduling_input import SchedulingInput


def reserve(
    inputs: SchedulingInput,
    ledger: Ledger,
    budget: CallBudget,
    run: Callable[[SchedulingInput, Ledger, CallBudget], Decision],
) -> None:
    """Charge what every earlier deployment would place now. All passes share the budget of the call.

    What one of them gives up in its pass stays charged for everybody else until it is really gone.
    """
    for peer in inputs.peers.earlier:
        asked = scheduling_input(peer.deployment, peer.fleet, inputs.config)
        part = budget.portion()
        decision = run(asked, ledger, part)
        budget.with_portion(part)
        for placed in decision.placed:
            if placed.replaces is not None:
                ledger.charge(placed.replaces.holds, _stood_on(placed, placed.replaces))


def _stood_on(placed: Placed, own: OwnReplica) -> dict[str, int]:
    """Nodes of a replica given up that its own replacement stands on: its pass charged them only once."""
    if placed.identity.cluster != own.holds:
        return {}
    nodes = placed.candidate.nodes
    return {pool: min(held, nodes.get(pool, 0)) for pool, held in own.replica.nodes.items()}
