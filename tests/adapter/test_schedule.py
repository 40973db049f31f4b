"""Where adapters go and stay, as cases; the rules of Seldon Core 2 quoted where they are ours too."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from function.adapter import schedule as adapter_schedule
from function.adapter.schedule import LeaveCause, RefusalReason, gained, one_more_slot, schedule, serves
from tests.adapter.worlds import ADAPTER, base, existing, on, random_world, world
from tests.schema.crds import ROOT
from tests.support.scale import seeds

if TYPE_CHECKING:
    from function.adapter.schedule import AdapterDecision, AdapterInput

LOADED = frozenset({ADAPTER})


class Case(NamedTuple):
    """A world and the replicas that the adapter is on after a pass."""

    reason: str
    inputs: AdapterInput
    expected: tuple[str, ...]
    rule: str = ""
    """The sentence of Seldon's page (models/scheduling) that it shows."""


CASES = [
    Case(
        "a requirement that only one replica meets",
        world(base("r0"), base("r1", capabilities=("json", "tools")), requirements=("json",)),
        ("r1",),
        "Server has matching Capabilities with Model spec.requirements.",
    ),
    Case(
        "three are wanted, two replicas there are, and no minReplicas would forbid a part",
        world(base("r0"), base("r1"), wanted=3),
        ("r0", "r1"),
        "Partial scheduling is defined as the loading of enough replicas of the model above "
        "spec.minReplicas and upto the number of available Server replicas.",
    ),
    Case(
        "fewer than minReplicas would fit: nothing new",
        world(base("r0"), base("r1", slots=None), wanted=3, minimum=2),
        (),
        "Server has enough replicas to load the desired spec.replicas of the Model.",
    ),
    Case(
        "a full replica takes none",
        world(base("r0", slots=1), base("r1"), others=(on("r0", "other"),)),
        ("r1",),
        "Each replica of Server has enough available memory to load one replica of the model.",
    ),
    Case(
        "the replica whose engine has it, though the other is emptier",
        world(base("r0", slots=9), base("r1", configured=LOADED), others=(on("r1", "other"),)),
        ("r1",),
        "Server that already hosts the Model is preferred to reduce flip-flops.",
    ),
    Case("a rank above the room", world(base("r0", rank=8), base("r1", rank=64), rank=32), ("r1",)),
    Case(
        "spread over clusters before the emptiest",
        world(base("r0", "a", 9), base("r1", "a", 9), base("r2", "b", 1), wanted=2),
        ("r0", "r2"),
        "A specific Model can only be assigned to at most one Server",
    ),
    Case("the emptiest of one cluster", world(base("r0", slots=1), base("r1", slots=2)), ("r1",)),
    Case("ties by name", world(base("r1"), base("r0")), ("r0",)),
    Case(
        "a placement that is being deleted holds its slot",
        world(base("r0", slots=1), others=(on("r0", "other", terminating=True),)),
        (),
    ),
    Case("no replica takes it twice", world(base("r0"), wanted=2), ("r0",)),
    Case(
        "what is there stays, whatever is emptier",
        world(base("r0"), base("r1", slots=9), have=("r0",)),
        ("r0",),
    ),
    Case("an undelivered replica keeps it", world(base("r1"), have=("r0",)), ("r0",)),
    Case(
        "a replica that is not Ready keeps it",
        world(base("r0", ready=False), base("r1"), have=("r0",)),
        ("r0",),
    ),
    Case("an unreadable replica keeps it", world(base("r0", fault="x"), base("r1"), have=("r0",)), ("r0",)),
    Case(
        "a replica that is gone loses it",
        world(base("r1"), have=("r0",), absent=frozenset({"r0"})),
        ("r1",),
    ),
    Case("an emptied base is doubt", world(have=("r0",), absent=frozenset({"r0"})), ("r0",)),
    Case(
        "a replica that is being deleted keeps it until its successor serves",
        world(base("r0", terminating=True, configured=LOADED), base("r1"), have=("r0",)),
        ("r0", "r1"),
    ),
    Case(
        "and then no longer",
        world(
            base("r0", terminating=True, configured=LOADED), base("r1", configured=LOADED), have=("r0", "r1")
        ),
        ("r1",),
    ),
    Case(
        "a replica that is about to leave keeps it, and another takes it first",
        world(base("r0", leaving="drain", configured=LOADED), base("r1"), have=("r0",)),
        ("r0", "r1"),
    ),
    Case(
        "until the other serves",
        world(
            base("r0", leaving="drain", configured=LOADED), base("r1", configured=LOADED), have=("r0", "r1")
        ),
        ("r1",),
    ),
    Case(
        "and has an endpoint too, where the first has one",
        world(
            base("r0", leaving="drain", configured=LOADED),
            base("r1", configured=LOADED),
            have=("r0", "r1"),
            routed=frozenset({"r0"}),
        ),
        ("r0", "r1"),
    ),
    Case(
        "nowhere to go: it stays until its replica leaves",
        world(base("r0", leaving="drain", configured=LOADED), have=("r0",)),
        ("r0",),
    ),
    Case(
        "what is about to leave takes no other adapter",
        world(base("r0", slots=9, leaving="drain"), base("r1", slots=1)),
        ("r1",),
    ),
    Case(
        "taken back: the one that serves stays, and the new place leaves",
        world(base("r0", configured=LOADED), base("r1"), have=("r0", "r1")),
        ("r0",),
    ),
    Case(
        "a rank edited below it, nowhere to go: it is held", world(base("r0", rank=8), have=("r0",)), ("r0",)
    ),
    Case(
        "the later one gives way where two took the last slot",
        world(
            base("r0", slots=1), base("r1"), have=("r0",), others=(on("r0", "older", "2025-01-01T00:00:00Z"),)
        ),
        ("r1",),
    ),
    Case(
        "the earlier one does not",
        world(
            base("r0", slots=1), base("r1"), have=("r0",), others=(on("r0", "newer", "2027-01-01T00:00:00Z"),)
        ),
        ("r0",),
    ),
    Case(
        "scale down takes the one that is not Ready",
        world(base("r0", ready=False), base("r1"), have=("r0", "r1")),
        ("r1",),
    ),
    Case(
        "then one of the cluster with most",
        world(base("r0", "a"), base("r1", "b"), base("r2", "a"), have=("r0", "r1", "r2"), wanted=2),
        ("r0", "r1"),
    ),
    Case("scale to none", world(base("r0", configured=LOADED), have=("r0",), wanted=0), ()),
    Case("while the base is not delivered nothing is placed", world(base("r0"), complete=False), ()),
]


def test_the_page_has_each_rule_with_its_case() -> None:
    page = (ROOT / "docs" / "adapters.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith('| "')]
    quoted = {(row[0].strip('"'), row[-1]) for row in rows if not row[-1].startswith("`")}
    assert quoted == {(case.rule, case.reason) for case in CASES if case.rule}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_where_it_is_after_a_pass(case: Case) -> None:
    assert replicas_of(schedule(case.inputs)) == case.expected


def replicas_of(decision: AdapterDecision) -> tuple[str, ...]:
    return tuple(sorted((*(kept.existing.replica for kept in decision.kept), *decision.placed)))


def test_every_replica_that_takes_none_is_counted_with_its_first_reason() -> None:
    inputs = world(
        base("r0", slots=None),
        base("r1", rank=8),
        base("r2", terminating=True),
        base("r3", slots=1),
        base("r4"),
        base("r5", fault="spec.engines[0].adapters.slots: expected a whole number"),
        base("r6", leaving="drain"),
        wanted=2,
        have=("r4",),
        others=(on("r3", "other"),),
        requirements=(),
    )
    rows = {(replica, reason) for replica, reason, _ in schedule(inputs).rejections}
    assert rows == {
        ("r0", RefusalReason.NO_ROOM),
        ("r1", RefusalReason.RANK),
        ("r2", RefusalReason.LEAVING),
        ("r3", RefusalReason.NO_SLOT),
        ("r4", RefusalReason.HAS_IT),
        ("r5", RefusalReason.UNREADABLE),
        ("r6", RefusalReason.LEAVING),
    }


def test_a_slot_more_is_a_hint_only_where_it_helps() -> None:
    full = world(base("r0", slots=1), others=(on("r0", "other"),))
    assert gained(schedule(full), one_more_slot) == 1
    assert gained(schedule(world(base("r0", slots=None))), one_more_slot) == 0


# An oracle: the same rules, written as what must hold of an answer and found by trying every answer.


def possible(inputs: AdapterInput, name: str, taken: set[str]) -> bool:
    """Tell whether a replica may take the adapter."""
    item = inputs.bases[name]
    if item.fault or item.terminating or item.leaving or item.room is None or name in taken:
        return False
    holds = len({held.name for held in inputs.placements.get(name, ())})
    return (
        inputs.rank <= item.room.max_rank
        and set(inputs.requirements) <= set(item.room.capabilities)
        and holds < item.room.slots
    )


def fate(inputs: AdapterInput, name: str) -> str:
    """Return what becomes of the placement on a replica before anything is placed."""
    item = inputs.bases.get(name)
    if item is None:
        if name not in inputs.absent:
            return "stays"
        return "gone" if inputs.complete and inputs.bases else "outgoing"
    if item.fault:
        return "stays"
    fits = item.room is not None and inputs.rank <= item.room.max_rank
    fits = fits and item.room is not None and set(inputs.requirements) <= set(item.room.capabilities)
    if item.terminating or not fits:
        return "outgoing"
    mine = existing(name).name
    queue = sorted(
        (held.created, held.name) for held in inputs.placements.get(name, ()) if not held.terminating
    )
    position = [held for _, held in queue].index(mine) if mine in [held for _, held in queue] else -1
    assert item.room is not None
    if position >= item.room.slots:
        return "lost"
    return "outgoing" if item.leaving else "stays"


def oracle(inputs: AdapterInput) -> tuple[str, ...]:
    """Return the replicas after a pass."""
    fates = {item.replica: fate(inputs, item.replica) for item in inputs.existing}
    staying = [name for name, end in fates.items() if end == "stays"]
    cluster = {name: item.cluster for name, item in inputs.bases.items()}

    def crowd(name: str, among: list[str]) -> int:
        return sum(cluster.get(other, "") == cluster.get(name, "") for other in among)

    while len(staying) > inputs.wanted:
        ranked = []
        for name in staying:
            item = inputs.bases.get(name)
            not_ready, bare = (
                item is not None and item.ready is False,
                item is not None and not item.configured,
            )
            ranked.append((not_ready, bare, crowd(name, staying), name))
        staying.remove(max(ranked)[-1])
    placed: list[str] = []
    while inputs.complete and len(staying) + len(placed) < inputs.wanted:
        taken = {item.replica for item in inputs.existing} | set(placed)
        open_ones = [name for name in inputs.bases if possible(inputs, name, taken)]
        if not open_ones:
            break
        ranked_open = []
        for name in open_ones:
            item = inputs.bases[name]
            assert item.room is not None
            left = item.room.slots - len(inputs.placements.get(name, ()))
            ranked_open.append((not item.configured, crowd(name, staying + placed), -left, name))
        placed.append(min(ranked_open)[-1])
    outgoing = [name for name, end in fates.items() if end in ("outgoing", "lost")]
    if len(staying) + len(outgoing) + len(placed) < inputs.minimum:
        placed = []
    served = [
        name
        for name in staying
        if name in inputs.bases and inputs.bases[name].ready is True and inputs.bases[name].configured
    ]
    is_full = len(staying) + len(placed) >= inputs.wanted
    waiting = []
    for name in outgoing:
        others = [other for other in served if name not in inputs.routed or other in inputs.routed]
        if len(others) < inputs.wanted and not (fates[name] == "lost" and is_full):
            waiting.append(name)
    return tuple(sorted(staying + placed + waiting))


def test_the_oracle_says_the_same() -> None:
    for seed in seeds(400):
        inputs = random_world(seed)
        assert replicas_of(schedule(inputs)) == oracle(inputs), seed


def test_law_2_a_placement_leaves_for_a_listed_reason_only() -> None:
    moved = marked = 0
    for seed in seeds(400):
        inputs = random_world(seed)
        decision = schedule(inputs)
        kept = {item.existing.replica for item in decision.kept}
        causes = {item.replica: cause for item, cause in decision.dropped}
        assert kept | set(causes) == {item.replica for item in inputs.existing}, seed
        assert not kept & set(causes), seed
        assert len(decision.staying) + len(decision.placed) <= max(inputs.wanted, len(decision.staying)), seed
        for replica, cause in causes.items():
            item = inputs.bases.get(replica)
            if cause is LeaveCause.REPLICA_GONE:
                assert replica in inputs.absent, seed
                assert inputs.bases, seed
            elif cause is LeaveCause.REPLACED:
                moved += 1
                marked += item is not None and bool(item.leaving)
                assert decision.lasting >= inputs.wanted, seed
                assert item is None or len(decision.serving) >= inputs.wanted or not item.terminating, seed
            else:
                assert cause is LeaveCause.SCALED_DOWN, seed
                assert len(decision.staying) >= inputs.wanted, seed
    assert moved
    assert marked


def test_law_2_what_is_about_to_leave_keeps_its_adapters_until_enough_others_serve() -> None:
    marked = counted = 0
    for seed in seeds(400):
        inputs = random_world(seed)
        decision = schedule(inputs)
        serving = [item.replica for item in decision.staying if serves(inputs, item.replica)]
        for item, cause in decision.dropped:
            base = inputs.bases.get(item.replica)
            if base is not None and base.leaving and cause is LeaveCause.REPLACED:
                marked += 1
                assert len(serving) >= inputs.wanted or fate(inputs, item.replica) == "lost", seed
        last = [kept.existing.replica for kept in decision.kept if kept.lasts]
        assert decision.total == min(decision.lasting + len(last), max(inputs.wanted, decision.lasting)), seed
        assert set(decision.serving) <= {*serving, *last}, seed
        counted += decision.total > decision.lasting
        assert not any(inputs.bases[name].leaving for name in decision.placed), seed
    assert marked
    assert counted


def test_no_pass_takes_more_slots_than_there_are() -> None:
    for seed in seeds(400):
        inputs = random_world(seed)
        for name in schedule(inputs).placed:
            room: Any = inputs.bases[name].room
            assert len(inputs.placements.get(name, ())) < room.slots, seed


def test_law_1_the_order_of_what_was_delivered_decides_nothing() -> None:
    for seed in seeds(100):
        inputs = random_world(seed)
        turned = world(
            *reversed(tuple(inputs.bases.values())),
            wanted=inputs.wanted,
            minimum=inputs.minimum,
            have=tuple(item.replica for item in reversed(inputs.existing)),
            others=tuple(
                held
                for name in reversed(inputs.placements)
                for held in reversed(inputs.placements[name])
                if held.adapter != ADAPTER
            ),
            rank=inputs.rank,
            requirements=inputs.requirements,
            absent=inputs.absent,
            complete=inputs.complete,
            routed=inputs.routed,
        )
        one, other = schedule(inputs), schedule(turned)
        assert (one.kept, one.placed, one.rejections) == (other.kept, other.placed, other.rejections), seed


def test_places_are_those_that_one_after_the_other_is_best() -> None:
    """Rule 4 word for word: the best of all that are left, again and again."""
    several = 0
    for seed in seeds(400):
        inputs = random_world(seed)
        decision = schedule(inputs)
        load = Counter(
            inputs.bases[item.replica].cluster for item in decision.staying if item.replica in inputs.bases
        )
        left = {name: inputs.bases[name] for name in decision.placed}
        for name in decision.placed:
            free = {
                other: base.room.adapters - len(inputs.placements.get(other, ()))
                for other, base in left.items()
                if base.room is not None
            }
            best = min(
                left,
                key=lambda other: (
                    ADAPTER not in left[other].configured,
                    load[left[other].cluster],
                    -free[other],
                    other,
                ),
            )
            assert best == name, seed
            load[left.pop(name).cluster] += 1
        several += len(decision.placed) > 1
    assert several


def test_a_pass_looks_at_no_replica_again_for_each_that_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A base of 3,000 replicas took a second for 200 placements, and four with as many made by hand."""
    looks = []
    original = adapter_schedule._refusal
    monkeypatch.setattr(adapter_schedule, "_refusal", lambda *at: looks.append(at) or original(*at))
    bases = [base(f"r{at:03}", f"c{at % 7}") for at in range(100)]
    assert len(schedule(world(*bases, wanted=80)).placed) == 80
    assert len(looks) == len(bases)


def test_scale_down_takes_the_worst_again_and_again() -> None:
    """Rule 3 word for word."""
    several = 0
    for seed in seeds(400):
        inputs = replace(random_world(seed), wanted=seed % 2, minimum=0)
        decision = schedule(inputs)
        gone = [item.replica for item, cause in decision.dropped if cause is LeaveCause.SCALED_DOWN]
        left = {*gone, *(item.replica for item in decision.staying)}
        for name in gone:
            bases = {other: inputs.bases.get(other) for other in left}
            load = Counter(held.cluster if held else "" for held in bases.values())
            ranks = {
                other: (held.ready is False, ADAPTER not in held.configured, load[held.cluster], other)
                if held
                else (False, False, load[""], other)
                for other, held in bases.items()
            }
            assert max(left, key=ranks.__getitem__) == name, seed
            left.remove(name)
        several += len(gone) > 1
    assert several
