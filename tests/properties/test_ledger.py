"""P2: a pool is never newly charged beyond what it publishes minus what exists (a replacement may stand on
the nodes of the replica it replaces).

P3: kept + placed never exceeds `replicas`.
"""

from __future__ import annotations

from tests.properties.worlds import each_batch, hold
from tests.support.promises.ledger import overcharged, too_many


@each_batch
def test_no_pool_is_charged_beyond_what_it_has(number: int) -> None:
    hold(number, overcharged)


@each_batch
def test_never_more_than_wanted(number: int) -> None:
    hold(number, too_many)
