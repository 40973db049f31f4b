"""placement.evacuate: what has been lost or degraded too long is replaced, by observed time and no other."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import build, scale
from tests.support.cases import ask, clusters
from tests.support.drive import run
from tests.support.world import World

if TYPE_CHECKING:
    from tests.support.drive import Answer

Plain = dict[str, Any]
NOON, MORNING = "2026-03-01T12:00:00Z", "2026-03-01T08:00:00Z"
YEAR_AHEAD, YEAR_BEHIND = "2027-03-01T12:00:00Z", "2025-03-01T12:00:00Z"
HOUR = {"afterSeconds": 3600}


def fleet(*, nodes: int = 2, **beats: Any) -> list[Plain]:
    """Return Ready clusters by name with their heartbeats; None publishes none."""
    made = clusters(**dict.fromkeys(beats, nodes))
    for manifest, beat in zip(made, beats.values(), strict=True):
        if beat is not None:
            manifest["status"]["heartbeat"] = beat
    return made


def sick(manifest: Plain, since: Any = MORNING) -> Plain:
    """Return an object whose Ready is False since a time; None: it does not say."""
    condition = build.condition("Ready", status=False)
    condition.pop("lastTransitionTime") if since is None else condition.update(lastTransitionTime=since)
    others = [one for one in manifest.get("status", {}).get("conditions", ()) if one["type"] != "Ready"]
    manifest.setdefault("status", {})["conditions"] = [*others, condition]
    return manifest


def asking(replicas: int = 1, evacuate: Plain | None = HOUR, **policy: Any) -> Plain:
    """Return a deployment that asks for evacuation, unless told otherwise."""
    return ask(replicas, placement=policy | ({"evacuate": evacuate} if evacuate else {}))


def own_replicas(deployment: Plain, *on: str, ready: bool = True) -> list[Plain]:
    """Return running replicas on these clusters."""
    return [
        build.replica(deployment, name, on[:at].count(name), pools="p0", ready=ready)
        for at, name in enumerate(on)
    ]


def ask_for(deployment: Plain, made: list[Plain] | None, running: list[Plain], **more: Any) -> Answer:
    """Return the answer to a world."""
    return run(World(deployment, made, running, build.observed(*running), **more), level="plain")


def stay(answer: Answer) -> list[str]:
    """Return the clusters of the desired replicas, sorted."""
    return sorted(replica["spec"]["clusterName"] for replica in answer.replicas.values())


LOST = {"a": MORNING, "b": NOON, "c": NOON}


def test_it_is_off_by_default() -> None:
    assert stay(ask_for(asking(evacuate=None), fleet(**LOST), own_replicas(asking(), "a"))) == ["a"]


def test_a_lost_cluster_is_left_for_another_and_the_event_says_so() -> None:
    answer = ask_for(asking(), fleet(**LOST), own_replicas(asking(), "a"))
    assert stay(answer) == ["b"]
    assert answer.events[0][:2] == ("WARNING", "ReplicaEvacuated")
    assert "its cluster has not been heard of for too long: for over 3600 s" in answer.events[0][2]


def test_a_lost_cluster_gets_nothing_new_though_it_still_says_that_it_is_ready() -> None:
    """Else the replacement, on the cluster with the fewest replicas, would be lost at once, and so on."""
    answer = ask_for(asking(4), fleet(nodes=1, **LOST), [])
    assert stay(answer) == ["b", "c"]
    assert "1 cluster lost (no heartbeat for over 3600 s)" in answer.conditions["ReplicasScheduled"][2]


def test_a_cluster_that_is_not_ready_for_too_long_is_left() -> None:
    made = fleet(a=NOON, b=NOON)
    sick(made[0])
    assert stay(ask_for(asking(), made, own_replicas(asking(), "a"))) == ["b"]


def test_a_replica_that_is_not_ready_for_too_long_is_placed_anew() -> None:
    running = [sick(own_replicas(asking(), "a")[0])]
    answer = ask_for(asking(strategy="BinPack"), fleet(a=NOON, b=NOON), running)
    assert "replica-a-0" not in answer.replicas
    assert len(answer.replicas) == 1


KEPT = [
    ("2026-03-01T11:00:00Z", "for as long as asked, and not longer"),
    ("2026-03-01T11:30:00Z", "not for long enough"),
    ("2026-03-01T13:00:00Z", "since a time that is yet to come"),
    (None, "nobody says since when"),
    ("", "an empty time"),
    ("yesterday", "no time"),
    ("2026-02-30T08:00:00Z", "a day that there is not"),
    ("2026-03-01 08:00:00", "without a zone"),
    (0, "a number"),
    (["2026-03-01T08:00:00Z"], "a list"),
    ("0001-01-01T00:00:00Z", "the time that a program writes which has none"),
    ("9" * 100_000, "an absurdly long text"),
]


@pytest.mark.parametrize(("since", "reason"), KEPT, ids=[pair[1] for pair in KEPT])
def test_doubt_about_a_time_keeps(since: Any, reason: str) -> None:
    made = fleet(a=NOON, b=NOON)
    sick(made[0], since)
    assert stay(ask_for(asking(), made, own_replicas(asking(), "a"))) == ["a"], reason
    running = [sick(own_replicas(asking(), "a")[0], since)]
    if since != "0001-01-01T00:00:00Z":  # Not Ready since it was made, which is long ago.
        assert set(ask_for(asking(), fleet(a=NOON, b=NOON), running).replicas) == {"replica-a-0"}, reason


def test_what_is_younger_than_its_condition_was_restored_and_counts_from_then() -> None:
    made = fleet(a=NOON, b=NOON)
    sick(made[0], "2025-01-01T00:00:00Z")["metadata"]["creationTimestamp"] = "2026-03-01T11:50:00Z"
    assert stay(ask_for(asking(), made, own_replicas(asking(), "a"))) == ["a"]


def test_without_a_place_it_stays_and_an_edit_still_reaches_it() -> None:
    """What is degraded for want of a better image must not be out of reach of one."""
    running = own_replicas(asking(), "a")
    made = fleet(nodes=1, a=MORNING, b=NOON, c=NOON)
    made[1]["metadata"]["deletionTimestamp"] = made[2]["metadata"]["deletionTimestamp"] = NOON
    made += fleet(nodes=0, d=NOON, e=NOON)
    edited = asking()
    member = edited["spec"]["template"]["spec"]["engines"][0]["members"][0]
    member["template"] = build.template("vllm/vllm-openai:mended")
    answer = ask_for(edited, made, running)
    assert set(answer.replicas) == {"replica-a-0"}
    assert "vllm/vllm-openai:mended" in str(answer.replicas["replica-a-0"])
    status, reason, _ = answer.conditions["ReplicasScheduled"]
    assert (status, reason) == (False, "ReplacementBlocked")


def test_it_keeps_within_the_budget_as_long_as_it_serves() -> None:
    deployment = asking(3, disruption={"maxUnavailable": 1})
    answer = ask_for(deployment, fleet(nodes=4, **LOST), own_replicas(deployment, "a", "a", "b"))
    assert stay(answer) == ["a", "b", "c"]
    starting = [*own_replicas(deployment, "a", "b"), *own_replicas(deployment, "c", ready=False)]
    starting[2]["status"]["conditions"][0]["lastTransitionTime"] = NOON
    assert stay(ask_for(deployment, fleet(nodes=4, **LOST), starting)) == ["a", "b", "c"]


def test_what_does_not_serve_anyway_takes_nothing_from_the_budget() -> None:
    """A cluster that fails with more replicas than the budget has would else keep all of them for ever."""
    deployment = asking(3, disruption={"maxUnavailable": 1})
    running = [*own_replicas(deployment, "a", "a", ready=False), *own_replicas(deployment, "b")]
    assert stay(ask_for(deployment, fleet(nodes=4, **LOST), running)).count("a") == 0


def test_what_is_mismatched_too_is_replaced_for_that() -> None:
    """Law 2, reason 3 comes before 7: it would go with a cluster in the best of health as well."""
    other = asking()
    other["spec"]["template"]["spec"]["engines"][0]["name"] = "other"
    [dropped] = ask_for(other, fleet(**LOST), own_replicas(asking(), "a")).decision.dropped
    assert (dropped.cause.name, dropped.detail) == ("Replaced", "the engines changed shape")


def test_a_replica_that_grew_gives_its_growth_back_when_it_goes() -> None:
    """It is charged for the edit while it stays; its replacement may stand where that was."""
    made = fleet(nodes=2, a=NOON, b=NOON)
    made[1]["status"]["gpuPools"][0]["nodes"] = 0
    grown = asking(1)
    grown["spec"]["template"]["spec"]["engines"][0]["copies"] = 2
    answer = ask_for(grown, made, [sick(own_replicas(asking(), "a")[0])])
    assert set(answer.replicas) == {"replica-a-1"}
    assert answer.decision.ledger.capacity("a", "p0").free_nodes == 0, "once, whatever becomes of it"


PAUSED = [
    ({"a": None, "b": None, "c": None}, "NoClock: no cluster publishes a heartbeat"),
    ({"a": None, "b": NOON, "c": None}, "NoClock: only one cluster publishes a heartbeat"),
    ({"a": MORNING, "b": "x", "c": 7}, "NoClock: only one cluster publishes a heartbeat"),
    (
        {"a": MORNING, "b": "2026-03-01T06:00:00Z", "c": NOON},
        "EvacuationPaused: only 1 of 3 heartbeats is within 3600 s of the newest (c)",
    ),
    (
        {"a": NOON, "b": NOON, "c": YEAR_AHEAD},
        "EvacuationPaused: only 1 of 3 heartbeats is within 3600 s of the newest (c)",
    ),
]


@pytest.mark.parametrize(("beats", "said"), PAUSED, ids=[str(number) for number in range(len(PAUSED))])
def test_without_a_clock_nothing_happens_and_it_is_said(beats: Plain, said: str) -> None:
    made = fleet(**beats)
    sick(made[0])
    answer = ask_for(asking(), made, own_replicas(asking(), "a"))
    assert set(answer.replicas) == {"replica-a-0"}
    assert f"{said}, so nothing is evacuated" in answer.conditions["ReplicasScheduled"][2]
    quiet = ask_for(asking(evacuate=None), made, own_replicas(asking(), "a"))
    assert "evacuated" not in str(quiet.conditions), "who did not ask is not told"


@pytest.mark.parametrize(
    ("reason", "made", "well"),
    [
        ("nothing is to be evacuated", fleet(a=None, b=None), True),
        ("the clusters are not delivered, so nobody knows their clock", None, False),
        ("no cluster exists, so none is without a clock", [], False),
    ],
)
def test_a_clock_is_missed_only_where_a_known_fleet_needs_one(
    reason: str, made: list[Plain] | None, *, well: bool
) -> None:
    [mine] = own_replicas(asking(), "a")
    answer = ask_for(asking(), made, [mine if well else sick(mine)])
    assert set(answer.replicas) == {"replica-a-0"}
    assert "evacuated" not in str(answer.conditions), reason


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("wrong", [YEAR_AHEAD, YEAR_BEHIND, "2026-03-01T12:59:59Z", "soon"])
def test_one_wrong_clock_moves_nothing_that_is_well(size: int, wrong: str) -> None:
    """Also in a fleet of two, where the wrong clock is half of all."""
    names = "abcdefg"[:size]
    made = fleet(**dict.fromkeys(names, NOON))
    made[0]["status"]["heartbeat"] = wrong
    running = own_replicas(asking(size), *names)
    starting = sick(running[-1], "2026-03-01T11:50:00Z")
    answer = ask_for(asking(size), made, running)
    left = {f"replica-{name}-0" for name in names} - set(answer.replicas)
    assert left <= ({"replica-a-0"} if wrong == YEAR_BEHIND else set()), "only the one who lies may lose"
    assert f"replica-{starting['spec']['clusterName']}-0" in answer.replicas


def test_a_clock_that_is_behind_is_no_loss_where_the_cluster_is_reached() -> None:
    made = fleet(**LOST)
    made[0]["status"]["conditions"].append(build.condition("ClusterReachable", status=True))
    assert stay(ask_for(asking(), made, own_replicas(asking(), "a"))) == ["a"]


SAME = ["2026-03-01T12:00:00.999999999Z", "2026-03-01T14:00:00+02:00", "2026-03-01T06:30:00-05:30"]


@pytest.mark.parametrize("noon", SAME)
def test_zones_and_fractions_are_understood(noon: str) -> None:
    made = fleet(a=noon, b=NOON, c=noon)
    assert stay(ask_for(asking(), made, own_replicas(asking(), "a"))) == ["a"]
    made[0]["status"]["heartbeat"] = "2026-03-01T12:59:00+02:00"
    assert stay(ask_for(asking(), made, own_replicas(asking(), "a"))) == ["b"]


ODD = ("soon", "", None, 5, [], {}, YEAR_AHEAD, YEAR_BEHIND, "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z")


def _odd_time(draw: random.Random) -> Any:
    """Whatever may stand where a time is expected."""
    hour, minute, zone = draw.randrange(30), draw.randrange(70), draw.choice(("Z", "+14:00", "-12:00", ""))
    year = draw.choice((1969, 2025, 2026, 2026, 2027, 9999))
    return draw.choice((*ODD, f"{year}-03-01T{hour:02}:{minute:02}:00.5{zone}"))


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_hostile_times_of_a_minority_move_nothing_of_the_others(number: int) -> None:
    """Honest heartbeats are at most 45 minutes old; whoever starts, has begun within the hour."""
    for seed in scale.batch(number, quick=400):
        draw = random.Random(seed)
        size = draw.randrange(1, 8)
        names = list("abcdefg"[:size])
        liars = set(draw.sample(names, draw.randrange((size + 1) // 2)))
        beats = {
            name: _odd_time(draw) if name in liars else f"2026-03-01T11:{draw.randrange(15, 60)}:00Z"
            for name in names
        }
        made = fleet(**beats)
        running = own_replicas(asking(size), *names)
        for replica in (*made, *running):
            if draw.random() < 0.3:
                sick(replica, f"2026-03-01T11:{draw.randrange(15, 60)}:00Z")
        answer = ask_for(asking(size), made, running)
        moved = {f"replica-{name}-0" for name in names if name not in liars} - set(answer.replicas)
        assert not moved, f"seed {seed}: {beats}"


def test_heartbeats_that_go_on_change_no_byte() -> None:
    """A status that moves with the time would be written every five minutes, for every deployment."""
    config = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}
    status = config | {"explain": "Status"}
    running = own_replicas(asking(2), "a", "b")
    answers = [
        ask_for(asking(2), fleet(a=MORNING, b=beat, c=beat), running[:1] + running[1:], input=status)
        for beat in ("2026-03-01T11:55:00Z", NOON, "2026-03-01T12:05:00Z")
    ]
    assert answers[0].same(answers[1])
    assert answers[1].same(answers[2])
    blocked = [
        ask_for(
            asking(), fleet(nodes=0, a=MORNING, b=beat, c=beat), own_replicas(asking(), "a"), input=status
        )
        for beat in (NOON, "2026-03-01T12:05:00Z")
    ]
    assert blocked[0].same(blocked[1])
