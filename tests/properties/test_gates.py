"""P9: nothing new where a taint is untolerated, the cluster is not Ready, deleting, or has no gateway; no
endpoint without a Ready replica.

P10: spread: a new replica lands on a least-loaded feasible cluster, ties by the rule.
"""

from __future__ import annotations

from tests.properties.worlds import each_batch, hold
from tests.support.promises.gates import barred, dead_ends, uneven


@each_batch
def test_nothing_new_where_a_gate_is_closed(number: int) -> None:
    hold(number, barred)


@each_batch
def test_no_endpoint_without_a_ready_replica(number: int) -> None:
    hold(number, dead_ends)


@each_batch
def test_a_new_replica_lands_on_a_least_loaded_feasible_cluster(number: int) -> None:
    hold(number, uneven)
