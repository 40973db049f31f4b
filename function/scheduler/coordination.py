"""coordination: GlobalOrder. Every instance places for all deployments in one order, on one ledger.

Those whose turn comes before ours are taken through a pass of their own first; what they would place is
charged, and only our slice is emitted. Equal snapshots give disjoint claims without a lock; old lists may
differ once replicas come and go, and what they did is mended by `overcommit: Yield` only. A deployment whose
selectors do not compile places nothing in its pass, here as on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.scheduler.question import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.own import Own
    from function.scheduler.decision import Decision, Placed
    from function.scheduler.ledger import Ledger
    from function.scheduler.question import Question


def reserve(question: Question, ledger: Ledger, run: Callable[[Question, Ledger], Decision]) -> None:
    """Charge what every earlier deployment would place now.

    What one of them gives up in its pass stays charged for everybody else until it is really gone.
    """
    for peer in question.peers.earlier:
        asked = ask(peer.deployment, peer.fleet, question.config)
        for placed in run(asked, ledger).placed:
            if placed.replaces is not None:
                ledger.charge(placed.replaces.holds, _stood_on(placed, placed.replaces))


def _stood_on(placed: Placed, own: Own) -> dict[str, int]:
    """Nodes of a replica given up that its own replacement stands on: its pass charged them only once."""
    if placed.identity.cluster != own.holds:
        return {}
    nodes = placed.candidate.nodes
    return {pool: min(held, nodes.get(pool, 0)) for pool, held in own.replica.nodes.items()}
