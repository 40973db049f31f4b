"""Reserve places for deployments that come before ours in the common order.

`coordination: GlobalOrder`. Every instance places for all deployments in one order, on one ledger. Those
whose turn comes before ours are taken through a pass of their own first; what they would place is charged,
and only our slice is emitted. Equal snapshots give disjoint claims without a lock; old lists may differ, and
what they did is mended by `overcommit: Yield` only. A deployment whose selectors do not compile places
nothing in its pass, here as on its own.

`overcommit: Yield` alone knows no other deployment, but it knows every replica that gives way. Were each
deployment to place its own on the best cluster, all of them would meet there, give way again, and so on
through the fleet. So those of others that are more senior are placed first, as if they were ours.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from function.scheduler.capacity.device_accounting import Demand
from function.scheduler.capacity.ledger import ReplicaCounts
from function.scheduler.scheduling_input import scheduling_input

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.api.ownership import OwnReplica
    from function.scheduler.budget import CallBudget
    from function.scheduler.capacity.ledger import Ledger
    from function.scheduler.capacity.overcommit import Yielding
    from function.scheduler.decision import Decision
    from function.scheduler.outcomes import Placed
    from function.scheduler.placer import Placer
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
        peer_input = scheduling_input(peer.deployment, peer.fleet, inputs.config)
        part = budget.portion()
        decision = run(peer_input, ledger, part)
        budget.with_portion(part)
        for placed in decision.placed:
            if placed.replaces is not None:
                ledger.charge(placed.replaces.holds, _stood_on(placed, placed.replaces))


def _stood_on(placed: Placed, own_replica: OwnReplica) -> dict[str, Demand]:
    """Nodes of a replica given up that its own replacement stands on: its pass charged them only once."""
    if placed.identity.cluster != own_replica.holds:
        return {}
    nodes = placed.candidate.nodes
    return {pool: Demand(min(held, nodes.get(pool, 0))) for pool, held in own_replica.replica.nodes.items()}


class Queue:
    """The replicas that give way, in the order in which they get new places: ours between those of others."""

    def __init__(self, inputs: SchedulingInput, placer: Placer, gives_way: tuple[Yielding, ...]) -> None:
        """Line them up by seniority; none is in it where the deployments themselves have an order."""
        self._placer = placer
        self._ours = {
            (own_replica.replica.namespace, own_replica.replica.name)
            for own_replica in inputs.fleet.own_replicas
        }
        self._waiting = deque(gives_way if inputs.config.coordination == "None" else ())
        names = {(yields.replica.namespace, yields.replica.deployment) for yields in self._waiting}
        self._counts = {name: ReplicaCounts() for name in names}
        for replica in inputs.fleet.other_replicas if names else ():
            if not replica.deleting and (replica.namespace, replica.deployment) in names:
                self._counts[replica.namespace, replica.deployment].add(replica.cluster)
        for yields in self._waiting:
            replica = yields.replica
            self._counts[replica.namespace, replica.deployment].add(replica.cluster, -1)

    def serve_seniors(self) -> None:
        """Charge a place for every replica whose turn comes before the next of ours."""
        while self._waiting:
            replica = self._waiting.popleft().replica
            if (replica.namespace, replica.name) in self._ours:
                return
            self._serve(self._counts[replica.namespace, replica.deployment])

    def _serve(self, counts: ReplicaCounts) -> None:
        """Place one replica of a deployment with these counts, as if it were ours."""
        ledger = self._placer.ledger
        ours = ledger.count_for(counts)
        placement = self._placer.best()
        if placement is not None:
            self._placer.take(placement.candidate)
        ledger.count_for(ours)
