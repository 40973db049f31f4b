"""P5: permuting the items of required resources, map entries, conditions, taints or tolerations, any
PYTHONHASHSEED, any process: the same bytes. (The order of engines, members, requests, gpuPools, devices and
alternatives is input.)
"""

from __future__ import annotations

from tests.properties.worlds import each_batch, hold
from tests.support import scale
from tests.support.hash_seeds import printed_under
from tests.support.promises.order import digest, ordered, other_bytes


@each_batch
def test_another_order_gives_the_same_answer(number: int) -> None:
    hold(number, ordered)


@each_batch
def test_another_order_gives_the_same_bytes(number: int) -> None:
    hold(number, other_bytes, quick=80)


def test_another_process_with_another_hash_seed_gives_the_same_bytes() -> None:
    number = scale.count(40, 1000, 5000)
    program = f"from tests.support.promises.order import digest; print(digest({number}))"
    printed = printed_under(("0", "1", "4711"), program)
    assert {text.strip() for text in printed} == {digest(number)}
