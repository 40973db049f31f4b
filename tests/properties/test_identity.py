"""P6: a retained replica keeps cluster, index and pools.

P7: identities and composed names are unique, valid, and never reused while an object or observed key with
them exists.

P8: all members of an engine share a pool (or a proven fabric); every engine resolves a DRA claim.
"""

from __future__ import annotations

from tests.properties.worlds import each_batch, hold
from tests.support.promises.identity import moved, reused, split


@each_batch
def test_a_retained_replica_keeps_cluster_index_and_pools(number: int) -> None:
    hold(number, moved)


@each_batch
def test_identities_and_names_are_unique_valid_and_never_reused(number: int) -> None:
    hold(number, reused)


@each_batch
def test_the_members_of_an_engine_share_a_pool_and_claim_a_device(number: int) -> None:
    hold(number, split)
