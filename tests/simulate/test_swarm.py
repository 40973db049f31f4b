"""Whole days keep every promise and come to rest, each the same for its seed; what breaks is made short."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import count

import pytest

from tests.history.judge import judge
from tests.history.lives import ordered
from tests.simulate import swarm
from tests.simulate.swarm import CROWDED, SMALL, USUAL, WINDOW, Day
from tests.simulate.whole import PressingDay, WholeDay
from tests.support import scale
from tests.support.crossplane import Name
from tests.support.hash_seeds import printed_under


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_days_keep_the_promises_and_come_to_rest(number: int) -> None:
    for seed in scale.batch(number, quick=32, gate=800, soak=20_000):
        if complaint := swarm.broken(Day(seed)):
            pytest.fail(complaint, pytrace=False)


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_whole_days_keep_them_down_to_the_pods(number: int) -> None:
    for seed in scale.batch(number, quick=6, gate=160, soak=4_000):
        if complaint := swarm.broken(WholeDay(seed)):
            pytest.fail(complaint, pytrace=False)


@pytest.mark.parametrize("seed", range(2))
def test_a_copy_that_started_after_a_restore_answers_as_every_other_one(seed: int) -> None:
    """What shows a memory that outlives a restore (`defects.py`) has nothing to say where none does."""
    assert not swarm.broken(swarm.RelapsingDay(seed))


DIGEST = """
import hashlib, json
from tests.simulate.whole import WholeDay
rows = json.dumps(WholeDay(2).live().rows, sort_keys=True)
print(hashlib.sha256(rows.encode()).hexdigest())
"""


def test_a_day_is_the_same_for_the_same_seed_in_any_process() -> None:
    digests = printed_under(("1", "3"), DIGEST)
    assert len(digests) == 1


def test_the_days_are_worth_looking_at() -> None:
    """Replicas leave in them for most of the reasons of Law 2, and roll within budgets."""
    counts: Counter[str] = Counter()
    for seed in range(1, 5):
        counts += judge(ordered(Day(seed, sizes=(USUAL,)).live().rows), WINDOW).counts
    few = [
        what
        for what in ("its cluster is gone", "a taint", "scaled down", "by another hand", "a mismatch")
        if not counts[f"ModelReplica: {what}"]
    ]
    assert not few, counts


def test_what_breaks_a_day_is_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = frozenset({1, 3})

    def broken(day: Day) -> str:
        return str(sorted(set(range(day.size.events)) - day.left_out)) if not needed & day.left_out else ""

    monkeypatch.setattr(swarm, "broken", broken)
    assert swarm.shrunk(partial(Day, 1)) == "[1, 3]"


def test_a_copy_that_answers_otherwise_than_before_is_complained_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "AGAIN", 1.0)
    day, numbers = Day(1), count()
    day.copies = [lambda _: str(next(numbers)).encode()]
    assert day.ask(b"a request") == b"0"
    assert (day.ask(b"another"), day.complaints) == (b"1", [])
    day.ask(b"a request")
    assert day.complaints == ["at 0 s: one request has two answers"]


def test_what_the_provider_complains_of_is_said_when_it_happens() -> None:
    """Days of two releases leave out what happened while the earlier one answered."""
    day = WholeDay(1, sizes=(SMALL,))
    day.provider.complaints.append("a Secret left")
    day.look()
    assert "a Secret left" in day.complaints[0]
    day.complaints.clear()
    day.look()
    assert not day.complaints


@pytest.mark.parametrize(
    ("paused", "spare", "preempting", "may", "reason"),
    [
        (True, "0", "true", True, "who is paused gives nobody up, and nobody else can"),
        (False, "0", "true", False, "who is named and not paused lets one go"),
        (True, "1", "true", False, "another one could be taken in its place"),
        (True, "0", "", False, "it asks nobody, so it has to leave the pool"),
    ],
)
def test_who_may_wait_for_a_node(
    *, paused: bool, spare: str, preempting: str, may: bool, reason: str
) -> None:
    day = PressingDay(0, sizes=(CROWDED,))
    for name, note, label in zip(day.wishes, ("all", "", spare), ("", preempting, ""), strict=True):
        labels = {"modelplane.ai/deployment": name.name, "modelplane.ai/preempting": label}
        metadata = {"name": name.name, "namespace": name.namespace, "uid": str(name), "labels": labels}
        replica = {"metadata": metadata | {"annotations": {"modelplane.ai/spare": note}}}
        day.plane.objects[name._replace(kind="ModelReplica")] = {**replica, "spec": {"clusterName": "c0"}}
    first, waiting, _ = day.wishes
    day.edit(first, paused=paused)
    status = {"givesWay": [{"replica": f"{first.namespace}/{first.name}"}]}
    day.plane.objects[Name("InferenceCluster", "", "c0")] = {"status": status}
    assert day.may_wait(day.plane.objects[waiting._replace(kind="ModelReplica")]) is may, reason
