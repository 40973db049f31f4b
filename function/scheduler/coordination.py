"""coordination: GlobalOrder. Every instance places for all deployments in one order, on one ledger.

Those whose turn comes before ours are taken through a pass of their own first; what they would place is
charged, and only our slice is emitted. Equal snapshots give disjoint claims without a lock; old lists may
differ once replicas come and go, and what they did is mended by `overcommit: Yield` only. A deployment whose
selectors do not compile places nothing in its pass, here as on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.scheduler.decision import Cause
from function.scheduler.question import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.scheduler.decision import Decision
    from function.scheduler.ledger import Ledger
    from function.scheduler.question import Question


def reserve(question: Question, ledger: Ledger, run: Callable[[Question, Ledger], Decision]) -> None:
    """Charge what every earlier deployment would place now.

    What one of them gives up in its pass stays charged for everybody else until it is really gone.
    """
    for peer in question.peers.earlier:
        asked = ask(peer.deployment, peer.fleet, question.config)
        for each in run(asked, ledger).dropped:
            if each.cause is Cause.Replaced:
                ledger.occupy(each.own.replica, each.own.holds)
