"""Own replicas are read twice, from caches: what one of the reads knows already counts for budgets.

Crossplane hands over what it observed, and the list that was required. Either may be of a moment before its
latest apply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support import build
from tests.support.cases import clusters
from tests.support.coordinated import EARLY, LATE, called, coordinated
from tests.support.drive import run
from tests.support.rollouts import NEW, OLD, Seen, deployment, images, running
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

Plain = dict[str, Any]

FLEET = {"a": 9, "b": {"nodes": 9, "taints": [build.taint("full", "NoSchedule")]}}
"""The replica of b would be updated first, were all three in service with the old image."""


def written(version: str, uid: str = "one") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version, "uid": uid}}


class Case(NamedTuple):
    reason: str
    observed: Seen
    listed: Seen
    new: set[str]
    """The replicas that are to run the new image."""


UPDATED = Seen("a", 1, NEW, ready=False, more=written("20"))
BEFORE = Seen("a", 1, more=written("9"))
CASES = (
    Case(
        "the list knows already that one was updated: it goes on, and the next waits",
        BEFORE,
        UPDATED,
        {"a-1"},
    ),
    Case("what is observed knows it, and the list is of before", UPDATED, BEFORE, {"a-1"}),
    Case(
        "a listed object of another uid is another object",
        BEFORE,
        Seen("a", 1, NEW, ready=False, more=written("20", uid="two")),
        {"b-0"},
    ),
    *(
        Case(
            f"which is later is not known by {version!r}: what is observed counts",
            BEFORE,
            Seen("a", 1, NEW, ready=False, more=written(version)),
            {"b-0"},
        )
        for version in ("", "x20", "-20", "9")
    ),
)


@pytest.mark.parametrize("case", CASES, ids=[case.reason for case in CASES])
def test_the_later_read_counts(case: Case) -> None:
    others = running(Seen("a", 0), Seen("b", 0))
    made = deployment(3, NEW, {"rollout": {"maxUnavailable": 1}})
    observed = build.observed(*others, case.observed.built())
    answer = run(World(made, clusters(**FLEET), [*others, case.listed.built()], observed))
    assert {key for key, image in images(answer).items() if image == NEW} == case.new, case.reason


def given_up(listed: Sequence[Seen], placement: Plain) -> set[str]:
    """Return what is given up of two observed replicas on a and b, while b is drained."""
    observed = running(Seen("a", 0), Seen("b", 0))
    fleet = clusters(a=9, b={"nodes": 9, "taints": [build.taint("x", "NoExecute")]})
    made = deployment(3, OLD, placement)
    answer = run(World(made, fleet, [*observed, *running(*listed)], build.observed(*observed)))
    return build.observed(*observed).keys() - answer.replicas.keys()


def test_one_that_is_only_listed_is_not_in_service() -> None:
    """It may have been given up a moment ago: Crossplane observes all that it has, and this it does not."""
    for listed in ((), (Seen("a", 1),)):
        assert not given_up(listed, {"disruption": {"maxUnavailable": 1}})
        assert given_up(listed, {"disruption": {"maxUnavailable": 2}}) == {"replica-b-0"}


HALF = {"status": {"engines": [{"name": "main", "copies": 1, "available": 1, "updated": 1}]}}


def test_one_that_is_only_listed_is_no_half_updated_one() -> None:
    """It serves with all of its old pods. With `maxUnavailable: 0` another is placed before it is touched."""
    listed = running(*(Seen("a", index, serves=OLD, more=HALF) for index in (0, 1)))
    made = deployment(2, NEW, {"rollout": {"maxUnavailable": 0}, "disruption": {"maxSurge": 1}})
    for observed in (listed, listed[:1], []):
        answer = run(World(made, clusters(a=9, b=9), listed, build.observed(*observed)))
        assert images(answer) == {"a-0": OLD, "a-1": OLD, "b-0": NEW}


def test_what_is_listed_of_an_earlier_deployment_is_in_service() -> None:
    """What it observes is not delivered to us, and the node that it takes next is not ours."""
    gone = {"nodes": 4, "taints": [build.taint("broken", "NoExecute")]}
    fleet = clusters(a=gone, b=1, c=1)
    first = called("first", 2, EARLY, placement={"disruption": {"maxUnavailable": 1}})
    listed = [build.replica(first, on, 0, pools="p0", ready=True) for on in ("a", "c")]
    answer = coordinated(called("second", 1, LATE), [first], fleet, listed=listed)
    assert not answer.replicas
