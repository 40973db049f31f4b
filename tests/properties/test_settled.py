"""P4: applying the answer (dropped objects still terminating) and asking again gives the same desired
resources.

(An edit that makes a replica smaller gives its nodes back once it is applied: until then it is charged the
larger of its two shapes. And Crossplane deletes only what it has observed: a replica that is merely listed
lives on when it is replaced, and is ours again in the next pass. Such worlds are left out.)

P11: complete: if filling stopped, brute force finds no place either (small fleets).
"""

from __future__ import annotations

from tests.properties.worlds import each_batch, hold
from tests.support.promises.settled import missed, noisy, unsettled


@each_batch
def test_where_nothing_changes_nothing_is_said(number: int) -> None:
    hold(number, noisy)


@each_batch
def test_asking_again_gives_the_same_desired_resources(number: int) -> None:
    hold(number, unsettled)


@each_batch
def test_if_filling_stopped_brute_force_finds_no_place_either(number: int) -> None:
    hold(number, missed)
